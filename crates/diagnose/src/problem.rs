//! Which stretches of which threads took too long, found without being told.
//!
//! Three things can take long: a wait, a computation, and the want of a CPU; and so can many small
//! waits for the same thing that add up. Each thread's time is searched for stretches of them. What a stretch of its kind usually takes, at the same place of
//! the same thread, is subtracted: a loop that sleeps 10 ms every time has no problem when it
//! sleeps 10 ms. What remains is weighted by how likely it is that somebody waited for it: a
//! program's main thread stands for its user; a worker that waits for work does what it is for.

use hangdog_graph::evidence::Site;
use hangdog_graph::{Evidence, Wait, WaitKind};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::Thread;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{NONE, Upid, Utid};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

use crate::stretch::{Stretch, Waiting, each_stretch};

/// A stretch of a thread's time that took too long.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Whose.
    pub thread: Utid,
    /// When, ns since the trace's start.
    pub window: Range<u64>,
    /// How much longer than usual, ns, weighted by whether somebody waited for it.
    pub score: f64,
}

impl Problem {
    /// How long it took, ns.
    pub fn duration(&self) -> u64 {
        self.window.end - self.window.start
    }
}

/// Shorter ones are not looked at.
const SHORTEST_NS: u64 = 1_000_000;
/// So many of a thread are kept.
const MOST_OF_A_THREAD: usize = 8;
/// So many are reported.
const MOST: usize = 20;

/// The problems of a trace, worst first. `command_tid` is the tid of the recorded command.
pub fn find(evidence: &Evidence<'_>, command_tid: Option<u32>) -> Vec<Problem> {
    let family = Family::new(evidence, command_tid);
    let threads: Vec<Utid> = evidence
        .timeline
        .threads()
        .filter(|&thread| {
            evidence
                .threads
                .known(thread)
                .is_some_and(|known| !known.is_kernel())
        })
        .collect();
    let mut problems: Vec<Problem> = threads
        .into_par_iter()
        .flat_map_iter(|thread| of_thread(evidence, &family, thread))
        .collect();
    problems.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then(a.window.start.cmp(&b.window.start))
            .then(a.thread.cmp(&b.thread))
    });
    problems.truncate(MOST);
    problems
}

/// The processes that a recorded command consists of.
struct Family {
    /// The main threads that stand for the user: the command's, and, where that does nothing but
    /// wait for its children, as a shell does, theirs.
    first: Vec<Utid>,
    members: Vec<Upid>,
}

impl Family {
    fn new(evidence: &Evidence<'_>, command_tid: Option<u32>) -> Family {
        let is_command = |thread: &&Thread| Some(thread.tid) == command_tid && thread.is_main();
        let command = evidence.threads.iter().find(is_command);
        let mut first: Vec<Utid> = command.map(|thread| thread.utid).into_iter().collect();
        let mut members: Vec<Upid> = command.map(|thread| thread.upid).into_iter().collect();
        let mut at = 0;
        while let Some(&parent) = first.get(at) {
            at += 1;
            if !only_waits_for_children(evidence, parent) {
                continue;
            }
            let process = evidence.threads.thread(parent).upid;
            let children = evidence
                .threads
                .processes()
                .filter(|child| child.parent == process)
                .filter_map(|child| {
                    let is_main = |&&thread: &&Utid| evidence.threads.thread(thread).is_main();
                    child.threads.iter().find(is_main)
                });
            for &child in children {
                // Parents can form a circle in a damaged trace.
                if !first.contains(&child) {
                    first.push(child);
                }
            }
        }
        // Children come after their parents in the order of ids.
        for process in evidence.threads.processes() {
            if process.parent != NONE && members.contains(&process.parent) {
                members.push(process.upid);
            }
        }
        Family { first, members }
    }

    /// How likely it is that somebody waits for what this thread does.
    fn weight(&self, evidence: &Evidence<'_>, thread: Utid, doing: Doing) -> f64 {
        let known = evidence.threads.thread(thread);
        let waiting = matches!(doing, Doing::Waiting(_));
        if !self.first.is_empty() {
            return match (
                self.first.contains(&thread),
                self.members.contains(&known.upid),
            ) {
                (true, _) if self.first.first() != Some(&thread) => 0.9,
                (true, _) => match doing {
                    // An event loop that waits for its user is not known from one that does not.
                    Doing::Waiting(WaitKind::Poll | WaitKind::Device) => 0.5,
                    _ => 1.0,
                },
                (_, true) if waiting && known.is_main() => 0.1,
                (_, true) if waiting => 0.05,
                (_, true) => 0.3,
                _ => 0.02,
            };
        }
        let habitual = matches!(
            doing,
            Doing::Waiting(
                WaitKind::Poll
                    | WaitKind::Device
                    | WaitKind::Sleep
                    | WaitKind::Timer
                    | WaitKind::Child
                    | WaitKind::Message
                    | WaitKind::Unknown
                    | WaitKind::Stopped
            )
        );
        match (known.is_main(), habitual, doing) {
            (_, true, _) => 0.05,
            (true, ..) => 1.0,
            (false, _, Doing::Waiting(WaitKind::Condition)) => 0.05,
            (false, ..) => 0.3,
        }
    }
}

/// A thread's life without a wait in front of it of which the trace saw no beginning: that of a
/// command for its recording to begin, or of a thread that was there before.
fn seen_life(evidence: &Evidence<'_>, thread: Utid) -> Range<u64> {
    let life = evidence.timeline.life(thread);
    match evidence.timeline.intervals(thread).get(0) {
        Some(first) if first.state == State::Blocked && first.cause == Cause::Unknown => {
            first.end..life.end
        }
        _ => life,
    }
}

/// Whether a thread waits for children for nearly all of its life.
fn only_waits_for_children(evidence: &Evidence<'_>, thread: Utid) -> bool {
    const NEARLY_ALL: f64 = 0.8;
    let life = seen_life(evidence, thread);
    let waited: u64 = evidence
        .timeline
        .intervals(thread)
        .iter()
        .filter(|interval| interval.state == State::Blocked)
        .filter(|interval| match interval.cause {
            Cause::Switch(row) => {
                evidence.call(evidence.switches.call[row as usize]) == Call::WaitChild
            }
            _ => false,
        })
        .map(|interval| interval.duration())
        .sum();
    waited as f64 >= NEARLY_ALL * (life.end - life.start) as f64 && waited > 0
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Doing {
    Waiting(WaitKind),
    Busy,
}

struct Candidate {
    window: Range<u64>,
    doing: Doing,
    /// Where waits of the same kind are counted.
    site: Option<Site>,
    wait: Option<Wait>,
}

fn of_thread(evidence: &Evidence<'_>, family: &Family, thread: Utid) -> Vec<Problem> {
    let life = seen_life(evidence, thread);
    let mut finder = Finder::default();
    each_stretch(evidence, thread, life.clone(), |stretch| match stretch {
        Stretch::Waiting(waiting) => finder.wait(evidence, &waiting),
        Stretch::Busy(interval) => finder.busy(&interval),
    });
    finder.end_busy();
    finder.end_series();
    let usual = finder.usual();
    let mut problems: Vec<Problem> = finder
        .candidates
        .into_iter()
        .map(|candidate| {
            let length = candidate.window.end - candidate.window.start;
            let usual = candidate
                .site
                .and_then(|site| usual.get(&site).copied())
                .unwrap_or(0);
            let excess = length.saturating_sub(usual) as f64;
            let mut weight = family.weight(evidence, thread, candidate.doing);
            let is_first = family.first.contains(&thread);
            weight *= (candidate.wait).map_or(1.0, |wait| unattended(&wait, &life, is_first));
            Problem {
                thread,
                window: candidate.window,
                score: excess * weight,
            }
        })
        .filter(|problem| problem.score >= SHORTEST_NS as f64 * 0.02)
        .collect();
    problems.sort_by(|a, b| b.score.total_cmp(&a.score));
    // One stretch is one problem, whichever way it was found.
    let mut chosen: Vec<Problem> = Vec::new();
    for problem in problems {
        let overlaps = |other: &Problem| {
            other.window.start < problem.window.end && problem.window.start < other.window.end
        };
        if chosen.len() < MOST_OF_A_THREAD && !chosen.iter().any(overlaps) {
            chosen.push(problem);
        }
    }
    chosen
}

/// Less for waits that are nearly all of a thread's life: a shell that waits for its command, a
/// worker for which there was no work; and for those of which the trace saw no beginning. Unless
/// it names who keeps it waiting, or is what the user's command did with its life.
fn unattended(wait: &Wait, life: &Range<u64>, is_first: bool) -> f64 {
    let whole_life = wait.duration() as f64 >= 0.9 * (life.end - life.start) as f64;
    let of_command = is_first && wait.kind != WaitKind::Child;
    let unseen = wait.row.is_none();
    match whole_life && !of_command || unseen {
        true if wait.holder.is_none() => 0.05,
        _ => 1.0,
    }
}

#[derive(Default)]
struct Finder {
    candidates: Vec<Candidate>,
    /// Lengths of waits by site, as counts by power of two.
    lengths: HashMap<Site, [u32; 64]>,
    busy: Option<Busy>,
    series: Option<Series>,
}

/// Small waits of one kind, close upon each other.
struct Series {
    kind: WaitKind,
    window: Range<u64>,
    waited: u64,
    longest: u64,
    count: usize,
    /// What the thread did otherwise, up to the last wait and since; the want of a CPU is not its
    /// doing and does not count.
    other: u64,
    gap: u64,
}

impl Series {
    /// Kinds of waits that add up. A loop of messages or conditions is how threads work together:
    /// the sum of its waits says nothing.
    const KINDS: [WaitKind; 4] = [
        WaitKind::Disk,
        WaitKind::Paging,
        WaitKind::Lock,
        WaitKind::Sleep,
    ];
    /// A loop that sleeps longer each time keeps a rhythm; one that sleeps for less polls.
    const MOMENT_NS: u64 = 2_000_000;
    /// What is computed between two of them is shorter than this.
    const GAP_NS: u64 = 6_000_000;
    /// A wait of another kind that is longer than this ends the series.
    const BREAK_NS: u64 = 1_000_000;
    /// From so many on it is a series.
    const FEWEST: usize = 3;

    /// Whether it is the sum that took long, not what was done in between or one wait of many.
    fn adds_up(&self) -> bool {
        let length = self.window.end - self.window.start;
        let is_rhythm =
            self.kind == WaitKind::Sleep && self.waited / self.count as u64 > Series::MOMENT_NS;
        self.count >= Series::FEWEST
            && self.waited >= self.other
            && self.longest.saturating_mul(2) < length
            && !is_rhythm
    }
}

/// A computation, over waits so short that they do not interrupt it.
struct Busy {
    window: Range<u64>,
    busy: u64,
}

/// A wait up to this long, and up to this share of what was done before, does not end a
/// computation.
const PAUSE_NS: u64 = 1_000_000;
const PAUSE_SHARE: u64 = 10;

impl Finder {
    fn wait(&mut self, evidence: &Evidence<'_>, waiting: &Waiting) {
        let length = waiting.to - waiting.from;
        if let Some(busy) = &self.busy
            && (length > PAUSE_NS || length > busy.busy / PAUSE_SHARE)
        {
            self.end_busy();
        }
        self.add_up(waiting);
        let site = waiting.wait.row.map(|row| evidence.site(row));
        if let Some(site) = site {
            self.count_length(site, length);
        }
        if length >= SHORTEST_NS {
            self.candidates.push(Candidate {
                window: waiting.from..waiting.to,
                doing: Doing::Waiting(waiting.wait.kind),
                site,
                wait: Some(waiting.wait),
            });
            self.shrink();
        }
    }

    fn count_length(&mut self, site: Site, length: u64) {
        let bucket = length.max(1).ilog2() as usize;
        self.lengths.entry(site).or_insert([0; 64])[bucket] += 1;
    }

    fn add_up(&mut self, waiting: &Waiting) {
        let kind = waiting.wait.kind;
        let length = waiting.to - waiting.from;
        if !Series::KINDS.contains(&kind) {
            if length > Series::BREAK_NS {
                self.end_series();
            } else if let Some(series) = &mut self.series {
                series.gap += length;
            }
            return;
        }
        match &mut self.series {
            Some(series) if series.kind == kind && series.gap <= Series::GAP_NS => {
                series.window.end = waiting.to;
                series.other += std::mem::take(&mut series.gap);
                series.waited += length;
                series.longest = series.longest.max(length);
                series.count += 1;
            }
            _ => {
                self.end_series();
                let window = waiting.from..waiting.to;
                self.series = Some(Series {
                    kind,
                    window,
                    waited: length,
                    longest: length,
                    count: 1,
                    other: 0,
                    gap: 0,
                });
            }
        }
    }

    fn end_series(&mut self) {
        let Some(series) = self.series.take().filter(Series::adds_up) else {
            return;
        };
        let length = series.window.end - series.window.start;
        // No call has such a number: all series of a kind are one site.
        let site = (i16::MIN + series.kind as i16, 0);
        self.count_length(site, length);
        if length >= SHORTEST_NS {
            self.candidates.push(Candidate {
                window: series.window,
                doing: Doing::Waiting(series.kind),
                site: Some(site),
                wait: None,
            });
            self.shrink();
        }
    }

    fn busy(&mut self, interval: &Interval) {
        let window = interval.start..interval.end;
        let length = interval.duration();
        if let (Some(series), true) = (&mut self.series, interval.state.is_on_cpu()) {
            series.gap += length;
        }
        match &mut self.busy {
            Some(busy) => {
                busy.window.end = window.end;
                busy.busy += length;
            }
            None => {
                self.busy = Some(Busy {
                    window,
                    busy: length,
                })
            }
        }
    }

    fn end_busy(&mut self) {
        let Some(busy) = self.busy.take() else { return };
        if busy.busy >= SHORTEST_NS {
            let window = busy.window;
            self.candidates.push(Candidate {
                window,
                doing: Doing::Busy,
                site: None,
                wait: None,
            });
            self.shrink();
        }
    }

    /// Keeps memory bounded: only the longest can become problems.
    fn shrink(&mut self) {
        const MOST_CANDIDATES: usize = 4096;
        if self.candidates.len() > MOST_CANDIDATES {
            self.candidates
                .sort_by_key(|c| std::cmp::Reverse(c.window.end - c.window.start));
            self.candidates.truncate(MOST_CANDIDATES / 2);
        }
    }

    /// What waits at a site usually take, where there are enough to say: the lower bound of the
    /// median's power of two.
    fn usual(&self) -> HashMap<Site, u64> {
        const ENOUGH: u32 = 3;
        self.lengths
            .iter()
            .filter_map(|(&site, counts)| {
                let total: u32 = counts.iter().sum();
                let mut below = 0;
                let median = counts.iter().position(|&count| {
                    below += count;
                    below * 2 >= total
                })?;
                (total >= ENOUGH).then_some((site, 1 << median))
            })
            .collect()
    }
}
