// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What a thread that wants memory has to do before it gets any: free the memory of others, or move
// pages until some lie side by side. Nothing of this runs while memory is plenty.
#pragma once

#include <bpf/bpf_tracing.h>

#include "ring.h"

// When a thread began, by tid << 2 | kind.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 13);
	__type(key, u64);
	__type(value, u64);
} open_stalls SEC(".maps");

static __always_inline void begin_stall(u32 kind)
{
	u64 key = (u64)(u32)bpf_get_current_pid_tgid() << 2 | kind, now = bpf_ktime_get_ns();

	bpf_map_update_elem(&open_stalls, &key, &now, BPF_ANY);
}

static __always_inline void end_stall(u32 kind, u64 pages)
{
	u32 cpu = bpf_get_smp_processor_id(), tid = (u32)bpf_get_current_pid_tgid();
	u64 key = (u64)tid << 2 | kind, now = bpf_ktime_get_ns(), *record;
	u64 *start = bpf_map_lookup_elem(&open_stalls, &key), begun;

	if (!start)
		return;
	begun = *start;
	bpf_map_delete_elem(&open_stalls, &key);
	record = reserve(cpu, now, tid, 4, false);
	if (!record)
		return;
	record[1] = now - begun;
	record[2] = pages;
	record[3] = 0;
	commit(record, RECORD(now, EVENT_PAGING, 0, PAGING_STALL | kind << 4));
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(on_reclaim_begin)
{
	begin_stall(STALL_RECLAIM);
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(on_reclaim_end, unsigned long pages)
{
	end_stall(STALL_RECLAIM, pages);
	return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(on_limit_reclaim_begin)
{
	begin_stall(STALL_LIMIT_RECLAIM);
	return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(on_limit_reclaim_end, unsigned long pages)
{
	end_stall(STALL_LIMIT_RECLAIM, pages);
	return 0;
}

SEC("tp_btf/mm_compaction_begin")
int BPF_PROG(on_compaction_begin)
{
	begin_stall(STALL_COMPACTION);
	return 0;
}

SEC("tp_btf/mm_compaction_end")
int BPF_PROG(on_compaction_end)
{
	end_stall(STALL_COMPACTION, 0);
	return 0;
}
