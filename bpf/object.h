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

#define FUSE_MAGIC 0x65735546
#define MQUEUE_MAGIC 0x19800202
#define ANONYMOUS_MAGIC 0x09041934
// Since 6.9 descriptors of processes have a file system of their own.
#define PIDFS_MAGIC 0x50494446

// Since 6.2 a pointer that was read from memory can be given its type back; fields then cost a
// load each instead of a call. Both forms fault safely.
extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

#define FIELD(type, pointer, field)                                                                \
	(bpf_ksym_exists(bpf_rdonly_cast) ?                                                        \
		 ((type *)bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(type)))->field :        \
		 BPF_CORE_READ((type *)(pointer), field))

// The pointer at an address.
static __always_inline void *pointer_at(void *address)
{
	void *pointer = 0;

	if (bpf_ksym_exists(bpf_rdonly_cast))
		return ((struct hlist_head *)bpf_rdonly_cast(
				address, bpf_core_type_id_kernel(struct hlist_head)))
			->first;
	bpf_probe_read_kernel(&pointer, sizeof(pointer), address);
	return pointer;
}

// The same as a number, with which the verifier lets us calculate.
static __always_inline u64 number_at(void *address)
{
	u64 number = 0;

	if (bpf_ksym_exists(bpf_rdonly_cast))
		return ((struct timespec64 *)bpf_rdonly_cast(
				address, bpf_core_type_id_kernel(struct timespec64)))
			->tv_sec;
	bpf_probe_read_kernel(&number, sizeof(number), address);
	return number;
}

// The pointer as a number without a type, which global functions take: the verifier looks at those
// once, and not once for every path that leads to them.
static __always_inline u64 as_number(const void *pointer)
{
	u64 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), &pointer);
	return number;
}

// The process that a descriptor stands for (pidfd), by its pid in the first namespace.
__noinline u64 process_object(u64 address)
{
	struct pid *pid = (void *)address;

	return OBJECT(OBJECT_PROCESS, (u32)BPF_CORE_READ(pid, numbers[0].nr));
}

// A regular file or directory, or what the kernel has as one, by its inode, in a file system with
// this magic number.
static __always_inline u64 inode_object(struct inode *inode, u64 magic)
{
	u64 kind = OBJECT_FILE;

	if (magic == PIDFS_MAGIC)
		return process_object(as_number(FIELD(struct inode, inode, i_private)));
	if (magic == FUSE_MAGIC)
		kind = OBJECT_SERVED_FILE;
	else if (magic == MQUEUE_MAGIC)
		kind = OBJECT_MESSAGE_QUEUE;
	return OBJECT(kind, FIELD(struct inode, inode, i_ino));
}

// Anonymous inodes are shared by all such files; the file's name tells the kind ("[eventfd]").
__noinline u32 anonymous_kind(u64 address)
{
	struct file *file = (void *)address;
	const unsigned char *text = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	u64 name = 0;

	bpf_probe_read_kernel(&name, sizeof(name), text);
	if (name == WORD('[', 'e', 'v', 'e', 'n', 't', 'f', 'd'))
		return OBJECT_EVENTFD;
	if (name == WORD('[', 't', 'i', 'm', 'e', 'r', 'f', 'd'))
		return OBJECT_TIMERFD;
	if (name == WORD('[', 'e', 'v', 'e', 'n', 't', 'p', 'o'))
		return OBJECT_EPOLL;
	if (name == WORD('[', 'i', 'o', '_', 'u', 'r', 'i', 'n'))
		return OBJECT_IO_URING;
	if (name == WORD('[', 'p', 'i', 'd', 'f', 'd', ']', 0))
		return OBJECT_PROCESS;
	return OBJECT_ANONYMOUS;
}

// The kind of the anonymous files that have these operations, which each kind has its own of: the
// operations' address, whose highest byte says nothing, above the kind.
#define KNOWN_OPERATIONS 16

u64 known_operations[KNOWN_OPERATIONS];

// What a file is that is no pipe, socket or device; `slot` holds its address.
static __always_inline u64 file_object(struct file *file, struct file **slot, struct inode *inode)
{
	struct super_block *sb = FIELD(struct inode, inode, i_sb);
	u64 magic = FIELD(struct super_block, sb, s_magic), operations, known;
	volatile u64 *place;
	u32 kind;

	if (magic != ANONYMOUS_MAGIC)
		return inode_object(inode, magic);
	operations = number_at(&file->f_op);
	place = &known_operations[operations >> 6 & (KNOWN_OPERATIONS - 1)];
	known = *place;
	kind = known & 0xff;
	if (!kind || (known ^ operations << 8) >> 8) {
		kind = anonymous_kind(as_number(file));
		*place = operations << 8 | kind;
	}
	// Requests name the ring, not its file.
	if (kind == OBJECT_IO_URING)
		return OBJECT(kind, number_at(&file->private_data));
	if (kind == OBJECT_PROCESS)
		return process_object(number_at(&file->private_data));
	return OBJECT(kind, number_at(slot));
}

static __always_inline u64 socket_object(struct sock *sk)
{
	u16 family = FIELD(struct sock, sk, __sk_common.skc_family);
	struct socket *socket = FIELD(struct sock, sk, sk_socket);
	u64 kind = OBJECT_SOCKET;
	struct inode *inode;
	struct file *file;

	// A pair's end that is not open any more has no file.
	if (!socket)
		return 0;
	file = FIELD(struct socket, socket, file);
	if (!file)
		return 0;
	inode = FIELD(struct file, file, f_inode);
	if (family == AF_UNIX)
		kind = OBJECT_UNIX;
	else if (family == AF_INET || family == AF_INET6)
		kind = OBJECT_INET;
	return OBJECT(kind, FIELD(struct inode, inode, i_ino));
}
