//! The closed sets of values that columns hold, each kept as a `u8` on disk.
//!
//! A number that this version does not know (a damaged or a newer file) reads as the set's
//! `Unknown`, never as a panic.

macro_rules! word {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $n:literal $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$vdoc])* $variant = $n,)+
            /// A number that this version does not know.
            Unknown = 255,
        }

        impl $name {
            /// Every known value, with the word that reports print for it.
            pub const ALL: &'static [($name, &'static str)] = &[$(($name::$variant, $text)),+];

            /// The word that reports print.
            pub fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)+ $name::Unknown => "unknown" }
            }
        }

        impl From<u8> for $name {
            fn from(n: u8) -> $name {
                match n { $($n => $name::$variant,)+ _ => $name::Unknown }
            }
        }

        impl From<$name> for u8 {
            fn from(word: $name) -> u8 { word as u8 }
        }
    };
}

pub(crate) use word;

word! {
    /// How a thread left a CPU.
    Left {
        /// Another thread was chosen while this one could have gone on.
        Preempted = 0 "preempted",
        /// It gave the CPU up itself but wants it back (sched_yield).
        Yielded = 1 "yielded",
        /// It sleeps and a signal may wake it (S).
        Sleeping = 2 "sleeping",
        /// It sleeps and only its event may wake it (D).
        Uninterruptible = 3 "uninterruptible",
        /// It was stopped by a signal or a tracer (T, t).
        Stopped = 4 "stopped",
        /// It is dead: this is its last event (X, Z).
        Dead = 5 "dead",
        /// A kernel thread that has nothing to do (I), or is parked (P).
        Idle = 6 "idle",
        /// Its control group had used up its CPU quota.
        Throttled = 7 "throttled",
    }
}

word! {
    /// What was running on the CPU at the moment of a wake.
    Context {
        /// The waking thread itself, in a system call or a fault of its own.
        Task = 0 "thread",
        /// A softirq: network, block completion, ...; the vector tells which.
        Softirq = 1 "softirq",
        /// The handler of a device's interrupt; the vector is its number.
        Hardirq = 2 "interrupt",
        /// The callback of a high-resolution timer (sleep, timeout, timerfd).
        Hrtimer = 3 "timer",
        /// The callback of a timer-wheel timer (kernel timeouts).
        Timer = 4 "kernel timer",
    }
}

word! {
    /// Which kind of interrupt ran.
    InterruptKind {
        /// A device's interrupt.
        Hard = 0 "interrupt",
        /// A softirq.
        Soft = 1 "softirq",
        /// The CPU's own timer interrupt.
        LocalTimer = 2 "timer interrupt",
    }
}

word! {
    /// What a block device was asked to do.
    IoOperation {
        /// Read.
        Read = 0 "read",
        /// Write.
        Write = 1 "write",
        /// Flush of the device's cache.
        Flush = 2 "flush",
        /// Discard or write zeroes.
        Discard = 3 "discard",
        /// Anything else.
        Other = 4 "other",
    }
}

word! {
    /// What a thread had to do before it got memory.
    StallKind {
        /// Make memory free, since the machine had none (direct reclaim).
        Reclaim = 0 "direct reclaim",
        /// The same, since its control group was at its limit.
        LimitReclaim = 1 "reclaim at the group's limit",
        /// Move pages until enough of them lay side by side.
        Compaction = 2 "compaction",
    }
}

word! {
    /// What became of pages of a file in the page cache.
    CacheAction {
        /// They came: to be read from the file, or to be written.
        Added = 0 "added",
        /// They went: their memory was needed, or the file was cut or deleted.
        Removed = 1 "removed",
        /// Of these, those that were there were mapped into a process around a fault.
        Mapped = 2 "mapped",
        /// A fault was for this page.
        Faulted = 3 "faulted",
        /// A system call read them.
        Read = 4 "read",
    }
}

word! {
    /// What a process has an area of memory for.
    AreaKind {
        /// None of the others.
        Anonymous = 0 "anonymous",
        /// The heap, which grows by brk(2); of larger blocks malloc makes anonymous areas.
        Heap = 1 "heap",
        /// The first thread's stack; those of others are anonymous areas.
        Stack = 2 "stack",
        /// The file that the process executes.
        Program = 3 "executable",
        /// A file that is executed in part, or a shared library by its name.
        Library = 4 "library",
        /// Another file.
        File = 5 "mapped file",
        /// Memory that processes share, in no file of a disk.
        Shared = 6 "shared memory",
    }
}

word! {
    /// What was handed over.
    HandoffKind {
        /// A lock on a file: fcntl's, flock's, or an open file's.
        FileLock = 0 "file lock",
        /// An item of a kernel work queue.
        Work = 1 "work item",
        /// A request of io_uring.
        IoUring = 2 "io_uring request",
        /// A timer that a thread armed: timerfd, timer_create, setitimer, alarm.
        Timer = 3 "timer",
        /// A signal.
        Signal = 4 "signal",
    }
}

word! {
    /// A step of async work. Work goes from submitted to begun to done, a signal from submitted to
    /// begun; a lock is taken, or waited for and then taken, or refused, and then released.
    HandoffStep {
        /// Handed over: queued, submitted, armed, sent.
        Submitted = 0 "submitted",
        /// Taken up: a worker runs it, the timer fires, the receiver is interrupted.
        Begun = 1 "begun",
        /// Done. What a timer wakes is woken between its begun and its done, on the same CPU.
        Done = 2 "done",
        /// It will not come: disarmed, or a signal that the receiver ignores.
        Cancelled = 3 "cancelled",
        /// The thread has the lock.
        Taken = 4 "taken",
        /// The thread is about to wait for the lock.
        Waiting = 5 "waiting",
        /// The thread did not get the lock and goes on without.
        Refused = 6 "refused",
        /// The thread gave the lock up.
        Released = 7 "released",
    }
}

word! {
    /// What was done with a flag that is watched.
    Access {
        /// It was read.
        Read = 0 "read",
        /// It was written, perhaps with the value that it had.
        Write = 1 "write",
        /// Reads, or writes, are not watched from here on: there were too many.
        Paused = 2 "paused",
        /// They are watched again.
        Resumed = 3 "resumed",
    }
}

word! {
    /// What kind of kernel lock a thread waits for.
    KernelLock {
        /// A mutex.
        Mutex = 1 "mutex",
        /// A read-write semaphore, to read.
        Read = 2 "read lock",
        /// A read-write semaphore, to write.
        Write = 3 "write lock",
        /// Another kind.
        Other = 4 "lock",
    }
}

word! {
    /// What a process has open by which others can keep it waiting.
    DescriptorKind {
        /// A pipe or a connection.
        Stream = 0 "stream",
        /// A socket that accepts connections.
        Listener = 1 "listener",
        /// The device by which the process serves a file system (FUSE).
        FileSystem = 2 "file system",
        /// A file on which somebody has a lock.
        LockedFile = 3 "locked file",
        /// A file on which the process has an exclusive lock.
        FileLock = 4 "file lock",
        /// That by which the kernel asks the process before others open files: a lease, fanotify.
        Keeper = 5 "keeper",
        /// The device by which the process mounts what others ask for (autofs).
        Mounter = 6 "mounter",
        /// A terminal whose output was halted, by Ctrl-S or by a program.
        Halted = 7 "halted",
    }
}

/// A control group that has this part of the memory that it may have must give some back before it gets more.
pub const USED_UP: f64 = 0.9;

word! {
    /// What is limited, of a control group or of a process.
    LimitKind {
        /// Memory, in bytes.
        Memory = 1 "memory",
        /// Reads from block devices, in bytes a second.
        DiskRead = 2 "disk read",
        /// Writes to block devices, in bytes a second.
        DiskWrite = 3 "disk write",
        /// Reads from block devices, in operations a second.
        DiskReads = 4 "disk reads",
        /// Writes to block devices, in operations a second.
        DiskWrites = 5 "disk writes",
        /// CPU time, in thousandths of a CPU.
        Cpu = 6 "cpu",
        /// How many files a process may have open; only where nearly all of them are.
        Descriptors = 7 "descriptors",
        /// How many threads and processes a control group may have; only where it has nearly all of them.
        Tasks = 8 "tasks",
    }
}

word! {
    /// Which way the last bytes of a connection went.
    LastTransfer {
        /// Out: it may wait for what comes back.
        Sent = 1 "sent",
        /// In.
        Received = 2 "received",
        /// Out, and nobody acknowledges it.
        Lost = 3 "lost",
    }
}

word! {
    /// A step in a thread's life.
    LifecycleKind {
        /// It was there when recording began, or its start was not seen.
        Seen = 0 "seen",
        /// It was created by `parent`.
        Forked = 1 "forked",
        /// It executed another program; `detail` is the file.
        Executed = 2 "executed",
        /// It took another name.
        Renamed = 3 "renamed",
        /// It exited; `detail` is the exit status.
        Exited = 4 "exited",
        /// The kernel chose its process to be killed, as memory had run out: the machine's or a control group's.
        OutOfMemory = 5 "out of memory",
    }
}

word! {
    /// What kind of thing code was mapped from.
    ModuleKind {
        /// The kernel and its modules; a frame's offset is the kernel address.
        Kernel = 0 "kernel",
        /// An ELF file; a frame's offset is the file offset.
        File = 1 "file",
        /// The vdso; the offset is relative to its start.
        Vdso = 2 "vdso",
        /// Memory that no file backs (JIT code); the offset is the process's address.
        Anonymous = 3 "anonymous",
        /// Source file of an interpreted language; the offset is the line of the function's
        /// definition in its low 32 bits, a hash of the function's name in its high ones.
        Script = 4 "script",
    }
}

word! {
    /// Why a stack has no frame further out.
    StackEnd {
        /// The outermost frame was reached.
        Root = 1 "root",
        /// It is as deep as stacks are recorded.
        Depth = 2 "depth",
        /// The code of the outermost frame has no unwind information.
        NoRule = 3 "no rule",
        /// The unwind information there says something that is not supported.
        Unsupported = 4 "unsupported",
        /// The stack's memory could not be read there, or lies beyond what was copied of it.
        Unreadable = 5 "unreadable",
        /// The unwind information of that code was not loaded yet, and more such stacks came than
        /// are copied.
        NotLoaded = 6 "not loaded",
    }
}

word! {
    /// What was lost.
    LossKind {
        /// Event records that the reader did not reach in time.
        Events = 0 "events",
        /// Definitions (threads, stacks) for which the ring had no room.
        Definitions = 1 "definitions",
        /// Probe runs that the kernel skipped because one was running already.
        Recursion = 2 "recursion",
        /// Mapping events that the perf buffer had no room for.
        Mappings = 3 "mappings",
        /// Transfers beyond some 50,000 a second on a CPU, which were not recorded; where there were
        /// many more still, not all of them are counted.
        Transfers = 4 "transfers",
        /// Handoffs beyond some 50,000 a second on a CPU, as for transfers.
        Handoffs = 5 "handoffs",
        /// Marks that were not read before they were overwritten, or that could not be told apart.
        Marks = 6 "marks",
        /// Marks that a program had overwritten when the flight recorder took its snapshot.
        OverwrittenMarks = 7 "overwritten marks",
        /// Snapshots of memory that were not taken by the end: the kernel did not tell in time what a
        /// process has, or what of a file is in the page cache.
        Snapshots = 8 "snapshots",
    }
}

word! {
    /// What a mark marks.
    MarkKind {
        /// A moment.
        Point = 0 "point",
        /// A region begins.
        Begin = 1 "begin",
        /// A region ends.
        End = 2 "end",
    }
}

word! {
    /// Which begin and end, of one process and with the same code, are one region. Of several begins
    /// that fit it is the last one that has no end yet.
    Pairing {
        /// Those of one thread.
        Thread = 0 "thread",
        /// Those with the same first argument.
        Argument = 1 "argument",
        /// All.
        Code = 2 "code",
    }
}

word! {
    /// The colour of a mark.
    Colour {
        /// It is left to whoever draws.
        None = 0 "none",
        /// Blue.
        Blue = 1 "blue",
        /// Green.
        Green = 2 "green",
        /// Purple.
        Purple = 3 "purple",
        /// Orange.
        Orange = 4 "orange",
        /// Red.
        Red = 5 "red",
    }
}

/// A softirq's name, as /proc/softirqs has it.
pub fn softirq(vector: u16) -> &'static str {
    const NAMES: [&str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];
    NAMES.get(vector as usize).copied().unwrap_or("unknown")
}

impl Context {
    /// Whether a timer ran in it: a timeout.
    pub fn is_timer(self) -> bool {
        matches!(self, Context::Hrtimer | Context::Timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that no softirq has is no panic.
    #[test]
    fn softirqs() {
        assert_eq!(softirq(3), "NET_RX");
        assert_eq!(softirq(99), "unknown");
    }
}
