//! Who has the lock that a database waits for on behalf of a client.

use hangdog_trace::Process;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::Object;

use super::connection::last_transfer;
use super::who::{process_of, stopped_thread, thread_of, wait_at};
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::names;
use crate::wait::{Wait, WaitKind};

/// Who keeps a client of a database waiting for a lock on what that keeps, or for one of a pooler's
/// connections: no sign of it leaves the server. It is another client, which waits for nothing from
/// the server itself; of several one that PostgreSQL says is in a transaction.
pub(super) fn other_client(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let threads = evidence.threads;
    let own = threads.process(threads.thread(wait.thread).upid);
    let waits_by_title =
        |process: &Process| is_postgres(process) && process.command.ends_with(" waiting");
    let is_kept = || evidence.shows(wait.user_stack(evidence), Mark::DatabaseLock);
    let waits = matches!(wait.kind, WaitKind::Condition | WaitKind::Poll) && is_kept()
        || waits_by_title(own)
        || names::POOLERS.contains(&own.name.as_str());
    if !waits {
        return None;
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
    let siblings = threads
        .processes()
        .filter(beside)
        .filter(|other| !waits_by_title(other));
    let ends: Vec<(Upid, Object)> = match is_postgres(own) {
        true => siblings.flat_map(|other| served(other.upid)).collect(),
        false => served(own.upid).collect(),
    };
    let candidates = ends.into_iter().filter_map(|(server, end)| {
        let object = evidence.sockets.peer(end)?;
        let client = process_of(evidence, object)?;
        let thread = thread_of(evidence, client, Object::NONE, wait.end)?;
        let asks = |&thread: &Utid| {
            let there = wait_at(evidence, thread, wait.end);
            there.is_some_and(|there| there.object(evidence) == object)
        };
        let is_waiting = threads.process(client).threads.iter().any(asks);
        let in_transaction = threads
            .process(server)
            .command
            .contains("idle in transaction");
        let is_stopped = stopped_thread(evidence, client, wait.end).is_some();
        let used = last_transfer(evidence, end, wait.end);
        (!is_waiting).then_some((is_stopped, in_transaction, used, thread))
    });
    let (_, in_transaction, _, thread) = candidates.max()?;
    let name = evidence.name(thread);
    let reason = match in_transaction {
        true => format!("it waits for a lock, and {name} is in a transaction"),
        false => format!("it waits for a lock, and {name} is a client that waits for nothing"),
    };
    Some(Edge::new(
        EdgeKind::Holder,
        Strength::Weak,
        Source::Thread(thread),
        reason,
    ))
}

/// Whether a process is one of PostgreSQL's that serve clients: they tell what they do by their
/// titles.
fn is_postgres(process: &Process) -> bool {
    process.name.starts_with("postgres")
}
