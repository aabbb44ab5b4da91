//! Who is to blame most, and what it did.

use hangdog_graph::{Evidence, Mark, WaitKind};
use hangdog_trace::ids::{NO_STACK, StackId, Utid};
use hangdog_trace::words::Left;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::blame::{Blame, Knot, Piece};
use crate::function::{self, Function};
use crate::kind::BlameKind;
use crate::origin::is_place;
use crate::profile::{Profile, mostly_yielding, samples_of};
use crate::slice;
use crate::starvation::{self, Starvation};
use crate::tasks;
use crate::verdict::{Class, Ran, SliceStep};

/// A thread that the most time was attributed to, and what it did in it.
pub(crate) struct Suspect {
    pub thread: Utid,
    pub class: Class,
    pub kind: BlameKind,
    /// Its pieces, in the order of time; where it ran, with the interrupts in between, which take the samples.
    pub windows: Vec<Range<u64>>,
    pub time: u64,
    /// What of it is of its class.
    pub time_of_class: u64,
    pub starvation: Option<Starvation>,
    pub function: Option<Function>,
    /// What it did while it ran, where that is what counts.
    pub ran: Option<Ran>,
    /// What led to that.
    pub slice: Vec<SliceStep>,
    /// Most of its time is that of many short-lived processes that it started.
    pub started: Option<Started>,
    /// Other threads of its process that did the same at other times, whose time is part of this one's:
    /// those that have a lock one after the other.
    pub alike: Vec<Alike>,
}

/// Another thread of a suspect's process that did the same.
pub(crate) struct Alike {
    pub thread: Utid,
    /// Its pieces, as a suspect's; none of one that only wanted to run.
    windows: Vec<Range<u64>>,
}

/// Many short-lived processes that one thread started one after the other.
pub(crate) struct Started {
    pub processes: usize,
    /// The name that most of their time went to.
    pub name: String,
}

/// So many moments of sleep are polling, if they are this short on average.
pub(crate) const POLLS: usize = 10;
const POLL_NS: u64 = 200_000_000;

/// Of what is so many times longer than the most that is known, it is said that it is not known.
const UNKNOWN_RULES: u64 = 2;
/// A thread had its fair share of a CPU if it ran for at least so much of the time that it was runnable
/// without one. Then its own work is the cause, and the other threads only slowed it down.
const SHARE: f64 = 0.6;
/// Who ran for less than this share of that did nothing, whoever kept it from the CPU.
const SOME: f64 = 0.1;
/// Who was kept from the CPU by its quota for so much of its time would have been done by far sooner.
const THROTTLED: f64 = 0.2;
/// Threads that share a CPU alternate: no single wait for it is longer than this part of all of them.
const TURN: f64 = 0.5;
/// So many are told of.
const MOST_SUSPECTS: usize = 3;
/// Who has so much of the time did it alone.
const NEARLY_ALL: f64 = 0.8;
/// So many are looked at for those that did the same.
const MOST_ALIKE: usize = 32;
/// Of those behind the first, who has less of the time is not.
const LEAST_SHARE: f64 = 0.02;

impl Suspect {
    /// Those to whom most of `blame` goes, most first, with the threads of `knot` before all others
    /// if there is one; `victim` alone where nothing is known.
    pub(crate) fn rank(
        evidence: &Evidence<'_>,
        blame: &Blame,
        victim: Utid,
        knot: Option<&Knot>,
    ) -> Vec<Suspect> {
        let all: u64 = blame.pieces.iter().map(|piece| piece.ns()).sum();
        let counts = |&(at, &(_, time)): &(usize, &(Utid, u64))| {
            at == 0 || time as f64 >= LEAST_SHARE * all as f64
        };
        let threads = ranked(blame, victim, knot);
        // Where no thread has nearly all of the time, many may have done the same one after the other.
        let is_shared = knot.is_none() && (threads[0].1 as f64) < NEARLY_ALL * all as f64;
        let looked_at = if is_shared { MOST_ALIKE } else { MOST_SUSPECTS };
        let suspects = threads
            .iter()
            .enumerate()
            .filter(counts)
            .take(looked_at)
            .map(|(_, &(thread, _))| Suspect::of(evidence, blame, thread, knot));
        let mut suspects: Vec<Suspect> = suspects.fold(Vec::new(), |mut suspects, next| {
            // Two may have been kept from a CPU by one.
            let named = |other: &Suspect| (other.culprit(), other.class);
            if suspects.iter().any(|other| named(other) == named(&next)) {
                return suspects;
            }
            match suspects
                .iter_mut()
                .find(|other| other.did_as(evidence, &next) || other.took_turns(evidence, &next))
            {
                Some(other) if is_shared => other.join(next),
                _ => suspects.push(next),
            }
            suspects
        });
        for suspect in &mut suspects {
            suspect.see_all(evidence);
        }
        if suspects.iter().any(|suspect| !suspect.alike.is_empty()) {
            suspects.sort_by_key(|suspect| std::cmp::Reverse(suspect.time));
        }
        suspects.truncate(MOST_SUSPECTS);
        suspects
    }

    /// Whether another thread of the same process did the same in the same function.
    fn did_as(&self, evidence: &Evidence<'_>, other: &Suspect) -> bool {
        let process = |suspect: &Suspect| evidence.threads.thread(suspect.thread).upid;
        let function = self.function.as_ref().map(|it| &it.name);
        let acts = matches!(
            self.kind,
            BlameKind::Run
                | BlameKind::Timer
                | BlameKind::Disk
                | BlameKind::Network
                | BlameKind::Paging
        );
        acts && (self.kind, self.class) == (other.kind, other.class)
            && process(self) == process(other)
            && function.is_some()
            && function == other.function.as_ref().map(|it| &it.name)
    }

    /// Whether both are threads of one scheduler: a task that ran went from one to the other.
    fn took_turns(&self, evidence: &Evidence<'_>, other: &Suspect) -> bool {
        let process = |suspect: &Suspect| evidence.threads.thread(suspect.thread).upid;
        (self.kind, self.class) == (BlameKind::Run, Class::LongRunning)
            && (other.kind, other.class) == (self.kind, self.class)
            && process(self) == process(other)
            && self.has_scheduler(evidence)
    }

    /// Whether a scheduler runs the tasks of its process.
    fn has_scheduler(&self, evidence: &Evidence<'_>) -> bool {
        match (self.windows.first(), self.windows.last()) {
            (Some(first), Some(last)) => {
                tasks::has_scheduler(evidence, self.thread, &(first.start..last.end))
            }
            _ => false,
        }
    }

    fn join(&mut self, other: Suspect) {
        self.alike.push(Alike {
            thread: other.thread,
            windows: other.windows,
        });
        self.time += other.time;
        self.time_of_class += other.time_of_class;
    }

    /// Tells what ran by the samples of all that joined it: not each of them need have been in the same function.
    fn see_all(&mut self, evidence: &Evidence<'_>) {
        if self.kind != BlameKind::Run || self.alike.is_empty() {
            return;
        }
        let mut samples = samples_of(evidence, self.thread, &self.windows);
        for other in &self.alike {
            samples.extend(samples_of(evidence, other.thread, &other.windows));
        }
        let profile = Profile::new(evidence, &samples);
        self.function = profile.function();
        if let Some(ran) = &mut self.ran {
            let all = profile.report(evidence, self.thread, &self.windows);
            *ran = Ran {
                threads: 1 + self.alike.len(),
                ns: self.time_of_class,
                begun: ran.begun.clone(),
                ..all
            };
        }
    }

    /// Whether a thread's time is this one's.
    pub(crate) fn has(&self, thread: Utid) -> bool {
        thread == self.thread || self.alike.iter().any(|it| it.thread == thread)
    }

    /// The first of them.
    pub(crate) fn first(
        evidence: &Evidence<'_>,
        blame: &Blame,
        victim: Utid,
        knot: Option<&Knot>,
    ) -> Suspect {
        let first = ranked(blame, victim, knot)
            .first()
            .map_or(victim, |&(thread, _)| thread);
        Suspect::of(evidence, blame, first, knot)
    }

    /// Who is to be named: of a starved thread the one that had its CPU.
    pub(crate) fn culprit(&self) -> Utid {
        match &self.starvation {
            Some(
                Starvation::Hog { thread, .. }
                | Starvation::Crowd {
                    most: Some(thread), ..
                },
            ) => *thread,
            _ => self.thread,
        }
    }

    fn of(evidence: &Evidence<'_>, blame: &Blame, thread: Utid, knot: Option<&Knot>) -> Suspect {
        let knot = knot.filter(|knot| knot.threads.contains(&thread));
        let of_thread = (blame.pieces.iter()).filter(|piece| blame.answerable(piece) == thread);
        let pieces: Vec<&Piece> = of_thread.collect();
        // What is not known of it says nothing about it, unless there is nothing else.
        let known: Vec<&Piece> = (pieces.iter().copied())
            .filter(|piece| piece.kind != BlameKind::Unknown)
            .collect();
        let time = |pieces: &[&Piece]| pieces.iter().map(|piece| piece.ns()).sum::<u64>();
        let is_known = time(&known).saturating_mul(UNKNOWN_RULES) >= time(&pieces) - time(&known);
        let pieces = if is_known && !known.is_empty() {
            known
        } else {
            pieces
        };
        let kind = match dominant(&pieces) {
            BlameKind::Run if has_used_up_quota(&pieces) => BlameKind::Runnable,
            kind => kind,
        };
        let of_kind: Vec<&Piece> = pieces.iter().copied().filter(|p| p.kind == kind).collect();
        let mut suspect = Suspect {
            thread,
            class: class_of(kind),
            kind,
            windows: match kind {
                BlameKind::Run => on_cpu(&pieces),
                _ => disjoint(of_kind.iter().copied()),
            },
            time: pieces.iter().map(|piece| piece.ns()).sum(),
            time_of_class: 0,
            starvation: None,
            function: None,
            ran: None,
            slice: Vec::new(),
            started: started(evidence, blame, &pieces),
            alike: Vec::new(),
        };
        if suspect.started.is_some() {
            // Where that is in the program tells more than what each of them did.
            let ways = blame.pieces_of(&suspect).max_by_key(|piece| piece.ns());
            let way = ways.map_or_else(Vec::new, |piece| blame.way_to(piece.step));
            suspect.time_of_class = suspect.time;
            suspect.function = (way.into_iter().rev())
                .filter_map(|step| blame.steps[step].reached.as_ref())
                .filter(|(waiting, _)| waiting.wait.thread == thread)
                .find_map(|(waiting, _)| {
                    function::own(evidence, waiting.wait.user_stack(evidence))
                });
            return suspect;
        }
        if knot.is_some() {
            suspect.class = Class::Circular;
        } else if kind != BlameKind::Gone && polls(evidence, blame, &pieces) {
            suspect.class = Class::RepeatedYield;
        }
        let may_be_in_faults = matches!(suspect.class, Class::LongRunning | Class::Starved);
        let in_faults = may_be_in_faults && is_in_faults(evidence, &pieces);
        if in_faults {
            suspect.class = Class::Paging;
            suspect.kind = BlameKind::Paging;
        }
        // A circle and asking again and again are made of all kinds.
        suspect.time_of_class = match suspect.class {
            Class::Circular | Class::RepeatedYield => suspect.time,
            Class::Paging if in_faults => suspect.time,
            _ => time(&of_kind),
        };
        if suspect.class == Class::Starved {
            let throttled = throttled(&of_kind);
            let why = starvation::explain(evidence, thread, &suspect.windows, throttled);
            suspect.starvation = Some(why);
            let ran: u64 = (pieces.iter().filter(|piece| is_on_cpu(piece)))
                .map(|piece| piece.ns())
                .sum();
            let longest = suspect.windows.iter().map(|w| w.end - w.start).max();
            let in_turns = longest.unwrap_or(0) as f64 <= TURN * suspect.time_of_class as f64;
            let has_its_share =
                in_turns && suspect.shares() && ran as f64 >= SHARE * suspect.time_of_class as f64;
            let ran_too = ran as f64 >= SOME * suspect.time_of_class as f64;
            if has_its_share || ran_too && suspect.is_in_own_way(evidence) {
                suspect.class = Class::LongRunning;
                suspect.kind = BlameKind::Run;
                suspect.starvation = None;
                suspect.windows = on_cpu(&pieces);
                suspect.time_of_class = ran;
            } else if suspect.is_in_own_way(evidence) && suspect.has_scheduler(evidence) {
                // Its program went on with another of its tasks.
                suspect.alike.push(Alike {
                    thread,
                    windows: Vec::new(),
                });
                suspect.thread = suspect.culprit();
                suspect.class = Class::LongRunning;
                suspect.kind = BlameKind::Run;
                suspect.starvation = None;
            }
        }
        match suspect.ran_in(&pieces) {
            Some((thread, windows)) => {
                let profile = Profile::new(evidence, &samples_of(evidence, thread, &windows));
                suspect.function = profile.function();
                let mut ran = profile.report(evidence, thread, &windows);
                let shown = pieces
                    .iter()
                    .copied()
                    .filter(|piece| match thread == suspect.thread {
                        true => is_on_cpu(piece),
                        false => piece.kind == suspect.kind,
                    });
                ran.ns = (ran.ns as f64 * stand_for(shown)) as u64;
                suspect.ran = Some(ran);
                let is_within = |stack| profile.is_within(evidence, stack);
                suspect.slice = slice::back(evidence, thread, &windows, is_within);
            }
            None => {
                let of_kind: Vec<&Piece> = (pieces.iter().copied())
                    .filter(|piece| piece.kind == suspect.kind)
                    .collect();
                suspect.function = suspect.waited_in(evidence, blame, &of_kind);
                let has_name = |function: &Function| !is_place(&function.name);
                if in_faults && !suspect.function.as_ref().is_some_and(has_name) {
                    let samples = samples_of(evidence, thread, &on_cpu(&pieces));
                    suspect.function = Profile::new(evidence, &samples).function();
                }
                let from = suspect.windows.first().map_or(0, |window| window.start);
                let moment = from.saturating_sub(1)..from;
                suspect.slice = slice::back(evidence, thread, &[moment], |_| false);
            }
        }
        suspect
    }

    /// Whether it had to share a CPU with others that have no more right to it.
    fn shares(&self) -> bool {
        let outranks = matches!(
            self.starvation,
            Some(Starvation::Hog { outranks: true, .. })
        );
        let is_limit = matches!(
            self.starvation,
            Some(Starvation::Quota | Starvation::Withheld { .. })
        );
        !outranks && !is_limit
    }

    /// Whether others of its own program, which runs more than fits, kept it from the CPU, and none that
    /// goes before it.
    fn is_in_own_way(&self, evidence: &Evidence<'_>) -> bool {
        let process = |thread: Utid| evidence.threads.thread(thread).upid;
        match self.starvation {
            Some(
                Starvation::Crowd {
                    most: Some(other),
                    outranks: false,
                    ..
                }
                | Starvation::Hog {
                    thread: other,
                    outranks: false,
                    ..
                },
            ) => process(other) == process(self.thread),
            _ => false,
        }
    }

    /// Whose running tells what the time went to, and when; none where that was a wait.
    fn ran_in(&self, pieces: &[&Piece]) -> Option<(Utid, Vec<Range<u64>>)> {
        match (&self.starvation, self.kind) {
            (Some(Starvation::Hog { thread, .. }), _) => Some((*thread, self.windows.clone())),
            // What it did, if only with the little that it got.
            (_, BlameKind::Run | BlameKind::Runnable) => {
                let ran = on_cpu(pieces);
                let ran = if ran.is_empty() {
                    self.windows.clone()
                } else {
                    ran
                };
                Some((self.thread, ran))
            }
            _ => None,
        }
    }

    /// The function that most of its waits were in, by their time.
    fn waited_in(
        &self,
        evidence: &Evidence<'_>,
        blame: &Blame,
        of_kind: &[&Piece],
    ) -> Option<Function> {
        // Most waits of a thread have few stacks.
        let mut by_stack: HashMap<(StackId, usize), (u64, &Piece)> = HashMap::new();
        for &piece in of_kind {
            let wait = piece.wait.as_ref();
            let stack = wait.map_or(NO_STACK, |(waiting, _)| waiting.wait.user_stack(evidence));
            let (ns, longest) = by_stack.entry((stack, piece.step)).or_insert((0, piece));
            *ns = ns.saturating_add(piece.ns());
            if piece.ns() > longest.ns() {
                *longest = piece;
            }
        }
        let all = (by_stack.values()).fold(0_u64, |sum, (ns, _)| sum.saturating_add(*ns));
        let mut functions: HashMap<String, (u64, u64, Function)> = HashMap::new();
        for (ns, piece) in by_stack.into_values() {
            let Some(function) = self.waited_in_piece(evidence, blame, piece) else {
                continue;
            };
            let longest = piece.ns();
            let (sum, length, known) =
                functions
                    .entry(function.name.clone())
                    .or_insert((0, 0, function.clone()));
            *sum = sum.saturating_add(ns);
            if longest > *length {
                (*length, *known) = (longest, function);
            }
        }
        let functions = functions.into_values();
        let most = functions.max_by(|a, b| (a.0, a.1, &a.2.name).cmp(&(b.0, b.1, &b.2.name)));
        most.map(|(ns, _, function)| Function {
            share: ns as f64 / all.max(1) as f64,
            ..function
        })
    }

    /// The function that a wait was in.
    fn waited_in_piece(
        &self,
        evidence: &Evidence<'_>,
        blame: &Blame,
        piece: &Piece,
    ) -> Option<Function> {
        // A kernel thread that waits on behalf of another has no user stack: that other's tells.
        let way = blame.way_to(piece.step).into_iter().rev();
        let above = way
            .filter_map(|step| blame.steps[step].reached.as_ref())
            .filter(|(waiting, _)| waiting.wait.thread == self.thread);
        // Who waits for the network to be asked does so on behalf of this one.
        let own = (piece.wait.iter()).filter(|(waiting, _)| {
            self.kind != BlameKind::Network || waiting.wait.thread == self.thread
        });
        own.chain(above)
            .find_map(|(waiting, _)| function::own(evidence, waiting.wait.user_stack(evidence)))
    }
}

/// The processes that most of the pieces are of, where one thread answers for many.
fn started(evidence: &Evidence<'_>, blame: &Blame, pieces: &[&Piece]) -> Option<Started> {
    let all: u64 = pieces.iter().map(|piece| piece.ns()).sum();
    let of_others = pieces
        .iter()
        .filter(|piece| blame.starters.contains_key(&piece.thread));
    let mut processes = HashSet::new();
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    for piece in of_others {
        let process = evidence.threads.process_of(piece.thread);
        processes.insert(process.upid);
        *names.entry(&process.name).or_default() += piece.ns();
    }
    let is_most = names.values().sum::<u64>() > all / 2;
    let (name, _) = names.into_iter().max_by_key(|&(_, ns)| ns)?;
    is_most.then(|| Started {
        processes: processes.len(),
        name: name.to_owned(),
    })
}

/// Threads with the time that was attributed to them, as [`Suspect::rank`] has them.
fn ranked(blame: &Blame, victim: Utid, knot: Option<&Knot>) -> Vec<(Utid, u64)> {
    let mut times: HashMap<Utid, u64> = HashMap::new();
    for piece in &blame.pieces {
        if piece.kind != BlameKind::Unknown {
            *times.entry(blame.answerable(piece)).or_default() += piece.ns();
        }
    }
    // Where nearly nothing is known, the little that is says less than where knowledge ends.
    let best = times.values().copied().max().unwrap_or(0);
    let is_unknown = |piece: &&Piece| piece.kind == BlameKind::Unknown;
    let unknown = || blame.pieces.iter().filter(is_unknown);
    let longest = unknown().max_by_key(|piece| piece.ns());
    let unknown: u64 = unknown().map(|piece| piece.ns()).sum();
    if let Some(longest) = longest.filter(|_| unknown > best.saturating_mul(UNKNOWN_RULES)) {
        return vec![(blame.answerable(longest), 0)];
    }
    let in_knot = |thread: Utid| knot.is_some_and(|knot| knot.threads.contains(&thread));
    // A circle has no beginning: each of its threads is as much to blame as the others.
    for &thread in knot.iter().flat_map(|knot| &knot.threads) {
        times.entry(thread).or_default();
    }
    let mut ranked: Vec<(Utid, u64)> = times.into_iter().collect();
    ranked.sort_by_key(|&(thread, time)| std::cmp::Reverse((in_knot(thread), time, thread)));
    if ranked.is_empty() {
        ranked.push((victim, 0));
    }
    ranked
}

/// Whether a thread's time went to asking again and again. One that sleeps once each time that it is asked
/// does not poll, nor does one that gives a piece of the answer after each sleep, or sends something that nobody
/// answers: it takes its time on purpose.
fn polls(evidence: &Evidence<'_>, blame: &Blame, pieces: &[&Piece]) -> bool {
    let Some(thread) = pieces.first().map(|piece| piece.thread) else {
        return false;
    };
    let visits = blame.visits(thread);
    // A sleep that was looked at piece by piece is one.
    let mut sleeps: HashMap<u64, usize> = HashMap::new();
    for piece in pieces {
        if let Some((waiting, _)) = &piece.wait
            && waiting.wait.kind == WaitKind::Sleep
        {
            let count = sleeps.entry(waiting.wait.start).or_default();
            *count = piece.count.max(*count);
        }
    }
    let sleeps: usize = sleeps.values().sum();
    let time = |kind| {
        pieces
            .iter()
            .filter(|p| p.kind == kind)
            .map(|p| p.ns())
            .sum::<u64>()
    };
    let (slept, ran) = (time(BlameKind::Timer), time(BlameKind::Run));
    let all: u64 = pieces.iter().map(|piece| piece.ns()).sum();
    // Who was runnable for most of the time was kept from more than looking.
    let slept_most = slept > ran && slept > all / 4;
    if sleeps >= POLLS.max(2 * visits) && slept / sleeps as u64 <= POLL_NS && slept_most {
        let gives =
            answers(evidence, blame, thread, pieces).max(sends_only(evidence, thread, pieces));
        return gives * 2 < sleeps;
    }
    let yields = pieces
        .iter()
        .filter(|piece| piece.left == Some(Left::Yielded))
        .map(|piece| piece.count)
        .sum::<usize>();
    let yielded: u64 = pieces
        .iter()
        .filter(|piece| piece.left == Some(Left::Yielded))
        .map(|piece| piece.ns())
        .sum();
    if yields >= POLLS && yielded > ran {
        return true;
    }
    // Yields without a competitor leave no switch: only samples show them. But who was runnable for
    // most of the time was kept from one.
    if ran.saturating_add(yielded) <= all / 2 {
        return false;
    }
    let samples = samples_of(evidence, thread, &on_cpu(pieces));
    samples.len() >= POLLS && mostly_yielding(evidence, &samples)
}

/// From the begin of the first piece to the end of the last.
fn span(pieces: &[&Piece]) -> Option<(u64, u64)> {
    let parts = || pieces.iter().flat_map(|piece| piece.parts.iter());
    let from = parts().map(|part| part.start).min()?;
    Some((from, parts().map(|part| part.end).max()?))
}

/// How often more a thread sent something than it received, from the first of its pieces to the last.
fn sends_only(evidence: &Evidence<'_>, thread: Utid, pieces: &[&Piece]) -> usize {
    let Some((from, to)) = span(pieces) else {
        return 0;
    };
    let transfers = evidence.transfers;
    let first = transfers.ts.partition_point(|&ts| ts < from);
    let last = transfers.ts.partition_point(|&ts| ts < to);
    let own = (first..last).filter(|&row| transfers.thread[row] == thread);
    let (sent, received): (Vec<usize>, Vec<usize>) = own.partition(|&row| transfers.sent[row]);
    sent.len().saturating_sub(received.len())
}

/// How often a thread woke one of those that wait for it, from the first of its pieces to the last.
fn answers(evidence: &Evidence<'_>, blame: &Blame, thread: Utid, pieces: &[&Piece]) -> usize {
    let reached = (blame.steps.iter()).filter_map(|step| step.reached.as_ref());
    let waiters: HashSet<Utid> = reached.map(|(waiting, _)| waiting.wait.thread).collect();
    let Some((from, to)) = span(pieces) else {
        return 0;
    };
    let woken = evidence.wakes_by(thread, from, to);
    let waits = |&row: &usize| {
        let wakee = evidence.wakes.wakee[row];
        wakee != thread && waiters.contains(&wakee)
    };
    woken.filter(waits).count()
}

/// Whether a thread ran to have memory paged in: the samples of its running lie in page faults, and it
/// waited for that too, or they bring in what was swapped out: to memory that is compressed that takes
/// no wait.
fn is_in_faults(evidence: &Evidence<'_>, pieces: &[&Piece]) -> bool {
    const WAITED: f64 = 0.1;
    const IN_FAULTS: f64 = 0.5;
    let all: u64 = pieces.iter().map(|piece| piece.ns()).sum();
    let paging = pieces
        .iter()
        .filter(|piece| piece.kind == BlameKind::Paging);
    let paging: u64 = paging.map(|piece| piece.ns()).sum();
    let Some(thread) = pieces.first().map(|piece| piece.thread) else {
        return false;
    };
    let waited = paging as f64 >= WAITED * all as f64;
    let mark = if waited {
        Mark::PageFault
    } else {
        Mark::SwapIn
    };
    let samples = samples_of(evidence, thread, &on_cpu(pieces));
    let in_fault = |&&row: &&usize| evidence.shows(evidence.samples.kernel_stack[row], mark);
    let faults = samples.iter().filter(in_fault).count();
    samples.len() >= POLLS && faults as f64 >= IN_FAULTS * samples.len() as f64
}

/// When a thread was on a CPU. A sample is taken by an interrupt, so the time that interrupts took
/// belongs to it.
fn on_cpu(pieces: &[&Piece]) -> Vec<Range<u64>> {
    disjoint(pieces.iter().copied().filter(|piece| is_on_cpu(piece)))
}

fn is_on_cpu(piece: &Piece) -> bool {
    matches!(piece.kind, BlameKind::Run | BlameKind::Interrupt)
}

/// How many times their own length the times of pieces stand for.
fn stand_for<'p>(pieces: impl Iterator<Item = &'p Piece>) -> f64 {
    let (own, all) = pieces.fold((0, 0), |(own, all), piece| {
        let length: u64 = piece.parts.iter().map(|part| part.end - part.start).sum();
        (own + length, all + piece.ns())
    });
    match own {
        0 => 1.0,
        own => all as f64 / own as f64,
    }
}

/// The times of pieces, in order and joined where they meet.
fn disjoint<'p>(pieces: impl Iterator<Item = &'p Piece>) -> Vec<Range<u64>> {
    let mut windows: Vec<_> = pieces
        .flat_map(|piece| piece.parts.iter().cloned())
        .collect();
    windows.sort_by_key(|window| window.start);
    windows.dedup_by(|next, last| {
        let overlap = next.start <= last.end;
        if overlap {
            last.end = last.end.max(next.end);
        }
        overlap
    });
    windows
}

/// Whether a thread was kept from the CPU by its quota for much of its time.
fn has_used_up_quota(pieces: &[&Piece]) -> bool {
    let all: u64 = pieces.iter().map(|piece| piece.ns()).sum();
    throttled(pieces) as f64 >= THROTTLED * all as f64
}

/// For how long pieces show that a thread was kept from the CPU by its quota, ns.
fn throttled(pieces: &[&Piece]) -> u64 {
    let throttled = pieces
        .iter()
        .filter(|piece| piece.left == Some(Left::Throttled));
    let parts = throttled.flat_map(|piece| piece.parts.iter());
    parts.map(|part| part.end - part.start).sum()
}

fn dominant(pieces: &[&Piece]) -> BlameKind {
    let mut times: HashMap<BlameKind, u64> = HashMap::new();
    for piece in pieces {
        *times.entry(piece.kind).or_default() += piece.ns();
    }
    let most = times
        .into_iter()
        .max_by_key(|&(kind, time)| (time, std::cmp::Reverse(kind)));
    most.map_or(BlameKind::Unknown, |(kind, _)| kind)
}

fn class_of(kind: BlameKind) -> Class {
    match kind {
        BlameKind::Run => Class::LongRunning,
        BlameKind::Runnable => Class::Starved,
        BlameKind::Interrupt => Class::Interrupted,
        BlameKind::Paging => Class::Paging,
        BlameKind::Unknown => Class::Unknown,
        BlameKind::Lock
        | BlameKind::Message
        | BlameKind::Disk
        | BlameKind::Network
        | BlameKind::Stopped
        | BlameKind::Gone
        | BlameKind::Kernel
        | BlameKind::Timer => Class::LongWait,
    }
}

impl Blame {
    fn is_of(&self, piece: &Piece, suspect: &Suspect) -> bool {
        suspect.has(self.answerable(piece)) && piece.kind == suspect.kind
    }

    /// What the suspect is to blame for, in the order of time.
    pub(crate) fn pieces_of<'a>(
        &'a self,
        suspect: &'a Suspect,
    ) -> impl Iterator<Item = &'a Piece> + Clone {
        (self.pieces.iter()).filter(|piece| self.is_of(piece, suspect))
    }

    /// The step in which the suspect spent the most of what it is to blame for; where nothing is
    /// known of it, the step that most of the time was attributed to.
    pub(crate) fn main_step(&self, suspect: &Suspect) -> usize {
        let any = self.pieces_of(suspect).next().is_some();
        let mut times: HashMap<usize, u64> = HashMap::new();
        for piece in &self.pieces {
            if !any || self.is_of(piece, suspect) {
                *times.entry(piece.step).or_default() += piece.ns();
            }
        }
        times
            .into_iter()
            .max_by_key(|&(step, time)| (time, std::cmp::Reverse(step)))
            .map_or(0, |(step, _)| step)
    }
}
