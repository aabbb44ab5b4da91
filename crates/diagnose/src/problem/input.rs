//! Programs with windows that do not answer: what the display server sent lies unread.
//!
//! Every connection of a client to the display server, X11 or Wayland, is a unix socket of which
//! the recording sees what goes in and what comes out. A program that is at its event loop reads
//! what comes at once, so what lay for longer than a person bears was input to a program that hung.

use hangdog_graph::Evidence;
use hangdog_trace::ids::Utid;
use std::collections::HashMap;

use super::family::Family;
use super::{Problem, ProblemKind};

/// Programs that draw what others show, by the start of their names.
const SERVERS: [&str; 12] = [
    "Xorg",
    "Xvfb",
    "Xwayland",
    "Xephyr",
    "Xtigervnc",
    "Xvnc",
    "gnome-shell",
    "kwin_",
    "sway",
    "weston",
    "mutter",
    "labwc",
];
/// What is read within this time is answered.
const UNREAD_NS: u64 = 200_000_000;
/// A person waits for it.
const WEIGHT: f64 = 3.0;

/// What the server sent to a client and the client has not read.
#[derive(Default)]
struct Connection {
    /// Who reads it.
    reader: Option<Utid>,
    /// Since when something lies there.
    unread: Option<u64>,
    /// Stretches that began before the reader was known.
    long: Vec<(u64, u64)>,
}

pub(super) fn find(evidence: &Evidence<'_>, family: &Family) -> Vec<Problem> {
    let transfers = evidence.transfers;
    let mut is_server: HashMap<Utid, bool> = HashMap::new();
    let mut connections: HashMap<u64, Connection> = HashMap::new();
    for row in 0..transfers.len() {
        let (thread, ts) = (transfers.thread[row], transfers.ts[row]);
        let by_server = *is_server
            .entry(thread)
            .or_insert_with(|| serves(evidence, thread));
        match (by_server, transfers.sent[row]) {
            (true, true) if transfers.peer[row] != 0 => {
                let connection = connections.entry(transfers.peer[row]).or_default();
                connection.unread.get_or_insert(ts);
            }
            (false, false) => {
                if let Some(connection) = connections.get_mut(&transfers.object[row]) {
                    connection.reader = Some(thread);
                    connection.read(ts);
                }
            }
            _ => {}
        }
    }
    let end = evidence.timeline.end();
    connections
        .into_values()
        .flat_map(|mut connection| {
            connection.read(end);
            let reader = connection.reader;
            connection.long.into_iter().filter_map(move |(from, to)| {
                let thread = reader?;
                Some(Problem {
                    thread,
                    window: from..to,
                    kind: ProblemKind::Input,
                    score: (to - from) as f64 * WEIGHT * family.share(evidence, thread),
                })
            })
        })
        .collect()
}

impl Connection {
    fn read(&mut self, at: u64) {
        if let Some(from) = self.unread.take()
            && at.saturating_sub(from) > UNREAD_NS
        {
            self.long.push((from, at));
        }
    }
}

fn serves(evidence: &Evidence<'_>, thread: Utid) -> bool {
    let name = &evidence.threads.process_of(thread).name;
    SERVERS.iter().any(|server| name.starts_with(server))
}
