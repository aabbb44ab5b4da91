// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Who ran, who blocked and why, who woke whom.
#pragma once

#include <bpf/bpf_tracing.h>

#include "call.h"
#include "counters.h"
#include "fault.h"
#include "interrupt.h"
#include "lock.h"
#include "user_stack.h"

static __always_inline u8 how_it_left(bool blocks, bool preempt, struct task_struct *prev,
				      u32 state, s16 call)
{
	struct task_struct___throttled *throttled = (void *)prev;
	struct task_struct___frozen *frozen = (void *)prev;

	if (!blocks) {
		if (bpf_core_field_exists(throttled->throttled) && throttled->throttled)
			return LEFT_THROTTLED;
		return !preempt && call == CALL_SCHED_YIELD ? LEFT_YIELDED : LEFT_PREEMPTED;
	}
	if (state & TASK_EXIT_OR_DEAD)
		return LEFT_DEAD;
	if (state & (TASK_PARKED | TASK_NOLOAD))
		return LEFT_IDLE;
	if (state & (TASK_STOPPED_OR_TRACED | TASK_FROZEN))
		return LEFT_STOPPED;
	if (state & TASK_UNINTERRUPTIBLE)
		return LEFT_UNINTERRUPTIBLE;
	// Who waits for a child of vfork counts as frozen too, but sleeps uninterruptibly.
	if (bpf_core_field_exists(frozen->frozen) && BPF_CORE_READ_BITFIELD(frozen, frozen))
		return LEFT_STOPPED;
	return LEFT_SLEEPING;
}

// The signal that stopped a task, 0 where none did; above it who traces the task, where that
// stopped it.
static __always_inline u64 who_stopped(struct task_struct *task, u32 state)
{
	// The parent of one that is traced is who traces it.
	if (state & TASK_TRACED)
		return (u64)(u32)task->parent->pid << 32;
	// JOBCTL_STOP_SIGMASK: the signal of its last stop, which may be long over.
	return state & TASK_STOPPED ? task->jobctl & 0xffff : 0;
}

// Whether the call alone does not tell what it waits for; where it is stopped, not what stopped it.
static __always_inline bool needs_kernel_stack(u8 left, struct call *call)
{
	return left == LEFT_UNINTERRUPTIBLE || left == LEFT_STOPPED || !tells_the_wait(call);
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
	bool blocks = !preempt && prev_state;
	u32 has = 0, words = 2;
	u64 *record;
	u8 left;

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
		bool unexplained = needs_kernel_stack(left, call);
		u64 address = keep_fault(prev, cpu, call->number);

		if (address)
			call->arg = address;
		if (left == LEFT_STOPPED)
			call->arg = who_stopped(prev, prev_state);
		if (unexplained)
			read_contention(tid, call);
		if (take_stacks) {
			if (prev->mm)
				user_stack = user_stack_id(prev, regs, ts, cpu, SCRATCH_SCHED);
			if (unexplained)
				kernel_stack = kernel_stack_id(ctx, ts, cpu, SCRATCH_SCHED);
		}
	}

	// Before the record after which another thread runs.
	count(tid, cpu, ts);
	if (follow_cache)
		flush_cache(cpu, ts, tid, true);
	if (call->object)
		has |= HAS(0), words++;
	if (call->arg)
		has |= HAS(1), words++;
	if (kernel_stack)
		has |= HAS(2), words++;
	record = reserve(cpu, ts, tid, words, true);
	if (!record)
		return 0;
	record[1] = PAIR(next->pid, user_stack);
	words = 2;
	if (has & HAS(0))
		record[words++] = call->object;
	if (has & HAS(1))
		record[words++] = call->arg;
	if (has & HAS(2))
		record[words] = kernel_stack;
	commit(record, RECORD(ts, EVENT_SWITCH, has,
			      left | CALL_BITS(call->number) << 4 | (u32)(u8)next->prio << 16));
	this_cpu(cpu)->tid = next->pid;
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
	u32 has = 0, words = 2;
	u8 kind, vector;
	u64 *record;

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

	if (call->object)
		has |= HAS(0), words++;
	if (kernel_stack || (u32)call->arg)
		has |= HAS(1), words++;
	// A thread that wakes itself does so with interrupts on; every other wake holds a lock that
	// needs them off.
	if (wakee == waker)
		record = reserve(cpu, ts, tid, words, false);
	else
		record = reserve(cpu, ts, tid, words, true);
	if (!record)
		return 0;
	record[1] = PAIR(wakee->pid, user_stack);
	words = 2;
	if (has & HAS(0))
		record[words++] = call->object;
	if (has & HAS(1))
		record[words] = PAIR(kernel_stack, call->arg);
	commit(record,
	       RECORD(ts, EVENT_WAKE, has,
		      kind | (u32)is_new << 3 | CALL_BITS(call->number) << 4 | (u32)vector << 16));
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
