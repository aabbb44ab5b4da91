//! Programs with windows that do not answer: what the display server sent lies unread.
//!
//! Every connection of a client to the display server, X11 or Wayland, is a unix socket of which
//! the recording sees what goes in and what comes out. A program that is at its event loop reads
//! what comes at once, so what lay for longer than a person bears was input to a program that hung.

use hangdog_graph::{Evidence, Wait, WaitKind};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::ids::Utid;
use hangdog_trace::object::Object;
use std::collections::HashMap;

use super::display::serves;
use super::family::Family;
use super::{Problem, ProblemKind, worth};

/// What is read within this time is answered.
const UNREAD_NS: u64 = 200_000_000;
/// A turn that began longer before is not looked for.
const LONGEST_TURN_NS: u64 = 30_000_000_000;
/// A person waits for it.
const WEIGHT: f64 = 3.0;

/// What the server sent to a client and the client has not read.
#[derive(Default)]
struct Connection {
    /// Who reads it.
    reader: Option<Utid>,
    /// Since when something lies there.
    unread: Option<u64>,
    /// Intervals that began before the reader was known.
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
                let end = transfers.peer[row];
                let connection = connections.entry(end).or_default();
                connection.read_in_a_turn(evidence, end, ts);
                connection.unread.get_or_insert(ts);
            }
            (false, false) => {
                if let Some(connection) = connections.get_mut(&transfers.object[row]) {
                    connection.reader = Some(thread);
                    connection.read_in_a_turn(evidence, transfers.object[row], ts);
                    connection.read(ts);
                }
            }
            _ => {}
        }
    }
    let end = evidence.timeline.end();
    connections
        .into_iter()
        .flat_map(|(own, mut connection)| {
            connection.read_in_a_turn(evidence, own, end);
            connection.read(end);
            let reader = connection.reader;
            connection.long.into_iter().filter_map(move |(from, to)| {
                let thread = reader?;
                // What is never read, because its reader has ended, keeps nobody waiting.
                let to = to.min(evidence.timeline.life(thread).end);
                if to.saturating_sub(from) <= UNREAD_NS || is_a_tool(evidence, thread) {
                    return None;
                }
                let to = turn_after(evidence, thread, to);
                let felt = WEIGHT * family.share(evidence, thread);
                Some(Problem {
                    thread,
                    window: turn_before(evidence, thread, from)..to,
                    kind: ProblemKind::Input,
                    felt,
                    owed: felt,
                    score: worth((to - from) as f64) * felt,
                    many: None,
                })
            })
        })
        .collect()
}

/// Whether a thread's life began and soon ended in the trace: what asks a display server for something and ends, as
/// xdotool does, has no window at which somebody looks.
fn is_a_tool(evidence: &Evidence<'_>, thread: Utid) -> bool {
    const SOON_NS: u64 = 2_000_000_000;
    let life = evidence.timeline.life(thread);
    life.start > 0 && life.end < evidence.timeline.end() && life.end - life.start < SOON_NS
}

impl Connection {
    fn read(&mut self, at: u64) {
        if let Some(from) = self.unread.take()
            && at.saturating_sub(from) > UNREAD_NS
        {
            self.long.push((from, at));
        }
    }

    /// What made its reader begin a turn is read when that is over, at the latest, and so is what had come when
    /// it began to wait for more on the same connection: also where so much was sent that the receiving was
    /// not recorded. `own` is the reader's end.
    fn read_in_a_turn(&mut self, evidence: &Evidence<'_>, own: u64, until: u64) {
        if let (Some(reader), Some(from)) = (self.reader, self.unread)
            && let Some(over) = [
                turn_over(evidence, reader, from),
                waits_for_more(evidence, reader, Object(own), from),
            ]
            .into_iter()
            .flatten()
            .min()
            && over <= until
        {
            self.read(over);
        }
    }
}

/// When the turn was over in which a thread was at `from`, or which it began then, if a display server's
/// message made it begin. It waits for the next only if it has read all that had come.
fn turn_over(evidence: &Evidence<'_>, reader: Utid, from: u64) -> Option<u64> {
    /// The server sends, and then wakes.
    const SOON_NS: u64 = 1_000_000;
    /// Most intervals of a turn that is looked at.
    const MOST: usize = 64;
    let intervals = evidence.timeline.intervals(reader);
    let at = intervals.index_at(from)?;
    let near = || (at.saturating_sub(MOST)..=at).rev();
    let home_at = near().find(|&at| intervals.state(at) == State::Blocked)?;
    let home = intervals.get(home_at)?;
    let site = |interval: &Interval| match (interval.state, interval.cause) {
        (State::Blocked, Cause::Switch(row)) => Some(evidence.site(row as usize)),
        _ => None,
    };
    let home_site = site(&home)?;
    // On another CPU it may wait again before the call that sent it has come back.
    if home_at == at && from.saturating_sub(home.start) <= SOON_NS {
        let before = (at.saturating_sub(MOST)..at).rev().find_map(|before| {
            let interval = intervals.get(before)?;
            (interval.state == State::Blocked).then_some((before, interval))
        });
        let (before_at, before) = before?;
        let is_by_server = match intervals.get(before_at + 1)?.cause {
            Cause::Wake(row) => serves(evidence, evidence.wakes.waker[row as usize]),
            _ => false,
        };
        let is_turn = site(&before) == Some(home_site)
            && from.saturating_sub(before.end) <= SOON_NS
            && Wait::new(evidence, reader, &home).kind == WaitKind::Poll;
        return (is_by_server && is_turn).then_some(from);
    }
    let Cause::Wake(row) = intervals.get(home_at + 1)?.cause else {
        return None;
    };
    let is_by_server = serves(evidence, evidence.wakes.waker[row as usize]);
    if !is_by_server
        || home.end.saturating_sub(from) > SOON_NS
        || Wait::new(evidence, reader, &home).kind != WaitKind::Poll
    {
        return None;
    }
    (home_at + 2..intervals.len())
        .take(MOST)
        .filter_map(|at| intervals.get(at))
        .find(|interval| interval.start >= from && site(interval) == Some(home_site))
        .map(|interval| interval.start)
}

/// When a thread waited for something to read on a connection, after `from`: then nothing was there. A moment's
/// wait says nothing, as what came just then may have ended it.
fn waits_for_more(evidence: &Evidence<'_>, reader: Utid, own: Object, from: u64) -> Option<u64> {
    const LEAST_NS: u64 = 1_000_000;
    /// So many intervals further on it is looked.
    const MOST: usize = 64;
    let intervals = evidence.timeline.intervals(reader);
    let here = intervals.index_at(from)?;
    let after = (here..intervals.len()).take(MOST);
    let waits = after
        .filter_map(|at| intervals.get(at))
        .filter(|it| it.state == State::Blocked && it.start > from && it.duration() >= LEAST_NS);
    waits
        .map(|it| Wait::new(evidence, reader, &it))
        .find(|wait| {
            matches!(wait.kind, WaitKind::Poll | WaitKind::Message)
                && !wait.writes(evidence)
                && wait.object(evidence) == own
        })
        .map(|wait| wait.start)
}

/// When the turn of its event loop began that kept a thread from reading what came at `from`.
fn turn_before(evidence: &Evidence<'_>, thread: Utid, from: u64) -> u64 {
    let intervals = evidence.timeline.intervals(thread);
    let here = intervals.index_at(from).map_or(0, |at| at + 1);
    let last_home = (0..here)
        .rev()
        .filter_map(|at| intervals.get(at))
        .filter(|interval| interval.state == State::Blocked && interval.end <= from)
        .take_while(|interval| from - interval.end <= LONGEST_TURN_NS)
        .find(|interval| Wait::new(evidence, thread, interval).kind == WaitKind::Poll);
    last_home.map_or(from, |home| home.end)
}

/// When the turn of its event loop ends in which a thread reads what came, after it had left it unread: until
/// then it may have read, and does not answer.
fn turn_after(evidence: &Evidence<'_>, thread: Utid, read: u64) -> u64 {
    let intervals = evidence.timeline.intervals(thread);
    let is_home = |interval: &Interval| {
        interval.state == State::Blocked
            && Wait::new(evidence, thread, interval).kind == WaitKind::Poll
    };
    let until = read.saturating_add(LONGEST_TURN_NS);
    let here = intervals.index_at(read).unwrap_or(intervals.len());
    let after = (here..intervals.len()).filter_map(|at| intervals.get(at));
    after
        .take_while(|interval| interval.start < until)
        .find(is_home)
        .map_or(read, |home| home.start.max(read))
}
