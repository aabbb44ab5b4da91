//! What ended a wait; and where nothing did, or only a timeout, who could have.
//!
//! The waker is what the kernel saw, read with its context: a wake out of an interrupt is the
//! device's or the timer's, never the interrupted thread's. A wake that did not bring what was
//! waited for (a timeout, a signal that killed) is not the cause of the wait: then the edge leads
//! to the thread that the wait's own evidence names: the holder of the lock, the thread or child
//! that should have ended. What else it may have been, [`belief`](crate::belief) weighs.

use hangdog_timeline::State;
use hangdog_trace::Thread;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::Utid;
use hangdog_trace::object::ObjectKind;
use hangdog_trace::words::Context;

use crate::classify::{classify, sender_at_timeout};
use crate::edge::Strength::{self, Strong, Weak};
use crate::edge::{Edge, EdgeKind as Kind, Source};
use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::owed;
use crate::stop::{SIGCONT, SIGSTOP, SIGTSTP, Stop};
use crate::wait::{Gate, Wait, WaitKind};
use crate::wake::{DEATH_NS, by_timer, is_busy, tracer, was_death};

/// The file system server that ended the thread's previous wait, if this wait is for a disk or a page-in: the
/// page that is missing now most likely comes from the same server.
fn served_before(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    const MOST_INTERVALS: usize = 16;
    if !matches!(wait.kind, WaitKind::Disk | WaitKind::Paging) {
        return None;
    }
    let intervals = evidence.timeline.intervals(wait.thread);
    let here = intervals.index_at(wait.end.saturating_sub(1))?;
    let before = (0..here).rev().take(MOST_INTERVALS);
    let row = before
        .filter_map(|at| intervals.get(at))
        .find_map(|interval| interval.wake())?;
    let is_there = |thread: Utid| evidence.timeline.life(thread).end >= wait.end;
    let server = evidence.wakes.waker[row];
    (evidence.is_served_by_waker(row) && is_there(server)).then_some(server)
}

/// Of a thread that was stopped until somebody let it continue.
const CONTINUED: &str = "it was stopped; whoever continued it is not the cause";

/// What ended `wait`; `wake` is the row of `wakes` that made the thread runnable, if there is one.
pub fn ended_by(evidence: &Evidence<'_>, wait: &Wait, wake: Option<usize>) -> Edge {
    if let Some(server) = served_before(evidence, wait).filter(|_| wake.is_none()) {
        let reason = format!(
            "{} brought what it waited for before",
            evidence.name(server)
        );
        return Edge::new(Kind::Peer, Strong, Source::Thread(server), reason);
    }
    // Waits whose object tells the source, whoever was on the CPU that finished them.
    match wait.kind {
        // What looks like a device may be a program that serves the file system.
        WaitKind::Disk if wake.is_none_or(|row| !evidence.is_served_by_waker(row)) => {
            let mut reason = "its kernel stack shows a wait for a block device".to_owned();
            if let Some(purpose) = wait.disk_purpose(evidence) {
                reason += &format!(": {purpose}");
            }
            return Edge::new(Kind::Disk, Strong, Source::Disk, reason);
        }
        WaitKind::Paging if wake.is_none_or(|row| !evidence.is_served_by_waker(row)) => {
            let reason = "it was in a page fault that had to wait, not in a system call";
            return Edge::new(Kind::Disk, Strong, Source::Disk, reason);
        }
        WaitKind::Stopped if wait.holder.is_none() => {
            if let Some(tracer) = wake.and_then(|row| tracer(evidence, row)) {
                let name = evidence.name(tracer);
                if owed::awaits_anything(evidence, tracer, wait) {
                    let reason = format!("{name} debugs it, and had stopped it");
                    return Edge::new(Kind::Kill, Strong, Source::Nobody, reason);
                }
                let reason = format!("{name} debugs it, and let it continue");
                return Edge::new(Kind::Holder, Strong, Source::Thread(tracer), reason);
            }
            let reason = match wake {
                Some(_) => CONTINUED,
                None if wait.stop(evidence) == Stop::Freezer => {
                    "its control group was frozen, and nobody let it continue"
                }
                None => "it was stopped, and nobody let it continue",
            };
            return Edge::new(Kind::Kill, Strong, Source::Nobody, reason);
        }
        WaitKind::Sleep => {
            return Edge::of_sleep("it asked to sleep");
        }
        _ => {}
    }
    if matches!(wait.kind, WaitKind::Message | WaitKind::Poll)
        && owed::is_undelivered(evidence, wait)
    {
        let reason = "the data it sent had not arrived at the other end for most of that time";
        return Edge::new(Kind::Network, Strong, Source::Network, reason);
    }
    if wake.is_none_or(|row| by_timer(evidence, row)) {
        let alone = || Some(wait.object(evidence)).filter(|_| owed::is_unconnected(evidence, wait));
        if let Some(object) = alone().or_else(|| owed::attempts_in_loop(evidence, wait)) {
            let reason = owed::unanswered_attempt(evidence, object);
            return Edge::new(Kind::Network, Strong, Source::Network, reason);
        }
    }
    // What let time pass did so for its child to do its work, as `timeout` does.
    if wait.kind == WaitKind::Signal
        && wake.is_some_and(|row| by_timer(evidence, row))
        && let Some(edge) = only_one(evidence, wait)
    {
        return edge;
    }
    match wake.map(|row| (row, answer(evidence, wait, row))) {
        Some((row, Answer::Yes)) => {
            let mut edge = woken(evidence, wait, row);
            edge.wake = Some(row);
            edge
        }
        Some((_, Answer::GoOn(reason))) => Edge::new(Kind::Kill, Strong, Source::Nobody, reason),
        Some((_, Answer::No(_))) if wait.gate(evidence) == Some(Gate::Debugger) => {
            not_ended(evidence, wait)
        }
        Some((_, Answer::No(reason))) => expected(evidence, wait)
            .unwrap_or_else(|| Edge::new(Kind::Unknown, Weak, Source::Nobody, reason)),
        None if wait.gate(evidence) == Some(Gate::Debugger) => not_ended(evidence, wait),
        None => should_come(evidence, wait).unwrap_or_else(|| not_ended(evidence, wait)),
    }
}

/// Of a wait that nothing ended, and of which no thread is known that should have: what the kernel kept it for, if
/// that shows.
fn not_ended(evidence: &Evidence<'_>, wait: &Wait) -> Edge {
    let text = match wait.gate(evidence) {
        Some(Gate::MemoryLimit) => "its control group was at its memory limit until the end",
        Some(Gate::FrozenFiles) => "the file system was frozen until the end",
        Some(Gate::HaltedTerminal) => "the terminal was stopped by Ctrl-S until the end",
        Some(Gate::Terminal) => "the terminal or device took no output until the end",
        Some(Gate::Debugger) => "no debugger let it continue until the end",
        Some(Gate::Standby) | None => return Edge::nobody(),
    };
    Edge::new(Kind::Kill, Strong, Source::Nobody, text)
}

/// Whether a wake brought what was waited for.
enum Answer {
    Yes,
    /// It lets a thread go on that a signal or a setting kept, and says nothing of the cause; and why.
    GoOn(&'static str),
    /// It ended the wait and brought nothing, and why.
    No(&'static str),
}

fn answer(evidence: &Evidence<'_>, wait: &Wait, wake: usize) -> Answer {
    if was_death(evidence, wait, wake) {
        return Answer::No("it was ended, and nothing names whom it waited for");
    }
    let wakes = evidence.wakes;
    if Context::from(wakes.context[wake]) != Context::Task {
        return Answer::Yes;
    }
    // Whatever it looked at or closed, it brought nothing.
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    let waker = wakes.waker[wake];
    if process(waker) != process(wait.thread) && evidence.is_recorders(process(waker)) {
        return Answer::No("the recorder woke it, which brought nothing");
    }
    let shows = |mark| evidence.shows(wakes.kernel_stack[wake], mark);
    if shows(Mark::Frozen) {
        return Answer::GoOn(CONTINUED);
    }
    if shows(Mark::Setting) {
        if wait.gate(evidence).is_some() {
            return Answer::GoOn(
                "it waited until a kernel setting was changed; whoever changed it is not the cause",
            );
        }
        return Answer::No("a kernel setting was changed, which let it continue");
    }
    if wait.gate(evidence) == Some(Gate::Standby) && !owed::serves_known(evidence, process(waker)) {
        return Answer::GoOn("a signal let it continue; the standby is not in the trace");
    }
    if wait.gate(evidence) == Some(Gate::Debugger) {
        return Answer::GoOn("a debugger let it continue");
    }
    if wait.gate(evidence) == Some(Gate::MemoryLimit)
        && evidence.threads.thread(wakes.waker[wake]).is_kernel()
    {
        return Answer::No("the kernel freed memory, which let it continue");
    }
    // Nothing says that who opens a FIFO in the end was to open it before, unless it worked all along.
    if evidence.shows(wait.kernel_stack(evidence), Mark::OpensFifo)
        && !is_busy(evidence, wakes.waker[wake], wait)
    {
        return Answer::No("nothing shows that who opened the other end was to open it earlier");
    }
    // Programs wake each other by signals; but those that stop and let go on say nothing.
    match (evidence.call(wakes.call[wake]), wakes.arg[wake]) {
        (Call::Kill, SIGCONT) if wait.row.is_none() => Answer::GoOn(CONTINUED),
        (Call::Kill, SIGCONT | SIGSTOP | SIGTSTP) => {
            Answer::No("a stop or continue signal ended the wait without a result")
        }
        // A lock, a condition, a child goes on to be waited for.
        (Call::Kill, _)
            if matches!(
                wait.kind,
                WaitKind::Lock | WaitKind::Condition | WaitKind::Child
            ) =>
        {
            Answer::No("a signal interrupted the wait without a result")
        }
        // What a connection or a pipe should have brought did not come by that.
        (Call::Kill, signal)
            if ENDING.contains(&signal)
                && matches!(
                    wait.kind,
                    WaitKind::Message | WaitKind::Poll | WaitKind::Idle
                ) =>
        {
            Answer::No("a terminating signal interrupted the wait without a result")
        }
        (Call::Trace, _) => Answer::No("a tracer ended the wait without a result"),
        _ => Answer::Yes,
    }
}

// The same numbers on all machines that hangdog knows.
/// SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM.
const ENDING: [u64; 5] = [1, 2, 3, 9, 15];

fn woken(evidence: &Evidence<'_>, wait: &Wait, row: usize) -> Edge {
    let row = made_room(evidence, wait, row);
    let context = Context::from(evidence.wakes.context[row]);
    if context.is_timer()
        && matches!(wait.kind, WaitKind::Poll | WaitKind::Message)
        && let Some(sender) = sender_at_timeout(evidence, wait, row)
    {
        let name = evidence.name(sender);
        let reason = format!("{name} sent right after its timeout, before it ran again");
        return Edge::new(Kind::Message, Strong, Source::Thread(sender), reason);
    }
    // A timeout ended the wait: what it waited for did not come.
    if context.is_timer()
        && wait.kind != WaitKind::Timer
        && let Some(edge) = expected(evidence, wait).or_else(|| owed::likely_holder(evidence, wait))
    {
        return edge;
    }
    let (kind, strength, source) = classify(evidence, wait, row);
    if kind == Kind::Network
        && let Some(edge) = owed::accepted_late(evidence, wait)
    {
        return edge;
    }
    if kind == Kind::Network
        && let Some(edge) = owed::slow_reader(evidence, wait)
    {
        return edge;
    }
    if let Source::Thread(waker) = source
        && let Some(edge) = owed::handed_answer(evidence, wait, waker)
    {
        return edge;
    }
    let reason = match source {
        Source::Thread(waker) => by_thread(evidence, wait, row, (kind, strength), waker),
        Source::Network if let Some(late) = owed::held_back(evidence, wait) => {
            let name = evidence.name(late.sender);
            let ms = late.delay_ns / 1_000_000;
            format!("what {name} had sent {ms} ms before arrived only then")
        }
        _ => by_no_thread(evidence, wait, row, kind),
    };
    Edge::new(kind, strength, source, reason)
}

/// Of several that wait for room in a pipe each wakes the next once it has written: the wake that let the first of
/// them go on, which is the reader's. Otherwise the same wake.
fn made_room(evidence: &Evidence<'_>, wait: &Wait, wake: usize) -> usize {
    /// More writers do not wait for one pipe.
    const MOST: usize = 64;
    let (wakes, object) = (evidence.wakes, wait.object(evidence));
    let waits_too = |row: usize| {
        let (thread, ts) = (wakes.waker[row], wakes.ts[row]);
        let intervals = evidence.timeline.intervals(thread);
        let here = intervals.index_at(ts)?;
        let before = (0..here).rev().take(MOST).find_map(|at| {
            let interval = intervals.get(at)?;
            (interval.state == State::Blocked).then_some((at, interval))
        });
        let (at, interval) = before?;
        let its = Wait::new(evidence, thread, &interval);
        let is_alike = its.writes(evidence) && its.object(evidence) == object;
        let after = intervals.get(at + 1).filter(|_| is_alike)?;
        after.wake().filter(|&earlier| wakes.ts[earlier] < ts)
    };
    if !object.is_pipe() || !wait.writes(evidence) {
        return wake;
    }
    let is_writers = |row: usize| {
        let call = evidence.call(wakes.call[row]);
        Context::from(wakes.context[row]) == Context::Task
            && call == Call::Write
            && wakes.object[row] == object.0
    };
    let mut at = wake;
    for _ in 0..MOST {
        match waits_too(at).filter(|_| is_writers(at)) {
            Some(earlier) => at = earlier,
            None => break,
        }
    }
    at
}

/// The reason for an edge that is no thread's doing.
fn by_no_thread(evidence: &Evidence<'_>, wait: &Wait, row: usize, kind: Kind) -> String {
    let context = Context::from(evidence.wakes.context[row]);
    let reason = match kind {
        Kind::Disk => "a block device finished",
        Kind::Input => "input arrived from its terminal",
        Kind::Network => "a packet arrived",
        Kind::Timer if context == Context::Softirq => "a kernel timer fired",
        Kind::Timer if wait.kind == WaitKind::Timer => "the timer that it waited for fired",
        Kind::Timer => "its timeout ended the wait",
        Kind::Interrupt => {
            let vector = evidence.wakes.vector[row];
            return format!("an interrupt ended the wait (number {vector})");
        }
        _ => "the waker is not in the trace",
    };
    reason.to_owned()
}

/// The reason for an edge from a thread.
fn by_thread(
    evidence: &Evidence<'_>,
    wait: &Wait,
    row: usize,
    (kind, strength): (Kind, Strength),
    waker: Utid,
) -> String {
    let wakes = evidence.wakes;
    let name = evidence.name(waker);
    let number = wakes.call[row];
    let call = evidence.calls.name(number);
    let object = wait.object(evidence);
    let same_object = !object.is_none() && object.0 == wakes.object[row];
    let signals = || evidence.shows(wakes.user_stack[row], Mark::Signal);
    match (kind, evidence.call(number)) {
        (Kind::Message, _) if Context::from(wakes.context[row]) == Context::Softirq => {
            format!("{name} sent over a connection within this machine")
        }
        (Kind::Message, Call::Write | Call::Send) if same_object => {
            format!("{name} wrote to the same {object} ({call})")
        }
        (Kind::Message, Call::Write | Call::Send) => format!("{name} sent ({call})"),
        (Kind::Message, _) => format!("{name} read and freed buffer space ({call})"),
        (Kind::Signal, _) if signals() => format!("{name} signalled what it waited for"),
        (Kind::Signal, _) => format!("{name} woke the futex that it waited on"),
        (Kind::Unlock, _) if strength == Strong => {
            format!("{name}, which held the lock, released it")
        }
        (Kind::Unlock, _) => {
            format!("{name} released the lock; others may have held it before")
        }
        (Kind::Exit, Call::Exec) => format!("{name} executed its program"),
        (Kind::Exit, _) => format!("{name} ended"),
        (Kind::Kill, _) => format!("{name} sent it a signal"),
        (Kind::Fork, _) => format!("{name} created it"),
        (_, Call::KernelThread) => format!("the kernel thread {name} woke it"),
        _ => format!("{name} woke it in {call}"),
    }
}

/// Who should have ended the wait, by what the wait itself names. Whoever awaits the recorder waits for
/// the recording to end, and that is nobody's doing.
fn expected(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    named(evidence, wait).filter(|edge| match edge.source {
        Source::Thread(thread) => Some(evidence.threads.thread(thread).pid) != evidence.recorder,
        _ => true,
    })
}

fn named(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if let Some(edge) = owed::told_by_stacks(evidence, wait) {
        return Some(edge);
    }
    if let Some(holder) = wait.holder {
        let name = evidence.name(holder);
        return Some(match wait.kind {
            WaitKind::Lock if let Some(edge) = owed::inherited_lock(evidence, wait, holder) => edge,
            WaitKind::Lock => {
                let reason = format!("the lock itself names {name} as its holder");
                Edge::new(Kind::Holder, Strong, Source::Thread(holder), reason)
            }
            WaitKind::Stopped => {
                let reason = format!("{name} debugs it, and has stopped it");
                // It waits for what its user says next.
                if owed::awaits_anything(evidence, holder, wait) {
                    return Some(Edge::new(Kind::Kill, Strong, Source::Nobody, reason));
                }
                Edge::new(Kind::Holder, Strong, Source::Thread(holder), reason)
            }
            WaitKind::Kernel => {
                let reason = format!("{name} was the last to use what it waits for");
                Edge::new(Kind::Peer, Weak, Source::Thread(holder), reason)
            }
            _ => {
                let reason = format!("it waits for {name} to end");
                Edge::new(Kind::Awaited, Strong, Source::Thread(holder), reason)
            }
        });
    }
    if wait.kind == WaitKind::Child
        && let Some((child, strength)) = child(evidence, wait)
    {
        let reason = format!("it waits for its child {} to end", evidence.name(child));
        let source = Source::Thread(child);
        return Some(Edge::new(Kind::Awaited, strength, source, reason));
    }
    if call_of(evidence, wait) == Some(Call::Fork)
        && let Some(child) = children(evidence, wait).last()
    {
        let name = evidence.name(child.utid);
        let reason = format!("it waits for its child {name} to execute a program");
        return Some(Edge::new(
            Kind::Awaited,
            Strong,
            Source::Thread(child.utid),
            reason,
        ));
    }
    owed::debtor(evidence, wait)
}

/// The same of a wait that nothing ended, not even a timeout.
fn should_come(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    expected(evidence, wait)
        .or_else(|| owed::likely_holder(evidence, wait))
        .or_else(|| owed::terminal_reader(evidence, wait))
        .or_else(|| owed::connected_child(evidence, wait))
        .or_else(|| only_one(evidence, wait))
}

fn call_of(evidence: &Evidence<'_>, wait: &Wait) -> Option<Call> {
    let row = wait.row?;
    Some(evidence.call(evidence.switches.call[row]))
}

/// Whether other threads of the process lived through a wait: one that waits for a signal may wait for theirs.
fn has_others(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let process = evidence.threads.thread(wait.thread).upid;
    let mut others = evidence.threads.process(process).threads.iter();
    others.any(|&other| {
        let life = evidence.timeline.life(other);
        other != wait.thread && life.start <= wait.start && life.end >= wait.end
    })
}

/// The only one who is there to end a wait of a process's first thread: its only other thread, or of
/// a wait for a signal its only child.
fn only_one(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let waiter = evidence.threads.thread(wait.thread);
    let is_within = match wait.kind {
        WaitKind::Condition | WaitKind::Lock => true,
        WaitKind::Poll => wait.object(evidence).kind() == ObjectKind::Epoll,
        WaitKind::Message => {
            let object = wait.object(evidence);
            object.kind() == ObjectKind::Eventfd
                || object.is_pipe() && owed::is_own_pipe(evidence, wait)
        }
        _ => false,
    };
    let is_there = |thread: &Thread| {
        thread.start <= wait.start && thread.end.is_none_or(|end| end >= wait.end)
    };
    let (mut candidates, what): (Vec<Utid>, _) = if !waiter.is_main() {
        return None;
    } else if is_within {
        let own = &evidence.threads.process(waiter.upid).threads;
        (own.clone(), "the only other thread of its process")
    } else if wait.kind == WaitKind::Signal && !has_others(evidence, wait) {
        let children = children(evidence, wait).map(|child| child.utid);
        (children.collect(), "its only child")
    } else {
        return None;
    };
    candidates.retain(|&other| other != wait.thread && is_there(evidence.threads.thread(other)));
    let [only] = candidates[..] else {
        return None;
    };
    if wait.is_for_own_lock(evidence) && owed::goes_on(evidence, only, wait) {
        return None;
    }
    let reason = format!("{} is {what}", evidence.name(only));
    Some(Edge::new(Kind::Asked, Weak, Source::Thread(only), reason))
}

/// The first threads of the processes that the process of one who waits made.
fn children<'a>(evidence: &'a Evidence<'_>, wait: &Wait) -> impl Iterator<Item = &'a Thread> {
    let process = evidence.threads.thread(wait.thread).upid;
    evidence.threads.iter().filter(move |thread| {
        thread.is_main()
            && !thread.is_kernel()
            && evidence
                .threads
                .known(thread.parent)
                .is_some_and(|parent| parent.upid == process)
    })
}

/// The child that is waited for: the one whose pid was asked for, or the only one alive; of several one
/// that is stopped, or the last of those that were started together, as a shell does for a pipeline.
fn child(evidence: &Evidence<'_>, wait: &Wait) -> Option<(Utid, Strength)> {
    const TOGETHER_NS: u64 = 100_000_000;
    const TOGETHER_PIDS: u32 = 16;
    let object = wait.object(evidence);
    // A pid is used again: the last one that had it.
    let has_pid = |pid: u64| move |thread: &&Thread| u64::from(thread.pid) == pid;
    if object.kind() == ObjectKind::Process {
        // A pidfd stands for any process.
        let all = evidence.threads.iter().filter(|thread| thread.is_main());
        let named = all.filter(has_pid(object.value())).last()?;
        return Some((named.utid, Strong));
    }
    let asked = wait.row.map(|row| evidence.switches.arg[row])?;
    // In a pid namespace the number that a program asks for is none that the trace knows.
    let is_asked = has_pid(asked);
    if let Some(thread) = children(evidence, wait).filter(is_asked).last() {
        return Some((thread.utid, Strong));
    }
    let children = children(evidence, wait);
    // What killed it may have killed that as well, a moment before.
    let lasts = |end: u64| end.saturating_add(DEATH_NS) >= wait.end;
    let alive: Vec<&Thread> = children
        .filter(|thread| thread.start <= wait.start && thread.end.is_none_or(lasts))
        .collect();
    match alive[..] {
        [] => None,
        [only] => Some((only.utid, Strong)),
        [first, .., last] => {
            let middle = wait.start + wait.duration() / 2;
            let stopped = alive
                .iter()
                .find_map(|thread| owed::stopped_thread(evidence, thread.upid, middle));
            // Of those that were there before the recording only their numbers tell.
            let is_pipeline = match first.start > 0 {
                true => last.start.abs_diff(first.start) < TOGETHER_NS,
                false => last.start == 0 && last.pid.abs_diff(first.pid) < TOGETHER_PIDS,
            };
            let chosen = stopped.or_else(|| is_pipeline.then_some(last.utid))?;
            Some((chosen, Weak))
        }
    }
}
