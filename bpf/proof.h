// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// For the test that holds this unwinder against another: beside the id of each stack, the registers
// and the memory that it was walked from. Off, it is not even loaded.
#pragma once

#include "unwind.h"

const volatile bool prove = false;

#define PROOF_PIECES 4

static __always_inline void send_proof(struct stack_copy *copy, struct pt_regs *regs, u32 id,
				       u64 ts, u32 pid, u32 cpu)
{
	struct cpu_state *state = this_cpu(cpu);

	copy->ts = ts;
	copy->kind = DEFINITION_STACK_PROOF;
	copy->stack = id;
	copy->pid = pid;
	copy->frame_count = 1;
	copy->fp = REGS_FRAME_POINTER(regs);
	copy->exact = 1;
	copy->link = 0;
	copy->frames[0] = REGS_IP(regs);
	for (u32 piece = 0; piece < PROOF_PIECES; piece++) {
		if (!state->copies_left)
			break;
		state->copies_left--;
		copy->sp = REGS_SP(regs) + piece * COPY_BYTES;
		copy_stack(copy);
		bpf_ringbuf_output(&definitions, copy,
				   __builtin_offsetof(struct stack_copy, frames) + sizeof(u64),
				   BPF_RB_NO_WAKEUP);
	}
}
