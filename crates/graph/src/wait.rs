//! What a blocked thread waits for, told by its call, its object and its stacks.

use hangdog_timeline::{Cause, Interval};
use hangdog_trace::calls::{Call, FutexOp, sleep_of_poll};
use hangdog_trace::ids::{NONE, StackId, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::words::Left;
use std::ops::Range;

use crate::asyncio::Task;
use crate::evidence::Evidence;
use crate::flags::FlagWait;
use crate::marks::Mark;
use crate::names;
use crate::stop::{self, Stop};

/// The kinds of waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WaitKind {
    /// For a lock that another thread holds.
    Lock,
    /// For a condition, a semaphore, a barrier, the end of a thread: a futex that is no lock.
    Condition,
    /// For bytes, or room for them, in a pipe, socket or eventfd; or for the program that serves a
    /// file system.
    Message,
    /// For the language's own scheduler to have something to run.
    Idle,
    /// For one of several descriptors.
    Poll,
    /// For a flag in memory to be written, looking at it again and again.
    Flag,
    /// For a child's end.
    Child,
    /// For a signal.
    Signal,
    /// For time to pass, and nothing else.
    Sleep,
    /// For a timerfd to fire.
    Timer,
    /// For a block device.
    Disk,
    /// For memory to be paged in from a device.
    Paging,
    /// For something at the other end of a terminal or device.
    Device,
    /// Stopped by a signal, a debugger, or the freezer of its control group.
    Stopped,
    /// For something inside the kernel.
    Kernel,
    /// It is not known why the thread left its CPU.
    Unknown,
}

/// A state of the kernel that keeps threads waiting and that no thread holds: a person or a program
/// brought it about and may have ended since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gate {
    /// The file system is frozen, as for a snapshot.
    FrozenFiles,
    /// The control group uses all the memory that it may.
    MemoryLimit,
    /// A terminal or device takes no output: the one was halted by a key, or nobody reads what it shows.
    Terminal,
    /// A terminal takes no output, since that was halted.
    HaltedTerminal,
    /// A standby of the database has not confirmed what is committed.
    Standby,
    /// No debugger has attached, or let the program go on.
    Debugger,
}

impl Gate {
    /// What a thread waited for, as the rest of a phrase.
    pub fn text(self) -> &'static str {
        match self {
            Gate::FrozenFiles => "waited for a frozen file system to be thawed",
            Gate::Standby => "waited for a standby to confirm its commit",
            Gate::Debugger => "waited for a debugger to attach or to let it continue",
            Gate::MemoryLimit => "waited at the memory limit of its control group",
            Gate::HaltedTerminal => "waited for its terminal, stopped by Ctrl-S, to take output",
            Gate::Terminal => {
                "waited for a terminal or device, stopped by Ctrl-S or not read, to take output"
            }
        }
    }
}

/// One blocked interval with its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Who waits.
    pub thread: Utid,
    /// Since when, ns since the trace's start.
    pub start: u64,
    /// Until when; the trace's end where it lasts longer.
    pub end: u64,
    /// What for.
    pub kind: WaitKind,
    /// The row of `switches` that began it; none if that is not in the trace.
    pub row: Option<usize>,
    /// The thread that the lock's own memory names as its holder, or that a join waits for; the one
    /// that used a System V semaphore or queue last; of a thread that is stopped, its debugger.
    pub holder: Option<Utid>,
    /// The task that the thread of an event loop waits for, where that is what matters about the wait.
    pub task: Option<Task>,
}

impl Wait {
    /// The wait that a series of looks at a flag is.
    pub fn of_flag(wait: &FlagWait) -> Wait {
        Wait {
            thread: wait.thread,
            start: wait.from,
            end: wait.to,
            kind: WaitKind::Flag,
            row: None,
            holder: None,
            task: None,
        }
    }

    /// The wait that it is to ask again and again, without waiting: of kind `Child` whether a child has ended, of
    /// kind `Message` whether a message has come.
    pub fn of_asking(thread: Utid, time: &Range<u64>, kind: WaitKind) -> Wait {
        Wait {
            thread,
            start: time.start,
            end: time.end,
            kind,
            row: None,
            holder: None,
            task: None,
        }
    }

    /// The meaning of a blocked interval.
    pub fn new(evidence: &Evidence<'_>, thread: Utid, interval: &Interval) -> Wait {
        let row = match interval.cause {
            Cause::Switch(row) => Some(row as usize),
            _ => None,
        };
        let holder = row
            .map(|row| evidence.switches.holder[row])
            .filter(|&holder| holder != NONE);
        let kind = row.map_or(WaitKind::Unknown, |row| kind(evidence, row, holder));
        Wait {
            thread,
            start: interval.start,
            end: interval.end,
            kind,
            row,
            holder,
            task: None,
        }
    }

    /// How long it lasts, ns.
    pub fn duration(&self) -> u64 {
        self.end - self.start
    }

    /// How long a sleep was asked for, ns, where its call tells.
    pub fn asked_ns(&self, evidence: &Evidence<'_>) -> Option<u64> {
        let row = self.row.filter(|_| self.kind == WaitKind::Sleep)?;
        let asked = evidence.switches.arg[row];
        let asked = match evidence.call(evidence.switches.call[row]) {
            Call::Sleep => asked,
            Call::Poll if selects_nothing(evidence, row) => asked,
            Call::Poll => match sleep_of_poll(asked) {
                Some(asked) => asked,
                None => asked.saturating_mul(1_000_000),
            },
            _ => 0,
        };
        (asked > 0).then_some(asked)
    }

    /// For how long a poll waits at most, ns, where its call tells and it does not wait without a limit.
    pub fn poll_limit_ns(&self, evidence: &Evidence<'_>) -> Option<u64> {
        const WITH_LIMIT: [&str; 3] = ["poll", "epoll_wait", "epoll_pwait"];
        let row = self.row.filter(|_| self.kind == WaitKind::Poll)?;
        let name = evidence.calls.name(evidence.switches.call[row]);
        // A limit that is less than 0 is none.
        let limit_ms = i32::try_from(evidence.switches.arg[row]).ok()?;
        (WITH_LIMIT.contains(&&*name) && limit_ms > 0)
            .then(|| u64::from(limit_ms.unsigned_abs()) * 1_000_000)
    }

    /// What of System V's it waits for, with its article, where its call tells.
    pub fn system_v(&self, evidence: &Evidence<'_>) -> Option<&'static str> {
        let row = self.row?;
        match &*evidence.calls.name(evidence.switches.call[row]) {
            "semop" | "semtimedop" => Some("a System V semaphore"),
            "msgrcv" | "msgsnd" => Some("a System V message queue"),
            _ => None,
        }
    }

    /// What it works on, where that is known.
    pub fn object(&self, evidence: &Evidence<'_>) -> Object {
        self.row
            .map_or(Object::NONE, |row| Object(evidence.switches.object[row]))
    }

    /// The user stack that it waits in; of a Go thread with nothing to run that of the goroutine which tells what the program
    /// waits for, if the recording looked at them meanwhile; that of the task, where the wait stands for one.
    pub fn user_stack(&self, evidence: &Evidence<'_>) -> StackId {
        if let Some(task) = self.task {
            return task.stack;
        }
        let own = self.row.map_or(0, |row| evidence.switches.user_stack[row]);
        match evidence.shows(own, Mark::Scheduler) {
            true => evidence
                .goroutine(self.thread, self.start..self.end)
                .unwrap_or(own),
            false => own,
        }
    }

    /// The task that explains best what an event loop of Python waits for here, if the recording looked at them meanwhile.
    pub fn find_task(&self, evidence: &Evidence<'_>) -> Option<Task> {
        let own = self.row.map_or(0, |row| evidence.switches.user_stack[row]);
        evidence.task(self.thread, own, &(self.start..self.end))
    }

    /// What stopped the thread, of one that was.
    pub(crate) fn stop(&self, evidence: &Evidence<'_>) -> Stop {
        let window = self.start..self.end;
        stop::of(evidence, self.thread, &window, self.kernel_stack(evidence))
    }

    /// The kernel stack that it waits in, where one was taken.
    pub fn kernel_stack(&self, evidence: &Evidence<'_>) -> StackId {
        self.row
            .map_or(0, |row| evidence.switches.kernel_stack[row])
    }

    /// What it does, as a phrase that follows a thread's name: "waited for a lock".
    pub fn phrase(&self, evidence: &Evidence<'_>) -> String {
        if self.kind == WaitKind::Flag {
            let waits = evidence.flag_waits(self.thread, self.start..self.end);
            let name = waits
                .first()
                .map_or("a flag", |wait| evidence.flag_name(wait.write));
            return format!("polled {name}");
        }
        let Some(row) = self.row else {
            let what = match self.kind {
                WaitKind::Child => "asked again and again whether a child process had ended",
                WaitKind::Message => "looked for messages again and again",
                _ => "was off the CPU; the trace does not show why",
            };
            return what.to_owned();
        };
        let call = evidence.calls.name(evidence.switches.call[row]);
        let object = self.object(evidence);
        if let Some(gate) = self.gate(evidence) {
            return match gate {
                Gate::Debugger => gate.text().to_owned(),
                _ => format!("{} in {call}", gate.text()),
            };
        }
        match self.kind {
            WaitKind::Lock => {
                let lock = self.lock(evidence).unwrap_or("a lock");
                match self.holder {
                    Some(holder) => {
                        let holder = evidence.name(holder);
                        format!("waited for {lock} held by {holder}")
                    }
                    None => format!("waited for {lock}"),
                }
            }
            WaitKind::Condition if let Some(lock) = self.lock(evidence) => {
                format!("waited for {lock}")
            }
            WaitKind::Condition => match self.holder {
                Some(joined) => format!("waited for {} to end", evidence.name(joined)),
                None => "waited for a condition".to_owned(),
            },
            WaitKind::Idle => "waited for work".to_owned(),
            WaitKind::Message if self.is_for_served_file(evidence) => {
                format!("waited in {call} for the program that serves the file system")
            }
            WaitKind::Message if object.is_none() => {
                format!("waited in {call} for the other end")
            }
            WaitKind::Message => format!("waited in {call} of {object}"),
            WaitKind::Poll if object.is_none() => format!("waited in {call}"),
            WaitKind::Poll => format!("waited in {call} of {object}"),
            WaitKind::Flag => "polled a flag".to_owned(),
            WaitKind::Child if self.object(evidence).kind() == ObjectKind::Process => {
                "waited for a process to end".to_owned()
            }
            WaitKind::Child => "waited for a child process to end".to_owned(),
            WaitKind::Signal => format!("waited for a signal in {call}"),
            WaitKind::Sleep => match self.asked_ns(evidence) {
                Some(asked) => format!("slept in {call}, as asked for {}", short_time(asked)),
                None => format!("slept in {call}"),
            },
            WaitKind::Timer => "waited for a timer to fire".to_owned(),
            WaitKind::Disk => format!("waited for the disk in {call}"),
            WaitKind::Paging => "waited for a page-in".to_owned(),
            WaitKind::Device => format!("waited in {call} of {object}"),
            WaitKind::Stopped if let Some(tracer) = self.holder => {
                format!("was stopped by {}, which debugs it", evidence.name(tracer))
            }
            WaitKind::Stopped => {
                let signal = self.row.map_or(0, |row| evidence.switches.arg[row]);
                stop::phrase(evidence, self.stop(evidence), signal)
            }
            WaitKind::Kernel => match (self.system_v(evidence), self.kernel_function(evidence)) {
                (Some(what), _) => format!("waited for {what} in {call}"),
                (None, Some(function)) => format!("waited in the kernel in {call}, at {function}"),
                (None, None) => format!("waited in the kernel in {call}"),
            },
            WaitKind::Unknown => format!("waited in {call}"),
        }
    }

    /// What lock it is for, in words, if it is for one.
    pub fn lock(&self, evidence: &Evidence<'_>) -> Option<&'static str> {
        let shows = |mark| evidence.shows(self.user_stack(evidence), mark);
        match (self.kind, self.object(evidence).kind()) {
            (WaitKind::Lock, ObjectKind::KernelLock) => Some("a lock of the kernel"),
            (WaitKind::Lock, ObjectKind::File) => Some("a lock on a file"),
            (WaitKind::Lock, _) => Some("a lock"),
            _ if shows(Mark::AwaitsStandby) => None,
            _ if shows(Mark::DatabaseLock) => Some("a lock of the database"),
            (WaitKind::Condition, _) if self.is_for_global_lock(evidence) => {
                Some("Python's global lock (GIL)")
            }
            (WaitKind::Condition, _) if self.is_for_own_lock(evidence) => Some("a lock"),
            _ => None,
        }
    }

    /// Whether it is for the lock that lets one thread of a Python program run at a time.
    fn is_for_global_lock(&self, evidence: &Evidence<'_>) -> bool {
        // The functions of the C library that wait come before.
        const FEW: usize = 8;
        let innermost = evidence.stacks.stack(self.user_stack(evidence)).take(FEW);
        let mut functions = innermost.filter_map(|frame| frame.function);
        self.is_for_own_lock(evidence) && functions.any(|it| names::GLOBAL_LOCK.contains(&it))
    }

    /// Whether it waits for the program that serves a file system.
    pub fn is_for_served_file(&self, evidence: &Evidence<'_>) -> bool {
        self.kind == WaitKind::Message
            && is_served(evidence, self.object(evidence), self.kernel_stack(evidence))
    }

    /// Whether a program's own lock is waited for, as the functions on its stack tell, by whatever
    /// means the language has for that. A thread of Python may wait for work in the same way.
    pub fn is_for_own_lock(&self, evidence: &Evidence<'_>) -> bool {
        let stack = self.user_stack(evidence);
        match self.kind {
            WaitKind::Lock => self.is_within_process(evidence),
            WaitKind::Poll | WaitKind::Message => evidence.shows(stack, Mark::LockWait),
            WaitKind::Condition => {
                evidence.shows(stack, Mark::LanguageLock)
                    && !evidence.shows(stack, Mark::LanguageCondition)
            }
            _ => false,
        }
    }

    /// The state of the kernel that keeps the thread waiting, where its call and its stack in the kernel
    /// tell.
    pub fn gate(&self, evidence: &Evidence<'_>) -> Option<Gate> {
        let shows = |mark| evidence.shows(self.kernel_stack(evidence), mark);
        match self.kind {
            WaitKind::Device if self.writes(evidence) => {
                Some(match evidence.sockets.is_halted(self.object(evidence)) {
                    true => Gate::HaltedTerminal,
                    false => Gate::Terminal,
                })
            }
            _ if evidence.shows(self.user_stack(evidence), Mark::AwaitsStandby) => {
                Some(Gate::Standby)
            }
            _ if evidence.shows(self.user_stack(evidence), Mark::AwaitsDebugger) => {
                Some(Gate::Debugger)
            }
            _ if shows(Mark::MemoryLimit) => Some(Gate::MemoryLimit),
            _ if shows(Mark::PercpuLock) && shows(Mark::ChangesFiles) => Some(Gate::FrozenFiles),
            _ => None,
        }
    }

    /// Whether it waits for room for what it writes: its call writes, or polls a pipe of which its process has
    /// the writing end alone.
    pub fn writes(&self, evidence: &Evidence<'_>) -> bool {
        let call = |row: usize| evidence.call(evidence.switches.call[row]);
        match self.row.map(call) {
            Some(Call::Write) => true,
            Some(Call::Poll) => !self.by_epoll(evidence) && self.has_only_writing_end(evidence),
            _ => false,
        }
    }

    fn has_only_writing_end(&self, evidence: &Evidence<'_>) -> bool {
        let pipe = self.object(evidence);
        let own = evidence.threads.thread(self.thread).upid;
        let holders = evidence.sockets.holders(pipe).iter();
        let mut own = holders.filter(|holder| holder.process == own).peekable();
        pipe.is_pipe() && own.peek().is_some() && own.all(|holder| !holder.reads)
    }

    /// Whether its thread has nothing to do: the language's scheduler waits, or a pool of threads. One that
    /// has no room for what it writes has.
    pub fn is_idle(&self, evidence: &Evidence<'_>) -> bool {
        evidence.shows(self.user_stack(evidence), Mark::Idle) && !self.writes(evidence)
    }

    /// Whether it ends by itself after some time, as far as its functions tell. The C library waits for a semaphore
    /// on the clock of the day, but for a limited time on the one that is asked for: Python's is the monotonic one.
    pub fn has_time_limit(&self, evidence: &Evidence<'_>) -> bool {
        const WAIT_BITSET: u64 = 9;
        const BY_DAY: u64 = 256;
        const OPERATION: u64 = 127;
        let stack = self.user_stack(evidence);
        let is_timed_semaphore = || {
            self.row.is_some_and(|row| {
                let operation = evidence.switches.arg[row];
                evidence.call(evidence.switches.call[row]) == Call::Futex
                    && operation & (OPERATION | BY_DAY) == WAIT_BITSET
            })
        };
        evidence.shows(stack, Mark::Timed)
            || evidence.shows(stack, Mark::Semaphore) && is_timed_semaphore()
    }

    /// What a wait for a disk is for, where the call does not tell.
    pub fn disk_purpose(&self, evidence: &Evidence<'_>) -> Option<&'static str> {
        let mut frames = evidence.stacks.stack(self.kernel_stack(evidence));
        frames.find_map(|frame| {
            let function = frame.function?;
            let known = names::DISK_PURPOSES
                .iter()
                .find(|(name, _)| *name == function);
            known.map(|&(_, purpose)| purpose)
        })
    }

    /// Whether it is for any of what was put into an epoll before.
    pub fn by_epoll(&self, evidence: &Evidence<'_>) -> bool {
        let name = |row: usize| evidence.calls.name(evidence.switches.call[row]);
        self.row.is_some_and(|row| name(row).starts_with("epoll"))
    }

    /// Whether only a thread of the same process can end it: it waits on a futex that is not shared, or
    /// for an eventfd.
    pub fn is_within_process(&self, evidence: &Evidence<'_>) -> bool {
        let Some(row) = self.row else {
            return false;
        };
        match evidence.call(evidence.switches.call[row]) {
            Call::Futex => evidence.switches.arg[row] & FUTEX_PRIVATE != 0,
            _ => self.object(evidence).kind() == ObjectKind::Eventfd,
        }
    }

    fn kernel_function(&self, evidence: &Evidence<'_>) -> Option<String> {
        const SCHEDULER: [&str; 6] = [
            "schedule",
            "__schedule",
            "preempt_schedule",
            "schedule_timeout",
            "__traceiter",
            "bpf",
        ];
        evidence
            .stacks
            .stack(self.kernel_stack(evidence))
            .filter_map(|frame| frame.function)
            .find(|function| !SCHEDULER.iter().any(|part| function.contains(part)))
            .map(str::to_owned)
    }
}

fn is_served(evidence: &Evidence<'_>, object: Object, kernel_stack: StackId) -> bool {
    object.kind() == ObjectKind::ServedFile || evidence.shows(kernel_stack, Mark::ServedFile)
}

const FUTEX_PRIVATE: u64 = 128;

/// Whether a system call that waits for a file waits for its lock.
fn locks_files(call: &str) -> bool {
    matches!(call, "fcntl" | "flock")
}

/// A short duration, for phrases.
fn short_time(ns: u64) -> String {
    match ns < 100_000 {
        true => format!("{} µs", (ns as f64 / 1e3).round()),
        false => format!("{} ms", (ns as f64 / 1e6 * 10.0).round() / 10.0),
    }
}

fn kind(evidence: &Evidence<'_>, row: usize, holder: Option<Utid>) -> WaitKind {
    let switches = evidence.switches;
    let left = Left::from(switches.left[row]);
    let object = Object(switches.object[row]);
    let (user, kernel) = (switches.user_stack[row], switches.kernel_stack[row]);
    let uninterruptible = left == Left::Uninterruptible;
    let is_frozen = uninterruptible
        && evidence.shows(kernel, Mark::Freezable)
        && !evidence.shows(kernel, Mark::PageFault);
    if left == Left::Stopped || is_frozen || evidence.shows(kernel, Mark::Frozen) {
        return WaitKind::Stopped;
    }
    let is_amid_call = uninterruptible || evidence.shows(kernel, Mark::ServedFile);
    if is_amid_call && is_served(evidence, object, kernel) {
        return WaitKind::Message;
    }
    let on_disk = uninterruptible && evidence.shows(kernel, Mark::DiskWait);
    if object.kind() == ObjectKind::KernelLock {
        return WaitKind::Lock;
    }
    match evidence.call(switches.call[row]) {
        Call::Other
            if matches!(object.kind(), ObjectKind::File | ObjectKind::ServedFile)
                && locks_files(&evidence.calls.name(switches.call[row])) =>
        {
            WaitKind::Lock
        }
        Call::None if on_disk || uninterruptible && kernel == 0 => WaitKind::Paging,
        Call::Futex => match FutexOp::of(switches.arg[row]) {
            FutexOp::LockPi | FutexOp::LockPi2 => WaitKind::Lock,
            // A semaphore of several processes is none of one's scheduler.
            _ if switches.arg[row] & FUTEX_PRIVATE == 0
                && evidence.shows(user, Mark::Semaphore) =>
            {
                WaitKind::Condition
            }
            // Whatever the scheduler keeps in its futex, it is not the program's lock.
            _ if evidence.shows(user, Mark::Idle) => WaitKind::Idle,
            _ if evidence.shows(user, Mark::Sleeps) => WaitKind::Sleep,
            _ if evidence.shows(user, Mark::LockWait) => WaitKind::Lock,
            _ if holder.is_some() && evidence.shows(user, Mark::Joins) => WaitKind::Condition,
            // A join names its thread as well, but by a futex that the kernel shares.
            _ if holder.is_some() && switches.arg[row] & FUTEX_PRIVATE != 0 => WaitKind::Lock,
            _ => WaitKind::Condition,
        },
        _ if on_disk => WaitKind::Disk,
        Call::Fsync if uninterruptible => WaitKind::Disk,
        Call::Sleep => WaitKind::Sleep,
        Call::Poll
            if sleep_of_poll(switches.arg[row]).is_some()
                || selects_nothing(evidence, row)
                || is_sleep_of_ruby(evidence, row) =>
        {
            WaitKind::Sleep
        }
        Call::Poll if object.kind() == ObjectKind::Process => WaitKind::Child,
        Call::Poll => WaitKind::Poll,
        Call::WaitChild => WaitKind::Child,
        Call::WaitSignal => WaitKind::Signal,
        Call::Read if evidence.shows(kernel, Mark::ReadsSignal) => WaitKind::Signal,
        Call::Read | Call::Write | Call::Send | Call::Receive | Call::Accept | Call::Connect => {
            match object.kind() {
                ObjectKind::Timerfd => WaitKind::Timer,
                ObjectKind::Pipe
                | ObjectKind::MessageQueue
                | ObjectKind::Unix
                | ObjectKind::Inet
                | ObjectKind::Socket
                | ObjectKind::Eventfd => WaitKind::Message,
                ObjectKind::Epoll => WaitKind::Poll,
                ObjectKind::CharDevice => WaitKind::Device,
                ObjectKind::None if !uninterruptible => WaitKind::Message,
                _ => WaitKind::Kernel,
            }
        }
        _ if evidence.shows(kernel, Mark::OpensFifo) => WaitKind::Message,
        _ => WaitKind::Kernel,
    }
}

/// Whether a poll is the sleep of Ruby's main thread, which is one of its own eventfd, by which only signals
/// come, until a timeout.
fn is_sleep_of_ruby(evidence: &Evidence<'_>, row: usize) -> bool {
    const FOREVER: u64 = u64::MAX;
    let switches = evidence.switches;
    let is_timed = switches.arg[row] != FOREVER;
    let of_eventfd = Object(switches.object[row]).kind() == ObjectKind::Eventfd;
    let by_ruby = || {
        let mut frames = evidence.stacks.stack(switches.user_stack[row]);
        frames.any(|frame| {
            let is_of_library = frame
                .module
                .is_some_and(|module| module.starts_with("libruby"));
            is_of_library || frame.function == Some("rb_sigwait_sleep")
        })
    };
    is_timed && of_eventfd && evidence.calls.name(switches.call[row]) == "ppoll" && by_ruby()
}

/// Whether a select is for no descriptor at all, but for time to pass: then its argument is how long, ns.
/// In older traces that is an address.
fn selects_nothing(evidence: &Evidence<'_>, row: usize) -> bool {
    const LONGEST_NS: u64 = 1 << 45;
    let call = evidence.switches.call[row];
    (1..LONGEST_NS).contains(&evidence.switches.arg[row]) && evidence.calls.name(call) == "pselect6"
}
