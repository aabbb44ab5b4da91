// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Work and locks that go from one context to another: what the headers that hook them share.
#pragma once

#include "call.h"
#include "interrupt.h"
#include "ring.h"

struct handoff {
	u64 key;
	u64 object;
	u64 detail;
	u32 other;
	u8 kind;
	u8 step;
};

static __always_inline void emit_handoff(const struct handoff *handoff)
{
	u64 ts = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = this_cpu(cpu);
	u64 *record;
	u8 vector;

	if (!may_record(state, &state->handoffs_left)) {
		state->handoffs_refused++;
		return;
	}
	record = reserve(cpu, ts, (u32)bpf_get_current_pid_tgid(), 5, false);
	if (!record)
		return;
	record[1] = handoff->other;
	record[2] = handoff->detail;
	record[3] = handoff->object;
	record[4] = handoff->key;
	commit(record, RECORD(ts, EVENT_HANDOFF, 0,
			      handoff->step | (u32)handoff->kind << 4 |
				      (u32)context_of(state, &vector) << 8));
}

// The system call that the running thread is in, if it is the thread itself that runs here.
static __always_inline s16 own_call(struct task_struct *task, struct pt_regs *regs)
{
	const struct cpu_state *state = this_cpu(bpf_get_smp_processor_id());
	u8 vector;

	return context_of(state, &vector) == CONTEXT_TASK ? call_number(task, regs) : CALL_NONE;
}
