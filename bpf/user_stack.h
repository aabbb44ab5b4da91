// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The user side of stacks: walked by unwind rules; where the rules of some code are not loaded
// (yet), what lies on the stack is sent along, and user space walks on.
//
// A thread that blocks or wakes at a place where it did so before has mostly the same callers
// still. So the last walk from each place (instruction, stack and frame pointer of a process) is
// remembered by where the return addresses lay. If the words there are the same as then, so is the
// walk: each frame's code says where the next address lies.
//
// To look at these words costs more than all else, for nearly each lies in a cache line of its own.
// So a place that was right each time is trusted most times, if the registers that callers keep
// their values in, the call's first argument and the innermost return address are as they were.
#pragma once

#include "calls.h"
#include "machine.h"
#include "perl.h"
#include "php.h"
#include "proof.h"
#include "python.h"
#include "ruby.h"

#ifdef HAS_UNWIND_RULES

#define MEMO_SHIFT 11

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct memo);
} memos SEC(".maps");

static __always_inline struct memo *memo_of(u64 key, u32 cpu)
{
	u32 index = cpu << MEMO_SHIFT | (u32)(key >> (64 - MEMO_SHIFT));

	return bpf_map_lookup_elem(&memos, &index);
}

// A memo that was right so often in a row is trusted, and looked at again after so many uses, or by
// chance at one in so many (a power of two): a program that calls in turns must not keep step with
// the looks.
#define CONFIRMED_ENOUGH 8
#define TRUSTED_MOST 15
#define LOOKED_AT_BY_CHANCE 16

// What callers keep in registers across a call, with the system call and its first argument.
static __always_inline u64 kept_registers(const struct pt_regs *regs)
{
	u64 hash = mix(regs->bx, regs->r12);

	hash = mix(mix(hash, regs->r13), regs->r14);
	return mix(mix(hash, regs->r15), REGS_ARG0(regs) ^ (u64)REGS_CALL(regs) << 48);
}

// The stack that the memo tells of, if it may be trusted; otherwise 0.
static __always_inline u32 trust(struct memo *memo, const struct cursor *at, u64 registers, u64 ts)
{
	u64 caller;

	if (!(mix(0, ts) >> 32 & (LOOKED_AT_BY_CHANCE - 1)))
		return 0;
	if (memo->confirmed < CONFIRMED_ENOUGH || memo->trusted >= TRUSTED_MOST ||
	    memo->registers != registers || memo->doubted)
		return 0;
	if (bpf_probe_read_user(&caller, sizeof(caller), (void *)(at->sp + memo->offsets[0])) ||
	    caller != memo->caller)
		return 0;
	memo->trusted++;
	return memo->stack;
}

// The stack that the memo tells of, if the return addresses are where they were; otherwise 0.
static __always_inline u32 recall(struct memo *memo, const struct cursor *at, u64 hash,
				  u64 registers)
{
	u32 count = memo->count, span = memo->span;
	struct window *window = window_at(at->window);
	const bool near = span <= WINDOW_BYTES;
	u64 caller = 0;

	if (near) {
		if (bpf_probe_read_user(window->words, span, (void *)at->sp))
			return 0;
		window->base = at->sp;
		window->length = span;
	}
	for (u32 i = 0; i < MEMO_FRAMES; i++) {
		u32 offset = memo->offsets[i];
		u64 word;

		if (i >= count)
			break;
		if (near)
			word = window->words[(offset >> 3) & (WINDOW_WORDS - 1)];
		else if (bpf_probe_read_user(&word, sizeof(word), (void *)(at->sp + offset)))
			return 0;
		hash = mix(hash, word);
		if (!i)
			caller = word;
	}
	if (hash != memo->hash) {
		memo->doubted = 1;
		return 0;
	}
	if (memo->registers != registers)
		memo->confirmed = 0;
	memo->registers = registers;
	memo->caller = caller;
	if (memo->confirmed < CONFIRMED_ENOUGH)
		memo->confirmed++;
	memo->trusted = 0;
	return memo->stack;
}

// Sends what is needed to walk on elsewhere. A copy is a stack of its own, whatever it holds.
// Returns its id; 0 if there have been too many. On a busy machine samples of programs without
// rules could take all the room. A wait has one stack only, so part of the room is kept for waits.
static __always_inline u32 send_copy(struct stack_scratch *space, const struct cursor *at,
				     u32 count, u64 ts, u32 pid, u32 scratch)
{
	struct stack_copy *copy = &space->copy;
	struct cpu_state *state = this_cpu(at->cpu);
	struct task_struct *task = bpf_get_current_task_btf();
	u32 id;

	if (!state->copies_left || count > MAX_FRAMES ||
	    (scratch == SCRATCH_SAMPLE && state->copies_left <= state->copies_kept))
		return 0;
	state->copies_left--;
	copy->sp = at->sp;
	copy_stack(copy);
	id = __sync_fetch_and_add(&last_stack, 1) + 1;
	copy->ts = ts;
	copy->kind = DEFINITION_STACK_COPY;
	copy->stack = id;
	copy->pid = pid;
	copy->frame_count = count;
	copy->fp = at->fp;
	copy->exact = at->exact;
	copy->link = at->link;
	copy->tid = task->pid;
	copy->thread_pointer = 0;
#if defined(__TARGET_ARCH_x86)
	copy->thread_pointer = task->thread.fsbase;
#endif
	copy->top = REGS_SP((struct pt_regs *)bpf_task_pt_regs(task));
	bpf_probe_read_kernel(copy->frames, count * sizeof(u64), space->walk.frames);
	if (bpf_ringbuf_output(&definitions, copy,
			       __builtin_offsetof(struct stack_copy, frames) + count * sizeof(u64),
			       BPF_RB_NO_WAKEUP)) {
		state->lost_definitions++;
		return 0;
	}
	return id;
}

// Adds the frame after frame `i` - 1 to a walk that began at the stack pointer `sp`. Returns
// whether there may be more. All that changes is in memory, whose content the verifier does not
// follow, so that it looks at this once and not once for each frame.
__noinline u32 add_frame(struct cursor *at, u32 scratch, u32 i, u64 sp)
{
	struct stack_scratch *space = bpf_map_lookup_elem(&stack_scratch, &scratch);
	struct stack_definition *walk;
	u64 offset, frame;

	if (!space || !at || !i || i >= MAX_FRAMES)
		return 0;
	walk = &space->walk;
	if (!at->chain || !chain_inside(scratch)) {
		u64 below = at->sp, function = described_function(at);
		u32 end = at->ranges ? step(at) : STACK_MISSING;

		if (function) {
			walk->frames[i - 1] = function;
			space->hash = mix(space->hash, function);
			// Other functions have the same return addresses.
			space->remember = 0;
		}
		if (end != STACK_UNKNOWN) {
			walk->end = end;
			return 0;
		}
		// Instead of the interpreter's loop come the functions that it runs.
		if (at->chain && !at->exact &&
		    chain_leave(scratch, below, at->sp, at->loop, i == 1)) {
			frame = chain_next(scratch);
			if (frame) {
				walk->frames[i - 1] = frame;
				space->hash = mix(space->hash, frame);
			}
			// Ruby's loop consists of two functions.
			if (at->loop && in_loop(at))
				end = step(at);
			if (end != STACK_UNKNOWN) {
				walk->end = end;
				return 0;
			}
		}
	}
	frame = at->chain ? chain_next(scratch) : 0;
	if (!frame)
		frame = at->ip;
	walk->frames[i] = frame;
	space->hash = mix(space->hash, frame);
	space->plain = mix(space->plain, at->ip);
	walk->frame_count = i + 1;
	offset = at->sp - sizeof(u64) - sp;
	if (i <= MEMO_FRAMES)
		space->memo.offsets[(i - 1) & (MEMO_FRAMES - 1)] = offset;
	// Not where a signal's handler returns to: that has other registers to look at. Nor in a
	// task, which no return address tells.
	if (offset >= MEMO_BYTES || at->exact || at->task)
		space->remember = 0;
	return 1;
}

// Adds one of the functions that are further out than the walk has come. Returns whether there may
// be more.
__noinline u32 add_rest(u32 scratch, u32 i)
{
	struct stack_scratch *space = bpf_map_lookup_elem(&stack_scratch, &scratch);
	u64 frame = chain_rest(scratch);

	if (!space || !frame || i >= MAX_FRAMES)
		return 0;
	space->walk.frames[i] = frame;
	space->hash = mix(space->hash, frame);
	space->walk.frame_count = i + 1;
	space->remember = 0;
	return 1;
}

// Walks from the registers. `place` is what the memo is to be known by, 0 for none: a sample
// interrupts any place, and may interrupt whoever looks at the memos. A function that the verifier
// looks at by itself: inlined, it would be looked at for every path to it.
__noinline u32 walk_user_stack(struct cursor *at, u64 ts, u64 place, u32 scratch)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 key = scratch, pid = task->tgid, end, count, id;
	struct stack_scratch *space = bpf_map_lookup_elem(&stack_scratch, &key);
	struct stack_definition *walk;
	struct memo *memo;
	u64 hash, sp;
	u32 cpu;

	if (!space || !at)
		return 0;
	walk = &space->walk;
	walk->frames[0] = at->ip;
	cpu = at->cpu;
	sp = at->sp;
	space->hash = mix(first_hash(pid), at->ip);
	space->plain = space->hash;
	space->remember = place != 0;
	walk->end = STACK_DEPTH;
	walk->frame_count = 1;
	for (u32 i = 1; i < MAX_FRAMES; i++) {
		if (!add_frame(at, scratch, i, sp))
			break;
	}
	end = *(volatile u16 *)&walk->end;
	// Where the way out of native code is not known, the program's own functions around it
	// still are.
	if (at->chain && (end == STACK_NO_RULE || end == STACK_UNREADABLE)) {
		for (u32 i = *(volatile u16 *)&walk->frame_count; i < MAX_FRAMES; i++) {
			if (!add_rest(scratch, i))
				break;
		}
	}
	hash = *(volatile u64 *)&space->hash;
	end = *(volatile u16 *)&walk->end;
	count = *(volatile u16 *)&walk->frame_count;
	if (end == STACK_MISSING) {
		id = send_copy(space, at, count, ts, pid, key);
		return id ?: identify(walk, mix(hash, end), ts, cpu, pid);
	}
	id = identify(walk, mix(hash, end), ts, cpu, pid);
	memo = memo_of(place, cpu);
	if (memo && *(volatile u64 *)&space->remember && count <= MEMO_FRAMES && id) {
		space->memo.key = place;
		space->memo.hash = *(volatile u64 *)&space->plain;
		space->memo.stack = id;
		space->memo.count = count - 1;
		space->memo.span = at->sp - sp;
		space->memo.confirmed = 0;
		space->memo.doubted = memo->key == place && memo->doubted;
		*memo = space->memo;
	}
	return id;
}

// Gets ready to tell the functions that the process's interpreter or virtual machine runs.
static __always_inline void begin_functions(struct cursor *at, struct code_range *interpreter,
					    u64 ts, u32 pid, enum scratch scratch)
{
	u64 start = interpreter->start, end = interpreter->end;

	switch (interpreter->file_offset) {
	case INTERPRETER_PYTHON:
		at->chain = python_begin(scratch, start, end, ts, pid);
		break;
	case INTERPRETER_RUBY:
		at->chain = ruby_begin(scratch, start, end, ts, pid);
		break;
	case INTERPRETER_PHP:
		at->chain = php_begin(scratch, start, ts, pid);
		break;
	case INTERPRETER_PERL:
		at->chain = perl_begin(scratch, start, ts, pid);
		break;
	default:
		at->machine = interpreter->file_offset;
		at->machine_start = start;
		at->machine_end = end;
	}
}

// The id of the user side of the current thread, which must have an mm; 0 for none.
static __always_inline u32 user_stack_id(struct task_struct *task, struct pt_regs *regs, u64 ts,
					 u32 cpu, enum scratch scratch)
{
	u32 pid = task->tgid, id;
	struct process_code *code = code_of(pid);
	struct code_range *interpreter = NULL;
	u64 identity, hash, place = 0, functions = 0;
	struct cursor at;

	if (!code)
		return 0;
	window_at(cpu * 2 + scratch)->length = 0;
	at.ip = REGS_IP(regs);
	at.sp = REGS_SP(regs);
	at.fp = REGS_FRAME_POINTER(regs);
	// The C library's vfork takes the return address off the stack, for the child will use it.
	at.link = REGS_CALL(regs) == CALL_VFORK ? REGS_ARG0(regs) : 0;
	at.cpu = cpu;
	at.exact = 1;
	at.window = cpu * 2 + scratch;
	identity = *(volatile u64 *)&code->identity;
	at.epoch = identity >> 32;
	at.ranges = *(volatile u64 *)&code->ranges;
	if ((u32)identity != pid || (at.ranges >> 40) != (at.epoch & 0xffffff))
		at.ranges = 0;
	if (!prove && at.ranges & HAS_INTERPRETER)
		interpreter = interpreter_of(at.ranges);
	if (scratch == SCRATCH_SCHED && !(at.sp & 7)) {
		struct memo *memo;

		hash = mix(first_hash(pid), at.ip);
		// For a second: a walk that was not to go on in a task may do so in the next.
		place = mix(mix(hash, at.sp ^ (u64)at.epoch << 48), at.fp ^ ts >> 30 << 48);
		if (interpreter && interpreter->file_offset == INTERPRETER_RUBY)
			functions = ruby_key(interpreter->start, interpreter->end);
		if (functions)
			place = mix(place, functions);
		memo = memo_of(place, cpu);
		if (memo && memo->key == place) {
			u64 registers = kept_registers(regs);

			id = trust(memo, &at, registers, ts) ?: recall(memo, &at, hash, registers);
			if (id)
				goto known;
		}
	}
	// Different functions of a language have the same return addresses: such a walk is not
	// remembered, unless its place tells of the functions. One that is remembered otherwise has
	// no interpreter's loop among its callers, and no such function then.
	at.chain = 0;
	at.task = 0;
	at.loop = 0;
	at.machine = 0;
	at.machine_start = 0;
	at.machine_end = 0;
	if (interpreter)
		begin_functions(&at, interpreter, ts, pid, scratch);
	id = walk_user_stack(&at, ts, at.chain && !functions ? 0 : place, scratch);
known:
	if (prove && id) {
		u32 key = scratch;
		struct stack_scratch *space = bpf_map_lookup_elem(&stack_scratch, &key);

		if (space)
			send_proof(&space->copy, regs, id, ts, pid, cpu);
	}
	return id;
}

#else

struct user_frame {
	u64 next;
	u64 return_address;
};

// The same by frame pointers, which this architecture's programs keep.
static __always_inline u32 user_stack_id(struct task_struct *task, struct pt_regs *regs, u64 ts,
					 u32 cpu, enum scratch scratch)
{
	u32 key = scratch, count = 1, pid = task->tgid;
	struct stack_scratch *space = bpf_map_lookup_elem(&stack_scratch, &key);
	u64 at = REGS_FRAME_POINTER(regs), hash;
	struct stack_definition *walk;

	if (!space)
		return 0;
	walk = &space->walk;
	walk->end = STACK_UNREADABLE;
	walk->frames[0] = REGS_IP(regs);
	hash = mix(first_hash(pid), walk->frames[0]);
	for (u32 i = 1; i < MAX_FRAMES; i++) {
		struct user_frame frame;

		// A frame pointer is aligned; code without frame pointers leaves anything there.
		if (at & 7 || bpf_probe_read_user(&frame, sizeof(frame), (void *)at) ||
		    frame.return_address < 4096)
			break;
		walk->frames[i] = frame.return_address;
		hash = mix(hash, frame.return_address);
		count = i + 1;
		// Callers lie above.
		if (frame.next <= at)
			break;
		at = frame.next;
	}
	*(volatile u16 *)&walk->frame_count = count;
	return identify(walk, hash, ts, cpu, pid);
}

#endif

// The running thread's stack, outside of the scheduler; 0 for none. Interrupts are on here, and
// what a CPU walks with may be used by the wake of one: if a record was written meanwhile, the walk
// is not to be trusted.
static __always_inline u32 caller_stack(struct task_struct *task, struct pt_regs *regs, u64 ts)
{
	u32 cpu = bpf_get_smp_processor_id(), stack;
	struct cpu_state *state = this_cpu(cpu);
	u64 before;

	if (!take_stacks || !task->mm)
		return 0;
	before = *(volatile u64 *)&state->records + *(volatile u64 *)&state->lost_records;
	stack = user_stack_id(task, regs, ts, cpu, SCRATCH_SCHED);
	barrier();
	return before == *(volatile u64 *)&state->records + *(volatile u64 *)&state->lost_records ?
		       stack :
		       0;
}
