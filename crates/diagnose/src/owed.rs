//! Whether something is owed to a thread that waits.
//!
//! A wait is a problem only if somebody owes the waiter what it waits for: the holder of a lock, a
//! device, a server that was asked. Who waits to be asked, or for time to pass as it wished, is
//! idle, however long.

use hangdog_graph::ended::ended_by;
use hangdog_graph::evidence::signed;
use hangdog_graph::fore::is_nearly_all;
use hangdog_graph::owed::{
    accepted_late, asked_again, asked_before, asked_own, awaits_completions, child_looked_after,
    has_unread, helper_that_asked, is_deadlocked, is_descendant, is_from_outside, is_job_pool,
    is_lost, is_open, is_orphan, is_own_pipe, is_unconnected, is_upkeep, left_behind, may_be_open,
    may_wait_for_jobs, only_partner, open_request, peer_of, prompter, remote_output,
    takes_orders_by_pipe, waits_out_child,
};
use hangdog_graph::{EdgeKind, Evidence, Gate, Mark, Source, Strength, Wait, WaitKind};
use hangdog_timeline::State;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::sockets::{Holder, Role};
use hangdog_trace::words::Left;

use crate::stretch::{wait_before, wake_of};
use crate::tasks;

/// How likely it is that a wait is for what somebody owes, 0 to 1; `often` says that the thread
/// often waits there.
pub(crate) fn owed(evidence: &Evidence<'_>, wait: &Wait, often: bool) -> f64 {
    let is_main = evidence.stands_for_program(wait.thread);
    let object = wait.object(evidence);
    let process = evidence.threads.thread(wait.thread).upid;
    match wait.kind {
        WaitKind::Lock | WaitKind::Disk | WaitKind::Paging | WaitKind::Flag => 1.0,
        _ if wait.gate(evidence) == Some(Gate::Debugger) => 1.0,
        // A virtual machine's own thread waits for work.
        WaitKind::Condition if is_upkeep(evidence, wait.thread) => IDLE,
        // Another worker of its pool waits for the next task, and it for its turn to do so.
        WaitKind::Condition if evidence.shows(wait.user_stack(evidence), Mark::SharesQueue) => IDLE,
        WaitKind::Condition if is_main && wait.is_for_own_lock(evidence) => 1.0,
        WaitKind::Poll | WaitKind::Message if wait.is_for_own_lock(evidence) => 1.0,
        WaitKind::Device if wait.writes(evidence) => 1.0,
        WaitKind::Message if wait.is_for_served_file(evidence) => 1.0,
        // Somebody else is to open it.
        WaitKind::Message if evidence.shows(wait.kernel_stack(evidence), Mark::OpensFifo) => STREAM,
        WaitKind::Message | WaitKind::Poll | WaitKind::Condition
            if [Mark::Asks, Mark::AsksMachine]
                .iter()
                .any(|&mark| evidence.shows(wait.user_stack(evidence), mark)) =>
        {
            1.0
        }
        WaitKind::Condition
            if [Mark::AwaitsImport, Mark::AwaitsHooks]
                .iter()
                .any(|&mark| evidence.shows(wait.user_stack(evidence), mark)) =>
        {
            1.0
        }
        WaitKind::Condition if evidence.shows(wait.user_stack(evidence), Mark::AwaitsPool) => HOPED,
        // One that only waits for another's end has that to stand for it.
        WaitKind::Condition if let Some(joined) = evidence.joined_by(wait.thread) => {
            let there = wait_before(evidence, joined, wait.end);
            match there.map(|there| there.kind) {
                Some(WaitKind::Sleep | WaitKind::Timer) => IDLE,
                _ => ALL_IT_DOES,
            }
        }
        WaitKind::Condition
            if wait.holder.is_some() && !evidence.shows(wait.user_stack(evidence), Mark::Joins) =>
        {
            HOPED
        }
        // Its program is done, but for the threads that it left behind: some programs are nothing but those.
        WaitKind::Condition if evidence.shows(wait.user_stack(evidence), Mark::AwaitsThreads) => {
            match is_all_it_does(evidence, wait) {
                true => HOPED,
                false => ASKED,
            }
        }
        WaitKind::Condition
            if is_main
                && wait.end >= evidence.timeline.end()
                && is_deadlocked(evidence, process) =>
        {
            HOPED
        }
        // Where a thread often waits for a condition, or does nothing else, it waits for work; but not where
        // it waits for the result of what it gave to others.
        WaitKind::Condition => match is_main
            && (!often || evidence.shows(wait.user_stack(evidence), Mark::AwaitsResult))
        {
            // The result came: it was no server that waits for its own end.
            true if evidence.shows(wait.user_stack(evidence), Mark::AwaitsResult)
                && ended_by_mate(evidence, wait).is_some() =>
            {
                HOPED
            }
            true if is_all_it_does(evidence, wait) || did_little_else(evidence, wait) => {
                ALL_IT_DOES
            }
            // Whoever has it do something waits for that, and is found waiting.
            true if is_helper(evidence, process) || is_told_by_pipe(evidence, wait) => ALL_IT_DOES,
            true => HOPED,
            false if is_main && is_helper(evidence, process) => ALL_IT_DOES,
            false if is_main && asked_own(evidence, wait) => MAYBE,
            false if is_main && mate_had_work(evidence, wait) => MAYBE,
            // A worker that has a task waits for more than work.
            false
                if [Mark::Handles, Mark::AwaitsResult]
                    .iter()
                    .any(|&mark| evidence.shows(wait.user_stack(evidence), mark)) =>
            {
                MAYBE
            }
            false => IDLE,
        },
        // A helper that waits for its next order does not wait for a child that it has started, as a browser's
        // zygote.
        WaitKind::Poll | WaitKind::Idle
            if waits_out_child(evidence, wait)
                && !takes_orders(evidence, wait, object)
                && !is_for_input(evidence, wait) =>
        {
            MAYBE
        }
        WaitKind::Message if wait.is_idle(evidence) => IDLE,
        WaitKind::Poll if is_main && remote_output(evidence, wait).is_some() => MAYBE,
        WaitKind::Poll
            if is_main
                && (left_behind(evidence, wait).is_some()
                    || ended_with_background(evidence, wait)) =>
        {
            HOPED
        }
        // A language's scheduler with nothing to run waits for what was asked for too.
        WaitKind::Poll if wait.is_idle(evidence) && !object.is_pipe() => asked(evidence, wait),
        // By pipes, or by looking again and again.
        WaitKind::Message | WaitKind::Poll
            if evidence.shows(wait.user_stack(evidence), Mark::AwaitsChild) =>
        {
            MAYBE
        }
        WaitKind::Poll if accepted_late(evidence, wait).is_some() => ASKED,
        WaitKind::Message | WaitKind::Poll => {
            match (object.kind(), evidence.sockets.role(object)) {
                _ if is_lost(evidence, object) || is_unconnected(evidence, wait) => 1.0,
                // A toolkit's own thread that reads events; who asks the display for something is the main
                // thread, or shows it on its stack.
                (_, Some(Role::Client)) if !is_main && is_display(evidence, object) => IDLE,
                (_, Some(Role::Client))
                    if evidence.shows(wait.user_stack(evidence), Mark::TakesWork) =>
                {
                    IDLE
                }
                (_, Some(Role::Client))
                    if let Some(sure) = may_wait_for_jobs(evidence, wait, object) =>
                {
                    match sure {
                        Strength::Strong => IDLE,
                        Strength::Weak => HOPED,
                    }
                }
                (_, Some(Role::Client)) if wait.kind == WaitKind::Poll => {
                    // The answer may have come in pieces, the last of them at the end of the wait.
                    let middle = wait.start + wait.duration() / 2;
                    let moments = [wait.end, middle];
                    if moments.iter().any(|&at| is_open(evidence, object, at)) {
                        asked_by(evidence, object)
                    } else if is_main && moments.iter().any(|&at| may_be_open(evidence, object, at))
                    {
                        HOPED
                    } else {
                        IDLE
                    }
                }
                // Another machine may send when it likes.
                (_, Some(Role::Client))
                    if evidence.sockets.is_elsewhere(object)
                        && !is_open(evidence, object, wait.end) =>
                {
                    STREAM
                }
                (_, Some(Role::Client)) => 1.0,
                (_, Some(Role::Server)) => IDLE,
                // A socket that is no end of a connection: it asks for one, or waits for somebody's.
                (ObjectKind::Inet | ObjectKind::Unix, None) => match call(evidence, wait) {
                    Some(Call::Connect) => 1.0,
                    Some(Call::Accept) => IDLE,
                    _ if evidence.sockets.listens(object) => IDLE,
                    _ if evidence.sockets.listeners(object).next().is_some() => 1.0,
                    _ if takes_orders(evidence, wait, object) => IDLE,
                    // A helper that has never done anything else is there for what its children ask.
                    _ if !is_main
                        && peer_of(evidence, object).is_some_and(|peer| {
                            peer != process && is_descendant(evidence, peer, process)
                        })
                        && is_all_it_does(evidence, wait) =>
                    {
                        IDLE
                    }
                    _ => STREAM,
                },
                _ if object.is_pipe() => by_pipe(evidence, wait),
                _ => asked(evidence, wait),
            }
        }
        WaitKind::Idle => asked(evidence, wait),
        // One that is only there to see a program end.
        WaitKind::Child if !is_main && is_all_it_does(evidence, wait) => ALL_IT_DOES,
        // What the child does may be as it should be.
        WaitKind::Child => MAYBE,
        WaitKind::Sleep
            if [Mark::PollsLock, Mark::Retries]
                .iter()
                .any(|&mark| evidence.shows(wait.user_stack(evidence), mark)) =>
        {
            HOPED
        }
        // Of one moment it is not known who was refused a lock; who has it is.
        WaitKind::Sleep
            if evidence.handoffs.is_empty()
                && asked_again(evidence, wait, None, wait.end)
                    .is_some_and(|edge| edge.kind == EdgeKind::Holder) =>
        {
            HOPED
        }
        WaitKind::Sleep
            if child_looked_after(evidence, wait, wait.end)
                .or_else(|| asked_before(evidence, wait, wait.end))
                .is_some() =>
        {
            MAYBE
        }
        WaitKind::Kernel => match call(evidence, wait) {
            _ if awaits_completions(evidence, wait) => asked(evidence, wait),
            _ if is_uninterruptible(evidence, wait) => 1.0,
            Some(Call::Connect) => 1.0,
            Some(Call::Read | Call::Receive | Call::Poll) => IDLE,
            _ => MAYBE,
        },
        WaitKind::Stopped if is_main && was_sent_something(evidence, wait) => HOPED,
        // It was at something. One that was stopped already may have been left so on purpose, unless somebody
        // has sent it something since.
        WaitKind::Stopped if is_main && (wait.start > 0 || has_unread(evidence, process)) => MAYBE,
        WaitKind::Signal
        | WaitKind::Sleep
        | WaitKind::Timer
        | WaitKind::Device
        | WaitKind::Stopped
        | WaitKind::Unknown => IDLE,
    }
}

/// The row of `wakes` that ended a wait, if there is one.
pub(crate) fn ending_wake(evidence: &Evidence<'_>, wait: &Wait) -> Option<usize> {
    let intervals = evidence.timeline.intervals(wait.thread);
    let next = intervals.get(intervals.index_at(wait.end)?)?;
    wake_of(evidence, wait.thread, &next)
}

/// Whether a wait for anything ended as a program in the background exited that descends from the one who waits: that
/// had its output open.
fn ended_with_background(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    ending_wake(evidence, wait).is_some_and(|wake| {
        let edge = ended_by(evidence, wait, Some(wake));
        let Source::Thread(other) = edge.source else {
            return false;
        };
        edge.kind == EdgeKind::Exit
            && is_left_open_by(evidence, wait, edge.kind, other)
            && wait_before(evidence, other, wait.start + wait.duration() / 2)
                .is_some_and(|there| is_home(evidence, &there))
    })
}

/// Whether a thread that `edge` leads to from who reads a pipe is of a program in the background, whose starter has
/// ended: it may only have the pipe open.
pub(crate) fn is_left_open_by(
    evidence: &Evidence<'_>,
    reads: &Wait,
    edge: EdgeKind,
    keeper: Utid,
) -> bool {
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    let (reader, keeper) = (process(reads.thread), process(keeper));
    let is_piped = || {
        reads.object(evidence).is_pipe() && !reads.writes(evidence)
            || left_behind(evidence, reads).is_some()
            || reads.kind == WaitKind::Poll
                && edge == EdgeKind::Exit
                && is_descendant(evidence, keeper, reader)
    };
    matches!(edge, EdgeKind::Peer | EdgeKind::Exit)
        && reader != keeper
        && is_orphan(evidence, keeper, reads.start + reads.duration() / 2)
        && is_piped()
}

/// Whether a terminal's input ended a wait: a program between a terminal and another, as `script`, waits for what
/// that prints.
fn is_for_input(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    ended_by(evidence, wait, ending_wake(evidence, wait)).kind == EdgeKind::Input
}

/// Whether another process sent something over a connection that a thread's process serves, while that
/// waited.
fn was_sent_something(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let (sockets, transfers) = (evidence.sockets, evidence.transfers);
    let process = evidence.threads.thread(wait.thread).upid;
    let is_other = |row: usize| {
        let sender = evidence.threads.thread(transfers.thread[row]).upid;
        transfers.sent[row] && sender != process
    };
    let mut ends = (sockets.served_by(process)).filter_map(|own| sockets.peer(own));
    ends.any(|end| {
        let uses = evidence.uses_before(end, wait.end);
        uses.take_while(|&row| transfers.ts[row] >= wait.start)
            .any(is_other)
    })
}

/// The same of a wait for a pipe or a message queue.
fn by_pipe(evidence: &Evidence<'_>, wait: &Wait) -> f64 {
    let reads = !wait.writes(evidence);
    let is_idle = || {
        is_job_pool(evidence, wait)
            || takes_orders_by_pipe(evidence, wait)
            || is_from_outside(evidence, wait)
            || reads_recorder(evidence, wait)
            || reads_maker(evidence, wait)
    };
    match () {
        () if reads && is_idle() => IDLE,
        () if reads && is_own_pipe(evidence, wait) => {
            match evidence.stands_for_program(wait.thread) {
                true => ALL_IT_DOES,
                false => IDLE,
            }
        }
        // It started the program whose output it awaits, and does nothing else meanwhile.
        () if wait.kind == WaitKind::Message && reads_child(evidence, wait) => ALL_IT_DOES,
        // The same of one of its tasks, while none can run.
        () if tasks::is_without(evidence, wait) && reads_child(evidence, wait) => HOPED,
        () if reads && is_quiet(evidence, wait) => IDLE,
        // Nobody is known to write there, as to the pipe by which a program's own handler of signals tells it.
        () if reads
            && !evidence.stands_for_program(wait.thread)
            && evidence.sockets.holders(wait.object(evidence)).is_empty()
            && is_all_it_does(evidence, wait) =>
        {
            IDLE
        }
        () => STREAM,
    }
}

/// Whether a wait is as long as the trace.
pub(crate) fn lasts_all_along(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    wait.start == 0 && wait.end >= evidence.timeline.end()
}

/// Whether only programs that the waiter's process started can write to the pipe that it reads, and none
/// of them waits for a command itself.
fn reads_child(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let process = evidence.threads.thread(wait.thread).upid;
    let holders = evidence.sockets.holders(wait.object(evidence));
    let reads_commands = |child: Upid| {
        let main = evidence.threads.process(child).threads.first();
        main.and_then(|&main| wait_before(evidence, main, wait.end))
            .is_some_and(|wait| evidence.shows(wait.user_stack(evidence), Mark::ReadsCommands))
    };
    let is_child = |holder: &Holder| {
        holder.process != process
            && is_descendant(evidence, holder.process, process)
            && !reads_commands(holder.process)
    };
    let mut writers = holders.iter().filter(|holder| holder.writes).peekable();
    !wait.writes(evidence) && writers.peek().is_some() && writers.all(is_child)
}

/// Whether the recorder, or a program that started it, can write to the pipe that a thread reads: it shows what
/// they print, and whoever shares that pipe is a problem of its own.
fn reads_recorder(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    evidence
        .sockets
        .holders(wait.object(evidence))
        .iter()
        .any(|holder| {
            let main = evidence.threads.process(holder.process).threads.first();
            let started = || main.is_some_and(|&main| started_recorder(evidence, main));
            holder.writes && (evidence.is_recorders(holder.process) || started())
        })
}

/// Whether each program that writes to the pipe that a thread reads shows what the recorder prints, or awaits
/// what started it: it says something once the recording has ended.
fn reads_maker(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let awaits_recorder = |holder: &Holder| {
        let main = evidence.threads.process(holder.process).threads.first();
        main.is_some_and(|&main| {
            wait_before(evidence, main, wait.end).is_some_and(|there| match there.kind {
                WaitKind::Child => started_recorder(evidence, main),
                _ => reads_recorder(evidence, &there),
            })
        })
    };
    let holders = evidence.sockets.holders(wait.object(evidence)).iter();
    let mut writers = holders.filter(|holder| holder.writes).peekable();
    writers.peek().is_some() && writers.all(awaits_recorder)
}

/// Whether nothing came through a pipe all along because whoever should write to it, or to the pipe that
/// that one reads, waits to be asked itself, or for the recording to end.
fn is_quiet(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    const LONGEST: usize = 8;
    let mut wait = *wait;
    for link in 0..LONGEST {
        if !lasts_all_along(evidence, &wait) {
            return false;
        }
        let Source::Thread(writer) = ended_by(evidence, &wait, None).source else {
            // Of who stands behind the writer nothing is known, and so not that it owes anything.
            return link > 0;
        };
        // Who reads what a program in the background was left with waits for its end, which does not come.
        let is_background =
            |thread| is_orphan(evidence, evidence.threads.thread(thread).upid, wait.end);
        if is_background(writer) && !is_background(wait.thread) {
            return false;
        }
        let Some(there) = wait_before(evidence, writer, wait.end) else {
            return false;
        };
        let is_piped = there.object(evidence).is_pipe();
        match there.kind {
            WaitKind::Child => return started_recorder(evidence, writer),
            WaitKind::Message if is_piped && !there.writes(evidence) => wait = there,
            WaitKind::Poll | WaitKind::Idle => {
                return !is_piped && owed(evidence, &there, false) <= IDLE;
            }
            _ => return false,
        }
    }
    false
}

/// Whether the recorder descends from the process of a thread.
fn started_recorder(evidence: &Evidence<'_>, thread: Utid) -> bool {
    let process = evidence.threads.thread(thread).upid;
    let mut all = evidence.threads.processes();
    let recorder = all.find(|process| Some(process.pid) == evidence.recorder);
    recorder.is_some_and(|recorder| is_descendant(evidence, recorder.upid, process))
}

/// Whether a thread does nothing but wait for this, as one does that has others work for it.
fn is_all_it_does(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    if !is_nearly_all(wait.duration(), &evidence.seen_life(wait.thread)) {
        return false;
    }
    // Since the recording began it did nothing else; before that it may have.
    let (Some(since), Some(born), 0) = (
        evidence.away_since(wait.thread),
        evidence.born_at(wait.thread),
        wait.start,
    ) else {
        return true;
    };
    let end = signed(wait.end);
    let of_life = 0..end.saturating_sub(born).max(0) as u64;
    is_nearly_all(end.saturating_sub(since).max(0) as u64, &of_life)
}

/// The thread that ended a wait, if it is another of the same process.
fn ended_by_mate(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    let waker = evidence.wakes.waker[ending_wake(evidence, wait)?];
    evidence.threads.known(waker)?;
    (waker != wait.thread && process(waker) == process(wait.thread)).then_some(waker)
}

/// Whether the thread that ended a wait is another of the same process, and waited for the disk or a child in the middle
/// of it: it had work, and did not leave the waiter without.
fn mate_had_work(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let middle = wait.start + wait.duration() / 2;
    let mate = ended_by_mate(evidence, wait);
    let there = mate.and_then(|mate| wait_before(evidence, mate, middle));
    there.is_some_and(|there| {
        matches!(
            there.kind,
            WaitKind::Disk | WaitKind::Paging | WaitKind::Child
        )
    })
}

/// Whether a thread that waited already when the recording began was woken a few times since, did next to
/// nothing, and waited again at the same place: one that others give something to do now and then.
fn did_little_else(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    const MOST: usize = 64;
    let near = |wait: &Wait| evidence.near(wait.user_stack(evidence));
    let intervals = evidence.timeline.intervals(wait.thread);
    if intervals.len() > MOST || intervals.get(0).is_none_or(|it| it.state != State::Blocked) {
        return false;
    }
    let (mut waits, mut waited) = (0, 0_u64);
    for interval in intervals.iter().filter(|it| it.state == State::Blocked) {
        let other = Wait::new(evidence, wait.thread, &interval);
        if other.kind == wait.kind && near(&other) == near(wait) {
            (waits, waited) = (waits + 1, waited.saturating_add(interval.duration()));
        }
    }
    waits > 1 && is_nearly_all(waited, &evidence.timeline.life(wait.thread))
}

/// Of a wait for anything: whether its process asked for something that it has not got.
fn asked(evidence: &Evidence<'_>, wait: &Wait) -> f64 {
    // The first thread is who asks; others serve the connections. One that passes on what others send
    // asks for nothing itself.
    let asks = evidence.stands_for_program(wait.thread)
        && !evidence.passes_on(evidence.threads.thread(wait.thread).upid);
    match open_request(evidence, wait) {
        Some(object) if may_wait_for_jobs(evidence, wait, object) == Some(Strength::Strong) => IDLE,
        Some(object) if asks => asked_by(evidence, object),
        None if asks && prompter(evidence, wait).is_some() => HOPED,
        None if asks && helper_that_asked(evidence, wait).is_some() => MAYBE,
        None if asks && came_by_asking(evidence, wait) => MAYBE,
        None if asks && only_partner(evidence, wait).is_some() => PARTNER,
        _ => IDLE,
    }
}

/// Whether what ended a wait was read from a connection by which the thread's process asks.
fn came_by_asking(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    const SOON_NS: u64 = 1_000_000;
    let own = evidence.received(wait.thread, wait.end, wait.end.saturating_add(SOON_NS));
    // A library's own thread may have the connections.
    let by_helper = || {
        let row = ending_wake(evidence, wait)?;
        let waker = evidence.threads.known(evidence.wakes.waker[row])?;
        let is_own = waker.upid == evidence.threads.thread(wait.thread).upid;
        let since = wait.end.saturating_sub(SOON_NS);
        evidence
            .received(waker.utid, since, wait.end)
            .filter(|_| is_own)
    };
    own.or_else(by_helper).is_some_and(|object| {
        let peer = evidence.sockets.peer_process(object);
        let is_event = peer.is_some_and(|peer| evidence.passes_on(peer));
        let is_job = may_wait_for_jobs(evidence, wait, object) == Some(Strength::Strong);
        evidence.sockets.role(object) == Some(Role::Client) && !is_event && !is_job
    })
}

/// How likely it is that an open request by a connection is owed.
fn asked_by(evidence: &Evidence<'_>, object: Object) -> f64 {
    let Some(peer) = evidence.sockets.peer_process(object) else {
        // Of a unix socket the other end is known where it is of any consequence.
        return match object.kind() {
            ObjectKind::Unix => STREAM,
            _ => ASKED,
        };
    };
    let holders = evidence.sockets.holders(object);
    let within = |holder: &Holder| {
        is_descendant(evidence, holder.process, peer)
            || is_descendant(evidence, peer, holder.process)
    };
    match () {
        // What goes through a bus need not be asked for by who is seen to.
        () if evidence.passes_on(peer) => BY_BUS,
        // The processes of one program tell each other much that needs no answer.
        () if object.kind() == ObjectKind::Unix && holders.iter().any(within) => STREAM,
        () => ASKED,
    }
}

/// Whether a connection is one to a display server.
fn is_display(evidence: &Evidence<'_>, object: Object) -> bool {
    let peer = evidence.sockets.peer_process(object);
    peer.is_some_and(|peer| evidence.serves_display(peer))
}

/// Whether the other end of a pair of sockets is with whoever started the process of the waiter: a
/// worker waits for what to do next.
fn takes_orders(evidence: &Evidence<'_>, wait: &Wait, object: Object) -> bool {
    let process = evidence.threads.thread(wait.thread).upid;
    let peer = peer_of(evidence, object);
    peer.is_some_and(|peer| peer != process && is_descendant(evidence, process, peer))
}

/// Whether an ancestor of a process controls it over a socket pair, as a browser controls its helpers.
pub(crate) fn is_helper(evidence: &Evidence<'_>, process: Upid) -> bool {
    let mut had = evidence.sockets.had(process);
    had.any(|object| is_from_ancestor(evidence, process, object))
}

/// Whether another thread of the process reads from a pipe meanwhile what an ancestor wants done.
fn is_told_by_pipe(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let middle = wait.start + wait.duration() / 2;
    let reads_orders = |&thread: &Utid| {
        wait_before(evidence, thread, middle).is_some_and(|there| {
            let reads = there.object(evidence).is_pipe() && !there.writes(evidence);
            reads && takes_orders_by_pipe(evidence, &there)
        })
    };
    let threads = &evidence.threads.process_of(wait.thread).threads;
    threads.iter().any(reads_orders)
}

/// Whether a socket of a process is its end of a socket pair of which an ancestor has the other.
pub(crate) fn is_from_ancestor(evidence: &Evidence<'_>, process: Upid, object: Object) -> bool {
    object.kind() == ObjectKind::Unix
        && evidence.sockets.role(object).is_none()
        && (evidence.sockets.peer_process(object))
            .is_some_and(|peer| peer != process && is_descendant(evidence, process, peer))
}

/// Whether a thread waits as a server does that nobody asks for anything.
pub(crate) fn is_home(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    match wait.kind {
        _ if evidence.shows(wait.user_stack(evidence), Mark::DatabaseLock) => false,
        WaitKind::Poll | WaitKind::Message => owed(evidence, wait, false) <= IDLE,
        WaitKind::Idle => true,
        _ => false,
    }
}

fn call(evidence: &Evidence<'_>, wait: &Wait) -> Option<Call> {
    let row = wait.row?;
    Some(evidence.call(evidence.switches.call[row]))
}

fn is_uninterruptible(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    wait.row
        .is_some_and(|row| Left::from(evidence.switches.left[row]) == Left::Uninterruptible)
}

/// It may be that a result is awaited.
pub(crate) const HOPED: f64 = 0.4;
pub(crate) const MAYBE: f64 = 0.15;
pub(crate) const ASKED: f64 = 0.9;
const BY_BUS: f64 = 0.3;
/// One that does nothing else mostly has others work for it.
pub(crate) const ALL_IT_DOES: f64 = 0.05;
/// A child may be at work for its parent, or for itself.
const PARTNER: f64 = 0.03;
/// What comes through a pipe comes when it is ready.
const STREAM: f64 = 0.1;
/// Nothing is owed, as far as is known.
pub(crate) const IDLE: f64 = 0.01;
