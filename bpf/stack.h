// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Stacks as ids. A walk is hashed; a hash seen before gives its id, a new one sends its frames to
// user space once. Two maps know hashes: a small direct-mapped cache of each CPU answers nearly
// always, an LRU map of all CPUs the rest. What both forgot gets a new id when it comes back, which
// user space finds to be equal to the old one.
//
// The kernel side is walked by the kernel's own unwinder, the user side in user_stack.h.
#pragma once

#include "unwind.h"

const volatile bool take_stacks = true;

// User space adds to it when it wants every stack to be sent anew.
u32 stack_generation;
u32 last_stack;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, u64);
	__type(value, u32);
} stack_ids SEC(".maps");

// Of each CPU.
#define STACK_CACHE_SHIFT 10

struct cached_stack {
	u64 hash;
	// The upper half is the hash's: whoever was interrupted between the two words by another
	// who used the same place leaves words that do not fit together.
	u64 tagged_id;
};

#define HASH_TAG 0xffffffff00000000ULL

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cached_stack);
} stack_cache SEC(".maps");

// A power of two.
#define MEMO_FRAMES 32
// So far from the stack pointer a return address may lie.
#define MEMO_BYTES 0xfff0

// Where the return addresses lay in a walk: offsets from the stack pointer that it began at.
struct memo {
	u64 key;
	u64 hash;
	u32 stack;
	u16 count;
	u16 span; // bytes from the stack pointer to behind the last return address
	// Of the last time that it was found to be right:
	u64 registers;
	u64 caller;   // the innermost return address
	u8 confirmed; // so often in a row, with these registers
	u8 trusted;   // used since then without a look at the stack
	u8 doubted;   // whether it was ever wrong: another caller comes here with the same pointers
	u16 offsets[MEMO_FRAMES];
};

// Walks happen in the scheduler, with interrupts off, and in the sampling interrupt: one scratch
// each, so that neither writes into the other's.
enum scratch { SCRATCH_SCHED = 0, SCRATCH_SAMPLE = 1 };

struct stack_scratch {
	struct stack_definition walk;
	struct stack_copy copy;
	struct memo memo;
	u64 hash;
	u64 plain; // the same of the return addresses alone, whatever stands in their place
	u64 remember;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct stack_scratch);
} stack_scratch SEC(".maps");

static __always_inline u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

static __always_inline u64 first_hash(u32 pid)
{
	return mix(0x243f6a8885a308d3ULL + stack_generation, pid);
}

// The id of the walk in `walk`, whose frames and count are filled.
static __always_inline u32 identify(struct stack_definition *walk, u64 hash, u64 ts, u32 cpu,
				    u32 pid)
{
	u32 index = cpu << STACK_CACHE_SHIFT | (hash & ((1 << STACK_CACHE_SHIFT) - 1));
	struct cached_stack *cached = bpf_map_lookup_elem(&stack_cache, &index);
	// Read back from memory, of whose content the verifier knows nothing: otherwise it would
	// follow the rest of the program once for every number of frames.
	u32 *known, id, count = *(volatile u16 *)&walk->frame_count;
	u64 tagged;

	if (!cached)
		return 0;
	tagged = *(volatile u64 *)&cached->tagged_id;
	if (cached->hash == hash && ((tagged ^ hash) & HASH_TAG) == 0)
		return (u32)tagged;
	known = bpf_map_lookup_elem(&stack_ids, &hash);
	if (known) {
		id = *known;
	} else {
		id = __sync_fetch_and_add(&last_stack, 1) + 1;
		walk->ts = ts;
		walk->kind = DEFINITION_STACK;
		walk->stack = id;
		walk->pid = pid;
		if (count > MAX_FRAMES)
			return 0;
		if (bpf_ringbuf_output(&definitions, walk,
				       __builtin_offsetof(struct stack_definition, frames) +
					       count * sizeof(u64),
				       BPF_RB_NO_WAKEUP)) {
			// Not remembered: it is sent again when it is met again.
			this_cpu(cpu)->lost_definitions++;
			return 0;
		}
		bpf_map_update_elem(&stack_ids, &hash, &id, BPF_ANY);
	}
	cached->hash = hash;
	barrier();
	cached->tagged_id = (hash & HASH_TAG) | id;
	return id;
}

// The id of the kernel side of the current thread's stack; 0 for none.
static __always_inline u32 kernel_stack_id(void *ctx, u64 ts, u32 cpu, enum scratch scratch)
{
	u32 key = scratch, count;
	struct stack_scratch *space = bpf_map_lookup_elem(&stack_scratch, &key);
	struct stack_definition *walk;
	u64 hash = first_hash(0);
	long bytes;

	if (!space)
		return 0;
	walk = &space->walk;
	// The scheduler's tracepoints leave three frames of their own and of this program on top.
	bytes = bpf_get_stack(ctx, walk->frames, sizeof(walk->frames),
			      scratch == SCRATCH_SCHED ? 3 : 0);
	if (bytes <= 0)
		return 0;
	count = (u32)bytes / sizeof(u64);
	for (u32 i = 0; i < MAX_FRAMES; i++) {
		if (i >= count)
			break;
		hash = mix(hash, walk->frames[i]);
	}
	walk->end = STACK_ROOT;
	*(volatile u16 *)&walk->frame_count = count;
	return identify(walk, hash, ts, cpu, 0);
}
