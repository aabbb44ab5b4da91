// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Stacks as ids. A walk is hashed; a hash seen before gives its id, a new one sends its frames to
// user space once. The map forgets the least used: a stack that comes back gets a new id, which
// user space finds to be equal to the old one.
#pragma once

#include "ring.h"

const volatile bool take_stacks = true;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, u64);
	__type(value, u32);
} stack_ids SEC(".maps");

// Walks happen in the scheduler, with interrupts off, and in the sampling interrupt: one scratch
// each, so that neither writes into the other's.
enum scratch { SCRATCH_SCHED = 0, SCRATCH_SAMPLE = 1 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct stack_definition);
} stack_scratch SEC(".maps");

u32 last_stack;

static __always_inline u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

// The id of the stack of the current thread: of its user side where `flags` has BPF_F_USER_STACK,
// then `pid` is its process; of its kernel side otherwise, then `pid` is 0. Gives 0 for none.
static __always_inline u32 stack_id(void *ctx, u64 ts, u32 cpu, enum scratch scratch, u32 pid,
				    u64 flags)
{
	u32 key = scratch;
	struct stack_definition *walk = bpf_map_lookup_elem(&stack_scratch, &key);
	u64 hash = mix(0x243f6a8885a308d3ULL, pid);
	u32 *known, id, count;
	long bytes;

	if (!walk)
		return 0;
	bytes = bpf_get_stack(ctx, walk->frames, sizeof(walk->frames), flags);
	if (bytes <= 0)
		return 0;
	count = (u32)bytes / sizeof(u64);
	for (u32 i = 0; i < MAX_FRAMES; i++) {
		if (i >= count)
			break;
		hash = mix(hash, walk->frames[i]);
	}
	known = bpf_map_lookup_elem(&stack_ids, &hash);
	if (known)
		return *known;

	id = __sync_fetch_and_add(&last_stack, 1) + 1;
	walk->ts = ts;
	walk->kind = DEFINITION_STACK;
	walk->stack = id;
	walk->pid = pid;
	walk->frame_count = count;
	if (bytes > (long)sizeof(walk->frames))
		return 0;
	if (bpf_ringbuf_output(&definitions, walk,
			       __builtin_offsetof(struct stack_definition, frames) + bytes,
			       BPF_RB_NO_WAKEUP)) {
		// Not remembered: it is sent again when it is met again.
		this_cpu(cpu)->lost_definitions++;
		return 0;
	}
	bpf_map_update_elem(&stack_ids, &hash, &id, BPF_ANY);
	return id;
}
