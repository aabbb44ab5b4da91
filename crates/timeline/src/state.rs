//! The states a thread can be in, and the event that put it there.

/// What a thread is doing during an interval.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum State {
    /// On a CPU.
    Running = 0,
    /// Woken (or new, or having yielded) and waiting for a CPU.
    Runnable = 1,
    /// Taken off the CPU against its will, by another thread or by its group's quota.
    Preempted = 2,
    /// Waiting for something other than a CPU.
    Blocked = 3,
    /// On a CPU that runs an interrupt or softirq instead.
    Interrupted = 4,
}

impl State {
    /// Number of states: the length of an array indexed by `state as usize`.
    pub const COUNT: usize = 5;

    /// Every state, in the order of its number.
    pub const ALL: [State; State::COUNT] = [
        State::Running,
        State::Runnable,
        State::Preempted,
        State::Blocked,
        State::Interrupted,
    ];

    /// The word that reports print.
    pub fn text(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Runnable => "runnable",
            State::Preempted => "preempted",
            State::Blocked => "blocked",
            State::Interrupted => "interrupted",
        }
    }

    /// Whether the thread has a CPU, be it interrupted.
    pub fn is_on_cpu(self) -> bool {
        matches!(self, State::Running | State::Interrupted)
    }

    /// Whether the thread could go on if it had a CPU.
    pub fn wants_cpu(self) -> bool {
        matches!(self, State::Runnable | State::Preempted)
    }
}

/// The event that began an interval, as a row of its table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// Row of `switches`: that which brought the thread on the CPU (Running), or took it off
    /// (Preempted, Blocked, and Runnable after a yield).
    Switch(u32),
    /// Row of `wakes`: that which made the thread runnable.
    Wake(u32),
    /// Row of `interrupts`: that which interrupted it.
    Interrupt(u32),
    /// The event lies before the trace, or was lost: then the thread left its CPU unseen.
    Unknown,
}

/// Rows from this on cannot be named by a cause.
pub(crate) const MAX_ROWS: usize = 1 << ROW_BITS;
const ROW_BITS: u32 = 30;
const ROW: u32 = (1 << ROW_BITS) - 1;

impl Cause {
    /// Kind and row in 32 bits, as the timeline keeps them.
    pub(crate) fn pack(self) -> u32 {
        match self {
            Cause::Unknown => 0,
            Cause::Switch(row) => 1 << ROW_BITS | row & ROW,
            Cause::Wake(row) => 2 << ROW_BITS | row & ROW,
            Cause::Interrupt(row) => 3 << ROW_BITS | row & ROW,
        }
    }

    pub(crate) fn unpack(packed: u32) -> Cause {
        match packed >> ROW_BITS {
            1 => Cause::Switch(packed & ROW),
            2 => Cause::Wake(packed & ROW),
            3 => Cause::Interrupt(packed & ROW),
            _ => Cause::Unknown,
        }
    }
}

/// An interval of one thread's life in one state: from `start` up to but without `end`; never
/// empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// When it begins, ns since the trace's start.
    pub start: u64,
    /// When the next one begins, or the thread's life ends, ns since the trace's start.
    pub end: u64,
    /// What the thread does.
    pub state: State,
    /// The event that began it.
    pub cause: Cause,
}

impl Interval {
    /// Its length, ns.
    pub fn duration(&self) -> u64 {
        self.end - self.start
    }

    /// The row of `wakes` that began it, if a wake did.
    pub fn wake(&self) -> Option<usize> {
        match self.cause {
            Cause::Wake(row) => Some(row as usize),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cause survives its packing, at both ends of the row range.
    #[test]
    fn packing_keeps_kind_and_row() {
        for row in [0, 1, MAX_ROWS as u32 - 1] {
            for cause in [
                Cause::Switch(row),
                Cause::Wake(row),
                Cause::Interrupt(row),
                Cause::Unknown,
            ] {
                assert_eq!(Cause::unpack(cause.pack()), cause);
            }
        }
    }

    /// `State::ALL` is indexed by the state's own number.
    #[test]
    fn states_are_in_order() {
        for (i, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, i);
        }
    }
}
