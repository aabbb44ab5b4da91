//! Waits for a flag in memory, which no system call shows.
//!
//! A thread that waits for a flag looks at it again and again, by one instruction: it spins, yields or
//! naps in between. Where flags were watched, such a series of looks is a wait. It ends with the last
//! look, and what ended it is the write that this look saw and the one before did not. Of several
//! writes in between it is the first that gave those bits their value in which the last look differs
//! from all before it: a word may change for other reasons too.
//!
//! A thread may wait for the same flag again and again. Where it left its loop once it had seen another value, a
//! new series begins.
//!
//! Where looks came too often, they were not watched for a while (`Access::Paused`). If the series ends
//! there, or the flag was written meanwhile, so does the wait with the first write of another value; writes are
//! watched on.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use hangdog_timeline::{State, Timeline};
use hangdog_trace::Threads;
use hangdog_trace::ids::{NONE, Utid};
use hangdog_trace::tables::{FlagAccesses, Flags, Handoffs};
use hangdog_trace::words::{Access, HandoffKind, HandoffStep};

/// So many looks are a series.
const LOOKS: usize = 3;
/// A series goes on over a gap that is so many times as long as is usual in it.
const TIMES: u64 = 4;
/// Whatever is usual, a thread may do something else for so long between two looks, ns. Time in which it
/// is kept from a CPU does not count, as far as the kernel knows of it: a virtual machine may be held up
/// as a whole.
const LONGEST_GAP_NS: u64 = 500_000_000;
/// A thread that has seen another value, and does not look for so long, has left its loop, ns.
const LEFT_NS: u64 = 300_000;
/// A write may be noted so much later than a look that saw it, ns.
const LATE_NS: u64 = 50_000;

/// A thread waited for a flag until it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagWait {
    /// Who waited.
    pub thread: Utid,
    /// The first look, ns since the trace's start.
    pub from: u64,
    /// The last look.
    pub to: u64,
    /// How often it looked.
    pub looks: usize,
    /// The row of `flag_accesses` that is the write.
    pub write: usize,
    /// Who wrote; of a signal handler of the thread's own, who sent the signal, [`NONE`] where that is
    /// not known.
    pub writer: Utid,
    /// Whether a signal handler of its own wrote.
    pub by_handler: bool,
    /// How often the flag was written during the wait.
    writes: usize,
}

/// All such waits, by thread and time; those of a thread do not overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlagWaits(Vec<FlagWait>);

impl FlagWaits {
    pub(crate) fn new(
        flags: &Flags,
        accesses: &FlagAccesses,
        handoffs: &Handoffs,
        threads: &Threads,
        timeline: &Timeline,
    ) -> FlagWaits {
        // What processes share is one flag.
        let memory: HashMap<u32, u32> = (flags.flag.iter().copied())
            .zip(flags.memory.iter().copied())
            .collect();
        let mut rows: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (row, flag) in accesses.flag.iter().enumerate() {
            if let Some(&memory) = memory.get(flag) {
                rows.entry(memory).or_default().push(row);
            }
        }
        let signals = Signals { handoffs, threads };
        let mut found: Vec<FlagWait> = (rows.values())
            .flat_map(|rows| waits(accesses, rows, &signals, timeline))
            .collect();
        found.sort_by_key(|wait| (wait.thread, wait.from, wait.writes));
        // A loop that looks at several flags goes on by one of them: by that which changed least.
        let mut kept: Vec<FlagWait> = Vec::new();
        for wait in found {
            match kept.last_mut() {
                Some(last) if last.thread == wait.thread && wait.from < last.to => {
                    if wait.writes < last.writes {
                        *last = wait;
                    }
                }
                _ => kept.push(wait),
            }
        }
        FlagWaits(kept)
    }

    /// Those of a thread that lie in a window, or reach into it.
    pub(crate) fn of(&self, thread: Utid, window: Range<u64>) -> &[FlagWait] {
        let first =
            (self.0).partition_point(|wait| (wait.thread, wait.to) <= (thread, window.start));
        let rest = &self.0[first..];
        let end = rest.partition_point(|wait| (wait.thread, wait.from) < (thread, window.end));
        &rest[..end]
    }
}

/// Who sent signals.
struct Signals<'a> {
    handoffs: &'a Handoffs,
    threads: &'a Threads,
}

impl Signals<'_> {
    /// Who sent the last signal to a thread, or to its process, in that time.
    fn sender(&self, to: Utid, window: Range<u64>) -> Utid {
        let handoffs = self.handoffs;
        let process = self.threads.thread(to).upid;
        let first = handoffs.ts.partition_point(|&ts| ts < window.start);
        let end = handoffs.ts.partition_point(|&ts| ts < window.end);
        let is_it = |&row: &usize| {
            HandoffKind::from(handoffs.kind[row]) == HandoffKind::Signal
                && HandoffStep::from(handoffs.step[row]) == HandoffStep::Submitted
                && handoffs.other[row] != NONE
                && self.threads.thread(handoffs.other[row]).upid == process
        };
        let sent = (first..end).rev().find(is_it);
        sent.map_or(NONE, |row| handoffs.thread[row])
    }
}

/// The waits for one flag, whose `rows` these are.
fn waits(
    accesses: &FlagAccesses,
    rows: &[usize],
    signals: &Signals<'_>,
    timeline: &Timeline,
) -> Vec<FlagWait> {
    let access = |row: usize| Access::from(accesses.access[row]);
    let mut looks: BTreeMap<(Utid, u64), Vec<usize>> = BTreeMap::new();
    let (mut writes, mut pauses) = (Vec::new(), Vec::new());
    for &row in rows {
        match access(row) {
            Access::Read | Access::Write => {
                let by = (accesses.thread[row], accesses.instruction[row]);
                looks.entry(by).or_default().push(row);
                if access(row) == Access::Write {
                    writes.push(row);
                }
            }
            Access::Paused => pauses.push(accesses.ts[row]..u64::MAX),
            Access::Resumed => {
                if let Some(last) = pauses.last_mut() {
                    last.end = accesses.ts[row];
                }
            }
            Access::Unknown => {}
        }
    }
    let end = rows.last().map_or(0, |&row| accesses.ts[row]);
    let flag = OneFlag {
        accesses,
        timeline,
        writes,
        pauses,
        end,
    };
    let series = looks.into_values().flat_map(|looks| flag.series(&looks));
    series
        .filter_map(|series| flag.wait(&series, signals))
        .collect()
}

struct OneFlag<'a> {
    accesses: &'a FlagAccesses,
    timeline: &'a Timeline,
    /// Rows.
    writes: Vec<usize>,
    /// When looks were not watched.
    pauses: Vec<Range<u64>>,
    /// The last that was seen of it.
    end: u64,
}

impl OneFlag<'_> {
    fn ts(&self, row: usize) -> u64 {
        self.accesses.ts[row]
    }

    /// The looks of a thread by one instruction, cut where it did not look for long.
    fn series(&self, looks: &[usize]) -> Vec<Vec<usize>> {
        let mut gaps: Vec<u64> = (looks.windows(2))
            .map(|pair| self.ts(pair[1]).saturating_sub(self.ts(pair[0])))
            .collect();
        gaps.sort_unstable();
        let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
        let longest = LONGEST_GAP_NS.max(usual.saturating_mul(TIMES));
        let left = LEFT_NS.max(usual.saturating_mul(TIMES));
        let mut series: Vec<Vec<usize>> = Vec::new();
        for &look in looks {
            let same = series.last_mut().filter(|last| {
                let end = last[last.len() - 1];
                let is_over = self.has_ended(last, look, left) || self.ended_unseen(end, look);
                !is_over && self.goes_on(end, self.ts(look), longest)
            });
            match same {
                Some(last) => last.push(look),
                None => series.push(vec![look]),
            }
        }
        series
    }

    /// Whether the last look of a series saw another value than the one before, and the thread did not come back
    /// for the next for `left` ns.
    fn has_ended(&self, series: &[usize], next: usize, left: u64) -> bool {
        let values = &self.accesses.value;
        match series {
            [.., before, last] => {
                values[*before] != values[*last]
                    && self.seen(self.ts(*last)..self.ts(next).max(self.ts(*last))) > left
            }
            _ => false,
        }
    }

    /// Whether another thread gave the flag another value while looks were not watched, between two looks, and this
    /// one was at something else after that.
    fn ended_unseen(&self, last: usize, next: usize) -> bool {
        let (from, to) = (self.ts(last), self.ts(next));
        let mut pauses = self.pauses.iter();
        if !pauses.any(|pause| pause.start >= from && pause.start < to) {
            return false;
        }
        let (values, threads) = (&self.accesses.value, &self.accesses.thread);
        let first = self.writes.partition_point(|&row| self.ts(row) < from);
        let writes = self.writes[first..].iter();
        let mut between = writes.take_while(|&&row| self.ts(row) < to);
        let is_others =
            |&&row: &&usize| threads[row] != threads[last] && values[row] != values[last];
        let Some(&write) = between.find(is_others) else {
            return false;
        };
        let mut after = self.timeline.between(threads[last], self.ts(write), to);
        after.any(|it| it.state == State::Blocked && it.duration() >= LEFT_NS)
    }

    /// Whether no more than `longest` lies between a look and what came next.
    fn goes_on(&self, look: usize, next: u64, longest: u64) -> bool {
        let time = self.ts(look)..next.max(self.ts(look));
        let gap = self.seen(time.clone());
        if gap <= longest {
            return true;
        }
        let thread = self.accesses.thread[look];
        let wanted = (self.timeline.between(thread, time.start, time.end))
            .filter(|interval| interval.state.wants_cpu())
            .map(|interval| interval.duration());
        gap.saturating_sub(wanted.sum()) <= longest
    }

    /// How much of a time looks were watched.
    fn seen(&self, time: Range<u64>) -> u64 {
        let unseen = |pause: &Range<u64>| {
            pause
                .end
                .min(time.end)
                .saturating_sub(pause.start.max(time.start))
        };
        (time.end - time.start).saturating_sub(self.pauses.iter().map(unseen).sum())
    }

    /// When a wait began of which this is the first look. If looks were not watched right before, it is since when the
    /// thread has done nothing but run and nap, as it does between two looks.
    fn begin(&self, first: usize) -> u64 {
        let seen = self.ts(first);
        let thread = self.accesses.thread[first];
        let is_right_before = |pause: &&Range<u64>| {
            pause.end <= seen && seen.saturating_sub(pause.end) <= LEFT_NS.saturating_mul(TIMES)
        };
        let Some(pause) = self.pauses.iter().rev().find(is_right_before) else {
            return seen;
        };
        let before = self.timeline.between(thread, pause.start, seen);
        let stops = before.filter(|it| it.state == State::Blocked && it.duration() >= LEFT_NS);
        let alive = self.timeline.life(thread).start;
        stops
            .map(|it| it.end)
            .last()
            .unwrap_or(pause.start)
            .max(alive)
    }

    /// The wait that a series of looks is, if a write ended it.
    fn wait(&self, looks: &[usize], signals: &Signals<'_>) -> Option<FlagWait> {
        let (&first, &last) = looks.first().zip(looks.last())?;
        if looks.len() < LOOKS {
            return None;
        }
        let thread = self.accesses.thread[first];
        let values = &self.accesses.value;
        // A look's value is read right behind it: of one that came just before the write it may be the new one, and
        // then the thread looked once more.
        let before_at = match looks {
            [.., older, raced, last]
                if values[*raced] == values[*last] && values[*older] != values[*last] =>
            {
                looks.len() - 3
            }
            _ => looks.len() - 2,
        };
        let before = looks[before_at];
        // What changed before, whether the thread saw it or not, does not decide.
        let seen = looks[..=before_at].iter();
        let earlier = self
            .writes
            .iter()
            .take_while(|&&row| self.ts(row) < self.ts(before));
        let changes =
            (seen.chain(earlier)).fold(0, |bits, &row| bits | (values[row] ^ values[first]));
        let deciding = (values[last] ^ values[first]) & !changes;
        let window = self.ts(before)..self.ts(last) + LATE_NS;
        let pause = (self.pauses.iter())
            .find(|pause| pause.start >= self.ts(last))
            .filter(|pause| self.goes_on(last, pause.start, LONGEST_GAP_NS));
        let is_look = |row: usize| looks.binary_search(&row).is_ok();
        let within = |window: Range<u64>| {
            let first = self
                .writes
                .partition_point(|&row| self.ts(row) < window.start);
            let rest = self.writes[first..].iter().copied();
            rest.take_while(move |&row| self.ts(row) < window.end)
                .filter(move |&row| !is_look(row))
        };
        let write = if values[last] != values[before] {
            let decides = |&row: &usize| values[row] & deciding == values[last] & deciding;
            let first = (deciding != 0).then(|| within(window.clone()).find(decides));
            first.flatten().or_else(|| within(window.clone()).last())
        } else if let Some(pause) = pause {
            // It went on while nobody looked.
            let unseen = self.ts(last)..pause.end.min(self.end + 1);
            within(unseen).find(|&row| values[row] != values[last])
        } else {
            // One that tries to take the flag leaves in it what it would leave in any case.
            let takes = Access::from(self.accesses.access[last]) == Access::Write;
            takes.then(|| within(window.clone()).last()).flatten()
        }?;
        let from = self.begin(first);
        let to = self.ts(last).max(self.ts(write));
        let by_handler = self.accesses.thread[write] == thread;
        let writer = match by_handler {
            true => signals.sender(thread, self.ts(before)..self.ts(write)),
            false => self.accesses.thread[write],
        };
        Some(FlagWait {
            thread,
            from,
            to,
            looks: looks.len(),
            write,
            writer,
            by_handler,
            writes: within(from..to).count(),
        })
    }
}
