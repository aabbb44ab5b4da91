//! Whom a thread waits for where functions of its language's library tell: the thread that imports a module
//! (Python), the tasks of a pool, the threads that run as a program ends (Java).

use hangdog_trace::ids::Utid;
use hangdog_trace::stacks::ResolvedFrame;

use super::kin::first_thread;
use super::who::{is_machine, is_there, wait_at};
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::{Evidence, signed};
use crate::marks::Mark;
use crate::wait::{Wait, WaitKind};

/// The thread of its own process that a thread waits for, if the functions that it waits in tell.
pub(super) fn debtor(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let awaits = |mark| evidence.shows(wait.user_stack(evidence), mark);
    let (kind, thread, what) = if awaits(Mark::AwaitsImport) {
        let what = "imports a module, and has the lock of that";
        (EdgeKind::Holder, importer(evidence, wait)?, what)
    } else if awaits(Mark::AwaitsPool) {
        let what = "has a task of the pool whose end it waits for";
        (EdgeKind::Awaited, has_task(evidence, wait)?, what)
    } else if awaits(Mark::AwaitsHooks) {
        let what = "was started as the program ends, and has not ended";
        (EdgeKind::Awaited, hook(evidence, wait)?, what)
    } else if awaits(Mark::Joins) {
        let what = "is one of those that it may wait for to end, and waits for it";
        (EdgeKind::Awaited, joined(evidence, wait)?, what)
    } else if calls_tk(evidence, wait) {
        let what = "runs Tk, and has not done what was called from another thread";
        (EdgeKind::Awaited, first_thread_of(evidence, wait)?, what)
    } else {
        return None;
    };
    let reason = format!("{} {what}", evidence.name(thread));
    Some(Edge::new(
        kind,
        Strength::Strong,
        Source::Thread(thread),
        reason,
    ))
}

/// Whether a thread of Python waits for the one that runs Tk to do what it has called: directly in the module for Tk, not in
/// Tk's own loop.
fn calls_tk(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    if wait.kind != WaitKind::Condition || evidence.threads.thread(wait.thread).is_main() {
        return false;
    }
    let is_tk = |frame: &ResolvedFrame<'_>| {
        let is_its = |name: Option<&str>| name.is_some_and(|name| name.starts_with("_tkinter"));
        is_its(frame.module) || is_its(frame.function)
    };
    let mut frames = evidence.stacks.stack(wait.user_stack(evidence));
    let waits = |frame: &ResolvedFrame<'_>| {
        frame
            .module
            .is_some_and(|module| module.starts_with("libc.so"))
            || frame.function == Some("Tcl_ConditionWait")
    };
    let behind = frames.find(|frame| !waits(frame));
    behind.is_some_and(|frame| is_tk(&frame))
}

/// The first thread of a program, which mostly runs its Tk.
fn first_thread_of(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let first = first_thread(evidence, evidence.threads.thread(wait.thread).upid);
    first.filter(|&first| first != wait.thread)
}

/// The other threads of a process at the middle of a wait, and what each waits for if it does.
fn others<'e>(
    evidence: &'e Evidence<'_>,
    wait: &Wait,
) -> impl Iterator<Item = (Utid, Option<Wait>)> + 'e {
    let (own, moment) = (wait.thread, wait.start + wait.duration() / 2);
    let threads = &evidence.threads.process_of(own).threads;
    let others = threads.iter().copied().filter(move |&other| {
        other != own && is_there(evidence, other, moment) && !is_machine(evidence, other)
    });
    others.map(move |other| (other, wait_at(evidence, other, moment)))
}

/// The first of those that import something and do not wait for such a lock themselves.
fn importer(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let mut others = others(evidence, wait);
    let (other, _) = others.find(|(_, there)| {
        there.is_some_and(|there| {
            let shows = |mark| evidence.shows(there.user_stack(evidence), mark);
            shows(Mark::Imports) && !shows(Mark::AwaitsImport)
        })
    })?;
    Some(other)
}

/// The first thread that waits for an import of the one that joins some thread: if it is another that is joined,
/// that is kept waiting as well, or will be.
fn joined(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let awaits_import =
        |there: &Wait| evidence.shows(there.user_stack(evidence), Mark::AwaitsImport);
    let mut waits = others(evidence, wait).filter_map(|(_, there)| there);
    let there = waits.find(awaits_import)?;
    (importer(evidence, &there)? == wait.thread).then_some(there.thread)
}

/// The first thread of a pool that has something to do.
fn has_task(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let mut others = others(evidence, wait);
    let (other, _) = others.find(|(_, there)| {
        there.is_some_and(|there| {
            evidence.shows(there.user_stack(evidence), Mark::Handles) && !there.is_idle(evidence)
        })
    })?;
    Some(other)
}

/// The thread that was started last, if it has something to do and none of a pool's: the one that joins it
/// started it right before.
fn hook(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let first = first_thread(evidence, evidence.threads.thread(wait.thread).upid);
    let born = |thread: Utid| match evidence.timeline.life(thread).start {
        0 => evidence.born_at(thread),
        start => Some(signed(start)),
    };
    let is_one = |(other, there): &(Utid, Option<Wait>)| {
        let is_pools = there.is_some_and(|there| {
            there.is_idle(evidence) || evidence.shows(there.user_stack(evidence), Mark::Handles)
        });
        Some(*other) != first && !is_pools
    };
    let last = others(evidence, wait)
        .filter(is_one)
        .max_by_key(|&(other, _)| (born(other), other));
    last.map(|(other, _)| other)
}
