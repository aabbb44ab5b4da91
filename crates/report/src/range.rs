//! Where threads' time went within a range: by state, and their waits by what they waited for and
//! who ended them.

use crate::case::Case;
use crate::describe::CallInfo;
use crate::select::{Who, Window};
use hangdog_timeline::{Cause, State, Summary};
use hangdog_trace::ids::{NONE, Utid};
use hangdog_trace::words::{Context, Left};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// One thread's time within a range.
#[derive(Serialize)]
pub struct RangeAnswer<'a> {
    /// Whose.
    pub thread: Who<'a>,
    /// Since when, ns since the trace's start.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// Time by state, ns, in the order of `State::ALL`.
    pub states_ns: [u64; State::COUNT],
    /// How often it came on a CPU.
    pub switches: u64,
    /// Its waits, those that took most time first.
    pub waits: Vec<WaitRow<'a>>,
    /// Kinds of waits that are left out, because there are so many.
    pub left_out: usize,
}

/// All waits for one thing that were ended by one thread, device or timer.
#[derive(Serialize)]
pub struct WaitRow<'a> {
    /// What was waited for.
    pub what: String,
    /// Who made the thread runnable, if it was a thread.
    pub by: Option<Who<'a>>,
    /// What did so otherwise, in words; empty if it was a thread.
    pub by_other: &'static str,
    /// How many.
    pub count: u64,
    /// Their sum, ns.
    pub sum_ns: u64,
    /// The shortest, ns.
    pub min_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// Their standard deviation, ns.
    pub deviation_ns: u64,
    /// When the longest began, ns since the trace's start.
    pub longest_at_ns: u64,
}

/// So many kinds of waits are listed.
const MOST: usize = 200;

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct Key {
    call: i16,
    object: u64,
    left: u8,
    context: u8,
    waker: Utid,
}

#[derive(Default)]
struct Sum {
    count: u64,
    ns: u64,
    squares: f64,
    min: u64,
    max: u64,
    longest_at: u64,
    arg: u64,
}

/// What a thread did within a range.
pub fn range(case: &Case, thread: Utid, window: Window) -> RangeAnswer<'_> {
    let recording = &*case.recording;
    let (switches, wakes) = (&recording.switches, &recording.wakes);
    let intervals = recording.timeline.intervals(thread);
    let summary = Summary::of(intervals, window.from, window.to);
    let mut sums: HashMap<Key, Sum> = HashMap::new();
    let indexes = intervals.indexes(window.from, window.to);
    for (i, part) in indexes.zip(intervals.between(window.from, window.to)) {
        if part.state != State::Blocked {
            continue;
        }
        let wake = match intervals.get(i + 1).map(|next| next.cause) {
            Some(Cause::Wake(row)) => Some(row as usize),
            _ => None,
        };
        let (context, waker) = match wake {
            // A softirq that delivers what the thread on the CPU sends has that thread's call.
            Some(row) if is_threads(wakes.context[row], wakes.call[row]) => {
                (wakes.context[row], wakes.waker[row])
            }
            Some(row) => (wakes.context[row], NONE),
            None => (u8::MAX, NONE),
        };
        let row = match part.cause {
            Cause::Switch(row) => Some(row as usize),
            _ => None,
        };
        let key = Key {
            call: row.map_or(i16::MIN, |row| switches.call[row]),
            object: row.map_or(0, |row| switches.object[row]),
            left: row.map_or(u8::MAX, |row| switches.left[row]),
            context,
            waker,
        };
        let ns = part.duration();
        let sum = sums.entry(key).or_default();
        sum.count += 1;
        sum.ns += ns;
        sum.squares += (ns as f64).powi(2);
        if sum.count == 1 || ns < sum.min {
            sum.min = ns;
        }
        if ns > sum.max {
            (sum.max, sum.longest_at) = (ns, part.start);
            sum.arg = row.map_or(0, |row| switches.arg[row]);
        }
    }
    let mut sums: Vec<(Key, Sum)> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(key, sum)| (Reverse(sum.ns), sum.longest_at, key.object));
    let left_out = sums.len().saturating_sub(MOST);
    RangeAnswer {
        thread: Who::new(&recording.threads, thread),
        from_ns: window.from,
        to_ns: window.to,
        states_ns: summary.time,
        switches: summary.switches,
        waits: sums
            .into_iter()
            .take(MOST)
            .map(|(key, sum)| row(case, key, sum))
            .collect(),
        left_out,
    }
}

fn is_threads(context: u8, call: i16) -> bool {
    match Context::from(context) {
        Context::Task => true,
        Context::Softirq => call >= 0,
        _ => false,
    }
}

fn row(case: &Case, key: Key, sum: Sum) -> WaitRow<'_> {
    let mean = sum.ns as f64 / sum.count as f64;
    let variance = (sum.squares / sum.count as f64 - mean * mean).max(0.0);
    let what = match (key.call, Left::from(key.left)) {
        (i16::MIN, _) => "not known: it began before the trace, or was lost".into(),
        (_, Left::Stopped) => "stopped by a signal or a debugger".into(),
        (_, Left::Idle) => "nothing to do".into(),
        (call, _) => CallInfo::new(&case.calls, call, key.object, sum.arg).text(),
    };
    WaitRow {
        what,
        by: (key.waker != NONE).then(|| Who::new(&case.recording.threads, key.waker)),
        by_other: match (key.waker, key.context) {
            (NONE, u8::MAX) => "nobody",
            (NONE, context) => Context::from(context).text(),
            _ => "",
        },
        count: sum.count,
        sum_ns: sum.ns,
        min_ns: sum.min,
        max_ns: sum.max,
        deviation_ns: variance.sqrt() as u64,
        longest_at_ns: sum.longest_at,
    }
}
