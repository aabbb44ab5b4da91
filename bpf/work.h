// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Work queues: who queued what a kernel worker does, and when it does it.
#pragma once

#include <bpf/bpf_tracing.h>

#include "handoff.h"

static __always_inline int work_step(struct work_struct *work, u64 function, u8 step)
{
	struct handoff handoff = {
		.key = (u64)work,
		.detail = function,
		.kind = HANDOFF_WORK,
		.step = step,
	};

	emit_handoff(&handoff);
	return 0;
}

SEC("tp_btf/workqueue_queue_work")
int BPF_PROG(on_queue_work, int cpu, void *pool, struct work_struct *work)
{
	return work_step(work, (u64)work->func, STEP_SUBMITTED);
}

SEC("tp_btf/workqueue_execute_start")
int BPF_PROG(on_work_start, struct work_struct *work)
{
	return work_step(work, (u64)work->func, STEP_BEGUN);
}

// The item may be gone by now: only its address is used.
SEC("tp_btf/workqueue_execute_end")
int BPF_PROG(on_work_end, struct work_struct *work)
{
	return work_step(work, 0, STEP_DONE);
}
