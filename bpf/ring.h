// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Where records go. Events go into an overwriting ring per CPU, all of them in one array that user
// space maps: a record costs an atomic add and its stores, and nobody is woken. Definitions go to a
// ring buffer that user space drains on a clock, never on a wake-up.
#pragma once

#include <bpf/bpf_helpers.h>

#include "records.h"

// Slots of one CPU's ring, a power of two: its logarithm.
const volatile u32 slots_shift = 10;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct event);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} definitions SEC(".maps");

struct cpu_state cpus[MAX_CPUS];

static __always_inline struct cpu_state *this_cpu(u32 cpu)
{
	return &cpus[cpu & (MAX_CPUS - 1)];
}

static __always_inline struct event *slot(u32 cpu, u64 position, u16 *lap)
{
	u32 shift = slots_shift;
	u32 index = (cpu << shift) + ((u32)position & ((1U << shift) - 1));
	struct event *event = bpf_map_lookup_elem(&events, &index);

	if (!event)
		return 0;
	*lap = (u16)((position >> shift) + 1) ?: 1;
	*(volatile u16 *)&event->lap = 0;
	barrier();
	return event;
}

// Takes the next slot of this CPU's ring. An interrupt may take the one after it before this one
// is written; hence the atomic add, and `lap` as the mark of a whole record.
static __always_inline struct event *reserve(u32 cpu, u16 *lap)
{
	return slot(cpu, __sync_fetch_and_add(&this_cpu(cpu)->head, 1), lap);
}

// The same where interrupts are off, so that nothing on this CPU can come in between: an atomic add
// waits for all stores before it, the last record's among them.
static __always_inline struct event *reserve_undisturbed(u32 cpu, u16 *lap)
{
	return slot(cpu, this_cpu(cpu)->head++, lap);
}

static __always_inline void commit(struct event *event, u16 lap)
{
	barrier();
	*(volatile u16 *)&event->lap = lap;
}

static __always_inline void emit_definition(u32 cpu, void *data, u64 size)
{
	if (bpf_ringbuf_output(&definitions, data, size, BPF_RB_NO_WAKEUP))
		this_cpu(cpu)->lost_definitions++;
}
