//! Requests that took long among their like: from what a thread sent over a connection to what it
//! then received over it, having waited in between; and the other way round at a server whose
//! client the trace does not show.
//!
//! Requests are alike that the same role of thread makes to the same kind of peer.

use hangdog_graph::owed::may_wait_for_jobs;
use hangdog_graph::role::role;
use hangdog_graph::{Evidence, Strength, Wait, WaitKind};
use hangdog_timeline::{Interval, State};
use hangdog_trace::ids::Utid;
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::sockets::Role;
use std::collections::{HashMap, HashSet};

use super::display::serves;
use super::family::Family;
use super::{Problem, ProblemKind, worth};
use crate::owed::is_from_ancestor;

/// A request is an outlier from so many times the median of its like on.
const TIMES: u64 = 4;
/// So many are enough to know what is usual.
const ENOUGH: usize = 5;
/// Shorter ones are not looked at.
const SHORTEST_NS: u64 = 10_000_000;
/// Where too few are alike, longer than this is long.
const LONG_NS: u64 = 200_000_000;
/// More of a role are not kept in mind: the longest of them are.
const MOST: usize = 64;
/// What came back may also be the next request to one that had replied.
const WEIGHT: f64 = 0.7;

/// One that was replied to.
#[derive(Clone, Copy)]
struct Request {
    thread: Utid,
    object: Object,
    from: u64,
    to: u64,
}

/// What happened last on one end of a connection.
struct Last {
    thread: Utid,
    ts: u64,
    sent: bool,
}

pub(super) fn find(evidence: &Evidence<'_>, family: &Family) -> Vec<Problem> {
    let transfers = evidence.transfers;
    let ends: HashSet<u64> = transfers.object.iter().copied().collect();
    let mut last: HashMap<u64, Last> = HashMap::new();
    let mut receives_first: HashSet<u64> = HashSet::new();
    let mut alike: HashMap<(String, bool), Vec<Request>> = HashMap::new();
    let mut lengths: HashMap<(String, bool), Vec<u64>> = HashMap::new();
    let mut roles: HashMap<Utid, String> = HashMap::new();
    let mut servers: HashMap<Utid, bool> = HashMap::new();
    for row in 0..transfers.len() {
        let (thread, ts, sent) = (
            transfers.thread[row],
            transfers.ts[row],
            transfers.sent[row],
        );
        let object = transfers.object[row];
        let before = last.insert(object, Last { thread, ts, sent });
        // A socket without a connection, by which requests come and are replied to.
        if before.is_none() && !sent && Object(object).kind() == ObjectKind::Inet {
            receives_first.insert(object);
        }
        let Some(before) = before.filter(|before| before.thread == thread) else {
            continue;
        };
        // What a helper sends answers an order, and what comes next is the next order.
        let process = evidence.threads.thread(thread).upid;
        if is_from_ancestor(evidence, process, Object(object)) {
            continue;
        }
        let is_server = *servers
            .entry(thread)
            .or_insert_with(|| serves(evidence, thread));
        if is_server || passes_on(evidence, Object(object)) {
            continue;
        }
        if before.sent == sent || ts <= before.ts {
            continue;
        }
        // Between an answer and the next request nothing is owed.
        let asks = match evidence.sockets.role(Object(object)) {
            Some(Role::Client) => !sent,
            Some(Role::Server) => sent,
            None => !receives_first.contains(&object) || sent,
        };
        if !asks {
            continue;
        }
        // A server's work for a client that is in the trace is a part of the client's request.
        let other = evidence.sockets.peer(Object(object));
        let client = other.map_or(transfers.peer[row], |other| other.0);
        if sent && ends.contains(&client) {
            continue;
        }
        let name = roles.entry(thread).or_insert_with(|| {
            let known = evidence.threads.thread(thread);
            let process = &evidence.threads.process(known.upid).name;
            format!("{}/{}", role(process), role(known.name()))
        });
        let like = (name.clone(), sent);
        lengths
            .entry(like.clone())
            .or_default()
            .push(ts - before.ts);
        if ts - before.ts >= SHORTEST_NS {
            alike.entry(like).or_default().push(Request {
                thread,
                object: Object(object),
                from: before.ts,
                to: ts,
            });
        }
    }
    let mut problems = Vec::new();
    for (like, mut requests) in alike {
        let Some(all) = lengths.get_mut(&like) else {
            continue;
        };
        all.sort_unstable();
        let usual = all[all.len() / 2];
        let is_long = |request: &Request| match all.len() >= ENOUGH {
            true => request.to - request.from >= usual.saturating_mul(TIMES),
            false => request.to - request.from >= LONG_NS,
        };
        // A server need not wait while it works for its client.
        let serves = like.1;
        requests.retain(|request| {
            is_long(request)
                && (serves || waited(evidence, request))
                && is_request(evidence, request)
        });
        requests.sort_by_key(|request| std::cmp::Reverse(request.to - request.from));
        requests.truncate(MOST);
        problems.extend(requests.into_iter().map(|request| {
            let excess = (request.to - request.from).saturating_sub(usual);
            let felt = weight(evidence, request.thread) * family.share(evidence, request.thread);
            Problem {
                thread: request.thread,
                window: request.from..request.to,
                kind: ProblemKind::Request,
                felt,
                owed: felt,
                score: worth(excess as f64) * felt,
                many: None,
            }
        }));
    }
    problems
}

/// Whether events come over a connection, too.
fn passes_on(evidence: &Evidence<'_>, object: Object) -> bool {
    let process = evidence.sockets.peer_process(object);
    process.is_some_and(|process| evidence.passes_on(process))
}

/// A program's main thread stands for its user.
fn weight(evidence: &Evidence<'_>, thread: Utid) -> f64 {
    match evidence.stands_for_program(thread) {
        true => WEIGHT,
        false => WEIGHT / 2.0,
    }
}

/// Whether what was sent asked for what came: not if the thread slept meanwhile as it wished; and of a
/// pair of sockets, which have no server's end, only if it waited for nothing else; nor if it is a broker
/// that it gets its jobs from.
fn is_request(evidence: &Evidence<'_>, request: &Request) -> bool {
    let is_pair = request.object.kind() == ObjectKind::Unix
        && evidence.sockets.role(request.object).is_none();
    let parts = evidence
        .timeline
        .between(request.thread, request.from, request.to);
    let longest = parts
        .filter(|part| part.state == State::Blocked)
        .max_by_key(Interval::duration)
        .map(|longest| Wait::new(evidence, request.thread, &longest));
    longest.is_some_and(|wait| match wait.kind {
        WaitKind::Sleep => false,
        _ if may_wait_for_jobs(evidence, &wait, request.object) == Some(Strength::Strong) => false,
        _ => !is_pair || wait.object(evidence) == request.object,
    }) || longest.is_none() && !is_pair
}

/// Whether the thread did little else meanwhile: one that sends, does other things, and finds
/// something to receive when it comes back did not wait for it.
fn waited(evidence: &Evidence<'_>, request: &Request) -> bool {
    const MOST: f64 = 0.7;
    let parts = evidence
        .timeline
        .between(request.thread, request.from, request.to);
    let (mut longest, mut blocked) = (0_u64, 0_u64);
    for part in parts.filter(|part| part.state == State::Blocked) {
        longest = longest.max(part.duration());
        blocked = u64::saturating_add(blocked, part.duration());
    }
    // Many short waits are an event loop that idles.
    blocked.min(longest.saturating_mul(2)) as f64 >= MOST * (request.to - request.from) as f64
}
