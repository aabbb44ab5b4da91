// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Threads that come, go, and change their names. These are definitions: whoever reads the events
// must know them, however old they are.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "call_log.h"
#include "unwind.h"

static __always_inline void begin_life(struct life_definition *life, u32 kind,
				       struct task_struct *task)
{
	__builtin_memset(life, 0, sizeof(*life));
	life->ts = bpf_ktime_get_ns();
	life->kind = kind;
	life->tid = task->pid;
	life->pid = task->tgid;
	life->is_kernel = !!(task->flags & PF_KTHREAD);
	BPF_CORE_READ_STR_INTO(&life->name, task, comm);
}

SEC("tp_btf/task_newtask")
int BPF_PROG(on_fork, struct task_struct *task, u64 clone_flags)
{
	struct life_definition life;

	begin_life(&life, DEFINITION_FORK, task);
	life.parent = (u32)bpf_get_current_pid_tgid();
	life.parent_pid = bpf_get_current_pid_tgid() >> 32;
	if (life.tid == life.pid)
		life.epoch = inherit_code(life.parent_pid, life.pid);
	inherit_log(life.parent, life.tid);
	emit_definition(bpf_get_smp_processor_id(), &life, sizeof(life));
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *binprm)
{
	struct life_definition life;

	begin_life(&life, DEFINITION_EXEC, task);
	// The thread that executes takes the process's tid: here is the one that it had.
	life.parent = old_pid;
	bpf_probe_read_kernel_str(life.detail, sizeof(life.detail), binprm->filename);
	life.vdso = (u64)BPF_CORE_READ(task, mm, context.vdso);
	life.epoch = renew_code(life.pid);
	if ((u32)old_pid != life.tid)
		inherit_log(old_pid, life.tid);
	emit_definition(bpf_get_smp_processor_id(), &life, sizeof(life));
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *name)
{
	struct life_definition life;

	begin_life(&life, DEFINITION_RENAME, task);
	bpf_probe_read_kernel_str(life.name, sizeof(life.name), name);
	emit_definition(bpf_get_smp_processor_id(), &life, sizeof(life));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct life_definition life;

	begin_life(&life, DEFINITION_EXIT, task);
	life.exit_code = task->exit_code;
	emit_definition(bpf_get_smp_processor_id(), &life, sizeof(life));
	return 0;
}

// The kernel chose a process to be killed, as memory had run out. Up to Linux 6.7 it tells the pid
// alone.
SEC("tp_btf/mark_victim")
int on_out_of_memory(u64 *context)
{
	struct life_definition life;
	struct task_struct *task;
	u64 victim = 0;

	// As a number: what is a pointer to the verifier cannot be looked at.
	bpf_probe_read_kernel(&victim, sizeof(victim), context);
	task = (void *)victim;
	__builtin_memset(&life, 0, sizeof(life));
	life.ts = bpf_ktime_get_ns();
	life.kind = DEFINITION_OUT_OF_MEMORY;
	life.pid = victim >> 32 ? BPF_CORE_READ(task, tgid) : (u32)victim;
	life.tid = life.pid;
	emit_definition(bpf_get_smp_processor_id(), &life, sizeof(life));
	return 0;
}
