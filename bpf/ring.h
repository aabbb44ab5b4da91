// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Where records go. Events go into an overwriting ring per CPU, all of them in one array that user
// space maps: a record costs its stores, and nobody is woken. Definitions go to a ring buffer that
// user space drains on a clock, never on a wake-up.
//
// A ring is made of blocks, a record lies in one of them whole. The block after the one that is
// being filled is always empty: so a word that is 0 where a record should begin means that the
// record is not written yet, and a reader never takes an old one for new. The first word of a
// record is written last.
#pragma once

#include <bpf/bpf_helpers.h>

#include "records.h"

// Blocks of one CPU's ring, a power of two: its logarithm.
const volatile u32 blocks_shift = 2;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct block);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} definitions SEC(".maps");

struct cpu_state cpus[MAX_CPUS] __attribute__((aligned(64)));

static __always_inline struct cpu_state *this_cpu(u32 cpu)
{
	return &cpus[cpu & (MAX_CPUS - 1)];
}

// Transfers and handoffs that a CPU may record in each time of ALLOWANCE_NS. User space sets them;
// they are counted here, since it may not run for long on a busy machine.
u64 transfers_allowed;
u64 handoffs_allowed;

#define ALLOWANCE_NS 20000000ULL
// Walks that may go on in a task in that time (unwind.h): such a walk is long, and none is
// remembered.
#define TASKS_ALLOWED 20

// Allows all of these anew, if it is time for that.
static __always_inline bool allow_anew(struct cpu_state *state)
{
	u64 now = bpf_ktime_get_ns();

	if (now - state->allowed_since < ALLOWANCE_NS)
		return false;
	state->allowed_since = now;
	state->transfers_left = transfers_allowed;
	state->handoffs_left = handoffs_allowed;
	state->tasks_left = TASKS_ALLOWED;
	return true;
}

// Whether one more may be recorded of what `left` counts, of the CPU's state.
static __always_inline bool may_record(struct cpu_state *state, u64 *left)
{
	if (!*left && (!allow_anew(state) || !*left))
		return false;
	--*left;
	return true;
}

// Whether one more walk may go on in a task.
static __always_inline bool may_walk_on(struct cpu_state *state)
{
	if (!state->tasks_left && !allow_anew(state))
		return false;
	state->tasks_left--;
	return true;
}

static __always_inline struct block *block_at(u32 cpu, u64 number)
{
	u32 shift = blocks_shift, index = (cpu << shift) + ((u32)number & ((1U << shift) - 1));

	return bpf_map_lookup_elem(&events, &index);
}

// Half of what 32 bits of a time tell apart.
#define LONGEST_BLOCK_NS 0x7fffffffLL

// Goes on to the next block, if nothing was taken behind `position` meanwhile.
__noinline u32 open_block(u32 cpu, u64 position, u64 ts)
{
	struct cpu_state *state = this_cpu(cpu);
	u64 number = (position + BLOCK_WORDS - 1) / BLOCK_WORDS;
	u32 offset = position & (BLOCK_WORDS - 1);
	struct block *block;

	if (__sync_val_compare_and_swap(&state->head, position,
					number * BLOCK_WORDS + HEADER_WORDS) != position)
		return 0;
	state->block_start = ts;
	block = block_at(cpu, number - 1);
	if (block && offset)
		block->words[offset] = RECORD(0, EVENT_END, 0, 0);
	block = block_at(cpu, number);
	if (block) {
		block->words[1] = ts;
		block->words[2] = state->tid;
		block->words[3] = state->records;
		barrier();
		*(volatile u64 *)&block->words[0] = number + 1;
	}
	block = block_at(cpu, number + 1);
	if (block) {
		*(volatile u64 *)&block->words[0] = 0;
		barrier();
		for (u32 i = 1; i < BLOCK_WORDS; i++)
			*(volatile u64 *)&block->words[i] = 0;
	}
	return 1;
}

// Takes room for a record of `words` words. With `undisturbed`, interrupts are off, so that nothing
// on this CPU can come in between: an atomic operation waits for all stores before it, the last
// record's among them. Otherwise an interrupt may take room in between, and does so first.
static __always_inline u64 *take(u32 cpu, u64 ts, u32 words, const bool undisturbed)
{
	struct cpu_state *state = this_cpu(cpu);

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < 4; i++) {
		u64 position = *(volatile u64 *)&state->head;
		u32 offset = position & (BLOCK_WORDS - 1);
		struct block *block;

		if (!offset || offset > BLOCK_WORDS - MOST_WORDS ||
		    (s64)(ts - state->block_start) > LONGEST_BLOCK_NS) {
			open_block(cpu, position, ts);
			continue;
		}
		if (undisturbed)
			*(volatile u64 *)&state->head = position + words;
		else if (__sync_val_compare_and_swap(&state->head, position, position + words) !=
			 position)
			continue;
		block = block_at(cpu, position / BLOCK_WORDS);
		if (!block)
			break;
		state->records++;
		barrier_var(offset);
		return &block->words[offset & (BLOCK_WORDS - 1)];
	}
	state->lost_records++;
	return 0;
}

static __always_inline void commit(u64 *record, u64 first)
{
	barrier();
	*(volatile u64 *)record = first;
}

// Who runs is known from the last switch, but for a thread that takes its leader's number at exec,
// and where a switch was lost.
__noinline u32 note_runs(u32 cpu, u64 ts, u32 tid)
{
	u64 *record = take(cpu, ts, 2, false);

	if (!record)
		return 0;
	record[1] = tid;
	commit(record, RECORD(ts, EVENT_RUNS, 0, 0));
	this_cpu(cpu)->tid = tid;
	return 0;
}

// Takes room for a record of what thread `tid` does.
static __always_inline u64 *reserve(u32 cpu, u64 ts, u32 tid, u32 words, const bool undisturbed)
{
	if (this_cpu(cpu)->tid != tid) {
		note_runs(cpu, ts, tid);
		// Rather no record than another thread's.
		if (*(volatile u32 *)&this_cpu(cpu)->tid != tid)
			return 0;
	}
	return take(cpu, ts, words, undisturbed);
}

static __always_inline void emit_definition(u32 cpu, void *data, u64 size)
{
	if (bpf_ringbuf_output(&definitions, data, size, BPF_RB_NO_WAKEUP))
		this_cpu(cpu)->lost_definitions++;
}
