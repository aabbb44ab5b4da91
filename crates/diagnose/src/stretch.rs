//! A thread's time as waits and what lies between them.
//!
//! A thread that is woken, finds that what it waits for has not come, and waits on at the same
//! place has not stopped waiting: such a spurious wake must neither end the wait nor be its cause.
//! So waits at one place are joined over what lies between them, where that is so short that it
//! can only have been a look, and where the thread caused nothing by it. Its last wake is then the
//! one that counts.
//!
//! A loop that does little in each turn looks the same; one turn of it that took much longer than
//! the others is a wait of its own. See `is_outlier`.

use hangdog_graph::belief::InVain;
use hangdog_graph::owed::is_open;
use hangdog_graph::wake::makes_room;
use hangdog_graph::{Evidence, Mark, Wait, WaitKind};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::calls::Call;
use hangdog_trace::ids::Utid;
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::words::{Context, Left};
use std::ops::Range;

/// A look at whether something has come takes no longer than this on a CPU.
const LOOK_NS: u64 = 300_000;
/// Nor, after a long wait, than this part of it.
const LOOK_PART: u64 = 400;
/// Where there were many looks before, one of them may have been held up, by the machine rather
/// than by what the thread did: then it takes no longer than this.
const LONGEST_LOOK_NS: u64 = 5_000_000;
/// One that is runnable for longer than this, and for several times as long as it waited before, is
/// kept from its look rather than waiting.
const LONGEST_WANT_NS: u64 = 200_000_000;
const WANTS_MORE: u64 = 4;
/// To look, a thread may have to get a lock back first, and whoever has it may be off its CPU.
/// Where the stack does not tell that it is that lock, it is taken for it up to this long.
const RELOCK_NS: u64 = 10_000_000;

/// A loop that waits may sleep between its waits for so long, and for this part of one.
const LONGEST_PAUSE_NS: u64 = 2_000_000;
const PAUSE_PART: u64 = 100;

/// A wait that may go on over what the thread sent in between is at least so long, ns.
const LONG_NS: u64 = 100_000_000;

/// A condition variable has several futexes, which it uses in turn; it is no larger than this.
const CONDITION_BYTES: u64 = 48;

/// A part of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stretch {
    /// One state other than blocked.
    Busy(Interval),
    /// A wait.
    Waiting(Waiting),
}

/// A wait, perhaps with looks in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Since when, and until when within the window that was asked for.
    pub from: u64,
    pub to: u64,
    /// What it waits for, as its last part has it; the time is that of the whole.
    pub wait: Wait,
    /// The row of `wakes` that ended it.
    pub wake: Option<usize>,
    /// Of how many waits it consists.
    pub parts: usize,
    /// How often it was woken by who made some room for what it writes.
    pub made_room: usize,
    /// How often the one who ended it had woken it spuriously before.
    pub cried_wolf: usize,
    /// How often it looked because a timeout ended its wait.
    pub timed_out: usize,
}

impl Waiting {
    /// How often it was woken by another than its own timeout, got nothing, and waited on.
    pub(crate) fn spurious(&self) -> usize {
        (self.parts - 1).saturating_sub(self.timed_out + self.made_room)
    }

    /// In words, how often it was taken up again: after its own timeout, for more room, or after a wake by another.
    pub(crate) fn repeats(&self) -> Option<String> {
        let spurious = self.spurious();
        let counted = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            count => Some(format!("{count} {what}s")),
        };
        let counted = [
            counted(self.parts - 1 - spurious - self.made_room, "timeout"),
            counted(self.made_room, "partial write"),
            counted(spurious, "spurious wakeup"),
        ];
        let texts: Vec<String> = counted.into_iter().flatten().collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    /// The wakes that did not end it.
    pub(crate) fn in_vain(&self) -> InVain {
        InVain {
            by_last: self.cried_wolf,
            timed_out: self.timed_out,
        }
    }
}

/// Calls `see` with every interval of `thread` in `window`, in order and without gap. What lies
/// between the parts of a joined wait is not told apart: the timeline tells in which of it the
/// thread was blocked.
pub(crate) fn each_stretch(
    evidence: &Evidence<'_>,
    thread: Utid,
    window: Range<u64>,
    mut see: impl FnMut(Stretch),
) {
    let intervals = evidence.timeline.intervals(thread);
    let own = evidence.own_wakes(thread);
    let mut joiner = Joiner {
        evidence,
        thread,
        own: &own[own.partition_point(|&row| evidence.wakes.ts[row as usize] < window.start)..],
        parts: Vec::new(),
        looks: Vec::new(),
        on_cpu: 0,
    };
    for at in intervals.indexes(window.start, window.end) {
        let Some(whole) = intervals.get(at) else {
            break;
        };
        let clipped = Interval {
            start: whole.start.max(window.start),
            end: whole.end.min(window.end),
            ..whole
        };
        if whole.state == State::Blocked {
            let next = intervals.get(at + 1);
            joiner.blocked(
                Part {
                    clipped,
                    whole,
                    next,
                },
                &mut see,
            );
        } else {
            joiner.busy(clipped, &mut see);
        }
    }
    joiner.flush(&mut see);
}

#[derive(Clone, Copy)]
struct Part {
    clipped: Interval,
    whole: Interval,
    next: Option<Interval>,
}

struct Joiner<'a, 'e> {
    evidence: &'a Evidence<'e>,
    thread: Utid,
    /// The wakes that the thread made, those apart that are passed.
    own: &'a [u32],
    /// Waits at one place.
    parts: Vec<Part>,
    /// What lay between and behind them, each with the part that it follows.
    looks: Vec<(usize, Stretch)>,
    /// How long it ran since the last of the waits, ns.
    on_cpu: u64,
}

impl Joiner<'_, '_> {
    fn busy(&mut self, interval: Interval, see: &mut impl FnMut(Stretch)) {
        if self.parts.is_empty() {
            return see(Stretch::Busy(interval));
        }
        let behind = self.parts.len() - 1;
        self.looks.push((behind, Stretch::Busy(interval)));
        let waited = self.parts.last().map_or(0, |part| part.clipped.duration());
        if interval.state.wants_cpu()
            && interval.duration() > LONGEST_WANT_NS.max(waited.saturating_mul(WANTS_MORE))
        {
            return self.flush(see);
        }
        if interval.state == State::Running {
            self.on_cpu += interval.duration();
        }
        let look = LOOK_NS.saturating_mul(self.parts.len() as u64);
        let look = look.max(waited / LOOK_PART);
        if self.on_cpu > look.min(LONGEST_LOOK_NS) {
            self.flush(see);
        }
    }

    fn blocked(&mut self, part: Part, see: &mut impl FnMut(Stretch)) {
        if let Some(last) = self.parts.last().copied()
            && !self.goes_on(&last, &part)
        {
            if self.may_be_relock(&part) || self.is_pause(&last, &part) {
                let within = self.waiting(&part, part.clipped.start, 1);
                return self.looks.push((self.parts.len() - 1, within));
            }
            self.flush(see);
        }
        self.parts.push(part);
        self.on_cpu = 0;
    }

    /// Whether this may be the lock that goes with a condition, which a thread that was woken in
    /// vain must get before it looks.
    fn may_be_relock(&self, part: &Part) -> bool {
        let wait = Wait::new(self.evidence, self.thread, &part.whole);
        let stack = wait.user_stack(self.evidence);
        wait.kind == WaitKind::Lock
            && (part.whole.duration() <= RELOCK_NS
                || self.evidence.shows(stack, Mark::ConditionWait))
    }

    /// Whether this is a sleep of no time, by which a loop that waits lets others run between two looks.
    fn is_pause(&self, last: &Part, part: &Part) -> bool {
        let wait = Wait::new(self.evidence, self.thread, &part.whole);
        wait.kind == WaitKind::Sleep
            && part.whole.duration() <= last.whole.duration() / PAUSE_PART
            && part.whole.duration() <= LONGEST_PAUSE_NS
    }

    /// Whether `part` is the same wait as `last`, taken up again after a look.
    fn goes_on(&mut self, last: &Part, part: &Part) -> bool {
        let (Cause::Switch(before), Cause::Switch(now)) = (last.whole.cause, part.whole.cause)
        else {
            return false;
        };
        let (before, now) = (before as usize, now as usize);
        let object = |row: usize| Object(self.evidence.switches.object[row]);
        let is_poll =
            |row: usize| self.evidence.call(self.evidence.switches.call[row]) == Call::Poll;
        let same_object = match (object(before), object(now)) {
            (a, b) if a.kind() == ObjectKind::Futex && b.kind() == ObjectKind::Futex => {
                a.value().abs_diff(b.value()) < CONDITION_BYTES
            }
            // Of several descriptors the one that counts is known only from some time on.
            (a, b) => a == b || is_poll(before) && (a.is_none() || b.is_none()),
        };
        let is_stopped = |row: usize| Left::from(self.evidence.switches.left[row]) == Left::Stopped;
        // In one page fault the kernel may wait for a limit to be raised, and then for the disk.
        let (evidence, thread) = (self.evidence, self.thread);
        let gate = |part: &Part| Wait::new(evidence, thread, &part.whole).gate(evidence);
        let kernel_stacks = &evidence.switches.kernel_stack;
        // The cheap questions first: most waits of a busy thread end here.
        same_object
            && is_stopped(before) == is_stopped(now)
            && self.evidence.may_be_one_place(before, now)
            && (self.caused_nothing(last.whole.end, part.whole.start)
                || self.is_one_request(last, before)
                || self.timed_out(last, before))
            && (kernel_stacks[before] == kernel_stacks[now] || gate(last) == gate(part))
            && !self.has_got_it(last, before, part.whole.start)
    }

    /// Whether another thread gave a semaphore to one that waited for it, or the network brought
    /// something by the one connection that was waited for, or by one of several that was then read,
    /// before the thread waited on at `to`.
    fn has_got_it(&self, last: &Part, row: usize, to: u64) -> bool {
        let stack = self.evidence.switches.user_stack[row];
        let object = Object(self.evidence.switches.object[row]);
        if object.is_none() {
            let read = self.evidence.received(self.thread, last.whole.end, to);
            if read.is_some_and(|read| read.kind() == ObjectKind::Inet) {
                return true;
            }
        }
        if object.kind() == ObjectKind::Inet {
            let wake = last
                .next
                .and_then(|next| wake_of(self.evidence, self.thread, &next));
            return wake.is_some_and(|row| self.evidence.is_by_network(row));
        }
        let wake = || wake_of(self.evidence, self.thread, &last.next?);
        let is_task = |row: usize| Context::from(self.evidence.wakes.context[row]) == Context::Task;
        self.evidence.shows(stack, Mark::Semaphore) && wake().is_some_and(is_task)
    }

    /// Whether a function that asks and waits for the answer was not done after a long wait.
    fn is_one_request(&self, last: &Part, row: usize) -> bool {
        let stack = self.evidence.switches.user_stack[row];
        last.whole.duration() >= LONG_NS && self.evidence.shows(stack, Mark::Asks)
    }

    /// Whether only the timeout ended a long wait for one pipe or connection: what the thread then sends, as that
    /// it is still there, does not end what it waits for.
    fn timed_out(&self, last: &Part, row: usize) -> bool {
        let (call, object) = (
            self.evidence.call(self.evidence.switches.call[row]),
            Object(self.evidence.switches.object[row]),
        );
        let wake = || wake_of(self.evidence, self.thread, &last.next?);
        // An event loop that nobody owes anything to had a time of its own to wait for.
        let is_asked = || {
            let wait = Wait::new(self.evidence, self.thread, &last.whole);
            !wait.by_epoll(self.evidence) || is_open(self.evidence, object, last.whole.end)
        };
        last.whole.duration() >= LONG_NS
            && is_asked()
            && call == Call::Poll
            && !matches!(object.kind(), ObjectKind::None | ObjectKind::Epoll)
            && wake().is_some_and(|row| Context::from(self.evidence.wakes.context[row]).is_timer())
    }

    /// Whether the thread sent nothing to another and woke nobody in that time, the giving back of
    /// locks apart.
    fn caused_nothing(&mut self, from: u64, to: u64) -> bool {
        let wakes = self.evidence.wakes;
        while let Some((&first, rest)) = self.own.split_first()
            && wakes.ts[first as usize] < from
        {
            self.own = rest;
        }
        let mut caused = self.own.iter().map(|&row| row as usize);
        let mut caused = caused.by_ref().take_while(|&row| wakes.ts[row] < to);
        caused.all(|row| {
            self.evidence.shows(wakes.user_stack[row], Mark::Unlock) || self.is_of_room(row)
        }) && !self.evidence.has_sent(self.thread, from, to)
    }

    /// Whether a wake only tells that a socket has room again, as it was read from, and the one who is woken waits
    /// for something to come by it, not for room.
    fn is_of_room(&self, row: usize) -> bool {
        let (evidence, wakes) = (self.evidence, self.evidence.wakes);
        let by_reading = matches!(evidence.call(wakes.call[row]), Call::Read | Call::Receive);
        let is_socket = Object(wakes.object[row]).kind() == ObjectKind::Unix;
        let reads = || {
            let there = wait_before(evidence, wakes.wakee[row], wakes.ts[row]);
            there.is_some_and(|there| there.kind == WaitKind::Message && !there.writes(evidence))
        };
        by_reading && is_socket && reads()
    }

    fn flush(&mut self, see: &mut impl FnMut(Stretch)) {
        let (Some(first), Some(last)) = (self.parts.first(), self.parts.last()) else {
            return;
        };
        let from = first.clipped.start;
        if self.parts.len() == 1 || self.has_outlier() && !self.awaits_one_child(last) {
            let mut looks = self.looks.iter().peekable();
            for (at, part) in self.parts.iter().enumerate() {
                see(self.waiting(part, part.clipped.start, 1));
                while let Some((_, look)) = looks.next_if(|(behind, _)| *behind == at) {
                    see(*look);
                }
            }
        } else {
            see(self.waiting(last, from, self.parts.len()));
            let behind = self.parts.len() - 1;
            self.looks
                .iter()
                .filter(|(part, _)| *part == behind)
                .for_each(|(_, look)| see(*look));
        }
        self.parts.clear();
        self.looks.clear();
    }

    fn waiting(&self, last: &Part, from: u64, parts: usize) -> Stretch {
        let mut wait = Wait::new(self.evidence, self.thread, &last.whole);
        if parts > 1 {
            wait.start = from;
        }
        let wake_after = |part: &Part| wake_of(self.evidence, self.thread, &part.next?);
        let writes = wait.writes(self.evidence);
        let gives_room = |part: &Part| match part.whole.cause {
            Cause::Switch(row) if writes => {
                wake_after(part).is_some_and(|wake| makes_room(self.evidence, row as usize, wake))
            }
            _ => false,
        };
        // Within the kernel each wake brings the call on: who made the last one makes the next.
        let wakes = &self.evidence.wakes;
        let is_threads = |&row: &usize| {
            let waker = self.evidence.threads.known(wakes.waker[row]);
            let is_program = waker.is_some_and(|waker| !waker.is_kernel());
            is_program && Context::from(wakes.context[row]) == Context::Task
        };
        let before = || {
            let last = self.parts[..parts - 1].iter().rev().find_map(wake_after);
            last.filter(is_threads)
        };
        let wake = wake_after(last).or_else(|| match wait.kind {
            WaitKind::Kernel => before(),
            _ => None,
        });
        // The idle task stands for whatever interrupts it: a timer says nothing of what the network brought.
        let wakes = self.evidence.wakes;
        let waker = |row: usize| (wakes.waker[row], wakes.context[row], wakes.vector[row]);
        let cried_wolf = match (wake, parts) {
            (None, _) | (_, 1) => 0,
            (Some(wake), _) => self.parts[..parts - 1]
                .iter()
                .filter(|part| !gives_room(part))
                .filter_map(wake_after)
                .filter(|&row| waker(row) == waker(wake))
                .count(),
        };
        let by_timer = |&row: &usize| Context::from(self.evidence.wakes.context[row]).is_timer();
        let timed_out = match parts {
            1 => 0,
            _ => {
                let wakes = self.parts.iter().filter_map(wake_after);
                wakes.filter(by_timer).count()
            }
        };
        let made_room = match parts {
            1 => 0,
            _ => self.parts[..parts - 1]
                .iter()
                .filter(|part| gives_room(part))
                .count(),
        };
        Stretch::Waiting(Waiting {
            timed_out,
            made_room,
            from,
            to: last.clipped.end,
            wait,
            wake,
            parts,
            cried_wolf,
        })
    }

    /// Whether one of the parts took much longer than all others together, or than others of a stream: a turn of
    /// a loop that stands out, not a wait with looks in between.
    fn has_outlier(&self) -> bool {
        const TIMES: u64 = 5;
        let mut lengths: Vec<u64> = self
            .parts
            .iter()
            .map(|part| part.whole.duration())
            .collect();
        lengths.sort_unstable();
        let total: u64 = lengths.iter().sum();
        let longest = lengths.last().copied().unwrap_or(0);
        longest >= lengths[lengths.len() / 2].saturating_mul(TIMES)
            && (longest.saturating_mul(2) >= total || self.is_stream())
    }

    /// Whether it waits for one child, and looked because others had ended.
    fn awaits_one_child(&self, last: &Part) -> bool {
        let wait = Wait::new(self.evidence, self.thread, &last.whole);
        let stack = wait.user_stack(self.evidence);
        wait.kind == WaitKind::Child && self.evidence.shows(stack, Mark::AwaitsOneChild)
    }

    /// Whether nearly each look found something: what comes in pieces, one after the other.
    fn is_stream(&self) -> bool {
        const LEAST: usize = 8;
        let found = self.parts.windows(2).filter(|pair| {
            let (from, to) = (pair[0].whole.end, pair[1].whole.start);
            self.evidence.received(self.thread, from, to).is_some()
        });
        self.parts.len() >= LEAST && found.count() * 4 >= (self.parts.len() - 1) * 3
    }
}

/// The wake that a runnable interval began with; where the thread ran at once, the wake of that
/// very moment.
pub(crate) fn wake_of(evidence: &Evidence<'_>, thread: Utid, next: &Interval) -> Option<usize> {
    next.wake().or_else(|| {
        let wakes = evidence.wakes;
        let first = wakes.ts.partition_point(|&ts| ts < next.start);
        (first..wakes.len())
            .take_while(|&row| wakes.ts[row] == next.start)
            .find(|&row| wakes.wakee[row] == thread)
    })
}

/// The wait that a thread is in right before a moment.
pub(crate) fn wait_before(evidence: &Evidence<'_>, thread: Utid, moment: u64) -> Option<Wait> {
    let intervals = evidence.timeline.intervals(thread);
    let interval = intervals.get(intervals.index_at(moment.saturating_sub(1))?)?;
    (interval.state == State::Blocked).then(|| Wait::new(evidence, thread, &interval))
}
