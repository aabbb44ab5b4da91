//! Processes that hand something to and fro: a thread wakes one of another process, waits, and is woken by it.
//!
//! On a machine that is short of memory each of them may have been pushed out meanwhile. So an exchange costs what
//! the other one pages in until it answers, and what the first one has to page in again once it goes on.

use super::PAGE;
use super::waits::{Counted, Page, PageWait};
use crate::case::Case;
use crate::select::Window;
use hangdog_timeline::{Cause, State};
use hangdog_trace::ids::{IDLE, Upid, Utid};
use hangdog_trace::words::Context;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// So many pairs are told.
const MOST: usize = 20;

/// What two processes exchanged, as the first of them waited for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// The process that asked and waited.
    pub process: String,
    /// Its number.
    pub pid: u32,
    /// The process that answered.
    pub with: String,
    /// Its number.
    pub with_pid: u32,
    /// How often.
    pub count: u64,
    /// From the question to the answer, all together, ns.
    pub sum_ns: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// How much of that the other process waited for pages, ns.
    pub paging_there_ns: u64,
    /// How long the first one waited, behind the answers and before its next question, for pages that had been in
    /// memory before, ns.
    pub paging_back_ns: u64,
    /// How much that was, bytes.
    pub paged_back_bytes: u64,
}

/// Waits for pages in the order of time.
#[derive(Default)]
struct Waits {
    /// From, to, and whether the page had been in memory before; those that do not overlap another.
    spans: Vec<(u64, u64, bool)>,
}

impl Waits {
    /// How long within a time, and how many; all, or those for pages that had been in memory before.
    fn within(&self, from: u64, to: u64, only_again: bool) -> (u64, u64) {
        let first = self.spans.partition_point(|&(_, end, _)| end <= from);
        let spans = self.spans[first..].iter().take_while(|span| span.0 < to);
        let chosen = spans.filter(|span| span.2 || !only_again);
        chosen.fold((0, 0), |(ns, count), &(start, end, _)| {
            (ns + end.min(to).saturating_sub(start.max(from)), count + 1)
        })
    }
}

/// The exchanges that chosen threads began within a window, those that paged longest first. `waits` are of all
/// threads.
pub(super) fn exchanges(
    case: &Case,
    waits: &[PageWait],
    window: Window,
    is_chosen: &dyn Fn(Utid) -> bool,
) -> Vec<Exchange> {
    let recording = &case.recording;
    let (threads, wakes) = (&recording.threads, &recording.wakes);
    let process = |thread: Utid| threads.known(thread).map(|thread| thread.upid);
    let is_program = |thread: Utid| {
        let known = threads.known(thread).filter(|_| thread != IDLE);
        known.is_some_and(|thread| !thread.is_kernel())
    };
    // An interrupt wakes threads while it has the CPU of any; a softirq also delivers what that one sends.
    let is_by_waker =
        |row: usize| Context::from(wakes.context[row]) == Context::Task || wakes.call[row] >= 0;
    let mut woke: HashMap<Utid, Vec<(u64, Upid)>> = HashMap::new();
    for row in 0..wakes.len() {
        let (waker, woken) = (wakes.waker[row], process(wakes.wakee[row]));
        let in_window = (window.from..window.to).contains(&wakes.ts[row]);
        if let Some(woken) = woken.filter(|&woken| Some(woken) != process(waker))
            && in_window
            // Who starts a process asks it for nothing.
            && !wakes.new[row]
            && is_by_waker(row)
            && is_chosen(waker)
            && is_program(waker)
        {
            woke.entry(waker).or_default().push((wakes.ts[row], woken));
        }
    }
    let (of_process, of_thread) = by_whom(waits, &process);
    let mut pairs: BTreeMap<(Upid, Upid), Exchange> = BTreeMap::new();
    for (&thread, asked) in &woke {
        let own = of_thread.get(&thread);
        let mut answers: Vec<(u64, u64, Upid)> = Vec::new();
        // When it last woke a thread of each process.
        let mut latest: HashMap<Upid, u64> = HashMap::new();
        let mut asked = asked.iter().peekable();
        let mut parts = (recording.timeline)
            .between(thread, window.from, window.to)
            .peekable();
        while let Some(part) = parts.next() {
            let Some(Cause::Wake(row)) = parts.peek().map(|next| next.cause) else {
                continue;
            };
            let answerer = wakes.waker[row as usize];
            let is_answer = part.state == State::Blocked && is_by_waker(row as usize);
            let Some(with) = process(answerer).filter(|_| is_answer) else {
                continue;
            };
            let since = answers.last().map_or(window.from, |&(_, end, _)| end);
            while let Some(&(ts, whom)) = asked.next_if(|&&(ts, _)| ts <= part.start) {
                latest.insert(whom, ts);
            }
            let question = latest.get(&with).filter(|&&ts| ts >= since);
            if let Some(&ts) = question.filter(|_| is_program(answerer)) {
                answers.push((ts, part.end, with));
            }
        }
        for (at, &(from, to, with)) in answers.iter().enumerate() {
            let next = answers.get(at + 1).map_or(window.to, |&(next, ..)| next);
            let Some(whose) = process(thread) else {
                continue;
            };
            let pair = pairs.entry((whose, with)).or_insert_with(|| {
                let (own, other) = (threads.process(whose), threads.process(with));
                Exchange {
                    process: own.name.clone(),
                    pid: own.pid,
                    with: other.name.clone(),
                    with_pid: other.pid,
                    count: 0,
                    sum_ns: 0,
                    longest_ns: 0,
                    paging_there_ns: 0,
                    paging_back_ns: 0,
                    paged_back_bytes: 0,
                }
            });
            let there = of_process.get(&with);
            let (back_ns, back) = own.map_or((0, 0), |own| own.within(to, next, true));
            pair.count += 1;
            pair.sum_ns += to - from;
            pair.longest_ns = pair.longest_ns.max(to - from);
            pair.paging_there_ns += there.map_or(0, |there| there.within(from, to, false).0);
            pair.paging_back_ns += back_ns;
            pair.paged_back_bytes += back * PAGE;
        }
    }
    let mut pairs: Vec<Exchange> = pairs.into_values().collect();
    pairs.sort_by_key(|pair| Reverse((pair.paging_there_ns + pair.paging_back_ns, pair.sum_ns)));
    pairs.truncate(MOST);
    pairs
}

/// The waits of each process and of each thread.
fn by_whom(
    waits: &[PageWait],
    process: &dyn Fn(Utid) -> Option<Upid>,
) -> (HashMap<Upid, Waits>, HashMap<Utid, Waits>) {
    let mut order: Vec<&PageWait> = waits.iter().filter(|wait| wait.waits()).collect();
    order.sort_unstable_by_key(|wait| (wait.start, wait.thread));
    let mut fetched: HashSet<Page> = HashSet::new();
    let mut of_process: HashMap<Upid, Waits> = HashMap::new();
    let mut of_thread: HashMap<Utid, Waits> = HashMap::new();
    for wait in order {
        let is_again = wait.counted == Counted::Major && !fetched.insert(wait.page);
        let all = (process(wait.thread).map(|of| of_process.entry(of).or_default()))
            .into_iter()
            .chain([of_thread.entry(wait.thread).or_default()]);
        for waits in all {
            let until = waits.spans.last().map_or(0, |&(_, end, _)| end);
            if wait.end() > until {
                let from = wait.start.max(until);
                waits.spans.push((from, wait.end(), is_again));
            }
        }
    }
    (of_process, of_thread)
}
