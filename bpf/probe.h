// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Functions of programs and their static probes (USDT), where the user asks for them: they become
// marks (docs/MARKS.md). Which probe it is comes as the cookie of its attachment.
#pragma once

#include <bpf/bpf_tracing.h>

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wsign-compare"
#include <bpf/usdt.bpf.h>
#pragma clang diagnostic pop

#include "ring.h"

static __always_inline void note_probe(const u32 step, u32 probe, const u64 *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 cpu = bpf_get_smp_processor_id(), tid = task->pid;
	u64 ts = bpf_ktime_get_ns();
	u64 *record = reserve(cpu, ts, tid, 5, false);

	if (!record)
		return;
	record[1] = arguments[0];
	record[2] = arguments[1];
	record[3] = arguments[2];
	record[4] = arguments[3];
	commit(record, RECORD(ts, EVENT_PROBE, 0, step | probe << 4));
}

SEC("uprobe")
int on_probe_entry(struct pt_regs *ctx)
{
	u64 arguments[4] = {PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx),
			    PT_REGS_PARM4(ctx)};

	note_probe(PROBE_ENTERED, bpf_get_attach_cookie(ctx), arguments);
	return 0;
}

SEC("uretprobe")
int on_probe_return(struct pt_regs *ctx)
{
	u64 arguments[4] = {PT_REGS_RC(ctx)};

	note_probe(PROBE_RETURNED, bpf_get_attach_cookie(ctx), arguments);
	return 0;
}

SEC("usdt")
int on_probe_point(struct pt_regs *ctx)
{
	u64 arguments[4] = {};

	// A probe that has fewer leaves the others 0.
	bpf_usdt_arg(ctx, 0, (long *)&arguments[0]);
	bpf_usdt_arg(ctx, 1, (long *)&arguments[1]);
	bpf_usdt_arg(ctx, 2, (long *)&arguments[2]);
	bpf_usdt_arg(ctx, 3, (long *)&arguments[3]);
	note_probe(PROBE_ENTERED, bpf_usdt_cookie(ctx), arguments);
	return 0;
}
