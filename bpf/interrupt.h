// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Interrupts, softirqs and timers: how long the first two took, and in all of them what the CPU is
// running, so that a wake from there is not attributed to the thread that was interrupted.
#pragma once

#include <bpf/bpf_tracing.h>

#include "ring.h"

// What runs on the CPU, the innermost first: a timer's callback runs in the interrupt that it comes
// with, a device's interrupt in the middle of a softirq. `vector` gets the number that it has.
static __always_inline enum context context_of(const struct cpu_state *state, u8 *vector)
{
	*vector = 0;
	if (state->in_hrtimer)
		return CONTEXT_HRTIMER;
	if (state->in_hardirq) {
		*vector = (u8)state->hardirq;
		return CONTEXT_HARDIRQ;
	}
	if (state->in_local_timer)
		return CONTEXT_HARDIRQ;
	if (state->in_timer)
		return CONTEXT_TIMER;
	if (state->in_softirq) {
		*vector = state->softirq;
		return CONTEXT_SOFTIRQ;
	}
	return CONTEXT_TASK;
}

// The network's, by their numbers.
#define SOFTIRQ_SEND 2
#define SOFTIRQ_RECEIVE 3

// A softirq that begins so soon after an interrupt's end was brought by it.
#define SOON_NS 5000
// Those that are due together are run one right after the other.
#define TOGETHER_NS 1000

// Whether a softirq that begins now came with an interrupt, and not with what the thread on the CPU
// asked of the kernel.
static __always_inline bool came_with_interrupt(const struct cpu_state *state, u64 now)
{
	if (now - state->soft_end < TOGETHER_NS)
		return state->soft_interrupts;
	return now - state->interrupt_end < SOON_NS;
}

static __always_inline void emit_interrupt(u32 cpu, u64 now, u64 start, u8 kind, u32 vector)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	u64 duration = now - start, *record;
	bool is_short;

	// Attached in the middle of one: its beginning is not known.
	if (!start)
		return;
	is_short = duration <= 0xffff && vector <= 0x3f;
	record = reserve(cpu, now, tid, is_short ? 1 : 2, false);
	if (!record)
		return;
	if (!is_short)
		record[1] = duration;
	commit(record,
	       is_short ? RECORD(now, EVENT_INTERRUPT, 0, kind | vector << 2 | (u32)duration << 8) :
			  RECORD(now, EVENT_INTERRUPT, HAS(0), kind | (vector & 0x3fffff) << 2));
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_entry, int irq)
{
	struct cpu_state *state = this_cpu(bpf_get_smp_processor_id());

	state->in_hardirq = 1;
	state->hardirq = (u16)irq;
	state->hard_start = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_exit, int irq)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = this_cpu(cpu);
	u64 now = bpf_ktime_get_ns();

	state->in_hardirq = 0;
	emit_interrupt(cpu, now, state->hard_start, INTERRUPT_HARD, irq);
	state->hard_start = 0;
	state->interrupt_end = now;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry, unsigned int vector)
{
	struct cpu_state *state = this_cpu(bpf_get_smp_processor_id());
	u64 now = bpf_ktime_get_ns();

	state->soft_interrupts = came_with_interrupt(state, now);
	state->in_softirq = 1;
	state->softirq = (u8)vector;
	state->soft_start = now;
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit, unsigned int vector)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = this_cpu(cpu);
	u64 now = bpf_ktime_get_ns();

	state->in_softirq = 0;
	emit_interrupt(cpu, now, state->soft_start, INTERRUPT_SOFT, vector);
	state->soft_start = 0;
	state->soft_end = now;
	return 0;
}

SEC("tp_btf/local_timer_entry")
int BPF_PROG(on_local_timer_entry, int vector)
{
	struct cpu_state *state = this_cpu(bpf_get_smp_processor_id());

	state->in_local_timer = 1;
	state->local_timer_start = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/local_timer_exit")
int BPF_PROG(on_local_timer_exit, int vector)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = this_cpu(cpu);
	u64 now = bpf_ktime_get_ns();

	state->in_local_timer = 0;
	emit_interrupt(cpu, now, state->local_timer_start, INTERRUPT_LOCAL_TIMER, 0);
	state->local_timer_start = 0;
	state->interrupt_end = now;
	return 0;
}

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(on_timer_entry)
{
	this_cpu(bpf_get_smp_processor_id())->in_timer = 1;
	return 0;
}

SEC("tp_btf/timer_expire_exit")
int BPF_PROG(on_timer_exit)
{
	this_cpu(bpf_get_smp_processor_id())->in_timer = 0;
	return 0;
}
