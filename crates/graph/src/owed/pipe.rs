//! Who has the other end of a pipe.

use hangdog_trace::Process;
use hangdog_trace::ids::{NONE, Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::sockets::Holder;

use super::kin::{ancestors, first_thread, is_descendant, is_orphan, main_life};
use super::orders::{has_parent_gone, is_own_pipe};
use super::owes;
use super::partner::lone_child;
use super::who::{is_amid, is_there, stopped_thread, thread_of, wait_at};
use crate::edge::{Edge, Strength};
use crate::evidence::Evidence;
use crate::wait::{Wait, WaitKind};

/// Who has the other end of a pipe.
pub(super) fn other_end(evidence: &Evidence<'_>, wait: &Wait, pipe: Object) -> Option<Edge> {
    let writes = wait.writes(evidence);
    let own = evidence.threads.thread(wait.thread).upid;
    let is_pool = !writes && is_job_pool(evidence, wait);
    if is_pool && let Some(edge) = at_work(evidence, wait, pipe) {
        return Some(edge);
    }
    let mut others: Vec<Upid> = Vec::new();
    for holder in evidence.sockets.holders(pipe) {
        // The recorder and its helpers only inherited it.
        if evidence.is_recorders(holder.process) {
            continue;
        }
        let is_other_end = if writes { holder.reads } else { holder.writes };
        let has_both = holder.reads && holder.writes && others.contains(&holder.process);
        if is_other_end && !has_both && !others.contains(&holder.process) && holder.process != own {
            others.push(holder.process);
        }
    }
    let count = others.len();
    // A parent keeps both ends of its children's pipe open, and does not read it.
    let only_reads = |&other: &Upid| {
        let mut ends = evidence.sockets.holders(pipe).iter();
        !ends.any(|end| end.process == other && end.writes)
    };
    if writes && others.iter().any(only_reads) {
        others.retain(only_reads);
    }
    let stopped = |&process: &Upid| stopped_thread(evidence, process, wait.end).is_some();
    let chosen = match others[..] {
        [] => return lone_child(evidence, wait),
        [_] if !writes && has_parent_gone(evidence, wait) => return None,
        [only] => only,
        _ => {
            let goes_on = |other: &Upid| thread_of(evidence, *other, pipe, wait.end).is_some();
            let alive = || others.iter().copied().filter(goes_on);
            // What a program has the programs write that it starts, it is to bring.
            let started_all = |&head: &Upid| {
                alive().all(|other| other == head || is_descendant(evidence, other, head))
            };
            let sleeps = |&other: &Upid| {
                let thread = thread_of(evidence, other, pipe, wait.end);
                let there = thread.and_then(|thread| wait_at(evidence, thread, wait.end));
                there.is_some_and(|there| there.kind == WaitKind::Sleep)
            };
            let works = |&other: &Upid| {
                thread_of(evidence, other, pipe, wait.end)
                    .is_some_and(|thread| is_amid(evidence, thread, wait.end))
            };
            // One that sleeps does not look after those that it started.
            let head = alive().find(started_all).filter(|head| {
                !sleeps(head) || !alive().any(|other| other != *head && works(&other))
            });
            (alive().find(stopped).or(head))
                .or(alive().filter(works).last())
                .or(alive().last().filter(|_| !is_pool))?
        }
    };
    // Of one that only has the pipe open no thread is at anything for the reader.
    let idle_main = first_thread(evidence, chosen).filter(|&main| {
        !writes && is_orphan(evidence, chosen, wait.end) && is_at_rest(evidence, main, wait.end)
    });
    let thread = idle_main.or_else(|| thread_of(evidence, chosen, pipe, wait.end))?;
    // One of its threads may wait for the waiter's process, while another gets what is to come.
    let awaits_waiter = |thread: Utid| only_awaits(evidence, thread, own, wait.end);
    let thread = match awaits_waiter(thread) {
        true => (evidence.threads.process(chosen).threads.iter().copied())
            .filter(|&other| other != thread && is_there(evidence, other, wait.end))
            .find(|&other| is_amid(evidence, other, wait.end) && !awaits_waiter(other))
            .unwrap_or(thread),
        false => thread,
    };
    let name = evidence.name(thread);
    // Where it only waits for those that it had write there, it comes down to them.
    let stands_for_all = wait_at(evidence, thread, wait.end).is_some_and(|there| {
        let is_its = |&other: &Upid| other == chosen || is_descendant(evidence, other, chosen);
        there.kind == WaitKind::Child && others.iter().all(is_its)
    });
    let (reason, strength) = match (count, writes) {
        (2.., false) if stands_for_all => (
            format!("only {name} and what it started can write to {pipe}"),
            Strength::Strong,
        ),
        (1, false) => (format!("only {name} can write to {pipe}"), Strength::Strong),
        (1, true) => (
            format!("only {name} can read from {pipe}"),
            Strength::Strong,
        ),
        (_, true) if others.len() == 1 => (
            format!("{name} reads from {pipe}, and who else has it open can write to it"),
            Strength::Strong,
        ),
        (count, _) => (
            match count - 1 {
                1 => format!("{name} and another process have the other end of {pipe}"),
                others => {
                    format!("{name} and {others} other processes have the other end of {pipe}")
                }
            },
            Strength::Weak,
        ),
    };
    Some(owes(thread, strength, reason))
}

/// A program in the background that alone has the other ends of the pipes which another reads, where that polls them
/// among other things: so sshd's session waits for what a command prints, until nobody has its output open any
/// more.
pub fn left_behind(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if wait.kind != WaitKind::Poll || wait.by_epoll(evidence) || !wait.object(evidence).is_none() {
        return None;
    }
    let own = evidence.threads.thread(wait.thread).upid;
    let mut only: Option<(Upid, Object)> = None;
    for pipe in evidence.sockets.had(own).filter(|object| object.is_pipe()) {
        let ends = evidence.sockets.holders(pipe).iter();
        let ends = ends.filter(|end| !evidence.is_recorders(end.process));
        let is_read = |end: &Holder| end.process == own && end.reads && !end.writes;
        if !ends.clone().any(is_read) {
            continue;
        }
        for writer in ends.filter(|end| end.writes) {
            if writer.process == own || only.is_some_and(|(other, _)| other != writer.process) {
                return None;
            }
            only = Some((writer.process, pipe));
        }
    }
    let (writer, pipe) = only?;
    let thread = first_thread(evidence, writer)?;
    // Its own end may be that of the wait.
    let middle = wait.start + wait.duration() / 2;
    if !is_there(evidence, thread, middle) || !is_orphan(evidence, writer, middle) {
        return None;
    }
    let reason = format!(
        "{} alone can write to {pipe}, and what started that has ended",
        evidence.name(thread)
    );
    Some(owes(thread, Strength::Weak, reason))
}

/// Whether a thread waits at a moment for whatever comes.
fn is_at_rest(evidence: &Evidence<'_>, thread: Utid, at: u64) -> bool {
    let there = wait_at(evidence, thread, at);
    there.is_some_and(|there| matches!(there.kind, WaitKind::Poll | WaitKind::Idle))
}

/// Whether a thread waits at a moment for a pipe of which none but `other` has the other end.
fn only_awaits(evidence: &Evidence<'_>, thread: Utid, other: Upid, at: u64) -> bool {
    let Some(there) = wait_at(evidence, thread, at) else {
        return false;
    };
    let pipe = there.object(evidence);
    let writes = there.writes(evidence);
    let own = evidence.threads.thread(thread).upid;
    let mut ends = (evidence.sockets.holders(pipe).iter())
        .filter(|end| if writes { end.reads } else { end.writes })
        .filter(|end| end.process != own && !evidence.is_recorders(end.process))
        .peekable();
    pipe.is_pipe() && ends.peek().is_some() && ends.all(|end| end.process == other)
}

/// Whether the pipe that a thread reads holds tokens for jobs, as that of make's and cargo's job server: its
/// process and others have it open for both reading and writing. Whoever reads there waits for any of them
/// to be done with a job.
pub fn is_job_pool(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let pipe = wait.object(evidence);
    if pipe.kind() != ObjectKind::Pipe {
        return false;
    }
    let own = evidence.threads.thread(wait.thread).upid;
    let holders = evidence.sockets.holders(pipe).iter();
    let pools = holders.filter(|holder| holder.reads && holder.writes);
    let is_own = |holder: &Holder| holder.process == own;
    pools.clone().any(is_own) && pools.clone().any(|holder| !is_own(holder))
}

/// One of those that share a pool of jobs and is at one: it runs, or wants a CPU, or else waits for a child
/// that does the job, of which the waiter is none.
fn at_work(evidence: &Evidence<'_>, wait: &Wait, pipe: Object) -> Option<Edge> {
    let own = evidence.threads.thread(wait.thread).upid;
    let is_busy = |&thread: &Utid| {
        is_there(evidence, thread, wait.end) && wait_at(evidence, thread, wait.end).is_none()
    };
    let awaits_job = |&thread: &Utid| {
        let process = evidence.threads.thread(thread).upid;
        !is_descendant(evidence, own, process)
            && wait_at(evidence, thread, wait.end).is_some_and(|it| it.kind == WaitKind::Child)
    };
    let threads = || {
        let others = evidence.sockets.holders(pipe).iter();
        let others = others.filter(|other| other.process != own);
        others.flat_map(|other| {
            evidence
                .threads
                .process(other.process)
                .threads
                .iter()
                .copied()
        })
    };
    let thread = threads()
        .find(is_busy)
        .or_else(|| threads().find(awaits_job))?;
    let reason = format!(
        "{} is at one of the jobs that {pipe} limits",
        evidence.name(thread)
    );
    Some(owes(thread, Strength::Weak, reason))
}

/// Who may have the other end of a pipe that was not seen open: who was seen to use it; else what the process started;
/// else its neighbour among those that were started beside it, as a shell starts a pipeline in order; for one who
/// writes, its parent.
pub(crate) fn relative(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    const BESIDE_NS: u64 = 100_000_000;
    // Of those that lived before the recording only the order is known.
    const BESIDE_PIDS: u32 = 8;
    let pipe = wait.object(evidence);
    let writes = wait.writes(evidence);
    let own = evidence.threads.thread(wait.thread).upid;
    let mut holders = evidence.sockets.holders(pipe).iter();
    let is_other_end = |holder: &Holder| {
        holder.process != own && if writes { holder.reads } else { holder.writes }
    };
    let is_known = holders.any(is_other_end) || is_own_pipe(evidence, wait);
    if wait.kind != WaitKind::Message || pipe.kind() != ObjectKind::Pipe || is_known {
        return None;
    }
    let parent = evidence.threads.process(own).parent;
    let born = |process: &Process| main_life(evidence, process.upid).map_or(0, |life| life.start);
    let is_alive = |process: &&Process| {
        let life = main_life(evidence, process.upid);
        process.upid != own
            && Some(process.pid) != evidence.recorder
            && life.is_some_and(|life| life.start < wait.end && wait.end <= life.end)
    };
    let this = evidence.threads.process(own);
    let is_beside = |other: &&Process| match (born(this), born(other)) {
        (0, 0) => other.pid.abs_diff(this.pid) <= BESIDE_PIDS,
        (this, other) => other.abs_diff(this) < BESIDE_NS,
    };
    // Who fits by kinship first: few do, and a life takes longer to look up.
    let others = || evidence.threads.processes().rev();
    let started = || {
        others()
            .filter(|other| is_descendant(evidence, other.upid, own))
            .filter(is_alive)
    };
    let beside = || {
        others()
            .filter(|other| parent != NONE && other.parent == parent)
            .filter(is_beside)
            .filter(is_alive)
    };
    let order = |process: &Process| (born(process), process.pid);
    let used = started()
        .chain(beside())
        .find(|other| has_used(evidence, other.upid, pipe, wait.end));
    let neighbour = || match writes {
        true => beside()
            .filter(|other| order(other) > order(this))
            .min_by_key(|other| order(other)),
        false => beside()
            .filter(|other| order(other) < order(this))
            .max_by_key(|other| order(other)),
    };
    let guessed = || {
        started()
            .next()
            .or_else(neighbour)
            .or_else(|| beside().next())
    };
    let parent_of = || Some(evidence.threads.process(parent)).filter(|it| writes && is_alive(it));
    let last = used.or_else(guessed).or_else(parent_of)?;
    let thread = thread_of(evidence, last.upid, pipe, wait.end)?;
    let name = evidence.name(thread);
    let reason = match last.upid == parent {
        true => format!("{name} started it and may have the other end of {pipe}"),
        false => {
            format!("{name} was started by it or beside it, and may have the other end of {pipe}")
        }
    };
    Some(owes(thread, Strength::Weak, reason))
}

/// Whether a process has woken somebody by what it wrote to a pipe or read from it, among the last that it woke.
fn has_used(evidence: &Evidence<'_>, process: Upid, pipe: Object, until: u64) -> bool {
    const MOST: usize = 64;
    let wakes = evidence.wakes;
    let mut threads = evidence.threads.process(process).threads.iter();
    threads.any(|&thread| {
        let own = evidence.own_wakes(thread);
        let before = own.partition_point(|&row| wakes.ts[row as usize] <= until);
        let mut last = own[..before].iter().rev().take(MOST);
        last.any(|&row| wakes.object[row as usize] == pipe.0)
    })
}

/// Whether an event loop gets nothing by a pipe that it looks at among other things: it can only write to it, or
/// learns by its end that the program has exited which started it, and others that read the pipe too.
pub(super) fn is_lifeline(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let pipe = wait.object(evidence);
    if !wait.by_epoll(evidence) || pipe.kind() != ObjectKind::Pipe {
        return false;
    }
    let own = evidence.threads.thread(wait.thread).upid;
    let holders = evidence.sockets.holders(pipe).iter();
    let mut holders = holders.filter(|holder| !evidence.is_recorders(holder.process));
    let mut own_ends = holders
        .clone()
        .filter(|holder| holder.process == own)
        .peekable();
    if own_ends.peek().is_some() && own_ends.all(|end| !end.reads) {
        return true;
    }
    let is_above = |writer: Upid| ancestors(evidence, own).any(|above| above == writer);
    holders
        .clone()
        .any(|other| other.reads && other.process != own && !is_above(other.process))
        && holders.all(|holder| !holder.writes || is_above(holder.process))
}

/// Whether what is read from a pipe comes from where nobody can look: somebody looked while the thread
/// waited, and nobody had the other end, though the wait went on.
pub fn is_from_outside(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let process = evidence.threads.thread(wait.thread).upid;
    let holders = evidence.sockets.holders(wait.object(evidence));
    let goes_on = |holder: &Holder| holder.process == process && holder.ts < wait.end;
    !holders.iter().any(|holder| holder.writes) && holders.iter().any(goes_on)
}
