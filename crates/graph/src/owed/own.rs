//! Locks whose holder the stacks of a process tell: its own thread, which a signal interrupted within the
//! allocator, and the one that initialises a static variable (C++) or a class (Java).

use hangdog_trace::ids::{StackId, Utid};
use hangdog_trace::words::ModuleKind;

use super::language;
use super::who::{is_home, is_there, wait_at};
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::names;
use crate::wait::{Wait, WaitKind};

/// Who has the lock that a thread waits for, if its own stack or that of another thread tells.
pub(crate) fn told_by_stacks(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let may_be_lock = matches!(
        wait.kind,
        WaitKind::Lock | WaitKind::Condition | WaitKind::Unknown
    );
    if !may_be_lock {
        return None;
    }
    if let Some(edge) = language::debtor(evidence, wait) {
        return Some(edge);
    }
    let functions = functions(evidence, wait.user_stack(evidence));
    if is_within_allocator(&functions) {
        let reason = "a signal interrupted it within the allocator, whose lock it waits for again";
        return Some(holder(wait.thread, reason.to_owned()));
    }
    if let Some(edge) = within_section(evidence, wait).or_else(|| suspended_task(evidence, wait)) {
        return Some(edge);
    }
    let process = evidence.threads.process_of(wait.thread);
    if awaits_class(&functions) {
        let mut others = process.threads.iter().copied().filter(|&other| {
            let there = wait_at(evidence, other, wait.start + wait.duration() / 2);
            let stack = there.map_or(0, |there| there.user_stack(evidence));
            let functions = self::functions(evidence, stack);
            other != wait.thread && functions.iter().any(|name| name.ends_with(".<clinit>"))
        });
        let only = others.next().filter(|_| others.next().is_none())?;
        let reason = format!(
            "it waits until a class is initialised, and of the other threads {} alone does that",
            evidence.name(only)
        );
        return Some(holder(only, reason));
    }
    let initialised = initialises(&functions)?;
    let mut others = process
        .threads
        .iter()
        .copied()
        .filter(|&other| other != wait.thread && is_there(evidence, other, wait.end));
    let moment = wait.start + wait.duration() / 2;
    let other = others.find(|&other| {
        wait_at(evidence, other, moment).is_some_and(|there| {
            let there = self::functions(evidence, there.user_stack(evidence));
            initialises(&there) != Some(initialised) && there.contains(&initialised)
        })
    })?;
    let reason = format!(
        "{} is in {initialised}, whose variable it waits for",
        evidence.name(other)
    );
    Some(holder(other, reason))
}

fn holder(thread: Utid, reason: String) -> Edge {
    Edge::new(
        EdgeKind::Holder,
        Strength::Strong,
        Source::Thread(thread),
        reason,
    )
}

/// Who has a semaphore that several processes share, where they are copies of one script, as the workers of
/// Python's multiprocessing: of the others the only one that is in the same function of the script and does not
/// wait for a semaphore there.
fn within_section(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let is_shared = |wait: &Wait| {
        !wait.is_within_process(evidence)
            && evidence.shows(wait.user_stack(evidence), Mark::Semaphore)
    };
    if !is_shared(wait) {
        return None;
    }
    let moment = wait.start + wait.duration() / 2;
    let mut frames = evidence.stacks.stack(wait.user_stack(evidence));
    let section = frames
        .find(|frame| frame.kind == ModuleKind::Script)?
        .function?;
    let own = evidence.threads.process_of(wait.thread);
    let copies = (evidence.threads.processes())
        .filter(|it| it.upid != own.upid && !own.command.is_empty() && it.command == own.command);
    let threads = copies.flat_map(|it| it.threads.iter().copied());
    let mut within = threads.filter(|&other| {
        wait_at(evidence, other, moment).is_some_and(|there| {
            let mut frames = evidence.stacks.stack(there.user_stack(evidence));
            !is_shared(&there) && frames.any(|frame| frame.function == Some(section))
        })
    });
    let only = within.next().filter(|_| within.next().is_none())?;
    let reason = format!(
        "it waits for a semaphore of several processes in {section}, and {} alone is in there without waiting \
         for one",
        evidence.name(only)
    );
    Some(Edge::new(
        EdgeKind::Holder,
        Strength::Weak,
        Source::Thread(only),
        reason,
    ))
}

/// Who has a lock that a task of an asynchronous runtime waits for, where no other thread of the process does anything:
/// most likely a suspended task, which only this thread could run.
fn suspended_task(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let runs_task = evidence.shows(wait.user_stack(evidence), Mark::RunsTask);
    if !runs_task || wait.holder.is_some() || !wait.is_for_own_lock(evidence) {
        return None;
    }
    let moment = wait.start + wait.duration() / 2;
    let may_have_it = |&other: &Utid| {
        other != wait.thread
            && is_there(evidence, other, moment)
            && wait_at(evidence, other, moment)
                .is_none_or(|there| !is_home(evidence, &there) && !there.is_for_own_lock(evidence))
    };
    let process = evidence.threads.process_of(wait.thread);
    if process.threads.iter().any(may_have_it) {
        return None;
    }
    let reason = "no other thread of its process does anything; a suspended task of its own may have the lock";
    Some(Edge::new(
        EdgeKind::Holder,
        Strength::Weak,
        Source::Thread(wait.thread),
        reason.to_owned(),
    ))
}

/// The functions of a stack, innermost first; "" for one without a name.
fn functions<'e>(evidence: &'e Evidence<'_>, stack: StackId) -> Vec<&'e str> {
    let frames = evidence.stacks.stack(stack);
    frames
        .map(|frame| frame.function.unwrap_or_default())
        .collect()
}

/// Whether a thread waits for a lock of the C library's allocator, and is within that already, further out,
/// with other functions in between: those of a signal's handler, for no allocator calls any.
fn is_within_allocator(functions: &[&str]) -> bool {
    const NEAR: usize = 6;
    let is_one = |name: &str| names::ALLOCATOR.contains(&name);
    let Some(first) = functions.iter().take(NEAR).position(|name| is_one(name)) else {
        return false;
    };
    let waits = |name: &&str| name.contains("lll_lock_wait");
    if !functions[..first].iter().any(waits) {
        return false;
    }
    let mut outer = functions[first..].iter().skip_while(|name| is_one(name));
    let between = outer.position(|name| is_one(name));
    between.is_some_and(|between| between > 0)
}

/// Whether a thread waits until another has initialised a class (HotSpot).
fn awaits_class(functions: &[&str]) -> bool {
    let waits = |name: &str| {
        [
            "ObjectMonitor::wait(",
            "ObjectSynchronizer::wait",
            "Monitor::wait(",
        ]
        .iter()
        .any(|start| name.starts_with(start))
    };
    let mut pairs = functions.windows(2);
    pairs.any(|pair| waits(pair[0]) && pair[1].starts_with("InstanceKlass::initialize_impl"))
}

/// The function whose static variable a thread waits for, as another initialises it (C++).
fn initialises<'f>(functions: &[&'f str]) -> Option<&'f str> {
    let at = functions
        .iter()
        .position(|name| *name == "__cxa_guard_acquire")?;
    functions
        .get(at + 1)
        .copied()
        .filter(|name| !name.is_empty())
}
