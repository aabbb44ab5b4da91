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

// A regular file or directory, or what the kernel has as one, by its inode.
static __always_inline u64 inode_object(struct inode *inode)
{
	u64 magic = BPF_CORE_READ(inode, i_sb, s_magic), kind = OBJECT_FILE;

	if (magic == FUSE_MAGIC)
		kind = OBJECT_SERVED_FILE;
	else if (magic == MQUEUE_MAGIC)
		kind = OBJECT_MESSAGE_QUEUE;
	return OBJECT(kind, BPF_CORE_READ(inode, i_ino));
}

// Anonymous inodes are shared by all such files; their name tells the kind ("[eventfd]") and the
// file's address, which `slot` holds, stands for the number. A regular file has no bracket in
// front.
static __always_inline u64 file_object(struct file *file, struct file **slot, struct inode *inode)
{
	const unsigned char *text = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	u64 name = 0, number = 0;

	bpf_probe_read_kernel(&name, sizeof(name), text);
	// As a number, with which the verifier lets us calculate.
	bpf_probe_read_kernel(&number, sizeof(number), slot);
	if (name == WORD('[', 'e', 'v', 'e', 'n', 't', 'f', 'd'))
		return OBJECT(OBJECT_EVENTFD, number);
	if (name == WORD('[', 't', 'i', 'm', 'e', 'r', 'f', 'd'))
		return OBJECT(OBJECT_TIMERFD, number);
	if (name == WORD('[', 'e', 'v', 'e', 'n', 't', 'p', 'o'))
		return OBJECT(OBJECT_EPOLL, number);
	// Requests name the ring, not its file.
	if (name == WORD('[', 'i', 'o', '_', 'u', 'r', 'i', 'n'))
		return OBJECT(OBJECT_IO_URING, BPF_CORE_READ(file, private_data));
	if ((u8)name == '[')
		return OBJECT(OBJECT_ANONYMOUS, number);
	return inode_object(inode);
}

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
