// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Sockets, each described once when it is first waited on or used: its addresses, and who is at the
// other end, so that this is known also where no byte arrives. Until the other end is there, a
// description is not whole, and another follows.
//
// A small direct-mapped table answers nearly always that a socket is known; an LRU map the rest.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "object.h"
#include "ring.h"

#define STATE_ESTABLISHED 1
#define STATE_SYN_SENT 2
#define STATE_LISTEN 10

#define KNOWN_SOCKETS 4096

// Inode numbers of sockets whose description is whole; user space clears it when it wants all anew.
u32 known_sockets[KNOWN_SOCKETS];
u32 socket_generation;

#define SOCKET_WHOLE 1

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, u64);
	__type(value, u32); // generation << 1 | whole
} described_sockets SEC(".maps");

static __always_inline void read_unix_address(struct sock *sk, u8 *text, u32 *length)
{
	struct unix_address *address = BPF_CORE_READ((struct unix_sock *)sk, addr);
	u32 whole;

	if (!address)
		return;
	whole = BPF_CORE_READ(address, len);
	if (whole <= sizeof(u16))
		return;
	*length = whole - sizeof(u16);
	bpf_probe_read_kernel(text, SOCKET_ADDRESS,
			      __builtin_preserve_access_index(&address->name[0].sun_path));
}

static __always_inline void read_internet_addresses(struct sock *sk, u16 family,
						    struct socket_definition *definition)
{
	definition->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	definition->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (family == AF_INET) {
		bpf_core_read(definition->local, 4, &sk->__sk_common.skc_rcv_saddr);
		bpf_core_read(definition->remote, 4, &sk->__sk_common.skc_daddr);
		definition->local_length = 4;
	} else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		bpf_core_read(definition->local, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(definition->remote, 16, &sk->__sk_common.skc_v6_daddr);
		definition->local_length = 16;
	}
	definition->remote_length = definition->remote_port ? definition->local_length : 0;
}

__noinline int describe_socket(u64 address, u64 object, u32 pid)
{
	struct sock *sk = (void *)address, *other = 0;
	u16 family = FIELD(struct sock, sk, __sk_common.skc_family);
	u8 state = FIELD(struct sock, sk, __sk_common.skc_state);
	struct socket_definition *definition;
	u32 now = socket_generation << 1, *before;
	u64 peer = 0;

	if (family == AF_UNIX) {
		other = FIELD(struct unix_sock, sk, peer);
		if (other)
			peer = socket_object(other);
		if (peer || state == STATE_LISTEN)
			now |= SOCKET_WHOLE;
	} else if (state == STATE_LISTEN || FIELD(struct sock, sk, __sk_common.skc_dport)) {
		now |= SOCKET_WHOLE;
	}
	before = bpf_map_lookup_elem(&described_sockets, &object);
	if (now & SOCKET_WHOLE)
		known_sockets[object & (KNOWN_SOCKETS - 1)] = (u32)object;
	if (before && *before >= now && *before >> 1 == now >> 1)
		return 0;

	definition = bpf_ringbuf_reserve(&definitions, sizeof(*definition), 0);
	if (!definition) {
		this_cpu(bpf_get_smp_processor_id())->lost_definitions++;
		return 0;
	}
	__builtin_memset(definition, 0, sizeof(*definition));
	definition->ts = bpf_ktime_get_ns();
	definition->kind = DEFINITION_SOCKET;
	definition->pid = pid;
	definition->object = object;
	definition->peer = peer;
	definition->family = family;
	definition->namespace = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	if (family == AF_UNIX) {
		if (state == STATE_ESTABLISHED)
			definition->peer_pid = BPF_CORE_READ(sk, sk_peer_pid, numbers[0].nr);
		read_unix_address(sk, definition->local, &definition->local_length);
		if (other)
			read_unix_address(other, definition->remote, &definition->remote_length);
	} else {
		definition->connecting = state == STATE_SYN_SENT;
		read_internet_addresses(sk, family, definition);
	}
	bpf_ringbuf_submit(definition, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&described_sockets, &object, &now, BPF_ANY);
	return 0;
}

// Process `pid` has the socket.
static __always_inline void note_socket(struct sock *sk, u64 object, u32 pid)
{
	u32 kind = object >> 56;

	if ((kind == OBJECT_UNIX || kind == OBJECT_INET) &&
	    known_sockets[object & (KNOWN_SOCKETS - 1)] != (u32)object)
		describe_socket(as_number(sk), object, pid);
}

// What descriptor `fd` of `task` leads to; 0 if nothing.
static __always_inline u64 descriptor_object(struct task_struct *task, u32 fd)
{
	struct files_struct *files = task->files;
	struct fdtable *table = files ? files->fdt : 0;
	struct socket *socket;
	struct inode *inode;
	struct file *file;
	struct sock *sk;
	u64 object;

	if (!table || fd >= table->max_fds)
		return 0;
	file = pointer_at(table->fd + fd);
	if (!file)
		return 0;
	inode = FIELD(struct file, file, f_inode);
	switch (FIELD(struct inode, inode, i_mode) & S_IFMT) {
	case S_IFIFO:
		return OBJECT(OBJECT_PIPE, FIELD(struct inode, inode, i_ino));
	case S_IFSOCK:
		socket = FIELD(struct file, file, private_data);
		sk = FIELD(struct socket, socket, sk);
		object = socket_object(sk);
		note_socket(sk, object, task->tgid);
		return object;
	case S_IFCHR:
		return OBJECT(OBJECT_CHAR_DEVICE, FIELD(struct inode, inode, i_ino));
	case S_IFBLK:
		return OBJECT(OBJECT_BLOCK_DEVICE, FIELD(struct inode, inode, i_ino));
	}
	return file_object(file, table->fd + fd, inode);
}
