//! What an occurrence consists of: each nanosecond of it belongs to one factor.

use hangdog_graph::{Evidence, Mark, Wait, WaitKind};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::ids::Utid;
use hangdog_trace::tables::Interrupts;
use hangdog_trace::words::Left;
use std::collections::BTreeMap;
use std::fmt;

use super::Occurrence;

/// What a thread did, or what kept it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Factor {
    /// It ran.
    Ran,
    /// Interrupts had its CPU.
    Interrupted,
    /// It wanted a CPU and had none.
    Wanted,
    /// It had none because its group's quota was used up.
    Throttled,
    /// The kernel moved it to another CPU.
    Moved,
    /// It waited: for what, and in which call.
    Waited {
        /// For what.
        what: &'static str,
        /// The call, as its name.
        call: String,
    },
    /// The thread did not live, or it is not known what it did.
    Unknown,
}

/// What sort of thing a factor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorKind {
    /// On the CPU.
    Running,
    /// Interrupts.
    Interrupt,
    /// Waiting for a CPU.
    Cpu,
    /// Kept from a CPU by a quota.
    Quota,
    /// Being moved to another CPU.
    Migration,
    /// Waiting for something else.
    Wait,
    /// Not known.
    Unknown,
}

impl FactorKind {
    /// The word that answers have.
    pub fn text(self) -> &'static str {
        match self {
            FactorKind::Running => "running",
            FactorKind::Interrupt => "interrupt",
            FactorKind::Cpu => "cpu",
            FactorKind::Quota => "quota",
            FactorKind::Migration => "migration",
            FactorKind::Wait => "wait",
            FactorKind::Unknown => "unknown",
        }
    }
}

impl Factor {
    /// Of which kind it is.
    pub fn kind(&self) -> FactorKind {
        match self {
            Factor::Ran => FactorKind::Running,
            Factor::Interrupted => FactorKind::Interrupt,
            Factor::Wanted => FactorKind::Cpu,
            Factor::Throttled => FactorKind::Quota,
            Factor::Moved => FactorKind::Migration,
            Factor::Waited { .. } => FactorKind::Wait,
            Factor::Unknown => FactorKind::Unknown,
        }
    }

    /// Of an interval of a thread.
    pub(super) fn of(evidence: &Evidence<'_>, thread: Utid, interval: &Interval) -> Factor {
        let left = match interval.cause {
            Cause::Switch(row) => Some(Left::from(evidence.switches.left[row as usize])),
            _ => None,
        };
        match interval.state {
            State::Running => Factor::Ran,
            State::Interrupted => Factor::Interrupted,
            State::Runnable | State::Preempted if left == Some(Left::Throttled) => {
                Factor::Throttled
            }
            State::Runnable | State::Preempted | State::Blocked
                if is_moved(evidence, thread, interval) =>
            {
                Factor::Moved
            }
            State::Runnable | State::Preempted => Factor::Wanted,
            State::Blocked => {
                let wait = Wait::new(evidence, thread, interval);
                match wait.row {
                    Some(row) => Factor::Waited {
                        what: match is_for_session(evidence, &wait) {
                            true => "for another session of the database",
                            false => what(wait.kind),
                        },
                        call: evidence
                            .calls
                            .name(evidence.switches.call[row])
                            .into_owned(),
                    },
                    None => Factor::Unknown,
                }
            }
        }
    }
}

/// Whether the kernel's thread that moves others came in a thread's place, or ended its wait.
fn is_moved(evidence: &Evidence<'_>, thread: Utid, interval: &Interval) -> bool {
    let mover = match (interval.state, interval.cause) {
        (State::Blocked, _) => {
            let waker = |row: usize| evidence.wakes.waker[row];
            let next = evidence
                .timeline
                .between(thread, interval.end, interval.end + 1);
            let wake = next.last().map(|next| next.cause);
            match wake {
                Some(Cause::Wake(row)) => Some(waker(row as usize)),
                _ => None,
            }
        }
        (_, Cause::Wake(row)) => Some(evidence.wakes.waker[row as usize]),
        (_, Cause::Switch(row)) => Some(evidence.switches.next[row as usize]),
        _ => None,
    };
    mover.is_some_and(|mover| {
        let known = evidence.threads.thread(mover);
        known.is_kernel() && known.name().starts_with("migration/")
    })
}

/// The factor as the end of "the slow ones spend 2 ms more ...".
impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Factor::Ran => f.write_str("running"),
            Factor::Interrupted => f.write_str("interrupted"),
            Factor::Wanted => f.write_str("waiting for a CPU"),
            Factor::Throttled => f.write_str("kept from the CPU by the quota of its control group"),
            Factor::Moved => f.write_str("being moved to another CPU"),
            Factor::Waited { what, call } => write!(f, "waiting {what} ({call})"),
            Factor::Unknown => f.write_str("doing what the trace does not show"),
        }
    }
}

/// Whether a database waits for a lock on what it keeps, which another of its sessions has.
pub(super) fn is_for_session(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    evidence.shows(wait.user_stack(evidence), Mark::DatabaseLock)
}

/// What a wait is for, behind "waiting".
fn what(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Lock => "for a lock",
        WaitKind::Condition => "for a condition",
        WaitKind::Message => "for a message",
        WaitKind::Idle => "for work",
        WaitKind::Poll => "for descriptors",
        WaitKind::Child => "for a child",
        WaitKind::Signal => "for a signal",
        WaitKind::Sleep => "for time to pass",
        WaitKind::Timer => "for a timer",
        WaitKind::Disk => "for the disk",
        WaitKind::Paging => "for memory to be paged in",
        WaitKind::Device => "for a device",
        WaitKind::Stopped => "while it was stopped",
        WaitKind::Kernel => "inside the kernel",
        WaitKind::Flag => "for a flag in memory to be written",
        WaitKind::Unknown => "for something that the trace does not show",
    }
}

/// The factors of an occurrence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Vector {
    /// How long each took, ns; together the occurrence's duration.
    pub factors: BTreeMap<Factor, u64>,
    /// How often it came on another CPU than it was on before.
    pub migrations: u64,
    /// How often interrupts had its CPU, and how long by what, ns.
    pub interrupts: BTreeMap<(u8, u16), u64>,
}

impl Vector {
    pub(super) fn of(
        evidence: &Evidence<'_>,
        interrupts: &Interrupts,
        occurrence: &Occurrence,
    ) -> Vector {
        let mut vector = Vector::default();
        let mut known = 0;
        let mut cpu = None;
        let Occurrence { thread, from, to } = *occurrence;
        for interval in evidence.timeline.between(thread, from, to) {
            let ns = interval.duration();
            known += ns;
            let factor = Factor::of(evidence, thread, &interval);
            *vector.factors.entry(factor).or_default() += ns;
            match (interval.state, interval.cause) {
                (State::Running, Cause::Switch(row)) => {
                    let now = evidence.switches.cpu[row as usize];
                    vector.migrations += u64::from(cpu.is_some_and(|before| before != now));
                    cpu = Some(now);
                }
                (State::Interrupted, Cause::Interrupt(row)) => {
                    let row = row as usize;
                    let source = (interrupts.kind[row], interrupts.vector[row]);
                    *vector.interrupts.entry(source).or_default() += ns;
                }
                _ => {}
            }
        }
        let unknown = occurrence.ns().saturating_sub(known);
        if unknown > 0 {
            *vector.factors.entry(Factor::Unknown).or_default() += unknown;
        }
        vector
    }
}
