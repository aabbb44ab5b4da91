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
	u64 *record;

	if (!tid)
		return 0;
	if (task->mm)
		user_stack = user_stack_id(task, (struct pt_regs *)bpf_task_pt_regs(task), ts, cpu,
					   SCRATCH_SAMPLE);
	// Empty where the clock interrupted user code.
	kernel_stack = kernel_stack_id(ctx, ts, cpu, SCRATCH_SAMPLE);
	record = reserve(cpu, ts, tid, 2, false);
	if (!record)
		return 0;
	record[1] = PAIR(user_stack, kernel_stack);
	commit(record, RECORD(ts, EVENT_SAMPLE, 0, 0));
	count(tid, cpu, ts);
	return 0;
}
