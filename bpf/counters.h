// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The hardware's counters: what they gained while a thread ran. They count for the CPU, whoever
// runs there; read whenever the thread changes and at each sample, each difference is of one
// thread.
//
// Where there are more events than counters, the kernel takes turns. A difference in whose time an
// event did not count all along would be too small, so it is given as not known.
#pragma once

#include "ring.h"

enum counter {
	COUNTER_CYCLES = 0,
	COUNTER_INSTRUCTIONS = 1,
	COUNTER_CACHE_MISSES = 2,
	COUNTER_TLB_MISSES = 3,
	COUNTERS = 4,
};

#define NOT_COUNTED (~0ULL)

// A bit for each that can be counted. With none, all of this is dead code.
const volatile u32 counters = 0;

// Of each CPU, COUNTERS of them.
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, u32);
	__type(value, u32);
} counter_events SEC(".maps");

// What a counter showed last, and for how long it had not counted until then, ns.
struct counter_reading {
	u64 value;
	u64 idle;
	u64 known;
};

struct counter_readings {
	struct counter_reading last[COUNTERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counter_readings);
} counter_readings SEC(".maps");

static __always_inline u64 gained(struct counter_readings *readings, u32 cpu, enum counter which)
{
	struct counter_reading *last = &readings->last[which], before = *last;
	struct bpf_perf_event_value now;
	u64 gained = NOT_COUNTED;

	if (!(counters & (1U << which)))
		return NOT_COUNTED;
	if (bpf_perf_event_read_value(&counter_events, cpu * COUNTERS + which, &now, sizeof(now))) {
		last->known = 0;
		return NOT_COUNTED;
	}
	last->value = now.counter;
	last->idle = now.enabled - now.running;
	last->known = 1;
	if (before.known && before.idle == last->idle)
		gained = now.counter - before.value;
	return gained;
}

static __always_inline u32 narrow(u64 gained)
{
	if (gained == NOT_COUNTED)
		return (u32)NOT_COUNTED;
	return gained < (u32)NOT_COUNTED ? (u32)gained : (u32)NOT_COUNTED - 1;
}

// For where interrupts are off. What was counted since the last time on this CPU is the thread's;
// idle's is not told.
static __always_inline void count(u32 tid, u32 cpu, u64 ts)
{
	u64 cycles, instructions, cache_misses, tlb_misses;
	struct counter_readings *readings;
	u32 zero = 0;
	u64 *record;

	if (!counters)
		return;
	readings = bpf_map_lookup_elem(&counter_readings, &zero);
	if (!readings)
		return;
	cycles = gained(readings, cpu, COUNTER_CYCLES);
	instructions = gained(readings, cpu, COUNTER_INSTRUCTIONS);
	cache_misses = gained(readings, cpu, COUNTER_CACHE_MISSES);
	tlb_misses = gained(readings, cpu, COUNTER_TLB_MISSES);
	if (!tid || (cycles & instructions & cache_misses & tlb_misses) == NOT_COUNTED)
		return;

	record = reserve(cpu, ts, tid, 4, true);
	if (!record)
		return;
	record[1] = cycles;
	record[2] = instructions;
	record[3] = PAIR(narrow(cache_misses), narrow(tlb_misses));
	commit(record, RECORD(ts, EVENT_COUNTERS, 0, 0));
}
