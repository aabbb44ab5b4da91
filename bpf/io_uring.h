// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// io_uring: who submitted a request, and when it was completed, by whom.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "handoff.h"

#define REQUEST_FIXED_FILE 1

static __always_inline void request_step(struct io_kiocb *request, u64 object, u8 step)
{
	struct handoff handoff = {
		.key = (u64)request,
		.object = object,
		.detail = OBJECT(BPF_CORE_READ(request, opcode), BPF_CORE_READ(request, ctx)),
		.kind = HANDOFF_IO_URING,
		.step = step,
	};

	emit_handoff(&handoff);
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_request_submit, struct io_kiocb *request)
{
	u64 object = 0;

	// The file is looked up later; until then there is the descriptor.
	if (!((u64)request->flags & REQUEST_FIXED_FILE) && request->cqe.fd >= 0)
		object = descriptor_object(bpf_get_current_task_btf(), request->cqe.fd);
	request_step(request, object, STEP_SUBMITTED);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(on_request_complete, void *ring, struct io_kiocb *request)
{
	// Of a multishot request, a completion without a request is another's.
	if (request)
		request_step(request, 0, STEP_DONE);
	return 0;
}
