//! Which of its clients keeps a server from answering another: one that has the lock that a database
//! waits for, or one that took a job from a broker.

use hangdog_trace::Process;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::Object;

use super::amid::amid_child;
use super::kin::first_thread;
use super::last::{has_sent, last_transfer, peer_of, process_of};
use super::orders::reads_orders;
use super::who::{is_home, is_there, stopped_thread, thread_of, wait_at};
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::names;
use crate::wait::{Wait, WaitKind};
use crate::wake::is_busy;

/// Who keeps a client of a database waiting for a lock on what that keeps, for one of a pooler's
/// connections, or for what somebody is to send through a broker: no sign of it leaves the server. It
/// is another client, which waits for nothing from the server itself; of several one that PostgreSQL
/// says is in a transaction, and of a broker's the one that took something last and is in the
/// middle of work.
pub(super) fn other_client(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    /// Of one task a client uses its connection to a broker less often.
    const FEW_USES: usize = 4;
    /// Uses are looked at so far back at least, ns: the wait may be one of many that the server makes meanwhile.
    const OFTEN_NS: u64 = 500_000_000;
    let threads = evidence.threads;
    let own = threads.process(threads.thread(wait.thread).upid);
    let title = |process: &Process| title_at(evidence, process, wait.end).to_owned();
    let waits_by_title =
        |process: &Process| is_postgres(process) && title(process).ends_with(" waiting");
    let is_kept = || evidence.shows(wait.user_stack(evidence), Mark::DatabaseLock);
    let is_broker = is_broker(own);
    let waits = matches!(wait.kind, WaitKind::Condition | WaitKind::Poll) && is_kept()
        || waits_by_title(own)
        || names::POOLERS.contains(&own.name.as_str())
        || is_broker && has_nothing_to_do(wait);
    if let Some(edge) = upkeep(evidence, wait) {
        return Some(edge);
    }
    if !waits {
        return runner(evidence, own, wait);
    }
    // PostgreSQL serves each client by a process of its own.
    let beside = |other: &&Process| {
        is_postgres(own)
            && is_postgres(other)
            && other.parent == own.parent
            && other.upid != own.upid
    };
    let served = |process: Upid| {
        evidence
            .sockets
            .served_by(process)
            .map(move |end| (process, end))
    };
    let siblings = || {
        let all = threads.processes().filter(beside);
        all.filter(|other| !waits_by_title(other))
    };
    let ends: Vec<(Upid, Object)> = match is_postgres(own) {
        true => siblings().flat_map(|other| served(other.upid)).collect(),
        false => served(own.upid).collect(),
    };
    let candidates = ends.into_iter().filter_map(|(server, end)| {
        let object = evidence.sockets.peer(end)?;
        let client = process_of(evidence, object)?;
        // At the end it waits for the server to take its commit, by which it lets the other go on.
        let moment = wait.start + wait.duration() / 2;
        let thread = client_thread(evidence, client, object, moment)?;
        let asks = |&thread: &Utid| {
            let there = wait_at(evidence, thread, moment);
            there.is_some_and(|there| {
                there.kind != WaitKind::Stopped && there.object(evidence) == object
            })
        };
        if threads.process(client).threads.iter().any(asks) {
            return None;
        }
        // The one that takes the jobs may have others do them.
        let has_no_job = |there: &Wait| is_home(evidence, there) || reads_orders(evidence, there);
        let at_home =
            wait_at(evidence, thread, moment).filter(|there| is_broker && has_no_job(there));
        let thread = match at_home {
            Some(there) => amid_child(evidence, &there)?,
            None => thread,
        };
        let process = threads.process(server);
        // It may still be, or have been then.
        let titles = [&title(process), &process.command];
        let in_transaction = (titles.iter()).any(|title| title.contains("idle in transaction"));
        let is_stopped = stopped_thread(evidence, client, wait.end).is_some();
        let used = last_transfer(evidence, end, wait.end);
        let took = is_broker && has_sent(evidence, end, wait.end);
        // One that comes back for more again and again has done what it took.
        let since = wait.start.min(wait.end.saturating_sub(OFTEN_NS));
        let comes_back = used.is_some_and(|row| {
            let times = evidence.uses_before(end, wait.end).take(FEW_USES);
            let within = times.filter(|&row| evidence.transfers.ts[row] >= since);
            evidence.transfers.ts[row] >= since && within.count() == FEW_USES
        });
        let is_likely = in_transaction || took;
        // What keeps one from going on may be why it has not given back what it has.
        let is_stuck = !is_broker && cannot_go_on(evidence, thread, wait);
        Some((
            is_stopped,
            is_likely && !(took && comes_back),
            is_likely,
            is_stuck && !comes_back,
            used,
            thread,
        ))
    });
    let chosen = candidates.max();
    // One that is not known to be in a transaction has at most locks that outlast one. Who executes something
    // meanwhile has locks.
    if chosen.is_some_and(|(is_stopped, _, is_likely, ..)| !is_stopped && !is_likely)
        && is_postgres(own)
        && let Some(edge) = executes(evidence, siblings().map(|other| other.upid), wait)
    {
        return Some(edge);
    }
    let Some((is_stopped, _, is_likely, .., thread)) = chosen else {
        let servers = siblings().filter(|other| served(other.upid).next().is_some());
        let at_work = at_work(evidence, servers.map(|other| other.upid), wait);
        let middle = wait.start + wait.duration() / 2;
        let serves = |other: &Upid| {
            let first = first_thread(evidence, *other);
            first.is_some_and(|first| is_there(evidence, first, middle))
                && served(*other).next().is_some()
        };
        let all = threads.processes().filter(beside).map(|other| other.upid);
        let serving = all.filter(serves);
        return at_work
            .or_else(|| only_other_session(evidence, serving, wait))
            .or_else(|| is_kept().then(|| executes_beside(evidence, own, wait))?);
    };
    let name = evidence.name(thread);
    let reason = match is_likely {
        _ if is_stopped => format!("{name} is a client of its server, and stopped"),
        _ if is_broker => format!("{name} took a request from it, and has not answered"),
        true => format!("it waits for a lock, and {name} is in a transaction"),
        false => format!("it waits for a lock, and {name} is a client that does not wait"),
    };
    Some(Edge::new(
        EdgeKind::Holder,
        Strength::Weak,
        Source::Thread(thread),
        reason,
    ))
}

/// Whether a thread waits for somebody else, in one go, for most of a wait.
fn cannot_go_on(evidence: &Evidence<'_>, thread: Utid, wait: &Wait) -> bool {
    let there = wait_at(evidence, thread, wait.start + wait.duration() / 2);
    there.is_some_and(|there| {
        let awaits = [
            WaitKind::Message,
            WaitKind::Lock,
            WaitKind::Child,
            WaitKind::Disk,
        ];
        let both = (there.end.min(wait.end)).saturating_sub(there.start.max(wait.start));
        awaits.contains(&there.kind)
            && !is_home(evidence, &there)
            && both.saturating_mul(2) > wait.duration()
    })
}

/// What a server has as its title at a moment; at the recording's end that was read right behind it.
fn title_at<'p>(evidence: &Evidence<'_>, process: &'p Process, moment: u64) -> &'p str {
    match moment >= evidence.timeline.end() {
        true => &process.command,
        false => process.command_at(moment),
    }
}

/// The client of a server that runs the job for which others wait, as a queue of jobs has it: the only one that
/// runs the server's own program, and waits for its child.
fn runner(evidence: &Evidence<'_>, own: &Process, wait: &Wait) -> Option<Edge> {
    if wait.kind != WaitKind::Poll {
        return None;
    }
    let middle = wait.start + wait.duration() / 2;
    let peers = evidence.sockets.served_by(own.upid);
    let clients = peers.filter_map(|end| process_of(evidence, evidence.sockets.peer(end)?));
    let mut runners = clients.filter_map(|client| {
        let is_alike = client != own.upid && evidence.threads.process(client).name == own.name;
        let first = first_thread(evidence, client).filter(|_| is_alike)?;
        let there = wait_at(evidence, first, middle)?;
        (there.kind == WaitKind::Child).then_some(first)
    });
    let only = runners.next().filter(|_| runners.next().is_none())?;
    let name = evidence.name(only);
    let reason = format!("{name} is a client of its own program, and waits for its child");
    let source = Source::Thread(only);
    Some(Edge::new(EdgeKind::Holder, Strength::Weak, source, reason))
}

/// The process of a database that one of its sessions waits for: that which writes a checkpoint, or that which has its logs archived.
pub(super) fn upkeep(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let own = evidence.threads.process_of(wait.thread);
    let stack = wait.user_stack(evidence);
    if !evidence.shows(stack, Mark::AwaitsUpkeep) {
        return None;
    }
    let mut frames = evidence.stacks.stack(stack);
    let awaits_archive = frames.any(|frame| frame.function == Some(names::AWAITS_ARCHIVE));
    let (title, does) = match awaits_archive {
        true => ("archiver", "it waits for its log to be archived, which"),
        false => ("checkpointer", "it waits for a checkpoint, which"),
    };
    let is_one = |other: &&Process| other.parent == own.parent && other.command.contains(title);
    let other = evidence.threads.processes().find(is_one)?;
    let thread = first_thread(evidence, other.upid)?;
    let is_alive = is_there(evidence, thread, wait.end);
    let reason = format!("{does} {} does", evidence.name(thread));
    is_alive.then(|| {
        Edge::new(
            EdgeKind::Awaited,
            Strength::Strong,
            Source::Thread(thread),
            reason,
        )
    })
}

/// The process of a database's that is at work for another client: it may have what one waits for.
fn at_work(
    evidence: &Evidence<'_>,
    servers: impl Iterator<Item = Upid>,
    wait: &Wait,
) -> Option<Edge> {
    let middle = wait.start + wait.duration() / 2;
    let works = |&thread: &Utid| {
        is_there(evidence, thread, middle)
            && wait_at(evidence, thread, middle).is_none_or(|there| {
                let stack = there.user_stack(evidence);
                !is_home(evidence, &there) && !evidence.shows(stack, Mark::DatabaseLock)
            })
    };
    let mut firsts = servers.filter_map(|server| first_thread(evidence, server));
    let thread = firsts.find(works)?;
    let name = evidence.name(thread);
    let reason = format!("it waits for a lock, and {name} is at work for another client");
    let source = Source::Thread(thread);
    Some(Edge::new(EdgeKind::Holder, Strength::Weak, source, reason))
}

/// The session of a database that is on a CPU, or wants one, for most of a wait for a lock that a client need not be in a
/// transaction to be kept from.
fn executes(
    evidence: &Evidence<'_>,
    sessions: impl Iterator<Item = Upid>,
    wait: &Wait,
) -> Option<Edge> {
    let stack = wait.user_stack(evidence);
    if evidence.shows(stack, Mark::AdvisoryLock) {
        return None;
    }
    let is_served = |&session: &Upid| evidence.sockets.served_by(session).next().is_some();
    let mut firsts = sessions
        .filter(is_served)
        .filter_map(|session| first_thread(evidence, session));
    let thread = firsts.find(|&thread| is_busy(evidence, thread, wait))?;
    let name = evidence.name(thread);
    let reason = format!("it waits for a lock, and {name} executes something for another client");
    let source = Source::Thread(thread);
    Some(Edge::new(EdgeKind::Holder, Strength::Weak, source, reason))
}

/// The only thread of a database with a thread for each session that is on a CPU, or wants one, for most of a wait for a
/// lock: all its clients wait for it.
fn executes_beside(evidence: &Evidence<'_>, own: &Process, wait: &Wait) -> Option<Edge> {
    let others = own.threads.iter().copied();
    let mut busy = others.filter(|&other| other != wait.thread && is_busy(evidence, other, wait));
    let only = busy.next().filter(|_| busy.next().is_none())?;
    let name = evidence.name(only);
    let reason = format!("it waits for a lock, and {name} executes something meanwhile");
    let source = Source::Thread(only);
    Some(Edge::new(EdgeKind::Holder, Strength::Weak, source, reason))
}

/// The only other session of a database: nobody else can have what one waits for. It waits for a lock too, or
/// its own client waits for it, so that it is in the middle of work.
fn only_other_session(
    evidence: &Evidence<'_>,
    mut sessions: impl Iterator<Item = Upid>,
    wait: &Wait,
) -> Option<Edge> {
    let only = sessions.next().filter(|_| sessions.next().is_none())?;
    let thread = first_thread(evidence, only)?;
    let moment = wait.start + wait.duration() / 2;
    let is_kept = wait_at(evidence, thread, moment)
        .is_some_and(|there| evidence.shows(there.user_stack(evidence), Mark::DatabaseLock));
    let is_asked = || {
        let mut ends = evidence.sockets.served_by(only);
        ends.any(|end| {
            let object = evidence.sockets.peer(end);
            let client = object.and_then(|object| process_of(evidence, object));
            let waits = |thread: Utid| {
                let there = wait_at(evidence, thread, moment);
                there.is_some_and(|there| Some(there.object(evidence)) == object)
            };
            client.is_some_and(|client| {
                let threads = &evidence.threads.process(client).threads;
                threads.iter().any(|&thread| waits(thread))
            })
        })
    };
    if !is_kept && !is_asked() {
        return None;
    }
    let name = evidence.name(thread);
    let reason = format!("it waits for a lock, and {name} is the only other session");
    let source = Source::Thread(thread);
    Some(Edge::new(EdgeKind::Holder, Strength::Weak, source, reason))
}

/// Whether a client of a broker at the other end of `object`, which waits for nothing but it, may do so for
/// its next job: the broker has nothing to do. Certainly, where another process of its kind waits in the
/// same place, or a child of it is in the middle of work or waits for orders.
pub fn may_wait_for_jobs(evidence: &Evidence<'_>, wait: &Wait, object: Object) -> Option<Strength> {
    let threads = evidence.threads;
    let broker = peer_of(evidence, object)?;
    let middle = wait.start + wait.duration() / 2;
    let at = |process: Upid, moment| {
        let first = first_thread(evidence, process)?;
        wait_at(evidence, first, moment)
    };
    // It looks after itself now and then.
    let moments = [middle, wait.start + wait.duration() / 3];
    let mut there = moments.iter().filter_map(|&moment| at(broker, moment));
    if !is_broker(threads.process(broker)) || !there.any(|there| has_nothing_to_do(&there)) {
        return None;
    }
    let own = threads.process(threads.thread(wait.thread).upid);
    let is_alike = |other: &&Process| {
        other.upid != own.upid && other.parent == own.parent && other.name == own.name
    };
    let place = |wait: &Wait| evidence.same_frames(wait.user_stack(evidence));
    let waits_alike = |other: &Process| {
        at(other.upid, middle).is_some_and(|there| {
            place(&there) == place(wait)
                && peer_of(evidence, there.object(evidence)) == Some(broker)
        })
    };
    // One that has others do the jobs takes the next at any time.
    let mut children = threads.processes().filter(|child| child.parent == own.upid);
    let has_others = amid_child(evidence, wait).is_some()
        || children.any(|child| {
            at(child.upid, middle).is_some_and(|there| reads_orders(evidence, &there))
        });
    Some(
        match has_others || threads.processes().filter(is_alike).any(waits_alike) {
            true => Strength::Strong,
            false => Strength::Weak,
        },
    )
}

/// The thread of a client by which it has a connection: that used it last, or else one that is kept from a lock
/// of the program's own, which may well be the answer to why it does not go on; or who should answer.
fn client_thread(
    evidence: &Evidence<'_>,
    client: Upid,
    object: Object,
    moment: u64,
) -> Option<Utid> {
    let used = last_transfer(evidence, object, moment);
    let user = used.map(|row| evidence.transfers.thread[row]);
    let threads = evidence.threads.process(client).threads.iter().copied();
    let mut alive = threads.filter(|&thread| is_there(evidence, thread, moment));
    let is_kept = |&thread: &Utid| {
        wait_at(evidence, thread, moment).is_some_and(|there| there.is_for_own_lock(evidence))
    };
    user.filter(|&user| is_there(evidence, user, moment))
        .or_else(|| alive.find(is_kept))
        .or_else(|| thread_of(evidence, client, Object::NONE, moment))
}

/// Whether a broker is idle, by a wait of its: it polls, or its language's scheduler has nothing to run.
fn has_nothing_to_do(wait: &Wait) -> bool {
    matches!(wait.kind, WaitKind::Poll | WaitKind::Idle)
}

fn is_broker(process: &Process) -> bool {
    let mut starts = names::BROKERS.iter();
    starts.any(|start| process.name.starts_with(start))
}

/// Whether a process is one of PostgreSQL's that serve clients: they tell what they do by their
/// titles.
fn is_postgres(process: &Process) -> bool {
    process.name.starts_with("postgres")
}
