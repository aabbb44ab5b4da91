// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Bytes into and out of sockets, with both ends' identity where the kernel has it, so that a send
// can be tied to its receive. Pipes and eventfds have no tracepoint of their own: where asked for,
// the return of read and write is hooked.
#pragma once

#include <bpf/bpf_tracing.h>

#include "call.h"
#include "call_log.h"
#include "ring.h"

// Whether reads and writes of pipes and eventfds are recorded.
const volatile bool all_transfers;

// Whether one more may be recorded: a million a second, as a benchmark can make, would cost more
// than all else together.
static __always_inline bool may_transfer(void)
{
	struct cpu_state *state = this_cpu(bpf_get_smp_processor_id());

	if (may_record(state, &state->transfers_left))
		return true;
	state->transfers_refused++;
	return false;
}

static __always_inline void emit_transfer(u32 tid, u64 object, u64 peer, bool sent, u32 bytes)
{
	u64 ts = bpf_ktime_get_ns(), *record;
	u32 has = 0, words = 2;

	if (peer)
		has |= HAS(0), words++;
	if (bytes > 0x7fffff)
		has |= HAS(1), words++;
	record = reserve(bpf_get_smp_processor_id(), ts, tid, words, false);
	if (!record)
		return;
	record[1] = object;
	words = 2;
	if (has & HAS(0))
		record[words++] = peer;
	if (has & HAS(1))
		record[words] = bytes;
	commit(record, RECORD(ts, EVENT_TRANSFER, has, sent | (bytes & 0x7fffff) << 1));
}

static __always_inline int socket_transfer(struct sock *sk, int bytes, bool sent)
{
	u64 object, pids, peer = 0;

	if (bytes <= 0 || !may_transfer())
		return 0;
	object = socket_object(sk);
	if (object >> 56 == OBJECT_UNIX) {
		struct sock *other = BPF_CORE_READ((struct unix_sock *)sk, peer);

		if (other)
			peer = socket_object(other);
	}
	pids = bpf_get_current_pid_tgid();
	note_socket(sk, object, pids >> 32);
	emit_transfer((u32)pids, object, peer, sent, bytes);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_socket_send, struct sock *sk, int bytes)
{
	return socket_transfer(sk, bytes, true);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_socket_receive, struct sock *sk, int bytes)
{
	return socket_transfer(sk, bytes, false);
}

// Bytes through a pipe or eventfd, which the call's result tells.
static __always_inline void call_transfer(struct task_struct *task, struct pt_regs *regs,
					  long result)
{
	s32 number = REGS_CALL(regs);
	u64 object;
	u32 kind;

	if (result <= 0)
		return;
	if (number != CALL_READ && number != CALL_WRITE && number != CALL_READV &&
	    number != CALL_WRITEV)
		return;
	object = descriptor_object(task, (u32)REGS_ARG0(regs));
	kind = object >> 56;
	if ((kind == OBJECT_PIPE || kind == OBJECT_EVENTFD) && may_transfer())
		emit_transfer(task->pid, object, object,
			      number == CALL_WRITE || number == CALL_WRITEV, (u32)result);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_call_exit, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (log_calls && is_logged(task->pid))
		log_call(task, result);
	if (all_transfers)
		call_transfer(task, regs, result);
	return 0;
}
