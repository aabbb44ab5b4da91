//! Which intervals of which threads took too long, found without being told.
//!
//! What somebody waited for is known best where the trace shows the one who waits: input that lies
//! unread on a connection to the display ([`input`]), a request that is not replied to
//! ([`request`]), a file's lock that is not to be had ([`kept_out`]). Otherwise each thread's time
//! is searched ([`finder`]): a wait can take long, a computation, the want of a CPU, many small waits
//! for the same thing that add up, and work that others do in many small pieces ([`many`]). What an interval of its kind usually takes, at the same
//! place of the same thread, is subtracted: a loop that sleeps 10 ms every time has no problem when
//! it sleeps 10 ms. What remains is weighted by how likely it is that something was owed to the
//! thread ([`owed`](crate::owed)) and that somebody felt it ([`family`]). A freeze that is found at several
//! threads is one problem ([`merge`]), and one that a program computes is its starter's
//! ([`starter`]).

mod busy;
mod chained;
mod display;
mod family;
mod finder;
mod input;
mod kept_out;
mod many;
mod merge;
mod named;
mod parked;
mod request;
mod sequel;
mod series;
mod start_up;
mod starter;

use hangdog_graph::belief::{gave_up, is_missed};
use hangdog_graph::evidence::HELPER;
use hangdog_graph::fore::is_nearly_all;
use hangdog_graph::owed::{ancestors, is_descendant, is_upkeep};
use hangdog_graph::{Evidence, Mark, Wait, WaitKind};
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::meta::{Meta, Mode};
use hangdog_trace::threads::NAMELESS;
use rayon::prelude::*;
use std::collections::HashSet;
use std::ops::Range;

use crate::owed;
use crate::starvation;
use crate::stretch::{Stretch, each_stretch};
use family::Family;
use finder::Finder;
pub use many::ManyWaits;

/// What makes an interval a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// Input on a connection to the display was not read.
    Input,
    /// A request was not replied to.
    Request,
    /// An event loop did not come back.
    Turn,
    /// A thread waited.
    Wait,
    /// A thread computed, or was runnable for it.
    Busy,
    /// A thread had others do its work in many small pieces.
    Many,
    /// The user picked it.
    Picked,
}

impl ProblemKind {
    /// As reports print it.
    pub fn text(self) -> &'static str {
        match self {
            ProblemKind::Input => "input not read",
            ProblemKind::Request => "request not replied to",
            ProblemKind::Turn => "event loop did not come back",
            ProblemKind::Wait => "waited",
            ProblemKind::Busy => "computed",
            ProblemKind::Many => "many small waits",
            ProblemKind::Picked => "picked",
        }
    }
}

/// How much a problem matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It was short, or nothing is known to have been owed to anybody: perhaps as it should be.
    Low,
    /// Somebody may have noticed it.
    Medium,
    /// Somebody was kept waiting for long.
    High,
}

impl Severity {
    /// As reports print it.
    pub fn text(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }
}

/// Where less was owed, it is not told unless it is asked for: an idle thread.
pub(crate) const LEAST_FELT: f64 = 0.02;
/// One turn is a problem of its own if it takes so many times as long as any other.
const STANDS_OUT: u64 = 5;
/// From here on a person calls it a freeze.
const SEVERE_NS: u64 = 1_000_000_000;
/// From here on a person notices it.
const NOTED_NS: u64 = 200_000_000;
/// Computations shorter than this that nobody waits for are what every system does all the time.
const LONG_FOR_NOBODY_NS: u64 = 50_000_000;
/// What is felt less than this may be as it should be.
const FELT: f64 = 0.2;

/// An interval of a thread's time that took too long.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Whose.
    pub thread: Utid,
    /// When, ns since the trace's start.
    pub window: Range<u64>,
    /// What makes it one.
    pub kind: ProblemKind,
    /// How surely something was owed and somebody felt it: 1 for a thread that a server did not
    /// answer, more before somebody's eyes, 0.01 where nothing is known to have been owed.
    pub felt: f64,
    /// The same before anything is taken off for how usual it is.
    pub owed: f64,
    /// How bad it is: how much longer than usual it took, ns, by how much it was felt.
    pub score: f64,
    /// The small waits that it consists of, if it does.
    pub many: Option<ManyWaits>,
}

impl Problem {
    /// A part of a thread's time that the user picked.
    pub fn picked(thread: Utid, window: Range<u64>) -> Problem {
        Problem {
            thread,
            window,
            kind: ProblemKind::Picked,
            felt: 1.0,
            owed: 1.0,
            score: 0.0,
            many: None,
        }
    }

    /// How much it matters.
    pub fn severity(&self) -> Severity {
        match (self.duration(), self.felt) {
            (SEVERE_NS.., FELT..) => Severity::High,
            (NOTED_NS.., FELT..) => Severity::Medium,
            _ => Severity::Low,
        }
    }

    /// Whether it is a wait as long as the trace, which ends at `end`.
    pub fn lasts_all_along(&self, end: u64) -> bool {
        let waits = matches!(self.kind, ProblemKind::Wait | ProblemKind::Turn);
        waits && self.window.start == 0 && self.window.end >= end
    }

    /// Whether it is a computation nearly as long as the trace, which ends at `end`: what nobody waited for is not
    /// what has just been felt.
    fn is_going_on(&self, end: u64) -> bool {
        self.kind == ProblemKind::Busy
            && self.felt <= family::BATCH
            && is_nearly_all(self.duration(), &(0..end))
    }

    /// Whether it is a wait of which nothing shows that anybody was to end it: an idle thread, unless
    /// what it waited for left no trace.
    pub fn may_be_idle(&self) -> bool {
        self.kind == ProblemKind::Wait && self.owed < LEAST_FELT
    }

    /// Whether it is a wait that need not be for anything that is owed: an idle thread, or one that does nothing else than wait
    /// there.
    pub fn may_be_at_rest(&self) -> bool {
        self.kind == ProblemKind::Wait && self.owed <= owed::ALL_IT_DOES
    }

    /// Whether it is a short computation that nobody is known to have waited for.
    fn is_nobodys(&self) -> bool {
        let is_short = self.duration() < LONG_FOR_NOBODY_NS;
        self.kind == ProblemKind::Busy && self.felt <= family::BATCH && is_short
    }

    /// How long it took, ns.
    pub fn duration(&self) -> u64 {
        self.window.end - self.window.start
    }

    /// The part of it that is explained: all of it, but the first of very many small waits.
    pub(crate) fn explained(&self) -> Problem {
        let end = match &self.many {
            Some(many) => many.explained_until,
            None => self.window.end,
        };
        Problem {
            window: self.window.start..end,
            ..self.clone()
        }
    }

    /// Whether both are at one time somewhere.
    pub fn overlaps(&self, other: &Problem) -> bool {
        other.window.start < self.window.end && self.window.start < other.window.end
    }
}

/// Shorter ones are not looked at.
const SHORTEST_NS: u64 = 1_000_000;
/// So many of a thread are kept.
const MOST_OF_A_THREAD: usize = 64;
/// So many are reported.
const MOST: usize = 20;

/// For whom a trace was recorded, and by whom.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope {
    /// The tid of the recorded command.
    pub command_tid: Option<u32>,
    /// The pid of the recorder, whose own time is nobody's problem.
    pub recorder_pid: Option<u32>,
    /// Whether it was saved out of a recording that went on all the time: whoever asks for that has just
    /// felt something.
    pub is_snapshot: bool,
}

impl Scope {
    /// Of a trace.
    pub fn of(meta: &Meta) -> Scope {
        Scope {
            command_tid: meta.command_tid,
            recorder_pid: meta.recorder_pid,
            is_snapshot: meta.mode == Mode::Flight,
        }
    }
}

/// Whether a recorded command is nothing but the clock of the recording: sleep(1), started by the
/// recorder. A program of the user's that sleeps all along may do so by mistake.
pub fn is_clock(evidence: &Evidence<'_>, command_tid: u32) -> bool {
    let mut threads = evidence.threads.iter();
    threads.find(|t| t.tid == command_tid).is_some_and(|first| {
        let process = evidence.threads.process(first.upid);
        let parent = evidence.threads.process(process.parent);
        process.name == "sleep" && Some(parent.pid) == evidence.recorder
    })
}

/// The problems of a trace, worst first: of threads to which something was owed, as far as is known.
pub fn find(evidence: &Evidence<'_>, scope: Scope) -> Vec<Problem> {
    let mut found = find_among(evidence, scope, None::<fn(Utid) -> bool>);
    found.retain(|problem| problem.owed >= LEAST_FELT && !problem.is_nobodys());
    found
}

/// The problems of the threads that somebody named, and of what their programs started, worst first.
pub fn find_of(
    evidence: &Evidence<'_>,
    scope: Scope,
    is_named: impl Fn(Utid) -> bool + Sync,
) -> Vec<Problem> {
    find_among(evidence, scope, Some(is_named))
}

fn find_among(
    evidence: &Evidence<'_>,
    scope: Scope,
    is_named: Option<impl Fn(Utid) -> bool + Sync>,
) -> Vec<Problem> {
    // Who recorded `sleep 10` asks what else went on.
    let clock = (scope.command_tid).filter(|&tid| is_clock(evidence, tid));
    let command = scope.command_tid.filter(|_| clock.is_none());
    let family = Family::new(evidence, command);
    let threads: Vec<Utid> = evidence
        .timeline
        .threads()
        .filter(|&thread| {
            evidence.threads.known(thread).is_some_and(|known| {
                !known.is_kernel() && Some(known.tid) != clock && known.name() != NAMELESS
            })
        })
        .collect();
    let recorder = (evidence.threads.iter())
        .find(|thread| Some(thread.pid) == scope.recorder_pid)
        .map(|thread| thread.upid);
    let makers: Vec<Upid> = recorder
        .into_iter()
        .flat_map(|recorder| ancestors(evidence, recorder))
        .collect();
    let mut problems: Vec<Problem> = threads
        .into_par_iter()
        .flat_map_iter(|thread| of_thread(evidence, &family, &makers, thread))
        .collect();
    problems.extend(input::find(evidence, &family));
    problems.extend(request::find(evidence, &family));
    problems.extend(kept_out::find(evidence, &family));
    let name = |process: Upid| evidence.threads.process(process).name.as_str();
    // Its own processes, and those of another recorder. Its helpers are nobody's children, and are
    // called so whatever the recorder's file is called.
    let is_recorder = |process: Upid| {
        name(process) == HELPER
            || recorder.is_some_and(|recorder| {
                name(process) == name(recorder) || is_descendant(evidence, process, recorder)
            })
    };
    match &is_named {
        Some(is_named) => problems = named::of(evidence, problems, is_named),
        None => {
            let is_of_command = |thread| family.has(evidence.threads.thread(thread).upid);
            problems.extend(parked::find(evidence, is_of_command));
            problems.extend(parked::find_others(evidence, is_of_command));
        }
    }
    problems.retain(|problem| {
        let process = evidence.threads.thread(problem.thread).upid;
        family.has(process) || !is_recorder(process)
    });
    for problem in &mut problems {
        let process = evidence.threads.thread(problem.thread).upid;
        if makers.contains(&process) {
            problem.felt *= MAKER;
            problem.score *= MAKER;
        }
        if scope.is_snapshot {
            if problem.is_going_on(evidence.timeline.end()) {
                problem.score *= ALL_ALONG;
            }
            let age = evidence.timeline.end().saturating_sub(problem.window.end);
            problem.score *= RECENT_NS / (RECENT_NS + age as f64);
        }
    }
    problems.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then(a.window.start.cmp(&b.window.start))
            .then(a.thread.cmp(&b.thread))
    });
    let mut chosen = merge::merge(evidence, &family, problems, is_named.is_some());
    chosen.truncate(MOST);
    chosen
}

/// A snapshot is asked for within moments of what it is for: what ended so long before counts half.
const RECENT_NS: f64 = 10e9;

/// Of the programs that started the recorder little is felt: they wait for the recording to end.
const MAKER: f64 = 0.1;

/// What is left of a problem that was so when the recording began and when it ended: it may be as it
/// should be.
pub const ALL_ALONG: f64 = 0.3;

/// What is left of a problem of a thread that is at a lower priority than others: it may take its time.
const NICE: f64 = 0.5;

/// How much more the want of a CPU is felt than a computation, where it is nearly all there is: one
/// that gets its half is as well off as others.
const STARVED: f64 = 2.0;

/// From here on the number of seconds counts less than what they were for.
const LONG_NS: f64 = 1e9;

/// What so many ns are worth.
fn worth(ns: f64) -> f64 {
    match ns > LONG_NS {
        true => LONG_NS * (1.0 + (ns / LONG_NS).ln()),
        false => ns,
    }
}

/// How many ns are worth so much.
fn ns_worth(worth: f64) -> f64 {
    match worth > LONG_NS {
        true => LONG_NS * (worth / LONG_NS - 1.0).exp(),
        false => worth,
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Doing {
    Waiting(WaitKind),
    Busy,
    Many,
}

/// Whether a child is waited for, also by its pipes or by looking again and again.
fn awaits_child(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let stack = wait.user_stack(evidence);
    wait.kind == WaitKind::Child || evidence.shows(stack, Mark::AwaitsChild)
}

/// Whether the longest turn of a thread's work stands out: it took much longer than the `second` longest, and a
/// good part of `all` of them, ns.
fn stands_out(longest: u64, second: u64, all: u64) -> bool {
    const LARGE: u64 = 4;
    longest >= all / LARGE && longest >= second.saturating_mul(STANDS_OUT)
}

/// The problems of a thread; `makers` started the recorder.
fn of_thread(
    evidence: &Evidence<'_>,
    family: &Family,
    makers: &[Upid],
    thread: Utid,
) -> Vec<Problem> {
    let is_maker = makers.contains(&evidence.threads.thread(thread).upid);
    let life = evidence.timeline.life(thread);
    let mut finder = Finder::default();
    each_stretch(evidence, thread, life, |stretch| match stretch {
        Stretch::Waiting(waiting) => finder.wait(evidence, &waiting),
        Stretch::Busy(interval) => finder.busy(evidence, thread, &interval),
    });
    finder.end_busy();
    finder.end_series();
    finder.end_many();
    let usual = finder.usual();
    let takes_turns = finder.takes_turns(family.serves(evidence, thread));
    let process = evidence.threads.thread(thread).upid;
    // A helper whose first thread waits elsewhere than it usually does is in the middle of something.
    let may_be_away = evidence.stands_for_program(thread)
        && owed::is_helper(evidence, process)
        && finder.has_usual_place();
    let frames: HashSet<u64> = (finder.candidates.iter())
        .filter(|candidate| candidate.doing == Doing::Busy)
        .filter(|candidate| finder.is_frame(evidence, thread, &candidate.window))
        .map(|candidate| candidate.window.start)
        .collect();
    let often: HashSet<u64> = (finder.candidates.iter())
        .filter(|candidate| finder.is_often(evidence, candidate))
        .map(|candidate| candidate.window.start)
        .collect();
    // What a launcher waits for stands for it.
    let joined = evidence.joined_by(thread);
    let only_joins = |wait: &Wait| joined.is_some() && wait.holder == joined;
    let mut problems: Vec<Problem> = finder
        .candidates
        .into_iter()
        .filter(|candidate| !candidate.wait.as_ref().is_some_and(only_joins))
        .map(|candidate| {
            let length = candidate.window.end - candidate.window.start;
            // A lock is usually not waited for at all.
            let usual = candidate
                .site
                .filter(|_| candidate.doing != Doing::Waiting(WaitKind::Lock))
                .and_then(|site| usual.get(&site).copied())
                .unwrap_or(0);
            let excess = length.saturating_sub(usual) as f64;
            let is_often = often.contains(&candidate.window.start);
            let window = candidate.window.clone();
            // An event loop waits for what comes; its turn does not end while it waits for a child, or
            // for another thread.
            let for_child = || (candidate.wait).is_some_and(|wait| awaits_child(evidence, &wait));
            let is_amid_event = || {
                let wait = candidate.wait;
                wait.is_some_and(|it| evidence.shows(it.user_stack(evidence), Mark::AmidEvent))
            };
            let holds_up_turns = match candidate.doing {
                Doing::Waiting(_) if for_child() => {
                    family.holds_up_turns(evidence, thread, takes_turns)
                }
                Doing::Waiting(WaitKind::Condition) => {
                    length >= NOTED_NS
                        && !is_often
                        && (may_be_away || family.is_window(evidence, thread))
                }
                Doing::Waiting(WaitKind::Poll | WaitKind::Message) => {
                    length >= NOTED_NS && family.is_window(evidence, thread) && is_amid_event()
                }
                _ => false,
            };
            let is_frame = frames.contains(&candidate.window.start);
            let takes_turns = takes_turns || is_frame;
            let asks_nobody = (candidate.many.as_ref()).is_some_and(|many| many.asked.is_empty());
            let (owed, weight) = match candidate.wait {
                Some(wait) => {
                    let owed = owed::owed(evidence, &wait, is_often);
                    // As long as it had asked for, and nobody may have been expected.
                    let is_own_choice = wait.kind == WaitKind::Condition && candidate.timed_out;
                    let owed = match wait.kind {
                        _ if is_upkeep(evidence, thread) => owed,
                        // Whoever has a helper do something waits for that.
                        _ if is_own_choice
                            && !owed::is_helper(evidence, process)
                            && gave_up(evidence, &wait) =>
                        {
                            owed.max(owed::HOPED)
                        }
                        _ if is_own_choice => owed.min(owed::MAYBE),
                        // It looks now and then whether something has come.
                        WaitKind::Poll | WaitKind::Message
                            if candidate.timed_out && is_often && owed <= owed::HOPED =>
                        {
                            owed.min(owed::MAYBE)
                        }
                        _ if holds_up_turns => owed.max(owed::HOPED),
                        WaitKind::Condition | WaitKind::Message | WaitKind::Poll
                            if owed < owed::HOPED
                                && length >= NOTED_NS
                                && !wait.is_idle(evidence)
                                && is_missed(evidence, &wait) =>
                        {
                            owed::HOPED
                        }
                        _ => owed,
                    };
                    let felt = family.felt_wait(evidence, &wait, owed);
                    match owed::lasts_all_along(evidence, &wait) {
                        // It waits for the recording to end.
                        true if is_maker && awaits_child(evidence, &wait) => (0.0, 0.0),
                        true => (felt, felt * ALL_ALONG),
                        false => (felt, felt),
                    }
                }
                None => {
                    // Whoever waits for children and disks polls their pipes, and serves nobody.
                    let serves = takes_turns && !asks_nobody;
                    let felt = match is_frame {
                        true => family.felt_frame(evidence, thread),
                        false => family.felt(evidence, thread, candidate.doing, serves),
                    };
                    // A CPU is owed to who wants one, a computation to nobody that is known.
                    let starved = candidate.starved as f64 / length.max(1) as f64;
                    let want = (2.0 * starved - 1.0).max(0.0);
                    // On a machine that has too much to do each of many waits for its turn.
                    let is_kept_out =
                        want > 0.0 && !starvation::by_crowd(evidence, thread, &window);
                    let want = if is_kept_out { want } else { 0.0 };
                    let felt = felt * (1.0 + STARVED * want);
                    (felt, felt)
                }
            };
            let weight = match starvation::is_nice(evidence, thread, &window) {
                true => weight * NICE,
                false => weight,
            };
            let is_window = || length >= NOTED_NS && family.is_window(evidence, thread);
            let kind = match candidate.doing {
                Doing::Waiting(_) if holds_up_turns => ProblemKind::Turn,
                Doing::Waiting(_) => ProblemKind::Wait,
                Doing::Many if is_window() => ProblemKind::Turn,
                Doing::Many => ProblemKind::Many,
                Doing::Busy if takes_turns || is_window() => ProblemKind::Turn,
                Doing::Busy => ProblemKind::Busy,
            };
            Problem {
                thread,
                kind,
                window: candidate.window,
                felt: weight,
                owed,
                score: worth(excess)
                    * weight
                    * candidate.many.as_ref().map_or(1.0, ManyWaits::weight),
                many: candidate.many,
            }
        })
        .filter(|problem| problem.score >= SHORTEST_NS as f64 * 0.02)
        .collect();
    problems.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut chosen: Vec<Problem> = Vec::new();
    for problem in problems {
        if chosen.len() < MOST_OF_A_THREAD && !chosen.iter().any(|other| other.overlaps(&problem)) {
            chosen.push(problem);
        }
    }
    chosen
}
