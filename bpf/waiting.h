// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Threads that are off the CPU already when somebody looks: one pass over all, which stops none of
// them. Each gets the record that its switch would have left, had it been seen, and the registers
// from which user space walks its stack. A thread that is on a CPU gets a record that says only
// that.
#pragma once

#include <bpf/bpf_tracing.h>

#include "call.h"
#include "lock.h"
#include "sched.h"

// One reader at a time has it.
struct waiting_thread waiting_thread;

// Since when the task has been off its CPU: when it got that last, and what it ran until it left.
static __always_inline void tell_since(struct waiting_thread *waiting, struct task_struct *task)
{
	waiting->left_at = 0;
	waiting->reader_came = 0;
	if (!bpf_core_field_exists(task->sched_info.last_arrival) || !task->sched_info.last_arrival)
		return;
	waiting->left_at = task->sched_info.last_arrival + task->se.sum_exec_runtime -
			   task->se.prev_sum_exec_runtime;
	waiting->reader_came = bpf_get_current_task_btf()->sched_info.last_arrival;
}

SEC("iter.s/task")
int look_at_waiting(struct bpf_iter__task *ctx)
{
	struct waiting_thread *waiting = &waiting_thread;
	struct task_struct *task = ctx->task;
	struct call call = {};
	struct pt_regs *regs;
	bool blocks, unexplained;
	u32 state;
	u8 left;

	if (!task || task->flags & PF_KTHREAD || !task->mm)
		return 0;
	state = task->__state;
	if (state & TASK_EXIT_OR_DEAD)
		return 0;
	if (task->on_cpu) {
		__builtin_memset(waiting, 0, sizeof(*waiting));
		waiting->tid = task->pid;
		waiting->pid = task->tgid;
		waiting->left = LEFT_ON_CPU;
		goto tell;
	}
	blocks = state != 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (blocks)
		read_call_of(task, regs, &call, true);
	else
		call.number = call_number(task, regs);
	left = how_it_left(blocks, true, task, state, call.number);
	unexplained = blocks && needs_kernel_stack(left, &call);
	if (unexplained)
		read_blocker(task, &call);

	waiting->ts = bpf_ktime_get_ns();
	waiting->born_at = task->start_time;
	tell_since(waiting, task);
	waiting->object = call.object;
	waiting->arg = left == LEFT_STOPPED ? who_stopped(task, state) : call.arg;
	waiting->tid = task->pid;
	waiting->pid = task->tgid;
	waiting->call = call.number;
	waiting->left = left;
	waiting->ip = REGS_IP(regs);
	waiting->sp = REGS_SP(regs);
	waiting->fp = REGS_FRAME_POINTER(regs);
	waiting->link = call.number == CALL_VFORK ? REGS_ARG0(regs) : 0;
	waiting->kernel_count = 0;
	if (unexplained && take_stacks) {
		long bytes = bpf_get_task_stack(task, waiting->kernel, sizeof(waiting->kernel), 0);

		if (bytes > 0)
			waiting->kernel_count = (u32)bytes / sizeof(u64);
	}
tell:
#if defined(__TARGET_ARCH_x86)
	waiting->thread_pointer = task->thread.fsbase;
#endif
	bpf_seq_write(ctx->meta->seq, waiting, sizeof(*waiting));
	return 0;
}
