//! Who is a display server, and who is its client.

use hangdog_graph::Evidence;
use hangdog_trace::ids::{Upid, Utid};
use std::collections::{HashMap, HashSet};

/// Whether a thread is the display server's.
pub(super) fn serves(evidence: &Evidence<'_>, thread: Utid) -> bool {
    evidence.serves_display(evidence.threads.thread(thread).upid)
}

/// The programs that a display server sent something to.
pub(super) fn clients(evidence: &Evidence<'_>) -> HashSet<Upid> {
    let transfers = evidence.transfers;
    let mut is_server: HashMap<Utid, bool> = HashMap::new();
    let mut ends: HashSet<u64> = HashSet::new();
    let mut clients = HashSet::new();
    for row in 0..transfers.len() {
        let thread = transfers.thread[row];
        let by_server = *is_server
            .entry(thread)
            .or_insert_with(|| serves(evidence, thread));
        if by_server && transfers.sent[row] && transfers.peer[row] != 0 {
            ends.insert(transfers.peer[row]);
        } else if !by_server && !transfers.sent[row] && ends.contains(&transfers.object[row]) {
            clients.insert(evidence.threads.thread(thread).upid);
        }
    }
    clients
}
