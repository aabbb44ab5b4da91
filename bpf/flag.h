// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Flags in memory that are watched: each use, as a hardware breakpoint reports it right behind the
// instruction.
//
// x86 has breakpoints for writes, and for reads and writes, but none for reads. A flag whose reads
// are watched has one of each, opened in this order, so that a thread's write reports to the first
// and then to the second, and the second can tell that it is the same.
#pragma once

#include "user_stack.h"

// Of all processes together.
#define MAX_FLAGS 8

struct watched_flag {
	u64 address;
	u32 pid;
	u32 size;
	u64 reads; // since the beginning; read by user space
	u64 writes;
	u64 reads_left; // that may be recorded until user space allows more
};

struct watched_flag watched_flags[MAX_FLAGS];

// The last write on a CPU.
struct last_write {
	u64 instruction;
	u64 address;
	u32 tid;
};

struct last_write last_writes[MAX_CPUS];

static __always_inline int note_access(struct event_data *ctx, const u32 access)
{
	u64 ts = bpf_ktime_get_ns(), value = 0, address = ctx->address, ip;
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u32 cpu = bpf_get_smp_processor_id(), tid = task->pid, flag, size, user_stack;
	struct last_write *last = &last_writes[cpu & (MAX_CPUS - 1)];
	u64 *record;

	for (flag = 0; flag < MAX_FLAGS; flag++) {
		if (watched_flags[flag].address == address &&
		    watched_flags[flag].pid == (u32)task->tgid)
			break;
	}
	if (flag >= MAX_FLAGS || !tid)
		return 0;
	ip = REGS_IP(regs);
	if (access == ACCESS_WRITE) {
		last->instruction = ip;
		last->address = address;
		last->tid = tid;
		__sync_fetch_and_add(&watched_flags[flag].writes, 1);
	} else if (last->tid == tid && last->address == address && last->instruction == ip) {
		last->tid = 0;
		return 0;
	} else {
		__sync_fetch_and_add(&watched_flags[flag].reads, 1);
		// They will rest soon: until then each costs as little as may be.
		if (!watched_flags[flag].reads_left)
			return 0;
		watched_flags[flag].reads_left--;
	}
	size = watched_flags[flag].size;
	if (size == 1)
		bpf_probe_read_user(&value, 1, (void *)address);
	else if (size == 2)
		bpf_probe_read_user(&value, 2, (void *)address);
	else if (size == 4)
		bpf_probe_read_user(&value, 4, (void *)address);
	else
		bpf_probe_read_user(&value, 8, (void *)address);
	user_stack = take_stacks ? user_stack_id(task, regs, ts, cpu, SCRATCH_SAMPLE) : 0;
	record = reserve(cpu, ts, tid, 4, false);
	if (!record)
		return 0;
	record[1] = PAIR(user_stack, 0);
	record[2] = value;
	record[3] = ip;
	commit(record, RECORD(ts, EVENT_FLAG, 0, access | flag << 4));
	return 0;
}

SEC("perf_event")
int on_flag_write(struct event_data *ctx)
{
	return note_access(ctx, ACCESS_WRITE);
}

// A read, or the write that the other has noted.
SEC("perf_event")
int on_flag_use(struct event_data *ctx)
{
	return note_access(ctx, ACCESS_READ);
}
