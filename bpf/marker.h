// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What programs write into the kernel's trace_marker, where the user asks for it: it becomes marks
// (docs/MARKS.md). Every system call of the machine pays for the test whether it is a write.
#pragma once

#include <bpf/bpf_tracing.h>

#include "calls.h"
#include "ring.h"

#define MARKER_BYTES (8 * MARKER_WORDS)

// Which file it is; all instances of tracefs that processes see are one file system.
const volatile u64 marker_inode;
const volatile u32 marker_device;

static __always_inline bool is_marker(struct task_struct *task, u32 fd)
{
	struct files_struct *files = task->files;
	struct fdtable *table = files ? files->fdt : 0;
	struct super_block *sb;
	struct inode *inode;
	struct file *file;

	if (!table || fd >= table->max_fds)
		return false;
	file = pointer_at(table->fd + fd);
	if (!file)
		return false;
	inode = FIELD(struct file, file, f_inode);
	if (FIELD(struct inode, inode, i_ino) != marker_inode)
		return false;
	sb = FIELD(struct inode, inode, i_sb);
	return FIELD(struct super_block, sb, s_dev) == marker_device;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_probe_marker, struct pt_regs *regs, long number)
{
	u64 length, ts, *record;
	struct task_struct *task;

	if (number != CALL_WRITE)
		return 0;
	task = bpf_get_current_task_btf();
	if (!is_marker(task, (u32)REGS_ARG0(regs)))
		return 0;
	length = REGS_ARG2(regs);
	if (length > MARKER_BYTES)
		length = MARKER_BYTES;
	ts = bpf_ktime_get_ns();
	record = reserve(bpf_get_smp_processor_id(), ts, task->pid, 1 + MARKER_WORDS, false);
	if (!record)
		return 0;
	for (u32 i = 0; i < MARKER_WORDS; i++)
		record[1 + i] = 0;
	// A text that is not in memory stays empty, and is counted as lost.
	bpf_probe_read_user(&record[1], length, (void *)REGS_ARG1(regs));
	commit(record, RECORD(ts, EVENT_MARKER, 0, 0));
	return 0;
}
