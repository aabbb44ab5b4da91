// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What leaves the kernel. crates/capture/src/records.rs mirrors these layouts, and its tests hold
// the two against each other.
#pragma once

#include "kernel.h"

#define MAX_CPUS 512
#define MAX_FRAMES 127

enum event_kind {
	EVENT_SWITCH = 1,
	EVENT_WAKE = 2,
	EVENT_INTERRUPT = 3,
	EVENT_IO = 4,
	EVENT_TRANSFER = 5,
	EVENT_SAMPLE = 6,
	EVENT_COUNTERS = 7,
	EVENT_HANDOFF = 8,
	EVENT_RUNS = 9,
	EVENT_CALL = 10,
	EVENT_FLAG = 11,
	EVENT_PAGING = 12,
	EVENT_PROBE = 13,
	EVENT_MARKER = 14,
	EVENT_END = 15, // nothing more in this block
};

// An event is a record of one to MOST_WORDS words in a block of its CPU's ring (bpf/ring.h). The
// first word has, from its lowest bit:
//
//     ts    32  lower half of the time at which it was written
//     kind   4  enum event_kind
//     has    4  which of the optional words follow
//     rest  24  by kind
//
// and then, words in brackets only where `has` says so, in this order from its lowest bit:
//
//     switch     left 4, call + 2 12, next's priority 8; next tid, user stack;
//                [waits on] [argument] [kernel stack]
//     wake       context 3, new 1, call + 2 12, vector 8; wakee tid, user stack;
//                [works on] [kernel stack, argument]
//     interrupt  kind 2, vector 6, duration 16; or [duration], then vector 22
//     transfer   sent 1, bytes 23; this end; [peer] [bytes]
//     sample     user stack, kernel stack
//     counters   cycles; instructions; cache misses, TLB misses
//     handoff    step 4, kind 4, context 4; other tid; detail; works on; key
//     io         operation 8; issuer tid, device; sector; bytes; duration
//     runs       nothing; tid
//     call       call + 2 12; duration; result; user stack; arguments 1 to 3; [arguments 4 to 6]
//     flag       access 4, which flag 4; user stack; value; instruction behind
//     probe      enum probe_step 4, which probe 16; four arguments, or what was returned
//     marker     nothing; MARKER_WORDS words of text, with zeros behind it
//     paging     enum paging 4, and then by that
//       fault    enum fault_flag 8; address; duration; user stack
//       cache    enum cache_step 4; device, pages; inode; first page
//       stall    enum stall_kind 4; duration; pages that it freed or moved; 0
//
// Two numbers of 32 bits in one word have the first in the lower half. A time is the end of what
// has a duration, so that times ascend. Who ran is not in a record: it is `next` of the last
// switch, or what the block's header or the last EVENT_RUNS says.
//
// The tid of the futex's or kernel lock's holder is in the upper half of a switch's argument. The
// detail of a handoff of work is its function.
#define MOST_WORDS 10
#define MARKER_WORDS 8
#define HAS(n) (1U << (n))
#define RECORD(ts, kind, has, rest)                                                                \
	((u64)(u32)(ts) | (u64)(kind) << 32 | (u64)(has) << 36 | (u64)(rest) << 40)
#define PAIR(low, high) ((u64)(u32)(low) | (u64)(u32)(high) << 32)

// Blocks are of 4 KB. A header: 1 + the block's number among all of its CPU's, 0 while it is
// emptied; when it was begun; who ran; and how many records the CPU had before.
#define BLOCK_WORDS 512
#define HEADER_WORDS 4

struct block {
	u64 words[BLOCK_WORDS];
};

enum definition_kind {
	DEFINITION_STACK = 1,
	DEFINITION_FORK = 2,
	DEFINITION_EXEC = 3,
	DEFINITION_RENAME = 4,
	DEFINITION_EXIT = 5,
	DEFINITION_STACK_COPY = 6,
	DEFINITION_STACK_PROOF = 7, // a copy too; only in a test
	DEFINITION_PYTHON = 8,
	DEFINITION_SOCKET = 9,
	DEFINITION_RUBY = 10,
	DEFINITION_PHP = 11,
	DEFINITION_PERL = 12,
	DEFINITION_FILE = 13,
	DEFINITION_AREA = 14,
	DEFINITION_OUT_OF_MEMORY = 15,
};

// How a walk ended.
enum stack_end {
	STACK_UNKNOWN = 0, // it goes on
	STACK_ROOT = 1,
	STACK_DEPTH = 2,
	STACK_NO_RULE = 3,
	STACK_UNSUPPORTED = 4,
	STACK_UNREADABLE = 5,
	STACK_MISSING = 6, // the rules of that code are not loaded
};

// A stack, sent once. `pid` is 0 for a kernel stack.
struct stack_definition {
	u64 ts;
	u32 kind;
	u32 stack;
	u32 pid;
	u16 frame_count;
	u16 end;
	u64 frames[MAX_FRAMES];
};

#define WAITING_FRAMES 64

// A thread that is off the CPU when it is looked at: what a switch would tell, and the registers
// that it entered the kernel with.
struct waiting_thread {
	u64 ts;
	u64 object;
	u64 arg;
	u32 tid;
	u32 pid;
	s16 call;
	u8 left;
	u8 padding;
	u32 kernel_count;
	u64 ip;
	u64 sp;
	u64 fp;
	u64 link;	 // as a copied stack has it
	u64 born_at;	 // when it was created
	u64 left_at;	 // when it left its CPU, by the scheduler's clock; 0 if that is not known
	u64 reader_came; // when who looks got its CPU, by that clock
	u64 thread_pointer; // where user space keeps what is the thread's own
	u64 kernel[WAITING_FRAMES];
};

enum descriptor_kind {
	DESCRIPTOR_STREAM = 0,
	DESCRIPTOR_LISTENER = 1,
	DESCRIPTOR_FILE_SYSTEM = 2, // by which a program serves one
	DESCRIPTOR_LOCKED_FILE = 3, // somebody has a lock on it
	DESCRIPTOR_FILE_LOCK = 4,   // this process has an exclusive lock on it
	DESCRIPTOR_KEEPER = 5,	    // the kernel asks this process before it opens files
	DESCRIPTOR_MOUNTER = 6,	    // by which it mounts what others ask for
	DESCRIPTOR_HALTED = 7,	    // a terminal whose output was halted (Ctrl-S)
};

enum last_transfer {
	LAST_UNKNOWN = 0,
	LAST_SENT = 1,
	LAST_RECEIVED = 2,
	LAST_LOST = 3, // sent, and nobody acknowledges it
};

// A pipe, socket or locked file that a process has open; `unread` in bytes (TCP), messages, buffers
// (pipe) or connections (listener).
struct open_descriptor {
	u64 ts;
	u64 object;
	u32 pid;
	u32 unread;
	u8 access;
	u8 kind;
	u8 last;
	u8 padding;
	// Since the last bytes of a TCP connection went.
	u32 jiffies;
};
_Static_assert(sizeof(struct open_descriptor) == 32, "as crates/capture/src/waiting.rs has it");

#define COPY_BYTES 4096
#define COPY_PIECE 512

// A stack that user space has to walk on with: the frames so far, the last of them with its
// registers, and what lies on the stack from there. `length` bytes of it could be read.
struct stack_copy {
	u64 ts;
	u32 kind;
	u32 stack;
	u32 pid;
	u16 frame_count;
	u16 length;
	u64 sp;
	u64 fp;
	u64 exact;
	u64 link;
	u64 thread_pointer; // where user space keeps what is the thread's own
	u64 top;	    // where the whole stack begins
	u32 tid;
	u32 padding;
	u8 bytes[COPY_BYTES];
	u64 frames[MAX_FRAMES];
};

// What a Python text is like, as CPython has it: bytes a character, and whether these are what
// follows.
#define PYTHON_TEXT_KIND_SHIFT 2
#define PYTHON_TEXT_COMPACT (1 << 5)
#define PYTHON_TEXT_ASCII (1 << 6)

// Of a function that belongs to a class or an object itself (Ruby's `Shop.open`, PHP's
// `Shop::open`) and not to the objects of a class (`Shop#sell`, `Shop->sell`).
#define SCOPE_IS_OBJECT 1

// A function of an interpreted language, sent once; `kind` tells the language, `code` is what
// stands for it in a stack (bpf/chain.h). `scope` is the class or package that it is in. Of its
// texts the last bytes, as many as fit. Lengths are in bytes; Python's name and file are told by
// the length of the whole, in characters, and by a state.
struct function_definition {
	u64 ts;
	u32 kind;
	u32 code;
	u32 pid;
	u32 line;
	u32 name_length;
	u32 name_state; // of other languages SCOPE_IS_OBJECT or 0
	u32 file_length;
	u32 file_state;
	u8 name[128];
	u8 file[256];
	u32 scope_length;
	u32 padding;
	u8 scope[128];
};

#define SOCKET_ADDRESS 108

// A socket. Addresses are in network order, or a unix socket's path, whose first byte is 0 where it
// is abstract; their lengths in bytes, 0 for none.
struct socket_definition {
	u64 ts;
	u32 kind;
	u32 pid;
	u64 object;
	u64 peer;
	u32 peer_pid;
	u32 namespace;
	u16 family;
	u16 local_port;
	u16 remote_port;
	u16 connecting; // 1: as a client, and nothing has answered yet
	u32 local_length;
	u32 remote_length;
	u8 local[SOCKET_ADDRESS];
	u8 remote[SOCKET_ADDRESS];
};

_Static_assert(__builtin_offsetof(struct socket_definition, local) == 56 &&
		       sizeof(struct socket_definition) == 272,
	       "crates/capture/src/sockets.rs has them there");

#define DETAIL_LENGTH 128

// A name takes NAME_LENGTH bytes at most, with the 0 behind it; the path's end comes first. A path
// of more than PATH_DEPTH names, which `depth` tells, has not all of them.
#define PATH_DEPTH 12
#define NAME_LENGTH 96

// A file whose pages came or went: where it is in its file system.
struct file_definition {
	u64 ts;
	u32 kind;
	u32 device; // major << 20 | minor
	u64 inode;
	u32 depth;
	u32 magic; // of its file system
	char names[PATH_DEPTH][NAME_LENGTH];
};

enum area_flag {
	AREA_WRITABLE = 1,
	AREA_EXECUTABLE = 2,
	AREA_SHARED = 4,
	AREA_STACK = 8,	   // of the process's first thread
	AREA_HEAP = 16,	   // between the beginning and the end of brk
	AREA_PROGRAM = 32, // of the file that the process executes
};

// Memory of a process in which a fault waited. Without a file, `inode` is 0.
struct area_definition {
	u64 ts;
	u32 kind;
	u32 pid;
	u64 start;
	u64 end;
	u64 file_offset;
	u64 inode;
	u32 device;
	u32 flags;
};
_Static_assert(sizeof(struct area_definition) == 56 && sizeof(struct file_definition) == 1184,
	       "crates/capture/src/memory.rs has them so");

// A step in a thread's life.
struct life_definition {
	u64 ts;
	u32 kind;
	u32 tid;
	u32 pid;
	u32 parent;
	s32 exit_code;
	u32 is_kernel;
	char name[16];
	char detail[DETAIL_LENGTH];
	u64 vdso;	// of an exec: where the kernel's own code was mapped
	u32 epoch;	// of the process's code (bpf/unwind.h)
	u32 parent_pid; // of a fork
};

// A system call that a thread is in, as far as its registers tell.
struct call {
	u64 object;
	u64 arg;
	s16 number;
};

// What is kept for a CPU. The flags say what runs there now: set at the entry of an interrupt,
// cleared at its exit, so that an entry or exit that was not seen cannot mislead for long.
struct cpu_state {
	// Read by user space.
	u64 head; // words ever taken of this CPU's ring
	u64 lost_definitions;
	u64 transfers_refused;
	u64 handoffs_refused;
	u64 lost_records; // for which no room could be taken

	u64 records;	 // ever written
	u64 block_start; // when the last block was begun
	u64 hard_start;
	u64 soft_start;
	u64 local_timer_start;
	u64 fault_address;
	u64 fault_start;
	u64 fault_inode; // whose pages it looks for; 0 for none yet
	u32 fault_tid;
	u32 fault_flags; // enum fault_flag
	u8 in_hardirq;
	u8 in_softirq;
	u8 in_local_timer;
	u8 in_hrtimer;
	u8 in_timer;
	u8 softirq;
	u16 hardirq;
	u32 tid; // who runs, by the records so far
	// Where the scheduler's programs put the call that they look at; interrupts are off.
	struct call call;
	u64 copies_left;     // stacks that may be copied until user space allows more
	u64 copies_kept;     // of these, for threads that leave their CPU
	u64 transfers_left;  // that may be recorded until they are allowed anew
	u64 armed_timer;     // that a thread armed and that fires now
	u64 handoffs_left;   // as for transfers
	u64 interrupt_end;   // of the last interrupt
	u64 soft_end;	     // of the last softirq
	u64 soft_interrupts; // whether this softirq came with an interrupt
	u64 allowed_since;   // when transfers and handoffs were allowed anew
	// The row of pages that is not written yet (bpf/page_cache.h).
	u64 row_inode;
	u64 row_first;
	u32 row_device;
	u32 row_pages;
	u32 row_step;
	u32 tasks_left; // that walks may go on in, as for transfers
};

enum context {
	CONTEXT_TASK = 0,
	CONTEXT_SOFTIRQ = 1,
	CONTEXT_HARDIRQ = 2,
	CONTEXT_HRTIMER = 3,
	CONTEXT_TIMER = 4,
};

enum left {
	LEFT_PREEMPTED = 0,
	LEFT_YIELDED = 1,
	LEFT_SLEEPING = 2,
	LEFT_UNINTERRUPTIBLE = 3,
	LEFT_STOPPED = 4,
	LEFT_DEAD = 5,
	LEFT_IDLE = 6,
	LEFT_THROTTLED = 7,
	LEFT_ON_CPU = 255, // of a pass over all threads: it is on a CPU
};

enum interrupt_kind {
	INTERRUPT_HARD = 0,
	INTERRUPT_SOFT = 1,
	INTERRUPT_LOCAL_TIMER = 2,
};

enum object_kind {
	OBJECT_NONE = 0,
	OBJECT_FUTEX = 1,
	OBJECT_PIPE = 2,
	OBJECT_UNIX = 3,
	OBJECT_INET = 4,
	OBJECT_SOCKET = 5,
	OBJECT_EVENTFD = 6,
	OBJECT_TIMERFD = 7,
	OBJECT_EPOLL = 8,
	OBJECT_ANONYMOUS = 9,
	OBJECT_FILE = 10,
	OBJECT_CHAR_DEVICE = 11,
	OBJECT_BLOCK_DEVICE = 12,
	OBJECT_KERNEL_LOCK = 13,
	OBJECT_IO_URING = 14,
	OBJECT_SERVED_FILE = 15,
	OBJECT_MESSAGE_QUEUE = 16,
	OBJECT_PROCESS = 17,
};

enum kernel_lock {
	KERNEL_LOCK_MUTEX = 1,
	KERNEL_LOCK_READ = 2,
	KERNEL_LOCK_WRITE = 3,
	KERNEL_LOCK_OTHER = 4,
};

enum handoff_kind {
	HANDOFF_FILE_LOCK = 0,
	HANDOFF_WORK = 1,
	HANDOFF_IO_URING = 2,
	HANDOFF_TIMER = 3,
	HANDOFF_SIGNAL = 4,
};

enum handoff_step {
	STEP_SUBMITTED = 0,
	STEP_BEGUN = 1,
	STEP_DONE = 2,
	STEP_CANCELLED = 3,
	STEP_TAKEN = 4,
	STEP_WAITING = 5,
	STEP_REFUSED = 6,
	STEP_RELEASED = 7,
};

enum paging {
	PAGING_FAULT = 0,
	PAGING_CACHE = 1,
	PAGING_STALL = 2,
};

enum fault_flag {
	FAULT_MAJOR = 1,
	FAULT_KERNEL = 2, // in the kernel, on behalf of the thread's call
	FAULT_FILE = 4,	  // the file's pages were looked for
};

enum probe_step {
	PROBE_ENTERED = 0, // or passed
	PROBE_RETURNED = 1,
};

enum cache_step {
	CACHE_ADDED = 0,
	CACHE_REMOVED = 1,
	CACHE_MAPPED = 2, // into a process, those around a fault that were there
	CACHE_FAULTED = 3,
	CACHE_READ = 4,
};

enum stall_kind {
	STALL_RECLAIM = 0,	 // the machine has no free memory
	STALL_LIMIT_RECLAIM = 1, // the control group has none
	STALL_COMPACTION = 2,
};

enum flag_access {
	ACCESS_READ = 0,
	ACCESS_WRITE = 1,
};

#define CALL_NONE -1
#define CALL_KERNEL_THREAD -2
// As it stands in a record; numbers beyond are no calls.
#define CALL_BITS(call) ((u32)((call) <= 4093 ? (call) + 2 : CALL_NONE + 2))
