// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Every system call of chosen processes: its arguments, result, duration and caller. Whoever is not
// chosen pays for the hooks and the test of one bit.
#pragma once

#include <bpf/bpf_tracing.h>

#include "ring.h"
#include "user_stack.h"

// Whether calls are logged at all: otherwise neither hook is there.
const volatile bool log_calls;

// A bit for each tid that there can be: its calls are logged. User space sets the bits of who lives
// already, children inherit them.
#define MOST_TIDS (1 << 22)
u64 logged_tids[MOST_TIDS / 64];

static __always_inline u64 *logged_word(u32 tid)
{
	return &logged_tids[(tid >> 6) & (MOST_TIDS / 64 - 1)];
}

static __always_inline bool is_logged(u32 tid)
{
	return *logged_word(tid) >> (tid & 63) & 1;
}

// Thread `tid` is logged if `parent` is.
static __always_inline void inherit_log(u32 parent, u32 tid)
{
	u64 bit = 1ULL << (tid & 63);

	if (!log_calls)
		return;
	if (is_logged(parent))
		__sync_fetch_and_or(logged_word(tid), bit);
	else
		__sync_fetch_and_and(logged_word(tid), ~bit);
}

#define CALL_ARGUMENTS 6

// A call that a thread is in.
struct open_call {
	u64 start; // 0: in none
	u64 arguments[CALL_ARGUMENTS];
	u32 stack;
	s16 number;
	u16 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct open_call);
} open_calls SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(on_call_entry, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_call *call;
	u64 ts;

	if (!is_logged(task->pid))
		return 0;
	call = bpf_task_storage_get(&open_calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call) {
		this_cpu(bpf_get_smp_processor_id())->lost_records++;
		return 0;
	}
	ts = bpf_ktime_get_ns();
	call->number = number < 0 || number > 4093 ? CALL_NONE : (s16)number;
	call->arguments[0] = REGS_ARG0(regs);
	call->arguments[1] = REGS_ARG1(regs);
	call->arguments[2] = REGS_ARG2(regs);
	call->arguments[3] = REGS_ARG3(regs);
	call->arguments[4] = REGS_ARG4(regs);
	call->arguments[5] = REGS_ARG5(regs);
	call->stack = caller_stack(task, regs, ts);
	// Last: the walk is not the call's.
	call->start = bpf_ktime_get_ns();
	return 0;
}

// The end of a call that is logged. What did not begin while it was logged is left out.
static __always_inline void log_call(struct task_struct *task, long result)
{
	u32 cpu = bpf_get_smp_processor_id(), has = 0, words = 7;
	u64 ts = bpf_ktime_get_ns(), start, *record;
	struct open_call *call;

	call = bpf_task_storage_get(&open_calls, task, 0, 0);
	if (!call || !call->start)
		return;
	start = call->start;
	call->start = 0;
	if (call->arguments[3] | call->arguments[4] | call->arguments[5])
		has |= HAS(0), words += 3;
	record = reserve(cpu, ts, task->pid, words, false);
	if (!record)
		return;
	record[1] = ts - start;
	record[2] = result;
	record[3] = call->stack;
	record[4] = call->arguments[0];
	record[5] = call->arguments[1];
	record[6] = call->arguments[2];
	if (has) {
		record[7] = call->arguments[3];
		record[8] = call->arguments[4];
		record[9] = call->arguments[5];
	}
	commit(record, RECORD(ts, EVENT_CALL, has, CALL_BITS(call->number)));
}
