// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Page faults. Where one begins, address and time are kept, nothing else. One that blocks is
// recorded by the switch that follows. There is no hook where a fault ends, but the kernel counts
// it there, as major or minor, and a perf event with a period of one reports each count: of major
// ones always, of minor ones where they are asked for.
#pragma once

#include <bpf/bpf_tracing.h>

#include "area.h"
#include "page_cache.h"
#include "ring.h"
#include "user_stack.h"

struct open_fault {
	u64 address;
	u64 start;
	u64 inode;
	u32 flags;
	u32 padding;
};

// Of threads that blocked in a fault and may go on with it on another CPU, by tid.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 13);
	__type(key, u32);
	__type(value, struct open_fault);
} open_faults SEC(".maps");

static __always_inline void begin_fault(u64 address, u32 flags)
{
	struct cpu_state *state = this_cpu(bpf_get_smp_processor_id());

	state->fault_address = address;
	state->fault_start = bpf_ktime_get_ns();
	state->fault_flags = flags;
	state->fault_inode = 0;
	state->fault_tid = (u32)bpf_get_current_pid_tgid();
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault, unsigned long address)
{
	begin_fault(address, 0);
	return 0;
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_kernel_page_fault, unsigned long address)
{
	// Who only tries whether memory is there, as walks of stacks do, gets no page.
	if (!bpf_get_current_task_btf()->pagefault_disabled)
		begin_fault(address, FAULT_KERNEL);
	return 0;
}

// A page of a file that no process near had mapped: the page is looked for in the page cache.
SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(on_file_fault, struct address_space *mapping, unsigned long index)
{
	struct cpu_state *state = this_cpu(bpf_get_smp_processor_id());

	if (state->fault_tid == (u32)bpf_get_current_pid_tgid()) {
		state->fault_flags |= FAULT_FILE;
		state->fault_inode = mapping->host->i_ino;
	}
	if (follow_cache)
		note_cache(mapping->host, index, 1, CACHE_FAULTED);
	return 0;
}

// Keeps the fault that a thread blocks in, if it is in one. Returns the address where it is the
// fault that it blocks in and not a system call.
static __always_inline u64 keep_fault(struct task_struct *prev, u32 cpu, s16 call)
{
	struct cpu_state *state = this_cpu(cpu);
	struct open_fault fault = {}, *kept;
	u32 tid = prev->pid;

	if (state->fault_tid == tid && (call == CALL_NONE || state->fault_flags & FAULT_KERNEL)) {
		fault.address = state->fault_address;
		fault.start = state->fault_start;
		fault.flags = state->fault_flags;
		fault.inode = state->fault_inode;
		state->fault_tid = 0;
		bpf_map_update_elem(&open_faults, &tid, &fault, BPF_ANY);
	} else if (call == CALL_NONE) {
		kept = bpf_map_lookup_elem(&open_faults, &tid);
		fault.address = kept ? kept->address : 0;
		fault.inode = kept ? kept->inode : 0;
	}
	if (call != CALL_NONE || !fault.address)
		return 0;
	if (prev->mm)
		note_area(prev, fault.address, fault.inode);
	return fault.address;
}

static __always_inline int end_fault(u64 address, u32 flags)
{
	u32 cpu = bpf_get_smp_processor_id(), user_stack;
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu_state *state = this_cpu(cpu);
	u64 ts = bpf_ktime_get_ns(), start = 0, inode = 0, *record;
	u32 tid = task->pid;

	if (!tid || !task->mm)
		return 0;
	if (state->fault_tid == tid && state->fault_address == address) {
		start = state->fault_start;
		flags |= state->fault_flags;
		inode = state->fault_inode;
		state->fault_tid = 0;
	} else {
		struct open_fault *fault = bpf_map_lookup_elem(&open_faults, &tid);

		if (fault && fault->address == address) {
			start = fault->start;
			flags |= fault->flags;
			inode = fault->inode;
			fault->address = 0;
		}
	}
	if (follow_cache)
		flush_cache(cpu, ts, tid, false);
	note_area(task, address, inode);
	user_stack = caller_stack(task, (struct pt_regs *)bpf_task_pt_regs(task), ts);
	record = reserve(cpu, ts, tid, 4, false);
	if (!record)
		return 0;
	record[1] = address;
	record[2] = start ? ts - start : 0;
	record[3] = user_stack;
	commit(record, RECORD(ts, EVENT_PAGING, 0, PAGING_FAULT | flags << 4));
	return 0;
}

SEC("perf_event")
int on_major_fault(struct event_data *ctx)
{
	return end_fault(ctx->address, FAULT_MAJOR);
}

SEC("perf_event")
int on_minor_fault(struct event_data *ctx)
{
	return end_fault(ctx->address, 0);
}
