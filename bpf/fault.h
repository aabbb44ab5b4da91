// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Page faults cost nothing until they block: only the address is kept, for the switch that follows.
#pragma once

#include <bpf/bpf_tracing.h>

#include "ring.h"

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault, unsigned long address)
{
	struct cpu_state *state = this_cpu(bpf_get_smp_processor_id());

	state->fault_address = address;
	state->fault_tid = (u32)bpf_get_current_pid_tgid();
	return 0;
}
