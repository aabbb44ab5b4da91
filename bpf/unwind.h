// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// From a user frame to its caller by .eh_frame, which user space has turned into sorted rows of
// (file offset, rule). Three arrays that user space writes through its own mapping of them:
//
//   code_of_process  by pid: which code ranges the process has
//   code_ranges      by address: which rows the range has
//   unwind_rows      by file offset: the rule
//
// A layout of a process's code has a number, its epoch. Whoever changes the layout gives it a new
// one: this side at exec, user space when it has taken notice of new mappings. What is remembered
// of a layout is remembered by its epoch and needs no taking back. A forked process shares its
// parent's.
#pragma once

#include "ring.h"

#if defined(__TARGET_ARCH_x86)
#define HAS_UNWIND_RULES 1
#endif

#define PROCESS_SLOTS (1 << 16)

// A process has the slot of its pid's lower bits; one that meets another's falls back to copies.
struct process_code {
	u64 identity; // pid | epoch << 32
	// First range | HAS_INTERPRETER | count << 24 | lower 24 bits of the epoch they hold for <<
	// 40
	u64 ranges;
};

#define FIRST_RANGE 0x7fffff
// The code range behind the process's last is none: it tells of an interpreter, by its file_offset.
#define HAS_INTERPRETER (1 << 23)
// `start` is where the state of a Python lies that python.h can read, `end` its version: 11
// for 3.11.
#define INTERPRETER_PYTHON 0
// From `start` to `end` lies the code with which HotSpot interprets Java's methods.
#define INTERPRETER_HOTSPOT 1
// V8: `start` is how far into a function's object the place lies that it shares with others.
#define INTERPRETER_V8 2
// Ruby: at `start` lies its library's number among those with memory for each thread, and `end` is
// how far in this memory what the thread runs lies.
#define INTERPRETER_RUBY 3
// PHP: at `start` lies the address of the innermost frame.
#define INTERPRETER_PHP 4
// Perl: at `start` lies the pthread key of the threads' interpreters.
#define INTERPRETER_PERL 5

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PROCESS_SLOTS);
	__type(key, u32);
	__type(value, struct process_code);
} code_of_process SEC(".maps");

// Ranges of a process lie side by side, ascending, and do not overlap.
struct code_range {
	u64 start;
	u64 end;
	u64 file_offset; // of start
	u64 rows;	 // first row | count << 32; or one of those below
	u64 used; // when its rules were last looked up here, not counting what the cache answered
};

#define ROWS_MISSING 0ULL	// not built yet, or evicted
#define ROWS_FRAME_POINTER 1ULL // code without unwind information
#define ROWS_NONE 2ULL		// the file cannot be read

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << 16);
	__type(key, u32);
	__type(value, struct code_range);
} code_ranges SEC(".maps");

struct unwind_row {
	u32 file_offset;
	u32 rule;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unwind_row);
} unwind_rows SEC(".maps");

// The epochs given out so far, by both sides.
u32 last_epoch;

// A rule is 32 bits: kind | cfa << 4 | saved << 20; crates/unwind has the meaning.
#define RULE_NONE 0
#define RULE_SP 1
#define RULE_FP 2
#define RULE_REALIGNED 3
#define RULE_PLT 4
#define RULE_SIGNAL 5
#define RULE_END 6
#define RULE_UNSUPPORTED 7
// Added to RULE_SP and RULE_FP: the code is an interpreter's loop (chain.h).
#define RULE_LOOP 8
#define RULE_STORED 11
#define RULE_TASK 12
// Only here: the rows are not there.
#define RULE_MISSING 15
// Only here: code without unwind information, mostly of a just-in-time compiler. As RULE_FP:
// CFA = fp + 16, the caller's fp at CFA - 16.
#define RULE_COMPILED 8
#define RULE_FRAME_POINTER (RULE_COMPILED | 2 << 4 | 2 << 20)

// Rules met, a direct-mapped cache for each CPU. One word holds both what was asked (as many bits
// of a hash as there is room for) and the answer, so that an interrupt in between cannot mix two.
#define RULE_CACHE_SHIFT 12

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} rule_cache SEC(".maps");

// The greatest index in [first, first + count) whose row begins at or before `offset`, by
// bisection; the caller checks that there is one. A function of its own, so that the verifier looks
// at it once.
__noinline u32 find_row(u32 first, u32 count, u32 offset)
{
	for (u32 i = 0; i < 26; i++) {
		u32 half = count / 2, middle = first + half;
		struct unwind_row *row;

		if (!half)
			break;
		row = bpf_map_lookup_elem(&unwind_rows, &middle);
		if (!row)
			break;
		if (row->file_offset <= offset)
			first = middle;
		count -= half;
	}
	return first;
}

// The same among code ranges, by address.
__noinline u32 find_range(u32 first, u32 count, u64 address)
{
	for (u32 i = 0; i < 16; i++) {
		u32 half = count / 2, middle = first + half;
		struct code_range *range;

		if (!half)
			break;
		range = bpf_map_lookup_elem(&code_ranges, &middle);
		if (!range)
			break;
		if (range->start <= address)
			first = middle;
		count -= half;
	}
	return first;
}

// What is told of the interpreter that the process has.
static __always_inline struct code_range *interpreter_of(u64 ranges)
{
	u32 index = (ranges & FIRST_RANGE) + (ranges >> 24 & 0xffff);

	return bpf_map_lookup_elem(&code_ranges, &index);
}

// The rule for the code at `address`.
__noinline u32 find_rule(u64 ranges, u64 address)
{
	u32 index = find_range(ranges & FIRST_RANGE, (ranges >> 24) & 0xffff, address), offset;
	struct code_range *range = bpf_map_lookup_elem(&code_ranges, &index);
	struct unwind_row *row;
	u64 rows;

	// A mapping that user space has not heard of yet is missing too.
	if (!range || address < range->start || address >= range->end)
		return RULE_MISSING;
	rows = *(volatile u64 *)&range->rows;
	if (rows == ROWS_MISSING)
		return RULE_MISSING;
	if (rows == ROWS_FRAME_POINTER)
		return RULE_FRAME_POINTER;
	if (rows == ROWS_NONE)
		return RULE_NONE;
	range->used = bpf_ktime_get_ns();
	offset = (u32)(address - range->start + range->file_offset);
	index = find_row((u32)rows, rows >> 32, offset);
	row = bpf_map_lookup_elem(&unwind_rows, &index);
	if (!row || row->file_offset > offset)
		return RULE_NONE;
	return row->rule;
}

// Where a walk is.
struct cursor {
	u64 ip;
	u64 sp;
	u64 fp;
	u64 link; // the return address where it is in a register and no rule can say so; else 0
	u64 ranges;
	u32 epoch;
	u32 cpu;
	u32 exact; // ip is no return address: that very instruction was interrupted
	u16 window;
	u16 task;    // it went on in a task that the thread had parked
	u16 chain;   // functions of a language are among its callers (chain.h)
	u32 loop;    // the frame that was left was an interpreter's loop
	u32 machine; // INTERPRETER_..., if there is one for machine.h; else 0
	u64 machine_start;
	u64 machine_end;
};

// A piece of the stack that is being walked. A read of user memory costs 100 ns for 8 bytes and
// little more for 300: so a walk reads pieces, and words from them.
#define WINDOW_WORDS 512
#define WINDOW_BYTES (WINDOW_WORDS * 8)
#define WINDOW_FILL 1024

struct window {
	u64 words[WINDOW_WORDS];
	u64 base;
	u64 length;
	u64 padding[6];
};

struct window windows[MAX_CPUS * 2] __attribute__((aligned(64)));

static __always_inline struct window *window_at(u32 index)
{
	return &windows[index & (MAX_CPUS * 2 - 1)];
}

// Moves the window so that it begins with the word at `address`: as long as there is stack, for
// near its end a longer read gives nothing.
__noinline u32 move_window(u32 index, u64 address)
{
	struct window *window = window_at(index);

	window->base = address;
	for (u32 shift = 0; shift <= 6; shift += 3) {
		window->length = WINDOW_FILL >> shift;
		if (!bpf_probe_read_user(window->words, WINDOW_FILL >> shift, (void *)address))
			return 1;
	}
	window->length = sizeof(u64);
	if (!bpf_probe_read_user(window->words, sizeof(u64), (void *)address))
		return 1;
	window->length = 0;
	return 0;
}

static __always_inline bool read_word(const struct cursor *at, u64 address, u64 *word)
{
	struct window *window = window_at(at->window);
	u64 offset = address - window->base;

	if (address & 7)
		return bpf_probe_read_user(word, sizeof(*word), (void *)address) == 0;
	if (offset >= window->length) {
		if (!move_window(at->window, address))
			return false;
		offset = 0;
	}
	*word = window->words[(offset >> 3) & (WINDOW_WORDS - 1)];
	return true;
}

// What a signal's handler returns to, from the frame pointer on; x86-64's ucontext.
struct signal_registers {
	u64 fp, bx, dx, ax, cx, sp, ip;
};
#define SIGNAL_REGISTERS_OFFSET 120

// Where Go's runtime keeps a parked goroutine's registers in what describes it; crates/unwind has
// more.
struct task_registers {
	u64 sp, ip, own, context, older_result, newer_fp, fp;
};
#define TASK_REGISTERS_OFFSET 56

static __always_inline u32 cached_rule(const struct cursor *at, u64 address)
{
	u64 hash = (address ^ (u64)at->epoch << 40) * 0x9e3779b97f4a7c15ULL;
	u32 index = at->cpu << RULE_CACHE_SHIFT | ((u32)hash >> (32 - RULE_CACHE_SHIFT));
	u64 *cached = bpf_map_lookup_elem(&rule_cache, &index), known;
	u32 rule;

	if (!cached)
		return RULE_MISSING;
	known = *(volatile u64 *)cached;
	if (known >> 32 == hash >> 32)
		return (u32)known;
	rule = find_rule(at->ranges, address);
	if (rule != RULE_MISSING)
		*(volatile u64 *)cached = hash >> 32 << 32 | rule;
	return rule;
}

// Whether the code has no unwind rules: that of a just-in-time compiler, or assembly.
static __always_inline bool has_no_rules(const struct cursor *at)
{
	u32 rule = cached_rule(at, at->exact ? at->ip : at->ip - 1);

	return (rule & 15) == RULE_NONE || (rule & 15) == RULE_COMPILED;
}

static __always_inline bool is_loop(u32 rule)
{
	return (rule & 15) == (RULE_SP | RULE_LOOP) || (rule & 15) == (RULE_FP | RULE_LOOP);
}

// Whether the frame is an interpreter's loop.
static __always_inline bool in_loop(const struct cursor *at)
{
	return is_loop(cached_rule(at, at->exact ? at->ip : at->ip - 1));
}

// Goes to the caller. Returns STACK_UNKNOWN if it did, else why not.
__noinline u32 step(struct cursor *at)
{
	struct signal_registers registers;
	struct task_registers task;
	u64 cfa, fp, ip, link, before;
	u32 rule, saved;

	if (!at)
		return STACK_UNREADABLE;
	rule = cached_rule(at, at->exact ? at->ip : at->ip - 1);
	cfa = rule >> 4 & 0xffff;
	saved = rule >> 20;
	fp = at->fp;
	link = at->link;
	// It is the innermost frame's; whoever walks on for a missing rule needs it still.
	if (rule != RULE_MISSING)
		at->link = 0;
	at->loop = is_loop(rule);
	switch (rule & 15) {
	case RULE_SP:
	case RULE_SP | RULE_LOOP:
		cfa = at->sp + cfa * 8;
		break;
	case RULE_FP:
	case RULE_FP | RULE_LOOP:
	case RULE_COMPILED:
		// So the ABI marks the outermost frame.
		if (!at->fp)
			return STACK_ROOT;
		cfa = at->fp + cfa * 8;
		break;
	case RULE_PLT:
		cfa = at->sp + ((at->ip & 15) >= cfa ? 16 : 8);
		break;
	case RULE_REALIGNED:
		if (!read_word(at, at->fp - cfa * 8, &cfa) || !read_word(at, at->fp, &fp))
			return STACK_UNREADABLE;
		break;
	case RULE_STORED:
		if (!read_word(at, at->sp + (cfa & 0xfff) * 8 - 8, &before))
			return STACK_UNREADABLE;
		cfa = before + (cfa >> 12) * 8;
		break;
	case RULE_SIGNAL:
		if (bpf_probe_read_user(&registers, sizeof(registers),
					(void *)(at->sp + cfa * 8 + SIGNAL_REGISTERS_OFFSET)))
			return STACK_UNREADABLE;
		at->ip = registers.ip;
		at->sp = registers.sp;
		at->fp = registers.fp;
		at->exact = 1;
		return STACK_UNKNOWN;
	case RULE_TASK:
		// The thread's own stack ends here, if it has parked no task.
		if (!may_walk_on(this_cpu(at->cpu)) || !read_word(at, at->sp + cfa * 8, &before) ||
		    bpf_probe_read_user(&task, sizeof(task),
					(void *)(before + TASK_REGISTERS_OFFSET)) ||
		    task.own != before || task.ip < 4096)
			return STACK_ROOT;
		at->ip = task.ip;
		at->sp = task.sp;
		at->fp = task.fp ?: task.newer_fp;
		at->exact = 0;
		at->task = 1;
		return STACK_UNKNOWN;
	case RULE_END:
		return STACK_ROOT;
	case RULE_MISSING:
		return STACK_MISSING;
	case RULE_NONE:
		// Assembly and code that a program brought along may keep frame pointers.
		if (!at->fp)
			return STACK_ROOT;
		cfa = at->fp + 16;
		saved = 2;
		break;
	default:
		if (!at->exact || !link)
			return STACK_UNSUPPORTED;
		at->ip = link;
		at->exact = 0;
		return STACK_UNKNOWN;
	}
	// Callers lie above.
	if (cfa <= at->sp)
		return rule == RULE_NONE ? STACK_NO_RULE : STACK_UNREADABLE;
	// From below to above: the window moves upwards.
	if ((saved && !read_word(at, cfa - (u64)saved * 8, &fp)) || !read_word(at, cfa - 8, &ip))
		return rule == RULE_NONE ? STACK_NO_RULE : STACK_UNREADABLE;
	// What was only hoped to be a frame must lead to code.
	if (rule == RULE_NONE && cached_rule(at, ip - 1) == RULE_MISSING)
		return STACK_NO_RULE;
	if (ip < 4096)
		return STACK_ROOT;
	at->ip = ip;
	at->sp = cfa;
	at->fp = fp;
	at->exact = 0;
	return STACK_UNKNOWN;
}

// Copies what lies on the stack from the copy's `sp` on.
static __always_inline void copy_stack(struct stack_copy *copy)
{
	// A read that meets the end of the stack gives nothing: in pieces.
	copy->length = 0;
	for (u32 from = 0; from < COPY_BYTES; from += COPY_PIECE) {
		if (bpf_probe_read_user(copy->bytes + from, COPY_PIECE, (void *)(copy->sp + from)))
			break;
		copy->length = from + COPY_PIECE;
	}
}

static __always_inline struct process_code *code_of(u32 pid)
{
	u32 slot = pid & (PROCESS_SLOTS - 1);

	return bpf_map_lookup_elem(&code_of_process, &slot);
}

// The epoch of the process's code; 0 where its slot is another's.
static __always_inline u32 epoch_of(u32 pid)
{
	struct process_code *code = code_of(pid);

	return code && (u32)code->identity == pid ? code->identity >> 32 : 0;
}

// A new process has its parent's code.
static __always_inline u32 inherit_code(u32 parent, u32 child)
{
	struct process_code *from = code_of(parent), *to = code_of(child);
	u64 ranges;
	u32 epoch;

	if (!from || !to || (u32)from->identity != parent)
		return 0;
	epoch = from->identity >> 32;
	ranges = *(volatile u64 *)&from->ranges;
	*(volatile u64 *)&to->identity = child | (u64)epoch << 32;
	*(volatile u64 *)&to->ranges = ranges;
	return epoch;
}

// A process that executes a program has code that only user space can find.
static __always_inline u32 renew_code(u32 pid)
{
	struct process_code *code = code_of(pid);
	u32 epoch = __sync_fetch_and_add(&last_epoch, 1) + 1;

	if (code)
		*(volatile u64 *)&code->identity = pid | (u64)epoch << 32;
	return epoch;
}
