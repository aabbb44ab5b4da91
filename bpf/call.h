// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What a thread's registers tell of the system call that it is in: the call, the object that it
// works on, and the argument that helps to understand a wait. It needs no hook on system calls.
#pragma once

#include "calls.h"
#include "object.h"
#include "socket.h"

#define FUTEX_COMMAND 0x7f
#define FUTEX_LOCK_PI 6
#define FUTEX_LOCK_PI2 13
#define FUTEX_TID 0x3fffffff
#define CLOCK_MONOTONIC 1
#define TIMER_ABSTIME 1
// Stands in the argument of a poll of no descriptor, which is a sleep, beside how long that is, ns.
#define POLLS_NOTHING (1ULL << 62)

struct user_timespec {
	s64 seconds;
	s64 nanoseconds;
};

struct user_pollfd {
	s32 fd;
	u32 events;
};

// Reads memory of `task`: the current thread, or `another` one, where the program may sleep.
static __always_inline long read_memory(struct task_struct *task, const bool another, void *to,
					u32 size, u64 address)
{
	if (another)
		return bpf_copy_from_user_task(to, size, (void *)address, task, 0);
	return bpf_probe_read_user(to, size, (void *)address);
}

static __always_inline u64 requested_sleep(struct task_struct *task, const bool another,
					   u64 address)
{
	struct user_timespec time = {};

	read_memory(task, another, &time, sizeof(time), address);
	return (u64)time.seconds * 1000000000ULL + (u64)time.nanoseconds;
}

// How long it is until a time by CLOCK_MONOTONIC, ns.
static __always_inline u64 time_until(u64 time)
{
	u64 now = bpf_ktime_get_ns();

	return time > now ? time - now : 0;
}

// The thread that a futex's surroundings name: the owner field that a pthread mutex has 8 bytes
// behind its futex, the futex itself where it is a priority-inheriting one, and, for a join, the
// tid that is waited for. User space checks that such a thread exists.
static __always_inline u32 futex_holder(struct task_struct *task, const bool another, u64 address,
					u32 operation, u32 value)
{
	u32 command = operation & FUTEX_COMMAND, word = 0;

	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2) {
		read_memory(task, another, &word, sizeof(word), address);
		return word & FUTEX_TID;
	}
	if (value == 2) {
		read_memory(task, another, &word, sizeof(word), address + 8);
		return word;
	}
	return value & FUTEX_TID;
}

// Of two descriptors the one that is an internet socket, if that is one: a library that polls a
// connection has another descriptor to be woken by; -1 otherwise.
static __noinline s32 polled_socket(struct task_struct *task, s32 one, s32 other)
{
	bool is_one = descriptor_object(task, one) >> 56 == OBJECT_INET;
	bool is_other = descriptor_object(task, other) >> 56 == OBJECT_INET;

	if (is_one == is_other)
		return -1;
	return is_one ? one : other;
}

// The one descriptor that a poll watches, or the one socket of two; -1 where it watches several or
// none.
static __always_inline s32 polled_descriptor(struct task_struct *task, const bool another,
					     u64 address, u64 count)
{
	struct user_pollfd entries[2] = {};

	if (count == 1 && !read_memory(task, another, entries, sizeof(entries[0]), address))
		return entries[0].fd;
	if (count == 2 && !read_memory(task, another, entries, sizeof(entries), address) &&
	    entries[0].fd >= 0 && entries[1].fd >= 0)
		return polled_socket(task, entries[0].fd, entries[1].fd);
	return -1;
}

// Where the only bit of a word lies, by what a de Bruijn sequence multiplied with the word has in
// its six highest bits: a loop would be followed by the verifier once for each bit.
#define DE_BRUIJN 0x022fdd63cc95386dULL

static const u8 bit_places[64] = {
	0,  1,	2,  53, 3,  7,	54, 27, 4,  38, 41, 8,	34, 55, 48, 28, 62, 5,	39, 46, 44, 42,
	22, 9,	24, 35, 59, 56, 49, 18, 29, 11, 63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21,
	23, 58, 17, 10, 51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12,
};

// The one descriptor that a select of at most 64 watches, for reading or writing; -1 where it
// watches several or none.
static __always_inline s32 selected_descriptor(struct task_struct *task, const bool another,
					       u64 count, u64 read_set, u64 write_set)
{
	u64 set = 0, other = 0;

	if (!count || count > 64)
		return -1;
	if (read_set)
		read_memory(task, another, &set, sizeof(set), read_set);
	if (write_set)
		read_memory(task, another, &other, sizeof(other), write_set);
	// What lies beyond the count is nobody's.
	set = (set | other) & ~0ULL >> (64 - count);
	if (!set || set & (set - 1))
		return -1;
	return bit_places[set * DE_BRUIJN >> 58 & 63];
}

// The system call that `task` entered the kernel for.
static __always_inline s16 call_number(struct task_struct *task, struct pt_regs *regs)
{
	s32 number;

	if (task->flags & PF_KTHREAD)
		return CALL_KERNEL_THREAD;
	number = REGS_CALL(regs);
	return number < 0 || number > 0x7fff ? CALL_NONE : (s16)number;
}

// Fills `call` from the registers that `task` entered the kernel with, and from its memory.
static __always_inline void read_call_of(struct task_struct *task, struct pt_regs *regs,
					 struct call *call, const bool another)
{
	s16 number = call_number(task, regs);
	u64 first, second;
	s32 descriptor = -1;

	call->object = 0;
	call->arg = 0;
	call->number = number;
	if (number < 0)
		return;
	first = REGS_ARG0(regs);
	second = REGS_ARG1(regs);
	call->arg = second;
	switch (number) {
	case CALL_FUTEX:
		call->object = OBJECT(OBJECT_FUTEX, first);
		call->arg =
			(u32)second |
			(u64)futex_holder(task, another, first, (u32)second, (u32)REGS_ARG2(regs))
				<< 32;
		break;
	case CALL_NANOSLEEP:
		call->arg = requested_sleep(task, another, first);
		break;
	case CALL_CLOCK_NANOSLEEP:
		call->arg = requested_sleep(task, another, REGS_ARG2(regs));
		// Until a time by the clock that we have; of another clock, or thread, it is not
		// known how long.
		if (second & TIMER_ABSTIME)
			call->arg =
				first == CLOCK_MONOTONIC && !another ? time_until(call->arg) : 0;
		break;
	case CALL_POLL:
		descriptor = polled_descriptor(task, another, first, second);
		call->arg = (u64)(s64)(s32)REGS_ARG2(regs);
		if (!second && (s32)REGS_ARG2(regs) >= 0)
			call->arg = POLLS_NOTHING | call->arg * 1000000;
		break;
	case CALL_PPOLL:
		descriptor = polled_descriptor(task, another, first, second);
		call->arg = ~0ULL;
		if (REGS_ARG2(regs)) {
			u64 time = requested_sleep(task, another, REGS_ARG2(regs));

			call->arg = second ? time / 1000000 : POLLS_NOTHING | time;
		}
		break;
	case CALL_EPOLL_WAIT:
	case CALL_EPOLL_PWAIT:
		descriptor = (s32)first;
		call->arg = (u64)(s64)(s32)REGS_ARG3(regs);
		break;
	case CALL_PSELECT6:
		descriptor = selected_descriptor(task, another, first, second, REGS_ARG2(regs));
		// Without any descriptor it is a sleep, as Perl's is.
		call->arg = !second && !REGS_ARG2(regs) && !REGS_ARG3(regs) ?
				    requested_sleep(task, another, REGS_ARG4(regs)) :
				    0;
		break;
	case CALL_WAIT4:
		call->arg = (u64)(s64)(s32)first;
		break;
	case CALL_WAITID:
		// P_PID is 1, P_PIDFD 3; everything else is "any".
		call->arg = first == 1 ? second : ~0ULL;
		if (first == 3)
			descriptor = (s32)second;
		break;
	case CALL_TGKILL:
		call->arg = REGS_ARG2(regs);
		break;
	case CALL_READ:
	case CALL_WRITE:
	case CALL_READV:
	case CALL_WRITEV:
	case CALL_PREAD64:
	case CALL_PWRITE64:
	case CALL_CONNECT:
	case CALL_ACCEPT:
	case CALL_ACCEPT4:
	case CALL_SENDFILE:
	case CALL_SENDTO:
	case CALL_RECVFROM:
	case CALL_SENDMSG:
	case CALL_RECVMSG:
	case CALL_SENDMMSG:
	case CALL_RECVMMSG:
	case CALL_SHUTDOWN:
	case CALL_FSYNC:
	case CALL_FDATASYNC:
	case CALL_FTRUNCATE:
	case CALL_FALLOCATE:
	case CALL_SYNC_FILE_RANGE:
	case CALL_SPLICE:
	case CALL_FCNTL:
	case CALL_FLOCK:
	case CALL_IO_URING_ENTER:
	case CALL_MQ_TIMEDSEND:
	case CALL_MQ_TIMEDRECEIVE:
		descriptor = (s32)first;
		break;
	}
	if (descriptor >= 0)
		call->object = descriptor_object(task, descriptor);
}

// The same of the current thread.
static __always_inline void read_call(struct task_struct *task, struct pt_regs *regs,
				      struct call *call)
{
	read_call_of(task, regs, call, false);
}

// Whether the call passes bytes through something that has two ends: who wakes or is woken there
// sent or received.
static __always_inline bool passes_messages(const struct call *call)
{
	u32 kind;

	switch (call->number) {
	case CALL_SENDTO:
	case CALL_RECVFROM:
	case CALL_SENDMSG:
	case CALL_RECVMSG:
	case CALL_SENDMMSG:
	case CALL_RECVMMSG:
	case CALL_MQ_TIMEDSEND:
	case CALL_MQ_TIMEDRECEIVE:
		return true;
	case CALL_READ:
	case CALL_WRITE:
	case CALL_READV:
	case CALL_WRITEV:
		kind = call->object >> 56;
		return kind >= OBJECT_PIPE && kind <= OBJECT_EPOLL;
	}
	return false;
}

// Whether call and object alone say what a blocked thread waits for.
static __always_inline bool tells_the_wait(const struct call *call)
{
	switch (call->number) {
	case CALL_FUTEX:
	case CALL_POLL:
	case CALL_PPOLL:
	case CALL_SELECT:
	case CALL_PSELECT6:
	case CALL_EPOLL_WAIT:
	case CALL_EPOLL_PWAIT:
	case CALL_EPOLL_PWAIT2:
	case CALL_NANOSLEEP:
	case CALL_CLOCK_NANOSLEEP:
	case CALL_WAIT4:
	case CALL_WAITID:
	case CALL_PAUSE:
	case CALL_RT_SIGSUSPEND:
	case CALL_RT_SIGTIMEDWAIT:
	case CALL_ACCEPT:
	case CALL_ACCEPT4:
	case CALL_CONNECT:
	case CALL_FCNTL:
	case CALL_FLOCK:
	case CALL_IO_URING_ENTER:
		return true;
	}
	return passes_messages(call);
}

// Whether the waker's call and its object alone say how it wakes.
static __always_inline bool tells_the_wake(const struct call *call)
{
	switch (call->number) {
	case CALL_FUTEX:
	case CALL_KILL:
	case CALL_TKILL:
	case CALL_TGKILL:
	case CALL_EXIT:
	case CALL_EXIT_GROUP:
	case CALL_CLONE:
	case CALL_CLONE3:
	case CALL_FORK:
	case CALL_VFORK:
		return true;
	}
	return passes_messages(call);
}
