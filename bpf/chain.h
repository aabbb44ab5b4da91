// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The functions of an interpreted language in stacks, in place of the interpreter's loop: what
// Python, Ruby, PHP and Perl have in common.
//
// One C function, the interpreter's loop, runs all functions of the language; one call of it runs
// a function and, mostly, those that it calls in turn. When a walk begins, the thread's functions
// are read from the interpreter's own state into a list of words, the chain: for each call of the
// loop, the innermost first, a mark, and behind it what stands for its functions. Where the walk
// leaves a call of the loop, its functions come in its place. A call of Python's loop is known by
// where on the stack it lies; those of the others by their code, of which the unwind rules tell.
#pragma once

#include "proof.h"
#include "stack.h"

#ifdef HAS_UNWIND_RULES

// A function among the return addresses: no address begins like this. A number is behind it, or 0
// for a function that could not be told.
#define FUNCTION (1ULL << 62)

// The mark of a call of a loop that is known by its code.
#define LOOP_MARK 1
// Where one was thought to begin that did not: of no meaning, and never two in a row.
#define NO_MARK 2

// Counted by user space too, which gives numbers to Java's methods.
u32 last_function;

// Functions that user space was told of. What describes a function is freed, and others take its
// place: hence the key is mixed of all that tells one from another without reading its texts.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 15);
	__type(key, u64);
	__type(value, u32);
} known_functions SEC(".maps");

// Samples hit between the steps with which a call of a loop begins and ends: the innermost function
// has none yet, or the innermost loop has no function any more.
#define CHAIN_SETTLED 0
#define CHAIN_BEGINS 1
#define CHAIN_ENDS 2

#define CHAIN_WORDS 256
#define CHAIN_PIECE 20

// The functions of a thread, and how far a walk has come in them.
struct chain {
	u64 words[CHAIN_WORDS]; // 0 ends them
	u64 count;
	u64 call; // index of the last call's mark
	u64 frame;
	u64 outer;  // what else leads to the next frame, or ends them
	u64 next;   // index of what the walk comes to
	u64 inside; // it is among the functions of a call that was left
	u64 moment; // CHAIN_...
	// Where a search stands: the state that was found, and its place on the stack.
	u64 entered;
	u64 innermost;
	u64 piece[CHAIN_PIECE];
	struct function_definition definition;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct chain);
} chains SEC(".maps");

static __always_inline struct chain *chain_of(u32 scratch)
{
	return bpf_map_lookup_elem(&chains, &scratch);
}

static __always_inline void chain_begin(struct chain *chain, u64 mark)
{
	chain->words[0] = mark;
	chain->words[1] = 0;
	chain->call = 0;
	chain->count = 1;
	chain->next = 0;
	chain->inside = 0;
	chain->moment = CHAIN_SETTLED;
}

static __always_inline void chain_add(struct chain *chain, u64 word)
{
	chain->words[chain->count++ & (CHAIN_WORDS - 1)] = word;
}

// What tells functions apart that lie at one address of different processes. A program that is
// executed anew may have the same addresses.
static __always_inline u64 function_key(u32 pid, u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return mix(mix(first_hash(pid), task->self_exec_id), address);
}

// The word of a function that user space knows already; 0 if it does not.
static __always_inline u64 known_function(u64 key)
{
	u32 *known = bpf_map_lookup_elem(&known_functions, &key);

	return known ? FUNCTION | *known : 0;
}

// Tells user space of the function that the chain's definition describes; the word for it.
static __always_inline u64 define_function(struct chain *chain, u64 key, u64 ts, u32 pid)
{
	struct function_definition *definition = &chain->definition;
	u32 id = __sync_fetch_and_add(&last_function, 1) + 1;

	definition->ts = ts;
	definition->code = id;
	definition->pid = pid;
	if (bpf_ringbuf_output(&definitions, definition, sizeof(*definition), BPF_RB_NO_WAKEUP)) {
		// Not remembered: it is sent again when it is met again.
		this_cpu(bpf_get_smp_processor_id())->lost_definitions++;
		return FUNCTION;
	}
	bpf_map_update_elem(&known_functions, &key, &id, BPF_ANY);
	return FUNCTION | id;
}

// The text of `size` bytes at `data`, of a long one the end. Returns how many bytes there are.
static __always_inline u32 read_text(u8 *bytes, u32 most, u64 data, u64 size)
{
	u32 kept = size;

	if (size > most) {
		data += size - most;
		kept = most;
	}
	// The compiler knows it, the verifier does not.
	barrier_var(kept);
	if (kept > most)
		return 0;
	return bpf_probe_read_user(bytes, kept, (void *)data) ? 0 : kept;
}

// By offsetof() with glibc 2.36's struct pthread; as it has been for 20 years. Where it is
// otherwise (musl), what is found is not the thread's.
#define PTHREAD_FIRST_VALUES 784
#define PTHREAD_VALUES 1296
#define VALUES_OF_BLOCK 32

// What the thread whose fs base is `self` has of its own by a pthread key; 0 for nothing.
static __always_inline u64 thread_value(u64 self, u32 key)
{
	u64 at = self + PTHREAD_FIRST_VALUES, value;

	if (key >= VALUES_OF_BLOCK &&
	    bpf_probe_read_user(&at, sizeof(at),
				(void *)(self + PTHREAD_VALUES + key / VALUES_OF_BLOCK * 8)))
		return 0;
	// A value lies behind the number of its key's use.
	at += key % VALUES_OF_BLOCK * 16 + 8;
	return bpf_probe_read_user(&value, sizeof(value), (void *)at) ? 0 : value;
}

// Whether functions come before the next C function.
static __always_inline bool chain_inside(u32 scratch)
{
	struct chain *chain = chain_of(scratch);

	return chain && *(volatile u64 *)&chain->inside;
}

// Looks whether the C function that was left, which had the stack from `from` to `to`, was the
// interpreter's loop; `loop` says whether its code is, `innermost` whether nothing was called
// there.
__noinline u32 chain_leave(u32 scratch, u64 from, u64 to, u32 loop, u32 innermost)
{
	struct chain *chain = chain_of(scratch);
	u64 mark, moment;

	if (!chain)
		return 0;
	mark = chain->words[chain->next & (CHAIN_WORDS - 1)];
	if (mark == LOOP_MARK ? !loop : mark < from || mark >= to)
		return 0;
	moment = chain->moment;
	chain->moment = CHAIN_SETTLED;
	// The functions here are those around the loop.
	if (moment == CHAIN_ENDS && innermost)
		return 1;
	// Past the one function of the call that has no loop.
	if (moment == CHAIN_BEGINS && !innermost)
		chain->next += 2;
	chain->next++;
	chain->inside = 1;
	return 1;
}

// The next function of the call of the loop that was left; 0 if there is none, or no more.
__noinline u64 chain_next(u32 scratch)
{
	struct chain *chain = chain_of(scratch);
	u64 word;

	if (!chain)
		return 0;
	word = chain->words[chain->next & (CHAIN_WORDS - 1)];
	if (word == NO_MARK)
		word = chain->words[++chain->next & (CHAIN_WORDS - 1)];
	if (!chain->inside || !(word & FUNCTION)) {
		chain->inside = 0;
		return 0;
	}
	chain->next++;
	return word;
}

// The next function of those that no frame has made place for; 0 if there is none.
__noinline u64 chain_rest(u32 scratch)
{
	// At most so many calls of the loop in a row run none of the program's functions.
	const u32 marks = 4;
	struct chain *chain = chain_of(scratch);
	u64 word;

	if (!chain)
		return 0;
	for (u32 i = 0; i < marks; i++) {
		if (chain->next >= chain->count)
			return 0;
		word = chain->words[chain->next++ & (CHAIN_WORDS - 1)];
		if (word & FUNCTION)
			return word;
	}
	return 0;
}

#endif
