// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Block I/O from issue to completion, one record at the completion.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "ring.h"

struct issued {
	u64 ts;
	u32 tid;
	u32 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct issued);
} issued_requests SEC(".maps");

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_block_issue, struct request *request)
{
	u64 key = (u64)request;
	struct issued issued = {
		.ts = bpf_ktime_get_ns(),
		.tid = (u32)bpf_get_current_pid_tgid(),
		.bytes = request->__data_len,
	};

	bpf_map_update_elem(&issued_requests, &key, &issued, BPF_ANY);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_block_complete, struct request *request)
{
	u64 now = bpf_ktime_get_ns(), key = (u64)request;
	struct issued *issued = bpf_map_lookup_elem(&issued_requests, &key);
	u64 *record;
	u32 device;

	if (!issued)
		return 0;
	device = (u32)BPF_CORE_READ(request, q, disk, major) << 20 |
		 (u32)BPF_CORE_READ(request, q, disk, first_minor);
	record =
		reserve(bpf_get_smp_processor_id(), now, (u32)bpf_get_current_pid_tgid(), 5, false);
	if (!record)
		return 0;
	record[1] = PAIR(issued->tid, device);
	record[2] = request->__sector;
	record[3] = issued->bytes;
	record[4] = now - issued->ts;
	// The low byte of cmd_flags is the operation (enum req_op).
	commit(record, RECORD(now, EVENT_IO, 0, (u8)request->cmd_flags));
	bpf_map_delete_elem(&issued_requests, &key);
	return 0;
}
