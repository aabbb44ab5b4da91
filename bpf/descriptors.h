// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What each process has open by which others can keep it waiting: pipes, sockets, locked files, the
// devices by which a program serves a file system (FUSE) or mounts one (autofs), terminals that
// were halted, and what the
// kernel asks it by before others open files (leases, fanotify). One pass over all open files, when
// somebody looks. It tells what lies unread, and of a TCP connection whether its last bytes went
// out or came in, and when: so that it is known who owes whom what was asked for before the
// recording, and of several questions to a server and by it, which was asked for which.
#pragma once

#include <bpf/bpf_tracing.h>

#include "file_lock.h"
#include "socket.h"

#define FMODE_READ 1
#define FMODE_WRITE 2
// Major 10, minor 229 and 235.
#define FUSE_DEVICE (10 << 20 | 229)
#define AUTOFS_DEVICE (10 << 20 | 235)
// Major numbers of terminals: of the machine, of a process, and (eight of them) of terminal
// windows.
#define MAJOR(device) ((device) >> 20)
#define TTY_MAJOR 4
#define TTY_OWN_MAJOR 5
#define PTS_MAJOR 136
#define PTS_MAJORS 8

// Whether nobody acknowledges what was sent: it was sent again, or did not even leave this machine,
// though the other end has room for it.
static __always_inline bool is_lost(struct sock *sk)
{
	struct inet_connection_sock *connection = (struct inet_connection_sock *)sk;
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	u32 outstanding = BPF_CORE_READ(tcp, write_seq) - BPF_CORE_READ(tcp, snd_una);

	if (BPF_CORE_READ(connection, icsk_retransmits))
		return true;
	return BPF_CORE_READ(connection, icsk_probes_out) && outstanding &&
	       outstanding <= BPF_CORE_READ(tcp, snd_wnd);
}

static __always_inline void read_tcp(struct sock *sk, struct open_descriptor *open)
{
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	u64 sent = BPF_CORE_READ(tcp, bytes_sent), received = BPF_CORE_READ(tcp, bytes_received);
	// In jiffies, as 32 bits that wrap around.
	u32 sent_at = BPF_CORE_READ(tcp, lsndtime);
	u32 received_at = BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_ack.lrcvtime);
	s32 later = sent_at - received_at;

	open->unread = BPF_CORE_READ(tcp, rcv_nxt) - BPF_CORE_READ(tcp, copied_seq);
	if (is_lost(sk))
		open->last = LAST_LOST;
	else if (sent && (!received || later > 0))
		open->last = LAST_SENT;
	else if (received && (!sent || later < 0))
		open->last = LAST_RECEIVED;
	if (open->last)
		open->jiffies = (u32)bpf_jiffies64() -
				(open->last == LAST_RECEIVED ? received_at : sent_at);
}

static __always_inline void read_socket(struct sock *sk, struct open_descriptor *open)
{
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	u32 kind = open->object >> 56;

	open->unread = BPF_CORE_READ(sk, sk_receive_queue.qlen);
	if (kind == OBJECT_INET && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP) {
		if (state == STATE_LISTEN)
			open->unread = BPF_CORE_READ(sk, sk_ack_backlog);
		else
			read_tcp(sk, open);
	}
	if (state == STATE_LISTEN)
		open->kind = DESCRIPTOR_LISTENER;
}

// Whether a character device is a terminal whose output was halted, and is so still.
static __always_inline bool is_halted(struct file *file, u32 device)
{
	struct tty_file_private *terminal = (struct tty_file_private *)file->private_data;
	u32 major = MAJOR(device);
	bool stopped = false;

	if (major != TTY_MAJOR && major != TTY_OWN_MAJOR && major - PTS_MAJOR >= PTS_MAJORS)
		return false;
	if (bpf_core_field_exists(struct tty_struct, flow.stopped))
		stopped = BPF_CORE_READ(terminal, tty, flow.stopped);
	return stopped;
}

// Whether it is the descriptor of a program that the kernel asks before others open files
// (fanotify).
static __always_inline bool watches_files(struct file *file)
{
	u64 name = 0;

	bpf_probe_read_kernel(&name, sizeof(name), BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return name == WORD('[', 'f', 'a', 'n', 'o', 't', 'i', 'f');
}

// Whether anybody has a lock of this list; `open` becomes of the kind `held` if this open file or
// its process has an exclusive one. A lock belongs to an open file (flock, open file description
// locks, leases) or to a process.
static __always_inline bool read_locks(struct list_head *head, u64 file, u64 files, u8 held,
				       struct open_descriptor *open)
{
	struct list_head *at = head;
	struct file_lock_facts lock;
	bool is_locked = false;

	for (u32 i = 0; i < MOST_LOCKS; i++) {
		at = BPF_CORE_READ(at, next);
		if (!at || at == head)
			break;
		read_lock((u64)at - list_offset(), &lock);
		is_locked = true;
		if ((lock.type == LOCK_EXCLUSIVE || held == DESCRIPTOR_KEEPER) &&
		    (lock.owner == file || lock.owner == files))
			open->kind = held;
	}
	return is_locked;
}

SEC("iter/task_file")
int look_at_descriptors(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct open_descriptor open = {};
	struct file_lock_context *context;
	struct pipe_inode_info *pipe;
	struct inode *inode;
	struct socket *socket;
	struct sock *sk;
	bool is_locked;
	u64 files;

	if (!task || !file)
		return 0;
	inode = file->f_inode;
	switch (BPF_CORE_READ(inode, i_mode) & S_IFMT) {
	case S_IFIFO:
		open.object = OBJECT(OBJECT_PIPE, BPF_CORE_READ(inode, i_ino));
		pipe = (struct pipe_inode_info *)file->private_data;
		// The number of buffers.
		open.unread = BPF_CORE_READ(pipe, head) - BPF_CORE_READ(pipe, tail);
		break;
	case S_IFSOCK:
		socket = (struct socket *)file->private_data;
		sk = BPF_CORE_READ(socket, sk);
		open.object = socket_object(sk);
		if (!open.object)
			return 0;
		note_socket(sk, open.object, task->tgid);
		read_socket(sk, &open);
		break;
	case S_IFCHR:
		switch (BPF_CORE_READ(inode, i_rdev)) {
		case FUSE_DEVICE:
			open.kind = DESCRIPTOR_FILE_SYSTEM;
			break;
		case AUTOFS_DEVICE:
			open.kind = DESCRIPTOR_MOUNTER;
			break;
		default:
			if (!is_halted(file, BPF_CORE_READ(inode, i_rdev)))
				return 0;
			open.kind = DESCRIPTOR_HALTED;
		}
		open.object = OBJECT(OBJECT_CHAR_DEVICE, BPF_CORE_READ(inode, i_ino));
		break;
	case S_IFREG:
		open.object = inode_object(inode, BPF_CORE_READ(inode, i_sb, s_magic));
		if (open.object >> 56 == OBJECT_MESSAGE_QUEUE)
			break;
		context = BPF_CORE_READ(inode, i_flctx);
		if (!context) {
			if (!watches_files(file))
				return 0;
			open.kind = DESCRIPTOR_KEEPER;
			open.object = 0;
			break;
		}
		open.kind = DESCRIPTOR_LOCKED_FILE;
		files = (u64)BPF_CORE_READ(task, files);
		is_locked = read_locks(__builtin_preserve_access_index(&context->flc_posix),
				       (u64)file, files, DESCRIPTOR_FILE_LOCK, &open);
		is_locked |= read_locks(__builtin_preserve_access_index(&context->flc_flock),
					(u64)file, files, DESCRIPTOR_FILE_LOCK, &open);
		is_locked |= read_locks(__builtin_preserve_access_index(&context->flc_lease),
					(u64)file, files, DESCRIPTOR_KEEPER, &open);
		if (!is_locked)
			return 0;
		break;
	default:
		// Older kernels give anonymous inodes no type.
		if (!watches_files(file))
			return 0;
		open.kind = DESCRIPTOR_KEEPER;
	}
	open.ts = bpf_ktime_get_ns();
	open.pid = task->tgid;
	open.access = file->f_mode & (FMODE_READ | FMODE_WRITE);
	bpf_seq_write(ctx->meta->seq, &open, sizeof(open));
	return 0;
}
