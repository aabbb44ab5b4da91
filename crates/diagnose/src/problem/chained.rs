//! Whom a problem's thread waits for, and whom that waits for, and so on.
//!
//! [`main_wait`] is what most of a thread's time went to, [`next_link`] whom that was for, and a
//! [`Chained`] is a problem with all of them.

use hangdog_graph::belief::beliefs;
use hangdog_graph::ended::ended_by;
use hangdog_graph::owed::{ancestors, asked_again, is_deadlocked, peer_of, started_together};
use hangdog_graph::{Edge, EdgeKind, Evidence, Mark, Source, Wait, WaitKind};
use hangdog_timeline::{Interval, State};
use hangdog_trace::ids::{NONE, Upid, Utid};
use hangdog_trace::object::ObjectKind;
use hangdog_trace::sockets::Role;
use std::ops::Range;

use super::family::Family;
use super::finder::is_timer;
use super::{Problem, ProblemKind};
use crate::owed::{IDLE, owed};
use crate::starvation::is_starved;
use crate::stretch::{Stretch, Waiting, each_stretch};

/// A wait is what an interval is about from this share of it on.
pub(super) const MAIN_SHARE: f64 = 0.5;
/// Two intervals are at one time if they share so much of the shorter.
pub(super) const SAME_TIME: f64 = 0.8;
/// What is felt less than this stands for no other: its thread waits for one that it asked for
/// nothing.
const LEAST_FELT: f64 = 0.09;
/// A thread that has more intervals than this in a window does not wait for one thing in it.
const BUSY: usize = 200_000;
/// No chain of waits is followed further.
const LONGEST: usize = 64;
/// How much of what is felt is left where a program only waits for its own work.
const OWN_WORK: f64 = 0.2;
/// The same where what it started only lets time pass.
const OWN_SLEEP: f64 = 0.05;
/// The same where programs of one kind take turns by a file's lock, and the one that has it goes on.
const TURNS: f64 = 0.1;

/// One that the problem's thread waits for, directly or by others.
pub(super) struct Link {
    pub(super) thread: Utid,
    pub(super) window: Range<u64>,
    /// It was only started by the one before.
    pub(super) is_started: bool,
    /// The one before asked it for something by a connection, a lock or a file.
    pub(super) is_asked: bool,
    /// Something was owed to the one before, and nothing ended its wait meanwhile.
    is_owed: bool,
    /// It is only guessed that the one before waits for it.
    pub(super) is_guessed: bool,
    /// The one before waits for a lock, of the program's own or of a database.
    pub(super) by_lock: bool,
    /// The one before waits for what this one, its client, sends next.
    is_client: bool,
}

/// A problem, and whom its thread waits for.
pub(super) struct Chained {
    pub(super) problem: Problem,
    pub(super) links: Vec<Link>,
    /// It would be felt, if somebody awaited its program's work.
    pub(super) is_felt: bool,
    /// When its thread was stopped, or the thread of the one that it stands for.
    pub(super) stopped: Option<Range<u64>>,
    /// It waits for a disk, a few times and long, or the longest piece does that it was joined of.
    pub(super) awaits_disk: bool,
    /// How long its own program waits for its thread in turns, ns.
    pub(super) holds_up: u64,
}

impl Chained {
    pub(super) fn new(
        evidence: &Evidence<'_>,
        family: &Family,
        mut problem: Problem,
        named: bool,
    ) -> Chained {
        // None of many small waits takes most of the time.
        let (links, is_circle) = match problem.many {
            Some(_) => (Vec::new(), false),
            None => links(evidence, &problem),
        };
        // Nothing but a person will end it.
        if is_circle {
            problem.score *= 1.0 / problem.felt;
            (problem.felt, problem.owed) = (1.0, 1.0);
        }
        let is_felt = problem.owed >= LEAST_FELT;
        // Whoever recorded a command awaits all of its work.
        let is_awaited = named || family.first.contains(&problem.thread);
        if !is_awaited && is_own_work(evidence, &problem, &links) {
            let left = match only_awaits_sleep(evidence, &links) {
                true => OWN_SLEEP,
                false => OWN_WORK,
            };
            problem.felt *= left;
            problem.score *= left;
        }
        if !is_awaited && takes_turns(evidence, &problem, &links) {
            problem.felt *= TURNS;
            problem.score *= TURNS;
        }
        let main_wait = main_wait(evidence, problem.thread, problem.window.clone());
        Chained {
            awaits_disk: awaits_disk(evidence, &problem),
            holds_up: 0,
            stopped: main_wait
                .filter(|waiting| waiting.wait.kind == WaitKind::Stopped)
                .map(|waiting| waiting.from..waiting.to),
            problem,
            links,
            is_felt,
        }
    }

    pub(super) fn waits_for(&self, other: &Chained) -> bool {
        self.link_to(other).is_some()
    }

    pub(super) fn link_to(&self, other: &Chained) -> Option<usize> {
        self.links.iter().position(|link| {
            link.thread == other.problem.thread && is_one_time(&link.window, &other.problem.window)
        })
    }

    /// Whether nothing but starting programs leads from this problem to the other.
    pub(super) fn only_started(&self, other: &Chained) -> bool {
        let to = self.link_to(other).map_or(0, |at| at + 1);
        self.links[..to].iter().all(|link| link.is_started)
    }

    /// Whether it is only guessed, somewhere on the way to it, that this one waits for the other.
    pub(super) fn only_may_wait_for(&self, other: &Chained) -> bool {
        let to = self.link_to(other).map_or(0, |at| at + 1);
        self.links[..to].iter().any(|link| link.is_guessed)
    }

    /// Whether nothing but requests leads from this problem to the other.
    pub(super) fn only_asked(&self, other: &Chained) -> bool {
        let to = self.link_to(other).map_or(0, |at| at + 1);
        self.links[..to].iter().all(|link| link.is_asked)
    }

    /// Whether it is a server that waits, by its own processes alone, for what its client sends next, and the
    /// other problem is that client's.
    pub(super) fn serves(&self, evidence: &Evidence<'_>, other: &Chained) -> bool {
        let program = |thread: Utid| evidence.threads.process_of(thread).name.as_str();
        let own = program(self.problem.thread);
        let Some(to) = self.link_to(other) else {
            return false;
        };
        let mut between = self.links[..to].iter();
        self.links[to].is_client && between.all(|link| program(link.thread) == own)
    }

    /// Whether it waits for more than the end of what it started.
    pub(super) fn waits_itself(&self) -> bool {
        self.links.first().is_some_and(|link| !link.is_started)
    }

    /// Whether it is only guessed whom it waits for.
    pub(super) fn is_guess(&self) -> bool {
        self.links.iter().any(|link| link.is_guessed)
    }
}

/// For how long two windows overlap, ns.
pub(super) fn overlap(a: &Range<u64>, b: &Range<u64>) -> u64 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

/// Whether two are at one time, and neither lasts much longer.
pub(super) fn is_as_long(a: &Range<u64>, b: &Range<u64>) -> bool {
    let longer = (a.end - a.start).max(b.end - b.start);
    overlap(a, b) as f64 >= SAME_TIME * longer as f64
}

pub(super) fn is_one_time(a: &Range<u64>, b: &Range<u64>) -> bool {
    let both = overlap(a, b);
    let shorter = (a.end - a.start).min(b.end - b.start);
    both as f64 >= SAME_TIME * shorter as f64 && both > 0
}

/// Whom a problem's thread waits for, and so on; and whether that leads round in a circle.
fn links(evidence: &Evidence<'_>, problem: &Problem) -> (Vec<Link>, bool) {
    let mut links: Vec<Link> = Vec::new();
    let (mut thread, mut window) = (problem.thread, problem.window.clone());
    while links.len() < LONGEST {
        let Some(link) = next_link(evidence, thread, window) else {
            break;
        };
        if link.thread == problem.thread {
            let is_circle = link.is_owed && links.iter().all(|link| link.is_owed);
            return (links, is_circle);
        }
        // Those that it surely waits for wait for each other.
        if let Some(at) = links.iter().position(|known| known.thread == link.thread) {
            let is_circle = link.is_owed
                && links[at + 1..].iter().all(|link| link.is_owed)
                // One that waits for nothing that is owed to it is not kept by that.
                && links[..=at].iter().all(|link| link.is_owed && !link.is_guessed);
            return (links, is_circle);
        }
        (thread, window) = (link.thread, link.window.clone());
        links.push(link);
    }
    (links, false)
}

/// Whom a thread waits for in most of a window: for one that was not made yet, whoever made it.
pub(super) fn next_link(evidence: &Evidence<'_>, thread: Utid, window: Range<u64>) -> Option<Link> {
    let birth = evidence.timeline.life(thread).start.min(window.end);
    let unborn = window.start..birth.max(window.start);
    if is_most(&unborn, &window) {
        return Some(Link {
            thread: evidence
                .threads
                .known(evidence.threads.thread(thread).parent)?
                .utid,
            window: unborn,
            is_started: false,
            is_asked: false,
            is_owed: false,
            is_guessed: false,
            by_lock: false,
            is_client: false,
        });
    }
    let waiting = main_wait(evidence, thread, window)?;
    let wait = &waiting.wait;
    let edge = asked_again(evidence, wait, waiting.wake, waiting.to)
        .unwrap_or_else(|| most_likely(evidence, &waiting));
    let Source::Thread(next) = edge.source else {
        return None;
    };
    let by_pipe = wait.object(evidence).is_pipe();
    let is_guessed = matches!(
        edge.kind,
        EdgeKind::Habit | EdgeKind::Asked | EdgeKind::Amid | EdgeKind::Killed
    );
    // timeout(1) waits for the signal that its command has ended, and cargo for any of the pipes by which its
    // command says something.
    let is_by_kinship = by_pipe || is_guessed || wait.kind == WaitKind::Signal;
    let is_started = wait.kind == WaitKind::Child
        // Who ends gives back the locks of files that it has.
        || edge.kind == EdgeKind::Exit && wait.kind != WaitKind::Lock
        || is_by_kinship && is_child(evidence, next, thread);
    Some(Link {
        thread: next,
        window: waiting.from..waiting.to,
        is_started,
        // Of a lock nobody is guessed to be its holder who only waits for one, unless nobody else is left.
        is_owed: edge.wake.is_none_or(|row| is_timer(evidence, row))
            && match edge.kind {
                EdgeKind::Habit | EdgeKind::Asked => false,
                EdgeKind::Amid => wait.is_for_own_lock(evidence),
                _ => true,
            }
            && (wait.is_for_own_lock(evidence) || owed(evidence, wait, false) > IDLE),
        is_guessed,
        by_lock: wait.kind == WaitKind::Lock
            || wait.is_for_own_lock(evidence)
            || evidence.shows(wait.user_stack(evidence), Mark::DatabaseLock),
        is_client: evidence.sockets.role(wait.object(evidence)) == Some(Role::Server)
            && peer_of(evidence, wait.object(evidence)) == Some(evidence.threads.thread(next).upid),
        is_asked: !by_pipe
            && !is_started
            && (wait.is_for_own_lock(evidence)
                || !matches!(
                    wait.kind,
                    WaitKind::Child | WaitKind::Condition | WaitKind::Signal
                )),
    })
}

/// What most likely ended a wait.
fn most_likely(evidence: &Evidence<'_>, waiting: &Waiting) -> Edge {
    let edge = ended_by(evidence, &waiting.wait, waiting.wake);
    if matches!(edge.source, Source::Thread(_)) {
        return edge;
    }
    beliefs(
        evidence,
        &waiting.wait,
        waiting.wake,
        waiting.in_vain(),
        &[],
    )
    .swap_remove(0)
    .edge
}

fn is_most(part: &Range<u64>, window: &Range<u64>) -> bool {
    (part.end - part.start) as f64 >= MAIN_SHARE * (window.end - window.start) as f64
        && !part.is_empty()
}

/// Whether a program only waits for a part of itself, for what it started, or for what was started
/// with it, and nobody owes anything to that: a batch job, of which nobody is known to await a part.
fn is_own_work(evidence: &Evidence<'_>, problem: &Problem, links: &[Link]) -> bool {
    let process = evidence.threads.thread(problem.thread).upid;
    let lasts = problem.window.end >= evidence.timeline.end();
    // Its event loop serves somebody; or it will never be done.
    if matches!(problem.kind, ProblemKind::Turn | ProblemKind::Many)
        || lasts && is_deadlocked(evidence, process)
    {
        return false;
    }
    // It should have ended.
    let waiting = main_wait(evidence, problem.thread, problem.window.clone());
    let awaits_threads =
        |waiting: &Waiting| evidence.shows(waiting.wait.user_stack(evidence), Mark::AwaitsThreads);
    if waiting.as_ref().is_some_and(awaits_threads) {
        return false;
    }
    let Some(last) = links.last() else {
        // One child came after the other.
        return waiting.is_some_and(|waiting| waiting.wait.kind == WaitKind::Child);
    };
    let last_wait = main_wait(evidence, last.thread, last.window.clone());
    let sleeps = last_wait.is_some_and(|waiting| waiting.wait.kind == WaitKind::Sleep);
    // A program that has no room to write is to be read, and not by one that sleeps.
    let overflows = || waiting.is_some_and(|waiting| waiting.wait.writes(evidence));
    problem.kind == ProblemKind::Wait
        && !links.iter().any(|link| link.is_asked)
        && is_family(evidence, last.thread, problem.thread)
        && last_wait.is_none_or(|waiting| is_as_wished(evidence, &waiting.wait))
        && !(sleeps && overflows())
        && !is_starved(evidence, last.thread, &last.window)
}

/// Whether a program waits for a file's lock that another run of the same program has, and what that does
/// comes down to a computation: two builds in one directory take turns by design.
fn takes_turns(evidence: &Evidence<'_>, problem: &Problem, links: &[Link]) -> bool {
    let name = |thread: Utid| &evidence.threads.process_of(thread).name;
    let (Some(first), Some(last)) = (links.first(), links.last()) else {
        return false;
    };
    let for_file = |wait: &Wait| {
        wait.kind == WaitKind::Lock && wait.object(evidence).kind() == ObjectKind::File
    };
    let goes_on = |wait: &Wait| wait.kind != WaitKind::Sleep && is_as_wished(evidence, wait);
    name(first.thread) == name(problem.thread)
        && main_wait(evidence, problem.thread, problem.window.clone())
            .is_some_and(|waiting| for_file(&waiting.wait))
        && main_wait(evidence, last.thread, last.window.clone())
            .is_none_or(|waiting| goes_on(&waiting.wait))
}

/// Whether a program only waits for the end of one that it started and that sleeps, or by whatever way for a
/// `sleep` of a script's.
fn only_awaits_sleep(evidence: &Evidence<'_>, links: &[Link]) -> bool {
    let sleeps = |link: &Link| {
        let waiting = main_wait(evidence, link.thread, link.window.clone());
        waiting.is_some_and(|waiting| waiting.wait.kind == WaitKind::Sleep)
    };
    let is_script_s = |link: &Link| evidence.threads.process_of(link.thread).name == "sleep";
    let is_started = links.iter().all(|link| link.is_started);
    links
        .last()
        .is_some_and(|last| sleeps(last) && (is_started || is_script_s(last)))
}

/// Whether a wait is for what nobody owes, and nobody else keeps the thread from going on.
fn is_as_wished(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    wait.kind != WaitKind::Stopped && owed(evidence, wait, false) < LEAST_FELT
}

/// Whether a thread is of the process of another, of one that this started, or of one that was started with
/// it, as the commands of a pipeline are.
fn is_family(evidence: &Evidence<'_>, thread: Utid, of: Utid) -> bool {
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    let parent = |process: Upid| evidence.threads.process(process).parent;
    let own = process(of);
    let at = process(thread);
    std::iter::once(at)
        .chain(ancestors(evidence, at))
        .any(|at| {
            let is_sibling = parent(at) == parent(own) && parent(own) != NONE;
            at == own || is_sibling && started_together(evidence, at, own).unwrap_or(true)
        })
}

/// Whether a thread is of a process that another's made.
fn is_child(evidence: &Evidence<'_>, thread: Utid, of: Utid) -> bool {
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    evidence.threads.process(process(thread)).parent == process(of)
}

/// Whether a thread waits for a disk in a problem, a few times and long, not for many pages one after the other.
fn awaits_disk(evidence: &Evidence<'_>, problem: &Problem) -> bool {
    const FEW: u64 = 4;
    let intervals = evidence.timeline.intervals(problem.thread);
    let window = &problem.window;
    if intervals.indexes(window.start, window.end).len() > BUSY {
        return false;
    }
    let longest = (intervals.between(window.start, window.end))
        .filter(|part| part.state == State::Blocked)
        .max_by_key(Interval::duration);
    longest.is_some_and(|longest| {
        let kind = Wait::new(evidence, problem.thread, &longest).kind;
        matches!(kind, WaitKind::Disk | WaitKind::Paging)
            && longest.duration() >= problem.duration() / FEW
    })
}

/// The wait that most of a thread's time in `window` went to.
pub(super) fn main_wait(
    evidence: &Evidence<'_>,
    thread: Utid,
    window: Range<u64>,
) -> Option<Waiting> {
    let intervals = evidence.timeline.intervals(thread);
    if intervals.indexes(window.start, window.end).len() > BUSY {
        return None;
    }
    let mut longest: Option<Waiting> = None;
    each_stretch(evidence, thread, window.clone(), |stretch| {
        if let Stretch::Waiting(waiting) = stretch
            && longest.is_none_or(|other| waiting.to - waiting.from > other.to - other.from)
        {
            longest = Some(waiting);
        }
    });
    longest.filter(|waiting| is_most(&(waiting.from..waiting.to), &window))
}
