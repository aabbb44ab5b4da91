// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Locks inside the kernel, where a thread blocks on them: kept until the switch that follows, which
// tells which lock it is and who holds it.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "object.h"

// The flags of contention_begin.
#define CONTENTION_SPIN 1
#define CONTENTION_READ 2
#define CONTENTION_WRITE 4
#define CONTENTION_PERCPU 16
#define CONTENTION_MUTEX 32

// In the word of an owner: of a mutex, flags; of a semaphore, whether a reader has it.
#define OWNER_FLAGS 7
#define OWNER_READER 1

// What a task says that it blocks on, in the lowest bits of the lock's address; 1 is a semaphore.
#define BLOCKER_KIND 3
#define BLOCKER_MUTEX 0
#define BLOCKER_READER 2
#define BLOCKER_WRITER 3

#define CONTENDED 4096

// Whether this kernel is one that takes a reader that leaves out of the owner's word, if it looks
// for hung tasks.
const volatile bool readers_leave;

struct contention {
	u64 lock;
	u32 tid;
	u32 flags;
};

// By tid. Of two threads that share a place, the first goes without its lock.
struct contention contended[CONTENDED];

static __always_inline struct contention *contention_of(u32 tid)
{
	return &contended[tid & (CONTENDED - 1)];
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention_begin, void *lock, u32 flags)
{
	struct contention *contention;
	u32 tid;

	if (flags & CONTENTION_SPIN)
		return 0;
	tid = (u32)bpf_get_current_pid_tgid();
	contention = contention_of(tid);
	contention->lock = (u64)lock;
	contention->flags = flags;
	contention->tid = tid;
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct contention *contention = contention_of(tid);

	if (contention->tid == tid && contention->lock == (u64)lock)
		contention->tid = 0;
	return 0;
}

static __always_inline bool tasks_name_their_lock(void)
{
	return bpf_core_field_exists(((struct task_struct___blocker *)0)->blocker);
}

// The thread that an owner's word names.
static __always_inline u32 owning_thread(u64 owner)
{
	owner &= ~(u64)OWNER_FLAGS;
	return owner ? BPF_CORE_READ((struct task_struct *)owner, pid) : 0;
}

// Who holds a read-write semaphore. Of several readers it is the last that came. One that has left
// may still stand there, except where the kernel looks for hung tasks and goes by that word too.
static __always_inline u32 semaphore_holder(u64 lock)
{
	u64 owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);

	return owner & OWNER_READER && !(readers_leave && tasks_name_their_lock()) ?
		       0 :
		       owning_thread(owner);
}

// The thread that holds the lock, where it says so: a mutex or a read-write semaphore.
static __always_inline u32 lock_holder(const struct contention *contention)
{
	u64 lock = contention->lock;
	u32 flags = contention->flags;

	if (flags & CONTENTION_MUTEX)
		return owning_thread(BPF_CORE_READ((struct mutex *)lock, owner.counter));
	if (flags & (CONTENTION_READ | CONTENTION_WRITE) && !(flags & CONTENTION_PERCPU))
		return semaphore_holder(lock);
	return 0;
}

static __always_inline enum kernel_lock lock_kind(u32 flags)
{
	if (flags & CONTENTION_MUTEX)
		return KERNEL_LOCK_MUTEX;
	if (flags & CONTENTION_READ)
		return KERNEL_LOCK_READ;
	return flags & CONTENTION_WRITE ? KERNEL_LOCK_WRITE : KERNEL_LOCK_OTHER;
}

// Puts the lock that thread `tid` blocks on, if there is one, in place of what its call works on.
static __always_inline void read_contention(u32 tid, struct call *call)
{
	const struct contention *contention = contention_of(tid);

	if (!tid || contention->tid != tid)
		return;
	call->object = OBJECT(OBJECT_KERNEL_LOCK, contention->lock);
	call->arg = lock_kind(contention->flags) | (u64)lock_holder(contention) << 32;
}

// The same of a task that blocked before anybody looked, by what it says of itself.
static __always_inline void read_blocker(struct task_struct *task, struct call *call)
{
	enum kernel_lock kind = KERNEL_LOCK_OTHER;
	u32 holder = 0;
	u64 blocker;

	if (!tasks_name_their_lock())
		return;
	blocker = BPF_CORE_READ((struct task_struct___blocker *)task, blocker);
	if (!blocker)
		return;
	switch (blocker & BLOCKER_KIND) {
	case BLOCKER_MUTEX:
		kind = KERNEL_LOCK_MUTEX;
		blocker &= ~(u64)BLOCKER_KIND;
		holder = owning_thread(BPF_CORE_READ((struct mutex *)blocker, owner.counter));
		break;
	case BLOCKER_READER:
	case BLOCKER_WRITER:
		kind = (blocker & BLOCKER_KIND) == BLOCKER_READER ? KERNEL_LOCK_READ :
								    KERNEL_LOCK_WRITE;
		blocker &= ~(u64)BLOCKER_KIND;
		holder = semaphore_holder(blocker);
		break;
	default:
		blocker &= ~(u64)BLOCKER_KIND;
		if (bpf_core_field_exists(((struct semaphore___holder *)0)->last_holder))
			holder = owning_thread(
				BPF_CORE_READ((struct semaphore___holder *)blocker, last_holder));
	}
	call->object = OBJECT(OBJECT_KERNEL_LOCK, blocker);
	call->arg = kind | (u64)holder << 32;
}
