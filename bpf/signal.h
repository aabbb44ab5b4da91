// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Signals, from who sends to who is interrupted. What one waits for in sigwait or a signalfd is not
// delivered: the wait's end shows it.
#pragma once

#include <bpf/bpf_tracing.h>

#include "handoff.h"

#define SIGNAL_IGNORED 1

static __always_inline void signal_step(u32 number, struct task_struct *receiver, u8 step)
{
	struct handoff handoff = {
		.key = (u64)receiver->tgid << 32 | number,
		.detail = number,
		.other = receiver->pid,
		.kind = HANDOFF_SIGNAL,
		.step = step,
	};

	emit_handoff(&handoff);
}

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal_send, int number, void *info, struct task_struct *receiver, int group,
	     int result)
{
	signal_step(number, receiver, result == SIGNAL_IGNORED ? STEP_CANCELLED : STEP_SUBMITTED);
	return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(on_signal_deliver, int number)
{
	signal_step(number, bpf_get_current_task_btf(), STEP_BEGUN);
	return 0;
}
