// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Locks on files, fcntl's and flock's: who has them, who waits for them or is refused, and because
// of whom.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "handoff.h"

#define LOCK_SHARED 0
#define LOCK_EXCLUSIVE 1
#define LOCK_NONE 2

#define LOCK_FLAG_FLOCK 2
#define LOCK_FLAG_OPEN_FILE 1024

// What the kernel's functions answer.
#define LOCK_DEFERRED 1
#define LOCK_REFUSED -11

// So many locks of a file are looked at for the one that is in the way.
#define MOST_LOCKS 16

struct file_lock_facts {
	u64 owner;
	u64 start;
	u64 end;
	u64 blocker; // the lock in the way
	u32 flags;
	u32 pid;
	u8 type;
};

// Since 6.9 most of a lock is in a part of its own, which lists refer to.
static __always_inline void read_lock(u64 address, struct file_lock_facts *facts)
{
	struct file_lock___old *old = (void *)address;
	struct file_lock *lock = (void *)address;

	facts->start = BPF_CORE_READ(lock, fl_start);
	facts->end = BPF_CORE_READ(lock, fl_end);
	if (bpf_core_field_exists(lock->c)) {
		facts->owner = (u64)BPF_CORE_READ(lock, c.flc_owner);
		facts->blocker = (u64)BPF_CORE_READ(lock, c.flc_blocker);
		facts->flags = BPF_CORE_READ(lock, c.flc_flags);
		facts->pid = BPF_CORE_READ(lock, c.flc_pid);
		facts->type = BPF_CORE_READ(lock, c.flc_type);
	} else {
		facts->owner = (u64)BPF_CORE_READ(old, fl_owner);
		facts->blocker = (u64)BPF_CORE_READ(old, fl_blocker);
		facts->flags = BPF_CORE_READ(old, fl_flags);
		facts->pid = BPF_CORE_READ(old, fl_pid);
		facts->type = BPF_CORE_READ(old, fl_type);
	}
}

static __always_inline u32 list_offset(void)
{
	if (bpf_core_field_exists(((struct file_lock *)0)->c))
		return bpf_core_field_offset(struct file_lock_core, flc_list);
	return bpf_core_field_offset(struct file_lock___old, fl_list);
}

static __always_inline bool in_the_way(const struct file_lock_facts *lock,
				       const struct file_lock_facts *wanted)
{
	if (lock->owner == wanted->owner || lock->start > wanted->end || lock->end < wanted->start)
		return false;
	return lock->type == LOCK_EXCLUSIVE || wanted->type == LOCK_EXCLUSIVE;
}

// The process that has the lock because of which `wanted` was refused; 0 if it is not found.
static __always_inline u32 refused_by(struct inode *inode, const struct file_lock_facts *wanted)
{
	struct file_lock_context *context = BPF_CORE_READ(inode, i_flctx);
	struct list_head *head, *at;
	struct file_lock_facts lock;

	if (!context)
		return 0;
	head = wanted->flags & LOCK_FLAG_FLOCK ?
		       __builtin_preserve_access_index(&context->flc_flock) :
		       __builtin_preserve_access_index(&context->flc_posix);
	at = head;
	for (u32 i = 0; i < MOST_LOCKS; i++) {
		at = BPF_CORE_READ(at, next);
		if (!at || at == head)
			break;
		read_lock((u64)at - list_offset(), &lock);
		if (in_the_way(&lock, wanted))
			return lock.pid;
	}
	return 0;
}

static __always_inline int lock_step(struct inode *inode, u64 address, int result)
{
	struct file_lock_facts lock, blocker;
	struct handoff handoff = {.kind = HANDOFF_FILE_LOCK};
	u32 form = 0;

	read_lock(address, &lock);
	if (result == LOCK_DEFERRED) {
		handoff.step = STEP_WAITING;
		if (lock.blocker) {
			read_lock(lock.blocker, &blocker);
			handoff.other = blocker.pid;
		}
	} else if (result == LOCK_REFUSED) {
		handoff.step = STEP_REFUSED;
		handoff.other = refused_by(inode, &lock);
	} else if (result) {
		return 0;
	} else {
		handoff.step = lock.type == LOCK_NONE ? STEP_RELEASED : STEP_TAKEN;
	}
	if (lock.flags & LOCK_FLAG_FLOCK)
		form = 1;
	else if (lock.flags & LOCK_FLAG_OPEN_FILE)
		form = 2;
	handoff.key = lock.owner;
	handoff.object = inode_object(inode, BPF_CORE_READ(inode, i_sb, s_magic));
	handoff.detail = (u64)BPF_CORE_READ(inode, i_sb, s_dev) << 32 | form << 8 |
			 (lock.type == LOCK_EXCLUSIVE);
	emit_handoff(&handoff);
	return 0;
}

SEC("tp_btf/posix_lock_inode")
int BPF_PROG(on_file_lock, struct inode *inode, struct file_lock *lock, int result)
{
	return lock ? lock_step(inode, (u64)lock, result) : 0;
}

SEC("tp_btf/flock_lock_inode")
int BPF_PROG(on_flock, struct inode *inode, struct file_lock *lock, int result)
{
	return lock ? lock_step(inode, (u64)lock, result) : 0;
}
