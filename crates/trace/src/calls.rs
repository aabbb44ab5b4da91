//! System calls: what their numbers mean on the machine that was recorded, and which of them do
//! the same kind of work.

use std::borrow::Cow;

use syscalls::{Errno, aarch64, x86_64};

use crate::words::word;

/// Call number of a thread that is in no call: where it blocks, a page fault.
pub const NO_CALL: i16 = -1;
/// Call number of a kernel thread.
pub const KERNEL_THREAD: i16 = -2;

/// Kinds of system calls, as far as waiting and waking go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// In no call (-1): where it blocks, a page fault.
    None,
    /// A kernel thread (-2).
    KernelThread,
    /// futex and its successors; [`FutexOp`] tells more.
    Futex,
    /// Waits for several descriptors: poll, select, epoll_wait.
    Poll,
    /// Waits for time alone: nanosleep.
    Sleep,
    /// sched_yield.
    Yield,
    /// Reads from any descriptor: read, pread, readv.
    Read,
    /// Writes to any descriptor: write, pwrite, writev, sendfile, splice.
    Write,
    /// Sends through a socket.
    Send,
    /// Receives from a socket.
    Receive,
    /// Waits for a connection.
    Accept,
    /// Makes a connection.
    Connect,
    /// Waits for a child's end: wait4, waitid.
    WaitChild,
    /// Waits for a signal: rt_sigtimedwait, pause.
    WaitSignal,
    /// Waits for data to reach the device: fsync, msync.
    Fsync,
    /// Sends a signal: kill, tgkill.
    Kill,
    /// Makes a thread or process: clone, fork.
    Fork,
    /// Executes a program.
    Exec,
    /// Ends a thread or process.
    Exit,
    /// Watches or controls another process: ptrace.
    Trace,
    /// Anything else.
    Other,
}

word! {
    /// What a futex call does; the values are the kernel's.
    FutexOp {
        /// Waits until woken.
        Wait = 0 "wait",
        /// Wakes waiters.
        Wake = 1 "wake",
        /// Moves waiters to another futex.
        Requeue = 3 "requeue",
        /// The same, if the value is as expected.
        CmpRequeue = 4 "cmp-requeue",
        /// Wakes waiters of two futexes.
        WakeOp = 5 "wake-op",
        /// Waits for a priority-inheriting lock.
        LockPi = 6 "lock-pi",
        /// Releases a priority-inheriting lock.
        UnlockPi = 7 "unlock-pi",
        /// Tries to take a priority-inheriting lock.
        TrylockPi = 8 "trylock-pi",
        /// Waits for a wake that carries one of the bits, until an absolute time.
        WaitBitset = 9 "wait-bitset",
        /// Wakes waiters for the bits.
        WakeBitset = 10 "wake-bitset",
        /// Waits on a condition variable whose lock inherits priority.
        WaitRequeuePi = 11 "wait-requeue-pi",
        /// Moves waiters to a priority-inheriting lock.
        CmpRequeuePi = 12 "cmp-requeue-pi",
        /// Waits for a priority-inheriting lock, on the clock that the call names.
        LockPi2 = 13 "lock-pi2",
    }
}

impl FutexOp {
    /// The operation in a futex call's second argument; the flags in it (private, which clock) are
    /// left aside.
    pub fn of(arg: u64) -> FutexOp {
        const FLAGS: u64 = 128 | 256;
        u8::try_from(arg & !FLAGS).map_or(FutexOp::Unknown, FutexOp::from)
    }
}

/// How long a poll sleeps that was given no descriptor, ns, by its argument: a bit beside that time tells that it
/// was given none. None of any other poll.
pub fn sleep_of_poll(arg: u64) -> Option<u64> {
    const POLLS_NOTHING: u64 = 1 << 62;
    (arg & !(POLLS_NOTHING - 1) == POLLS_NOTHING).then_some(arg & (POLLS_NOTHING - 1))
}

/// The system calls of one kind of machine.
#[derive(Clone, Debug)]
pub struct Calls {
    /// By number; empty where the machine has no such call.
    calls: Vec<(&'static str, Call)>,
}

impl Calls {
    /// The calls of a machine named as `uname -m` names it. One that hangdog does not know has
    /// none: its calls go by number.
    pub fn new(arch: &str) -> Calls {
        let mut calls = Vec::new();
        let mut add = |number: i32, name: &'static str| {
            let number = usize::try_from(number).unwrap_or_default();
            if calls.len() <= number {
                calls.resize(number + 1, ("", Call::Other));
            }
            calls[number] = (name, kind(name));
        };
        match arch {
            "x86_64" => x86_64::Sysno::iter().for_each(|call| add(call.id(), call.name())),
            "aarch64" => aarch64::Sysno::iter().for_each(|call| add(call.id(), call.name())),
            _ => {}
        }
        Calls { calls }
    }

    fn get(&self, number: i16) -> Option<(&'static str, Call)> {
        self.calls
            .get(usize::try_from(number).ok()?)
            .copied()
            .filter(|(name, _)| !name.is_empty())
    }

    /// What reports print for a call number.
    pub fn name(&self, number: i16) -> Cow<'static, str> {
        match (number, self.get(number)) {
            (NO_CALL, _) => "page fault".into(),
            (KERNEL_THREAD, _) => "kernel thread".into(),
            (_, Some((name, _))) => name.into(),
            (_, None) => format!("system call {number}").into(),
        }
    }

    /// The kind of a call.
    pub fn kind(&self, number: i16) -> Call {
        match number {
            NO_CALL => Call::None,
            KERNEL_THREAD => Call::KernelThread,
            _ => self.get(number).map_or(Call::Other, |(_, kind)| kind),
        }
    }

    /// The number of the call `name`.
    pub fn number(&self, name: &str) -> Option<i16> {
        let number = self
            .calls
            .iter()
            .position(|(n, _)| !n.is_empty() && *n == name)?;
        number.try_into().ok()
    }
}

/// The name of an errno, as errno(3) has it: `ENOENT`; by number where it has none.
pub fn error_name(errno: u16) -> Cow<'static, str> {
    match Errno::new(errno.into()).name() {
        Some(name) => name.into(),
        None => format!("error {errno}").into(),
    }
}

fn kind(name: &str) -> Call {
    match name {
        "futex" | "futex_wait" | "futex_wake" | "futex_requeue" | "futex_waitv" => Call::Futex,
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait"
        | "epoll_pwait2" => Call::Poll,
        "nanosleep" | "clock_nanosleep" => Call::Sleep,
        "sched_yield" => Call::Yield,
        "read" | "pread64" | "readv" | "preadv" | "preadv2" | "mq_timedreceive" => Call::Read,
        "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "sendfile" | "splice"
        | "tee" | "vmsplice" | "copy_file_range" | "mq_timedsend" => Call::Write,
        "sendto" | "sendmsg" | "sendmmsg" => Call::Send,
        "recvfrom" | "recvmsg" | "recvmmsg" => Call::Receive,
        "accept" | "accept4" => Call::Accept,
        "connect" => Call::Connect,
        "wait4" | "waitid" => Call::WaitChild,
        "rt_sigtimedwait" | "rt_sigsuspend" | "pause" => Call::WaitSignal,
        "fsync" | "fdatasync" | "sync" | "syncfs" | "sync_file_range" | "msync" => Call::Fsync,
        "kill" | "tgkill" | "tkill" | "rt_sigqueueinfo" | "rt_tgsigqueueinfo"
        | "pidfd_send_signal" => Call::Kill,
        "fork" | "vfork" | "clone" | "clone3" => Call::Fork,
        "execve" | "execveat" => Call::Exec,
        "exit" | "exit_group" => Call::Exit,
        "ptrace" => Call::Trace,
        _ => Call::Other,
    }
}
