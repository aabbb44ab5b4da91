//! A process that waits for anything, and has to do with one other alone: a child with whom it is
//! connected, or one that reads what it is to write.

use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::Object;
use hangdog_trace::sockets::Role;
use std::collections::HashSet;

use super::again::only_child;
use super::amid::amid_child;
use super::kin::{ancestors, first_thread, is_descendant};
use super::last::peer_of;
use super::open::is_open;
use super::orders::is_own_pipe;
use super::owes;
use super::who::{has_rested, is_amid, is_home, is_machine, is_there, thread_of, wait_at};
use crate::edge::{Edge, Strength};
use crate::evidence::Evidence;
use crate::wait::{Gate, Wait, WaitKind};

/// So many processes hand on what comes between a program and who does its work.
const HANDS: usize = 3;

/// The child that is all that a process is connected with, its parents apart, if it is in the middle of work
/// or has such a child itself, when the trace ends.
pub fn only_partner(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if wait.end < evidence.timeline.end() {
        return None;
    }
    let partner = partner_at_work(evidence, wait, HANDS)?;
    let reason = format!(
        "it is connected with its child {} alone, which is in the middle of work",
        evidence.name(partner)
    );
    Some(owes(partner, Strength::Weak, reason))
}

fn partner_at_work(evidence: &Evidence<'_>, wait: &Wait, hands: usize) -> Option<Utid> {
    let own = evidence.threads.thread(wait.thread).upid;
    let others = connected_below(evidence, own)?;
    let parent = |other: Upid| evidence.threads.process(other).parent;
    let mut children = others.iter().copied().filter(|&other| parent(other) == own);
    let only = children.next().filter(|_| children.next().is_none())?;
    let is_below = |&other: &Upid| other == only || is_descendant(evidence, other, only);
    if !others.iter().all(is_below) {
        return None;
    }
    let thread = thread_of(evidence, only, Object::NONE, wait.end)?;
    let works = wait_at(evidence, thread, wait.end).is_none_or(|there| {
        !is_home(evidence, &there)
            && !matches!(
                there.kind,
                WaitKind::Message | WaitKind::Child | WaitKind::Sleep
            )
            || hands > 0 && partner_at_work(evidence, &there, hands - 1).is_some()
    });
    works.then_some(thread)
}

/// The processes that one is connected with, its own descendants: what it inherited from those above it does
/// not count. None if it is connected with others.
fn connected_below(evidence: &Evidence<'_>, own: Upid) -> Option<HashSet<Upid>> {
    let sockets = evidence.sockets;
    let mut others = HashSet::new();
    for object in sockets.had(own) {
        let ends: HashSet<Upid> = match object.is_pipe() {
            true => sockets
                .holders(object)
                .iter()
                .map(|it| it.process)
                .collect(),
            false => peer_of(evidence, object).into_iter().collect(),
        };
        let is_below = |&end: &Upid| end == own || is_descendant(evidence, end, own);
        match ends.iter().all(is_below) {
            true => others.extend(ends.into_iter().filter(|&end| end != own)),
            false if object.is_pipe() => {}
            false if ends.iter().all(|&end| is_descendant(evidence, own, end)) => {}
            false => return None,
        }
    }
    Some(others)
}

/// Whoever has the other end of the terminal that a thread has no room to write to: the nearest of those that
/// started its program that does not wait for a child, as a shell does. If that waits to be asked, it would
/// have read what was written: then the terminal was halted.
pub(crate) fn terminal_reader(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if wait.gate(evidence) != Some(Gate::Terminal) {
        return None;
    }
    let state = |above: Upid| {
        let thread = first_thread(evidence, above)?;
        Some((thread, wait_at(evidence, thread, wait.end)))
    };
    let own = evidence.threads.thread(wait.thread).upid;
    let (thread, there) = ancestors(evidence, own).find_map(|above| {
        let (thread, there) = state(above)?;
        let is_shell = there.is_some_and(|there| there.kind == WaitKind::Child);
        (!is_shell).then_some((thread, there))
    })?;
    let reads = there.is_some_and(|there| {
        is_home(evidence, &there) || matches!(there.kind, WaitKind::Device | WaitKind::Signal)
    });
    let is_recorder = Some(evidence.threads.thread(thread).pid) == evidence.recorder;
    let reads = reads || has_rested(evidence, thread, wait.start..wait.end);
    if reads || is_recorder || !is_there(evidence, thread, wait.end) {
        return None;
    }
    let reason = format!(
        "it writes to a terminal, and {}, which started it, may have the other end",
        evidence.name(thread)
    );
    Some(owes(thread, Strength::Weak, reason))
}

/// The child of a program that polls and has no other thread in the middle of work, where the child is, and the program is
/// connected with it, as an editor is with a language's server.
pub(crate) fn connected_child(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let process = evidence.threads.process_of(wait.thread);
    let works = |&thread: &Utid| {
        thread != wait.thread
            && is_there(evidence, thread, wait.end)
            && !is_machine(evidence, thread)
            && is_amid(evidence, thread, wait.end)
    };
    if wait.kind != WaitKind::Poll
        || !evidence.stands_for_program(wait.thread)
        || process.threads.iter().any(works)
    {
        return None;
    }
    let own = process.upid;
    // Or waits for somebody else whom it asked.
    let asks = |&thread: &Utid| {
        let object = wait_at(evidence, thread, wait.end).map(|there| there.object(evidence));
        object.is_some_and(|object| {
            evidence.sockets.role(object) == Some(Role::Client)
                && peer_of(evidence, object) != Some(own)
                && is_open(evidence, object, wait.end)
        })
    };
    let asking = || {
        let children = evidence.threads.processes();
        let children = children.filter(|child| child.parent == own && child.upid != own);
        let firsts = children.filter_map(|child| first_thread(evidence, child.upid));
        firsts.filter(asks).last()
    };
    let child = amid_child(evidence, wait).or_else(asking)?;
    let is_shared = |object: Object| {
        let mut holders = evidence.sockets.holders(object).iter();
        evidence.sockets.peer_process(object) == Some(own)
            || object.is_pipe() && holders.any(|holder| holder.process == own)
    };
    let mut had = evidence.sockets.had(evidence.threads.thread(child).upid);
    let reason = format!(
        "{} was started by it, is connected with it, and has work",
        evidence.name(child)
    );
    had.any(is_shared)
        .then(|| owes(child, Strength::Weak, reason))
}

/// The only child of a program with one thread that waits in select or poll, where that is for a pipe which nobody
/// but itself writes to, as it does in the handler of a signal; or where nothing says what it is for, the program is
/// connected with nobody else, and the child works or waits for such a child itself.
pub(super) fn lone_child(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    const GENERATIONS: usize = 8;
    let child = child_polled_for(evidence, wait, GENERATIONS)?;
    let name = evidence.name(child);
    let reason = match is_own_pipe(evidence, wait) {
        true => format!(
            "it polls a pipe that only itself writes to, and {name} is its only child, whose end is a signal to it"
        ),
        false => format!("it has one thread and one child, {name}, and what it polls is not known"),
    };
    Some(owes(child, Strength::Weak, reason))
}

fn child_polled_for(evidence: &Evidence<'_>, wait: &Wait, generations: usize) -> Option<Utid> {
    let process = evidence.threads.process_of(wait.thread);
    let is_other = |&thread: &Utid| thread != wait.thread && is_there(evidence, thread, wait.end);
    if wait.kind != WaitKind::Poll || process.threads.iter().any(is_other) {
        return None;
    }
    let moment = wait.start + wait.duration() / 2;
    let child = only_child(evidence, wait.thread, moment)?;
    if is_own_pipe(evidence, wait) {
        return Some(child);
    }
    let is_unknown =
        || wait.object(evidence).is_none() && connected_below(evidence, process.upid).is_some();
    let works = || {
        wait_at(evidence, child, moment).is_none_or(|there| {
            !is_home(evidence, &there) && there.kind != WaitKind::Sleep
                || generations > 0 && child_polled_for(evidence, &there, generations - 1).is_some()
        })
    };
    (is_unknown() && works()).then_some(child)
}

/// The only child of a process, if that reads a terminal: whoever started it may have the other end, as
/// `expect` has, and be the one to write.
pub(super) fn child_at_terminal(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let own = evidence.threads.thread(wait.thread).upid;
    let children = evidence.threads.processes();
    let mut alive = children
        .filter(|child| child.parent == own && child.upid != own)
        .filter_map(|child| first_thread(evidence, child.upid))
        .filter(|&child| is_there(evidence, child, wait.end));
    let only = alive.next().filter(|_| alive.next().is_none())?;
    let there = wait_at(evidence, only, wait.end)?;
    let reads = there.kind == WaitKind::Device && !there.writes(evidence);
    let reason = format!("its only child {} reads a terminal", evidence.name(only));
    reads.then(|| owes(only, Strength::Weak, reason))
}
