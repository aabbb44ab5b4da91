//! Which thread a polling thread waits for.

use hangdog_trace::Process;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{NONE, Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::words::HandoffStep;

use super::clients::upkeep;
use super::kin::{ancestors, first_thread, is_descendant, started_together};
use super::who::{is_amid, is_home, is_there, is_upkeep, thread_of, wait_at};
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::file_locks::{self, File};
use crate::marks::Mark;
use crate::names::PACKAGE_MANAGERS;
use crate::wait::{Wait, WaitKind};
use crate::wake::was_death;
use hangdog_timeline::{Interval, State};
use std::collections::HashSet;
use std::iter;
use std::ops::Range;

/// Whom a thread waits for by asking again and again, with sleeps in between, or in the kernel for
/// the lock of a file: who has that, or the child that is to end. `wake` is the row of `wakes` that
/// ended the wait, `until` its end, or that of the part of it that is looked at.
pub fn asked_again(
    evidence: &Evidence<'_>,
    wait: &Wait,
    wake: Option<usize>,
    until: u64,
) -> Option<Edge> {
    // Who woke a thread that waited for the lock is the one that gave it back.
    let is_kept_out = match wait.kind {
        WaitKind::Sleep => true,
        WaitKind::Lock => {
            wait.object(evidence).kind() == ObjectKind::File
                && wake.is_none_or(|wake| was_interrupted(evidence, wait, wake))
        }
        _ => false,
    };
    let by_lock = is_kept_out
        .then(|| {
            file_lock(evidence, wait, until)
                .or_else(|| open_file_lock(evidence, wait, until))
                .or_else(|| released_later(evidence, wait, until))
        })
        .flatten();
    by_lock.or_else(|| match wait.kind {
        // Who naps until the recording has ended waits for nobody's doing.
        WaitKind::Sleep if awaits_recorder(evidence, wait) => None,
        // A session of a database looks each second.
        WaitKind::Poll => upkeep(evidence, wait),
        WaitKind::Sleep => awaited_child(evidence, wait)
            .or_else(|| late_for_safepoint(evidence, wait, until))
            .or_else(|| child_looked_after(evidence, wait, until))
            .or_else(|| lock_file(evidence, wait, until))
            .or_else(|| asked_before(evidence, wait, until))
            .or_else(|| named_by_command(evidence, wait, until)),
        _ => None,
    })
}

/// So long before its naps a program may have started or asked the one that it waits for, ns.
const SOON_NS: u64 = 200_000_000;

/// How long each nap of a program is, ns, of which a wait consists up to `until`: of several, each of at most
/// `longest` ns.
fn nap_ns(evidence: &Evidence<'_>, wait: &Wait, until: u64, longest: u64) -> Option<u64> {
    const FEWEST: u64 = 5;
    let nap = (wait.asked_ns(evidence)).filter(|&nap| nap <= longest)?;
    let length = until.saturating_sub(wait.start);
    (length >= FEWEST * nap && evidence.stands_for_program(wait.thread)).then_some(nap)
}

/// The child that a program looks after whether it has ended or is ready, napping in between: the only one that
/// lives, if it was started right before the naps began, or lived before as they did, and has not ended before
/// they did. It has something to do, or the one of its descendants that has.
pub fn child_looked_after(evidence: &Evidence<'_>, wait: &Wait, until: u64) -> Option<Edge> {
    const LONGEST_NAP_NS: u64 = 250_000_000;
    let nap = nap_ns(evidence, wait, until, LONGEST_NAP_NS)?;
    let middle = wait.start + until.saturating_sub(wait.start) / 2;
    let end = evidence.timeline.end();
    let child = only_child(evidence, wait.thread, middle)?;
    let life = evidence.timeline.life(child);
    let began = life.start <= wait.start
        && (wait.start - life.start <= SOON_NS
            || only_napped(evidence, wait.thread, life.start..wait.start));
    let lasts = life.end >= until.min(end) || until - life.end <= 2 * nap;
    if !began || !lasts {
        return None;
    }
    let at_work = at_work_below(evidence, child, middle)?;
    let (child, name) = (evidence.name(child), evidence.name(at_work));
    let who = match name == child {
        true => format!("its child {child}"),
        false => format!("{name}, which its child {child} started,"),
    };
    let reason = format!("it sleeps briefly again and again, and {who} goes on meanwhile");
    let source = Source::Thread(at_work);
    Some(Edge::new(EdgeKind::Amid, Strength::Weak, source, reason))
}

/// Whether a thread did hardly anything but sleep in a part of its life, of not too many intervals.
fn only_napped(evidence: &Evidence<'_>, thread: Utid, part: Range<u64>) -> bool {
    hardly_but(evidence, thread, part, |interval| {
        interval.state == State::Blocked
            && Wait::new(evidence, thread, interval).kind == WaitKind::Sleep
    })
}

/// Whether a part of a thread's life, of not too many intervals, consists of hardly any but such ones.
fn hardly_but(
    evidence: &Evidence<'_>,
    thread: Utid,
    part: Range<u64>,
    is_such: impl Fn(&Interval) -> bool,
) -> bool {
    const MOST_INTERVALS: usize = 4000;
    const HARDLY: f64 = 0.1;
    let intervals = evidence.timeline.intervals(thread);
    let mut other = 0;
    for (at, interval) in intervals.between(part.start, part.end).enumerate() {
        if at == MOST_INTERVALS {
            return false;
        }
        if !is_such(&interval) {
            other += interval.end.min(part.end) - interval.start.max(part.start);
        }
    }
    other as f64 <= part.end.saturating_sub(part.start) as f64 * HARDLY
}

/// A process's first thread if that is in the middle of work at a moment; where it has nothing to do, the first
/// thread of the only one of its descendants that has, those above which have nothing to do either.
fn at_work_below(evidence: &Evidence<'_>, first: Utid, at: u64) -> Option<Utid> {
    if is_amid(evidence, first, at) {
        return Some(first);
    }
    let top = evidence.threads.thread(first).upid;
    let works = |upid: Upid| {
        let thread = first_thread(evidence, upid).filter(|&it| is_there(evidence, it, at))?;
        let there = wait_at(evidence, thread, at);
        let rests = there.is_some_and(|there| {
            is_home(evidence, &there) || matches!(there.kind, WaitKind::Sleep | WaitKind::Timer)
        });
        (!rests).then_some(thread)
    };
    let rests_above = |upid: Upid| {
        let mut above = ancestors(evidence, upid).take_while(|&above| above != top);
        above.all(|above| works(above).is_none())
    };
    let below = evidence.threads.processes().map(|process| process.upid);
    let mut found = below
        .filter(|&upid| upid != top && is_descendant(evidence, upid, top))
        .filter(|&upid| rests_above(upid))
        .filter_map(works);
    found.next().filter(|_| found.next().is_none())
}

/// Whom a program asked for something right before it began to look, napping in between, whether that is done: by
/// a signal, or by what it wrote, as those do that stop a service and wait for its end.
pub fn asked_before(evidence: &Evidence<'_>, wait: &Wait, until: u64) -> Option<Edge> {
    const LONGEST_NAP_NS: u64 = 1_000_000_000;
    nap_ns(evidence, wait, until, LONGEST_NAP_NS)?;
    let middle = wait.start + until.saturating_sub(wait.start) / 2;
    let process = evidence.threads.thread(wait.thread).upid;
    let before = wait.start.saturating_sub(SOON_NS);
    let asked = evidence
        .wakes_by(wait.thread, before, wait.start)
        .filter(|&row| awaits_answer(evidence, process, row))
        .last()?;
    let thread = evidence.wakes.wakee[asked];
    let by_signal = evidence.call(evidence.wakes.call[asked]) == Call::Kill;
    let other = evidence.threads.thread(thread).upid;
    let answers = first_thread(evidence, other).unwrap_or(thread);
    if !is_there(evidence, answers, middle) {
        return None;
    }
    let did = match by_signal {
        true => "sent a signal to",
        false => "wrote to",
    };
    let name = evidence.name(answers);
    let reason = format!("it {did} {name} and has slept briefly again and again since");
    let source = Source::Thread(answers);
    Some(Edge::new(EdgeKind::Asked, Strength::Weak, source, reason))
}

/// The program that the command line of one that looks again and again names, as those do that await a service's end:
/// by its name, its executable, a file named after it with its pid, or its pid.
fn named_by_command(evidence: &Evidence<'_>, wait: &Wait, until: u64) -> Option<Edge> {
    const LONGEST_NAP_NS: u64 = 1_000_000_000;
    nap_ns(evidence, wait, until, LONGEST_NAP_NS)?;
    let middle = wait.start + until.saturating_sub(wait.start) / 2;
    let own = evidence.threads.process_of(wait.thread);
    let words = own.command.split([' ', '=']).skip(1);
    let names: HashSet<&str> = words
        .filter(|word| !word.starts_with('-'))
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .map(|file| file.strip_suffix(".pid").unwrap_or(file))
        .collect();
    // `--pid 12` or `--pid=12`; any other number may be a port or a time.
    let parts = || own.command.split([' ', '=']);
    let is_option = |word: &str| word.starts_with('-') && word.ends_with("pid");
    let pids: HashSet<u32> = parts()
        .zip(parts().skip(1))
        .filter(|&(option, _)| is_option(option))
        .filter_map(|(_, pid)| pid.parse().ok())
        .collect();
    let is_named = |process: &Process| {
        !process.name.is_empty() && names.contains(process.name.as_str())
            || pids.contains(&process.pid)
    };
    let is_apart = |process: &Process| {
        process.upid != own.upid
            && process.name != own.name
            && !evidence.is_recorders(process.upid)
            && !is_descendant(evidence, process.upid, own.upid)
            && !is_descendant(evidence, own.upid, process.upid)
    };
    let mut named = evidence
        .threads
        .processes()
        .filter(|process| is_named(process) && is_apart(process))
        .filter_map(|process| first_thread(evidence, process.upid))
        .filter(|&first| is_there(evidence, first, middle));
    // Of several the one that started the others.
    let first = named.next()?;
    let top = evidence.threads.thread(first).upid;
    if !named.all(|other| is_descendant(evidence, evidence.threads.thread(other).upid, top)) {
        return None;
    }
    let name = evidence.name(first);
    let reason =
        format!("it sleeps briefly again and again meanwhile, and its command line names {name}");
    let source = Source::Thread(first);
    Some(Edge::new(EdgeKind::Asked, Strength::Weak, source, reason))
}

/// Whether a process asked for something by a wake: of another program, not of those that started it, nor of one
/// that was started with it, or with one of those, and reads what it prints.
fn awaits_answer(evidence: &Evidence<'_>, process: Upid, row: usize) -> bool {
    let wakee = evidence.threads.thread(evidence.wakes.wakee[row]);
    let reads_output = || {
        let mut own = iter::once(process).chain(ancestors(evidence, process));
        own.any(|own| started_together(evidence, own, wakee.upid) == Some(true))
    };
    let is_asked = match evidence.call(evidence.wakes.call[row]) {
        Call::Kill => true,
        Call::Write | Call::Send => !reads_output(),
        _ => false,
    };
    is_asked
        && !wakee.is_kernel()
        && wakee.upid != process
        && !evidence.is_recorders(wakee.upid)
        && !is_descendant(evidence, process, wakee.upid)
        && !is_descendant(evidence, wakee.upid, process)
}

/// The thread of a virtual machine that runs on while the machine waits for all of its threads to stop: code
/// without a point at which it would (a counted loop) keeps all others waiting.
fn late_for_safepoint(evidence: &Evidence<'_>, wait: &Wait, until: u64) -> Option<Edge> {
    if !evidence.shows(wait.user_stack(evidence), Mark::AwaitsSafepoint) {
        return None;
    }
    let length = until.saturating_sub(wait.start);
    let moments = [1, 2, 3].map(|quarter| wait.start + length / 4 * quarter);
    let goes_on = |thread: Utid| {
        let is_off = |moment| wait_at(evidence, thread, moment).is_some();
        !moments
            .into_iter()
            .any(|it| is_off(it) || !is_there(evidence, thread, it))
    };
    let threads = &evidence.threads.process_of(wait.thread).threads;
    let mut late = (threads.iter().copied())
        .filter(|&other| other != wait.thread && !is_upkeep(evidence, other) && goes_on(other));
    let first = late.next()?;
    let strength = match late.next() {
        None => Strength::Strong,
        Some(_) => Strength::Weak,
    };
    let reason = format!(
        "{} runs on without reaching the safepoint at which it is to stop",
        evidence.name(first)
    );
    let source = Source::Thread(first);
    Some(Edge::new(EdgeKind::Holder, strength, source, reason))
}

/// The first thread of the only child that a thread's process has at a moment.
pub(super) fn only_child(evidence: &Evidence<'_>, thread: Utid, moment: u64) -> Option<Utid> {
    let process = evidence.threads.thread(thread).upid;
    let children = (evidence.threads.processes()).filter(|child| child.parent == process);
    let mut alive = children
        .filter_map(|child| first_thread(evidence, child.upid))
        .filter(|&child| is_there(evidence, child, moment));
    alive.next().filter(|_| alive.next().is_none())
}

/// Whether an event loop waits while the only child of its process runs, which it started right before, and
/// until that ends; or it has hardly done anything but wait from the start of a child to that one's end, whatever
/// woke it for moments.
pub fn waits_out_child(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    const SOON_NS: u64 = 100_000_000;
    if !matches!(wait.kind, WaitKind::Poll | WaitKind::Idle)
        || !evidence.stands_for_program(wait.thread)
    {
        return false;
    }
    let middle = wait.start + wait.duration() / 2;
    let Some(child) = only_child(evidence, wait.thread, middle) else {
        return false;
    };
    let life = evidence.timeline.life(child);
    let is_new = life.start > 0 && life.start.abs_diff(wait.start) <= SOON_NS;
    let ends_with_it =
        life.end >= evidence.timeline.end() || life.end.abs_diff(wait.end) <= SOON_NS;
    // One that goes on may be there for whatever is asked of it.
    let only_waits = || {
        life.start > 0
            && life.end < evidence.timeline.end()
            && hardly_but(evidence, wait.thread, life, |interval| {
                interval.state == State::Blocked
            })
    };
    is_new && ends_with_it || only_waits()
}

/// The child that a thread waits for in a library's function that looks whether it has ended, and
/// for what it writes meanwhile: the last one that its process made.
pub(super) fn awaited_child(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if !evidence.shows(wait.user_stack(evidence), Mark::AwaitsChild) {
        return None;
    }
    let process = evidence.threads.thread(wait.thread).upid;
    let children = evidence
        .threads
        .processes()
        .filter(|child| child.parent == process);
    let was_there = |&child: &Utid| {
        let life = evidence.timeline.life(child);
        life.start < wait.end && wait.start < life.end
    };
    let alive = children
        .filter_map(|child| first_thread(evidence, child.upid))
        .filter(was_there);
    let last = alive.max_by_key(|&child| (evidence.timeline.life(child).start, child))?;
    let reason = format!("it waits for its child {} to end", evidence.name(last));
    Some(Edge::new(
        EdgeKind::Awaited,
        Strength::Strong,
        Source::Thread(last),
        reason,
    ))
}

/// Whether the child that a thread waits for in such a function is the recorder.
fn awaits_recorder(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    awaited_child(evidence, wait).is_some_and(|edge| match edge.source {
        Source::Thread(child) => evidence.is_recorders(evidence.threads.thread(child).upid),
        _ => false,
    })
}

/// Who has the lock of a file whose taker had ended before the wait began. The lock belongs to the open file, which
/// a child of the taker has inherited, or which the taker, as flock(1), has from the script that started it.
pub(crate) fn inherited_lock(evidence: &Evidence<'_>, wait: &Wait, taker: Utid) -> Option<Edge> {
    let ended = evidence.timeline.life(taker).end;
    if wait.object(evidence).kind() != ObjectKind::File || ended > wait.start {
        return None;
    }
    let process = evidence.threads.thread(taker).upid;
    let own = evidence.threads.thread(wait.thread).upid;
    let main = |it: Upid| first_thread(evidence, it).filter(|&it| is_there(evidence, it, wait.end));
    let child_of = |it: Upid| {
        let others = evidence.threads.processes().map(|other| other.upid);
        let mut others = others.filter(|&other| other != own && is_descendant(evidence, other, it));
        others.find_map(main)
    };
    let mut sharers = iter::once(process).chain(ancestors(evidence, process));
    // Of a script that has ended, what it left in the background shares the file.
    let heir = sharers.find_map(|it| main(it).or_else(|| child_of(it)))?;
    let reason = format!(
        "{} took the lock and has ended; the lock stays with the open file, which {} shares",
        evidence.name(taker),
        evidence.name(heir)
    );
    Some(Edge::new(
        EdgeKind::Holder,
        Strength::Weak,
        Source::Thread(heir),
        reason,
    ))
}

/// Who has the lock of the file that `wait` is for, or that its thread was refused in the course of
/// the wait or right before it; `until` is where the wait ends, or the part of it that is looked at.
fn file_lock(evidence: &Evidence<'_>, wait: &Wait, until: u64) -> Option<Edge> {
    struct Held {
        file: File,
        holder: Utid,
        count: usize,
        last: usize,
    }
    let handoffs = evidence.handoffs;
    let since = wait.start.saturating_sub(REFUSED_WITHIN_NS);
    // A wait for the lock itself names the file, a sleep between two tries does not.
    let wanted = (wait.kind == WaitKind::Lock).then(|| wait.object(evidence).0);
    let mut all: Vec<Held> = Vec::new();
    for row in evidence.file_lock_steps(wait.thread, since, until) {
        let file = file_locks::file(handoffs, row);
        let holder = handoffs.other[row];
        match HandoffStep::from(handoffs.step[row]) {
            HandoffStep::Refused | HandoffStep::Waiting
                if holder != NONE
                    && holder != wait.thread
                    && wanted.is_none_or(|object| object == handoffs.object[row]) =>
            {
                let known = all
                    .iter_mut()
                    .find(|held| (held.file, held.holder) == (file, holder));
                match known {
                    Some(held) => {
                        held.count += 1;
                        held.last = row;
                    }
                    None => all.push(Held {
                        file,
                        holder,
                        count: 1,
                        last: row,
                    }),
                }
            }
            // It has got it before it waited.
            HandoffStep::Taken if handoffs.ts[row] <= wait.start => {
                all.retain(|held| held.file != file);
            }
            _ => {}
        }
    }
    let most = all.into_iter().max_by_key(|held| (held.count, held.last))?;
    let holder = evidence.file_lock_taker(most.file, most.holder, most.last);
    if let Some(edge) = inherited_lock(evidence, wait, holder) {
        return Some(edge);
    }
    let times = match most.count {
        1 => String::new(),
        count => format!(", and lock attempts failed {count} times"),
    };
    let reason = format!(
        "{} holds the lock on the file{times}",
        evidence.name(holder)
    );
    Some(Edge::new(
        EdgeKind::Holder,
        Strength::Strong,
        Source::Thread(holder),
        reason,
    ))
}

/// Who was seen with the lock of a file that `wait` is for, or, of a thread that sleeps and of which no
/// steps were recorded, with that of a file which its process has open.
fn open_file_lock(evidence: &Evidence<'_>, wait: &Wait, until: u64) -> Option<Edge> {
    let own = evidence.threads.thread(wait.thread).upid;
    let sockets = evidence.sockets;
    let holder = |file: Object| sockets.lock_holders(file).find(|&holder| holder != own);
    let (process, strength) = match wait.kind {
        WaitKind::Lock => (holder(wait.object(evidence))?, Strength::Strong),
        _ if evidence.handoffs.is_empty() => {
            (sockets.locked_files(own).find_map(holder)?, Strength::Weak)
        }
        _ => return None,
    };
    let thread = thread_of(evidence, process, Object::NONE, until)?;
    let reason = format!(
        "{} holds the lock on a file that it has open",
        evidence.name(thread)
    );
    let source = Source::Thread(thread);
    Some(Edge::new(EdgeKind::Holder, strength, source, reason))
}

/// Whether a signal or its end kept a thread from what it waited for.
fn was_interrupted(evidence: &Evidence<'_>, wait: &Wait, wake: usize) -> bool {
    let by_signal = evidence.call(evidence.wakes.call[wake]) == Call::Kill;
    by_signal || was_death(evidence, wait, wake)
}

/// Who gave the lock of a file back after a thread had stopped waiting for it, and so had it all along: of those
/// the first that shares no open file with the thread. Its taker may have ended before the recording began.
fn released_later(evidence: &Evidence<'_>, wait: &Wait, until: u64) -> Option<Edge> {
    if wait.kind != WaitKind::Lock {
        return None;
    }
    let own = evidence.threads.thread(wait.thread).upid;
    let kin = ancestors(evidence, own).collect::<Vec<_>>();
    let others = |&thread: &Utid| {
        let process = evidence.threads.thread(thread).upid;
        process != own && !kin.contains(&process) && is_there(evidence, thread, wait.start)
    };
    let mut releases = evidence.file_lock_releases(wait.object(evidence), until);
    let holder = releases.find(others)?;
    let reason = format!(
        "{} gave the lock on the file back later",
        evidence.name(holder)
    );
    let source = Source::Thread(holder);
    Some(Edge::new(EdgeKind::Holder, Strength::Weak, source, reason))
}

/// Who may have made the file that a thread tries to make again and again, as a lock: the only other
/// process that runs the same program and does not try too. Of those that install packages, which lock the same files, the
/// first that has a file locked.
fn lock_file(evidence: &Evidence<'_>, wait: &Wait, until: u64) -> Option<Edge> {
    let polls = |wait: &Wait| evidence.shows(wait.user_stack(evidence), Mark::PollsLock);
    if !polls(wait) {
        return None;
    }
    let own = evidence.threads.process_of(wait.thread);
    let middle = wait.start + until.saturating_sub(wait.start) / 2;
    let installs = |process: &Process| PACKAGE_MANAGERS.contains(&process.name.as_str());
    let locked = |other: &Process| evidence.sockets.has_lock(other.upid);
    let is_alike = |other: &&Process| {
        let is_same = other.name == own.name && other.script() == own.script();
        let shares_lock = installs(own) && installs(other) && locked(other);
        other.upid != own.upid && (is_same || shares_lock)
    };
    let mut others = evidence
        .threads
        .processes()
        .filter(is_alike)
        .filter_map(|other| first_thread(evidence, other.upid))
        .filter(|&other| is_there(evidence, other, middle))
        .filter(|&other| !wait_at(evidence, other, middle).is_some_and(|there| polls(&there)));
    let holder = others
        .next()
        .filter(|_| installs(own) || others.next().is_none())?;
    let name = evidence.name(holder);
    let reason = match installs(own) {
        true => format!(
            "it tries again and again to lock dpkg's files, and {name}, which installs packages too, may have them"
        ),
        false => format!(
            "it tries again and again to make a lock file, and {name}, which runs the same program, may have it"
        ),
    };
    let source = Source::Thread(holder);
    Some(Edge::new(EdgeKind::Amid, Strength::Weak, source, reason))
}

/// A refusal longer before a wait than this is not what it is about.
const REFUSED_WITHIN_NS: u64 = 5_000_000;
