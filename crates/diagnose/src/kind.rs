//! The kinds of time that somebody or something is to blame for.

use hangdog_trace::yardstick::Operation;

/// What an interval of time went to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum BlameKind {
    /// A thread ran.
    Run,
    /// A thread was runnable without a CPU.
    Runnable,
    /// A CPU served an interrupt instead of the thread on it.
    Interrupt,
    /// A lock, where it cannot be said what its holder did.
    Lock,
    /// A message from outside the trace.
    Message,
    /// A block device.
    Disk,
    /// The network.
    Network,
    /// Time that a thread had asked to let pass, or a timeout.
    Timer,
    /// Memory that was paged in.
    Paging,
    /// A thread was stopped: by a signal, a debugger, or the freezer of its control group.
    Stopped,
    /// The thread that should have ended a wait had exited.
    Gone,
    /// Something inside the kernel that no other kind names.
    Kernel,
    /// It is not known what.
    Unknown,
}

impl BlameKind {
    /// The word that reports print.
    pub fn text(self) -> &'static str {
        match self {
            BlameKind::Run => "run",
            BlameKind::Runnable => "runnable",
            BlameKind::Interrupt => "interrupt",
            BlameKind::Lock => "lock",
            BlameKind::Message => "message",
            BlameKind::Disk => "disk",
            BlameKind::Network => "network",
            BlameKind::Timer => "timer",
            BlameKind::Paging => "paging",
            BlameKind::Stopped => "stopped",
            BlameKind::Gone => "exited",
            BlameKind::Kernel => "kernel",
            BlameKind::Unknown => "unknown",
        }
    }
}

impl BlameKind {
    /// What such time can be held against, where baseline costs apply.
    pub fn operation(self) -> Option<Operation> {
        match self {
            BlameKind::Runnable => Some(Operation::HandOver),
            BlameKind::Lock => Some(Operation::LockHandOver),
            BlameKind::Message => Some(Operation::Message),
            BlameKind::Disk => Some(Operation::DiskRead),
            BlameKind::Paging => Some(Operation::MajorFault),
            BlameKind::Run
            | BlameKind::Interrupt
            | BlameKind::Network
            | BlameKind::Timer
            | BlameKind::Stopped
            | BlameKind::Gone
            | BlameKind::Kernel
            | BlameKind::Unknown => None,
        }
    }
}
