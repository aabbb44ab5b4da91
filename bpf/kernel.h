// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The few kernel types that the programs read, with only the fields they read. CO-RE moves every
// access to where the running kernel has the field, so no header of one kernel is needed.
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#define PF_KTHREAD 0x00200000

#define TASK_INTERRUPTIBLE 0x0001
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED 0x0004
#define TASK_TRACED 0x0008
#define TASK_STOPPED_OR_TRACED 0x000c
#define TASK_EXIT_OR_DEAD 0x00b0
#define TASK_PARKED 0x0040
#define TASK_NOLOAD 0x0400
// Since Linux 6.1; no other state has this bit in older kernels.
#define TASK_FROZEN 0x8000

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFCHR 0020000
#define S_IFDIR 0040000
#define S_IFIFO 0010000

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
	const unsigned char *name;
};

struct hlist_node {
	struct hlist_node *next;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct path {
	struct dentry *dentry;
};

struct list_head {
	struct list_head *next;
};

struct file_lock_context {
	struct list_head flc_flock;
	struct list_head flc_posix;
	struct list_head flc_lease;
};

struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
};

// Any place that holds one pointer can be read as this.
struct hlist_head {
	struct hlist_node *first;
};

// And one number as this.
struct timespec64 {
	s64 tv_sec;
};

struct inode {
	unsigned short i_mode;
	unsigned int i_rdev;
	unsigned long i_ino;
	struct super_block *i_sb;
	struct file_lock_context *i_flctx;
	void *i_private;
	struct hlist_head i_dentry;
};

struct address_space {
	struct inode *host;
};

// The flags are at its beginning, by different types in different kernels.
struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned long _flags_1; // of a large one, its order in the lowest byte
};

enum pageflags {
	PG_head = 6,
};

// Since 6.9.
struct file_lock_core {
	struct file_lock_core *flc_blocker;
	struct list_head flc_list;
	void *flc_owner;
	unsigned int flc_flags;
	unsigned char flc_type;
	int flc_pid;
};

struct file_lock {
	struct file_lock_core c;
	s64 fl_start;
	s64 fl_end;
};

struct file_lock___old {
	struct file_lock___old *fl_blocker;
	struct list_head fl_list;
	void *fl_owner;
	unsigned int fl_flags;
	unsigned char fl_type;
	unsigned int fl_pid;
};

typedef struct {
	s64 counter;
} atomic64_t;
typedef atomic64_t atomic_long_t;

struct mutex {
	atomic_long_t owner;
};

struct rw_semaphore {
	atomic_long_t owner;
};

struct work_struct {
	void *func;
};

struct hrtimer;

struct io_cqe {
	int fd;
};

struct io_kiocb {
	u8 opcode;
	u64 flags;
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
};

struct tty_struct {
	// Since 5.14.
	struct {
		bool stopped;
	} flow;
};

struct tty_file_private {
	struct tty_struct *tty;
};

struct pipe_inode_info {
	unsigned int head;
	unsigned int tail;
};

struct file {
	unsigned int f_mode;
	const void *f_op;
	struct inode *f_inode;
	struct address_space *f_mapping;
	struct path f_path;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct socket {
	struct file *file;
	struct sock *sk;
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct upid {
	int nr;
};

struct pid {
	struct upid numbers[1];
};

struct sk_buff_head {
	u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	u16 sk_protocol;
	u32 sk_ack_backlog;
	struct socket *sk_socket;
	struct pid *sk_peer_pid;
};

struct inet_connection_sock {
	u8 icsk_retransmits;
	u8 icsk_probes_out;
	struct {
		u32 lrcvtime;
	} icsk_ack;
};

struct tcp_sock {
	u64 bytes_sent;
	u64 bytes_received;
	u32 lsndtime;
	u32 rcv_nxt;
	u32 copied_seq;
	u32 snd_una;
	u32 snd_wnd;
	u32 write_seq;
};

struct sockaddr_un {
	u16 sun_family;
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[1];
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
};

struct mm_struct {
	struct {
		void *vdso;
	} context;
	unsigned long start_brk;
	unsigned long brk;
	unsigned long start_stack;
	struct file *exe_file;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
};
#endif

struct sched_info {
	unsigned long long last_arrival;
};

struct sched_entity {
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
};

struct task_struct {
	unsigned int __state;
	int on_cpu;
	unsigned int flags;
	int prio;
	int exit_code;
	unsigned long jobctl;
	struct sched_entity se;
	struct sched_info sched_info;
	u64 start_time;
	int pid;
	int tgid;
	char comm[16];
	struct mm_struct *mm;
	struct files_struct *files;
	struct task_struct *real_parent;
	struct task_struct *parent;
	u64 self_exec_id;
	int pagefault_disabled;
#if defined(__TARGET_ARCH_x86)
	struct thread_struct thread;
#endif
};

// Since 5.2: the task stands where the freezer of cgroup v2, or whoever traces it, wants it.
struct task_struct___frozen {
	unsigned int frozen : 1;
};

// Since 6.16, where the kernel looks for hung tasks: the address of the lock that the task blocks
// on, and the lock's kind in the lowest bits.
struct task_struct___blocker {
	unsigned long blocker;
};

// Since 6.16.
struct semaphore___holder {
	unsigned long last_holder;
};

// Since 6.18 a throttled task says so itself.
struct task_struct___throttled {
	bool throttled;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct linux_binprm {
	const char *filename;
};

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	unsigned int bd_dev;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	u64 __sector;
};

// Its registers have the names of vmlinux.h, and libbpf's headers are to use these.
#define __VMLINUX_H__
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
};
struct pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 orig_x0;
	s32 syscallno;
};
#endif

#pragma clang attribute pop

// What a perf event hands over: the registers, the period, and the address that was used.
#if defined(__TARGET_ARCH_x86)
#define EVENT_REGISTERS 21
#else
#define EVENT_REGISTERS 34
#endif

struct event_data {
	u64 registers[EVENT_REGISTERS];
	u64 period;
	u64 address;
};

#if defined(__TARGET_ARCH_x86)
#define REGS_CALL(r) ((s32)(r)->orig_ax)
#define REGS_ARG0(r) ((r)->di)
#define REGS_ARG1(r) ((r)->si)
#define REGS_ARG2(r) ((r)->dx)
#define REGS_ARG3(r) ((r)->r10)
#define REGS_ARG4(r) ((r)->r8)
#define REGS_ARG5(r) ((r)->r9)
#define REGS_IP(r) ((r)->ip)
#define REGS_SP(r) ((r)->sp)
#define REGS_FRAME_POINTER(r) ((r)->bp)
#elif defined(__TARGET_ARCH_arm64)
#define REGS_CALL(r) ((r)->syscallno)
#define REGS_ARG0(r) ((r)->orig_x0)
#define REGS_ARG1(r) ((r)->regs[1])
#define REGS_ARG2(r) ((r)->regs[2])
#define REGS_ARG3(r) ((r)->regs[3])
#define REGS_ARG4(r) ((r)->regs[4])
#define REGS_ARG5(r) ((r)->regs[5])
#define REGS_IP(r) ((r)->pc)
#define REGS_SP(r) ((r)->sp)
#define REGS_FRAME_POINTER(r) ((r)->regs[29])
#else
#error "no register layout for this architecture"
#endif
