// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Who ran, who blocked and why, who woke whom.
#pragma once

#include <bpf/bpf_tracing.h>

#include "call.h"
#include "counters.h"
#include "interrupt.h"
#include "lock.h"
#include "user_stack.h"

static __always_inline u8 how_it_left(bool blocks, bool preempt, struct task_struct *prev,
				      u32 state, s16 call)
{
	struct task_struct___throttled *throttled = (void *)prev;

	if (!blocks) {
		if (bpf_core_field_exists(throttled->throttled) && throttled->throttled)
			return LEFT_THROTTLED;
		return !preempt && call == CALL_SCHED_YIELD ? LEFT_YIELDED : LEFT_PREEMPTED;
	}
	if (state & TASK_EXIT_OR_DEAD)
		return LEFT_DEAD;
	if (state & (TASK_PARKED | TASK_NOLOAD))
		return LEFT_IDLE;
	if (state & TASK_STOPPED_OR_TRACED)
		return LEFT_STOPPED;
	return state & TASK_UNINTERRUPTIBLE ? LEFT_UNINTERRUPTIBLE : LEFT_SLEEPING;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u64 ts = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	u32 tid = prev->pid, user_stack = 0, kernel_stack = 0;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(prev);
	struct call *call = &this_cpu(cpu)->call;
	struct event *event;
	bool blocks = !preempt && prev_state;
	u8 left;
	u16 lap;

	if (blocks) {
		read_call(prev, regs, call);
		barrier();
	} else {
		// It does not wait for its call.
		call->object = 0;
		call->arg = 0;
		call->number = call_number(prev, regs);
	}
	left = how_it_left(blocks, preempt, prev, prev_state, call->number);
	if (blocks && left != LEFT_DEAD && left != LEFT_IDLE) {
		struct cpu_state *state = this_cpu(cpu);
		bool unexplained = left == LEFT_UNINTERRUPTIBLE || !tells_the_wait(call);

		if (call->number == CALL_NONE && state->fault_tid == tid)
			call->arg = state->fault_address;
		if (unexplained)
			read_contention(tid, call);
		if (take_stacks) {
			if (prev->mm)
				user_stack = user_stack_id(prev, regs, ts, cpu, SCRATCH_SCHED);
			if (unexplained)
				kernel_stack = kernel_stack_id(ctx, ts, cpu, SCRATCH_SCHED);
		}
	}

	event = reserve_undisturbed(cpu, &lap);
	if (!event)
		return 0;
	event->ts = ts;
	event->tid = tid;
	event->kind = EVENT_SWITCH;
	event->flags = left;
	event->a = next->pid;
	event->b = user_stack;
	event->c = kernel_stack;
	event->call = call->number;
	event->x = (u8)next->prio;
	event->vector = 0;
	event->object = call->object;
	event->arg = call->arg;
	commit(event, lap);
	count(tid, cpu, ts);
	return 0;
}

// Whether a wake out of a softirq is the running thread's own doing: it sends over a connection
// within the machine, and the kernel delivers that at once. Then its call tells as much as the
// kernel's stack, which is the network's whole path and takes several µs to walk.
static __always_inline bool delivers_own(const struct cpu_state *state, u8 vector,
					 struct task_struct *waker, struct call *call)
{
	if (vector != SOFTIRQ_SEND && vector != SOFTIRQ_RECEIVE)
		return false;
	if (!state->soft_start || state->soft_interrupts || !waker->mm)
		return false;
	read_call(waker, (struct pt_regs *)bpf_task_pt_regs(waker), call);
	barrier();
	return passes_messages(call) && call->object >> 56 == OBJECT_INET;
}

static __always_inline int wake(void *ctx, struct task_struct *wakee, bool is_new)
{
	u64 ts = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	struct task_struct *waker = bpf_get_current_task_btf();
	u32 tid = waker->pid, user_stack = 0, kernel_stack = 0;
	struct call *call = &this_cpu(cpu)->call;
	struct event *event;
	u8 kind, vector;
	u16 lap;

	kind = context_of(this_cpu(cpu), &vector);
	if (kind == CONTEXT_TASK) {
		struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(waker);

		read_call(waker, regs, call);
		barrier();
		if (take_stacks) {
			if (waker->mm)
				user_stack = user_stack_id(waker, regs, ts, cpu, SCRATCH_SCHED);
			if (!is_new && !tells_the_wake(call))
				kernel_stack = kernel_stack_id(ctx, ts, cpu, SCRATCH_SCHED);
		}
	} else if (kind != CONTEXT_SOFTIRQ || !delivers_own(this_cpu(cpu), vector, waker, call)) {
		call->object = 0;
		call->arg = 0;
		call->number = CALL_NONE;
		if (take_stacks && kind != CONTEXT_HRTIMER)
			kernel_stack = kernel_stack_id(ctx, ts, cpu, SCRATCH_SCHED);
	}

	// A thread that wakes itself does so with interrupts on; every other wake holds a lock that
	// needs them off.
	event = wakee == waker ? reserve(cpu, &lap) : reserve_undisturbed(cpu, &lap);
	if (!event)
		return 0;
	event->ts = ts;
	event->tid = tid;
	event->kind = EVENT_WAKE;
	event->flags = is_new;
	event->a = wakee->pid;
	event->b = user_stack;
	event->c = kernel_stack;
	event->call = call->number;
	event->x = kind;
	event->vector = vector;
	event->object = call->object;
	event->arg = (u32)call->arg;
	commit(event, lap);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *wakee)
{
	return wake(ctx, wakee, false);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *wakee)
{
	return wake(ctx, wakee, true);
}
