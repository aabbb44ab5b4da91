// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The identity of what a file descriptor leads to: kind in the top byte, inode number below
// (crates/trace/src/object.rs says the same for user space).
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "records.h"

#define OBJECT(kind, value) (((u64)(kind) << 56) | ((u64)(value) & ((1ULL << 56) - 1)))

#define WORD(a, b, c, d, e, f, g, h)                                                               \
	((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 |             \
	 (u64)(f) << 40 | (u64)(g) << 48 | (u64)(h) << 56)

// Anonymous inodes are shared by all such files; their name tells the kind ("[eventfd]") and the
// file's address stands for the number. A regular file has no bracket in front.
static __always_inline u64 file_object(struct file *file, u64 inode)
{
	const unsigned char *text = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	u64 name = 0;

	bpf_probe_read_kernel(&name, sizeof(name), text);
	if (name == WORD('[', 'e', 'v', 'e', 'n', 't', 'f', 'd'))
		return OBJECT(OBJECT_EVENTFD, (u64)file);
	if (name == WORD('[', 't', 'i', 'm', 'e', 'r', 'f', 'd'))
		return OBJECT(OBJECT_TIMERFD, (u64)file);
	if (name == WORD('[', 'e', 'v', 'e', 'n', 't', 'p', 'o'))
		return OBJECT(OBJECT_EPOLL, (u64)file);
	if ((u8)name == '[')
		return OBJECT(OBJECT_ANONYMOUS, (u64)file);
	return OBJECT(OBJECT_FILE, inode);
}

static __always_inline u64 socket_object(struct sock *sk)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	u64 inode = BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
	u64 kind = OBJECT_SOCKET;

	if (!inode)
		return 0;
	if (family == AF_UNIX)
		kind = OBJECT_UNIX;
	else if (family == AF_INET || family == AF_INET6)
		kind = OBJECT_INET;
	return OBJECT(kind, inode);
}

// What descriptor `fd` of `task` leads to; 0 if nothing.
static __always_inline u64 descriptor_object(struct task_struct *task, u32 fd)
{
	struct files_struct *files = task->files;
	struct fdtable *table = files ? files->fdt : 0;
	struct file **slot, *file = 0;
	struct socket *socket;
	u64 inode, mode;

	if (!table || fd >= table->max_fds)
		return 0;
	slot = table->fd;
	if (bpf_probe_read_kernel(&file, sizeof(file), slot + fd) || !file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode, i_ino);
	mode = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	switch (mode) {
	case S_IFIFO:
		return OBJECT(OBJECT_PIPE, inode);
	case S_IFSOCK:
		socket = BPF_CORE_READ(file, private_data);
		return socket_object(BPF_CORE_READ(socket, sk));
	case S_IFCHR:
		return OBJECT(OBJECT_CHAR_DEVICE, inode);
	case S_IFBLK:
		return OBJECT(OBJECT_BLOCK_DEVICE, inode);
	}
	return file_object(file, inode);
}
