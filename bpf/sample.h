// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The Monte Carlo profiler: what a CPU runs when the sampling clock fires.
#pragma once

#include "counters.h"
#include "user_stack.h"

SEC("perf_event")
int on_sample(void *ctx)
{
	u64 ts = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tid = task->pid, user_stack = 0, kernel_stack = 0;
	struct event *event;
	u16 lap;

	if (!tid)
		return 0;
	if (task->mm)
		user_stack = user_stack_id(task, (struct pt_regs *)bpf_task_pt_regs(task), ts, cpu,
					   SCRATCH_SAMPLE);
	// Empty where the clock interrupted user code.
	kernel_stack = kernel_stack_id(ctx, ts, cpu, SCRATCH_SAMPLE);
	event = reserve(cpu, &lap);
	if (!event)
		return 0;
	event->ts = ts;
	event->tid = tid;
	event->kind = EVENT_SAMPLE;
	event->flags = 0;
	event->a = user_stack;
	event->b = kernel_stack;
	event->c = 0;
	event->call = CALL_NONE;
	event->x = 0;
	event->vector = 0;
	event->object = 0;
	event->arg = 0;
	commit(event, lap);
	count(tid, cpu, ts);
	return 0;
}
