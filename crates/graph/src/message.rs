//! Which send a receive got its bytes from: bytes counted on either side of each queue.
//!
//! What is sent to an end of a connection waits there in one queue, whoever sent it, and comes out
//! in order. So the queue is named by the receiving end, and a receive of the bytes 100 to 150 that
//! came out goes with the sends of the bytes 100 to 150 that went in: one or several of them. A
//! datagram is a send that one receive takes whole, and needs no rule of its own.
//!
//! - *A trace begins in mid-stream*: more comes out than was seen to go in. The difference lay in
//!   the queue when the trace began, and all receives are moved by it.
//! - *A send is stamped when its call returns*, by when a receiver may have taken the bytes
//!   already. Such a send is known by its thread, which meanwhile ran no longer than a call takes,
//!   and waited for nothing else; it does not count as mid-stream.
//! - *Transfers were lost or not recorded*: from then on what goes with what is doubtful.
//! - *The other end is not in the row* (it was closed; the connection is TCP): what earlier rows or
//!   the [`SocketTable`] say of it holds.

use std::collections::HashMap;
use std::ops::Range;

use hangdog_timeline::{Cause, State};
use hangdog_trace::SocketTable;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{NONE, Utid};
use hangdog_trace::object::Object;
use hangdog_trace::tables::{Losses, Transfers};
use hangdog_trace::words::LossKind;

use crate::groups::Groups;
use crate::peers::Peers;
use crate::tables::Tables;

/// How long before a loss is noticed it may have begun: the time that hooks rest, ns.
const NOTICED_WITHIN_NS: u64 = 1_000_000_000;

/// How long a call to send runs at most, ns; a further one for each byte.
const LONGEST_CALL_NS: u64 = 100_000;

/// Sends matched to receives.
#[derive(Debug)]
pub struct Messages {
    by_thread: Groups,
    /// Sends by queue, and receives by queue.
    sends: Groups,
    receives: Groups,
    /// By row of `transfers`: of a receive, which of `sends` it got bytes from; of a send, which of
    /// `receives` got them.
    met: Vec<(u32, u32)>,
    sent: Vec<bool>,
    peers: Peers,
    doubtful_from: u64,
}

/// How many transfers were matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Sends.
    pub sends: usize,
    /// Those of them that a receive got bytes from.
    pub sends_matched: usize,
    /// Receives.
    pub receives: usize,
    /// Those of them that got bytes from a send in the trace.
    pub receives_matched: usize,
}

impl Messages {
    /// Matches the transfers of a trace. Rows past 2^32 are not looked at.
    pub fn new(tables: &Tables<'_>, losses: &Losses, sockets: &SocketTable) -> Messages {
        let transfers = tables.transfers;
        let rows = transfers.len().min(u32::MAX as usize) as u32;
        let threads = tables.timeline.threads().end as usize;
        let by_thread = Groups::new(threads, || {
            (0..rows).map(|row| (transfers.thread[row as usize], row))
        });
        let queues = Queues::new(transfers, rows, sockets);
        let side = |sent: bool| {
            let queue = &queues.of_row;
            Groups::new(queues.count, move || {
                (0..rows)
                    .filter(move |&row| transfers.sent[row as usize] == sent)
                    .map(move |row| (queue[row as usize], row))
            })
        };
        let (sends, receives) = (side(true), side(false));
        let mut met = vec![(0, 0); rows as usize];
        for queue in 0..queues.count {
            let side = Side {
                tables,
                by_thread: &by_thread,
                sends: sends.get(queue),
                receives: receives.get(queue),
            };
            let first = (sends.range(queue).start, receives.range(queue).start);
            side.match_up(first, &mut met);
        }
        Messages {
            peers: Peers::new(tables, &queues.other_end),
            by_thread,
            sends,
            receives,
            met,
            sent: transfers.sent[..rows as usize].to_vec(),
            doubtful_from: doubtful_from(losses),
        }
    }

    /// The rows of `transfers` that a thread made, in order.
    pub fn of_thread(&self, thread: Utid) -> &[u32] {
        self.by_thread.get(thread as usize)
    }

    /// The sends, as rows of `transfers` in order, that a receive got its bytes from; none if they
    /// are not in the trace or the row is a send.
    pub fn senders_of(&self, receive: usize) -> &[u32] {
        &self.sends.rows()[self.met_as(receive, false)]
    }

    /// The receives that got the bytes of a send, likewise.
    pub fn receivers_of(&self, send: usize) -> &[u32] {
        &self.receives.rows()[self.met_as(send, true)]
    }

    /// What the row met, if it is on that side.
    fn met_as(&self, row: usize, sent: bool) -> Range<usize> {
        match self.met.get(row) {
            Some(&(from, to)) if self.sent[row] == sent => from as usize..to as usize,
            _ => 0..0,
        }
    }

    /// Who is at the other end of a transfer, as a number that is the same for the same peer: a
    /// process, or in the transfer's own process a thread. None if that is not known or is the
    /// thread itself.
    pub fn peer(&self, row: usize) -> Option<u32> {
        self.peers.of(row)
    }

    /// From when on matches are doubtful, because transfers were lost; `u64::MAX` if none were.
    pub fn doubtful_from(&self) -> u64 {
        self.doubtful_from
    }

    /// How many transfers were matched.
    pub fn matched(&self) -> Matched {
        let mut matched = Matched::default();
        for (row, &(from, to)) in self.met.iter().enumerate() {
            let (all, some) = match self.sent[row] {
                true => (&mut matched.sends, &mut matched.sends_matched),
                false => (&mut matched.receives, &mut matched.receives_matched),
            };
            *all += 1;
            *some += usize::from(from < to);
        }
        matched
    }
}

/// From when on transfers may be missing.
fn doubtful_from(losses: &Losses) -> u64 {
    (0..losses.len())
        .filter(|&row| {
            let kind = LossKind::from(losses.kind[row]);
            losses.count[row] > 0 && matches!(kind, LossKind::Events | LossKind::Transfers)
        })
        .map(|row| losses.ts[row].saturating_sub(NOTICED_WITHIN_NS))
        .min()
        .unwrap_or(u64::MAX)
}

/// Which queue each transfer put bytes into or took them from.
struct Queues {
    count: usize,
    /// By row; [`NONE`] where the receiving end is not known.
    of_row: Vec<u32>,
    /// By row, the end at the other side; none if that is not known.
    other_end: Vec<Object>,
}

impl Queues {
    fn new(transfers: &Transfers, rows: u32, sockets: &SocketTable) -> Queues {
        let mut numbers: HashMap<Object, u32> = HashMap::new();
        let mut last_peer: HashMap<Object, Object> = HashMap::new();
        let rows = rows as usize;
        let (mut of_row, mut other_end) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for row in 0..rows {
            let own = Object(transfers.object[row]);
            let peer = match Object(transfers.peer[row]) {
                told if told.is_none() => {
                    let known = last_peer.get(&own).copied();
                    known.or_else(|| sockets.peer(own)).unwrap_or(Object::NONE)
                }
                told => {
                    last_peer.insert(own, told);
                    told
                }
            };
            let receiving = if transfers.sent[row] { peer } else { own };
            let next = numbers.len() as u32;
            of_row.push(match receiving.is_none() {
                true => NONE,
                false => *numbers.entry(receiving).or_insert(next),
            });
            other_end.push(peer);
        }
        Queues {
            count: numbers.len(),
            of_row,
            other_end,
        }
    }
}

/// Both sides of one queue: rows of `transfers` in order of time.
struct Side<'a> {
    tables: &'a Tables<'a>,
    by_thread: &'a Groups,
    sends: &'a [u32],
    receives: &'a [u32],
}

impl Side<'_> {
    fn bytes(&self, row: u32) -> u64 {
        u64::from(self.tables.transfers.bytes[row as usize])
    }

    fn ts(&self, row: u32) -> u64 {
        self.tables.transfers.ts[row as usize]
    }

    /// Writes down what each row met; `first` says where the queue's sends and receives begin.
    fn match_up(&self, first: (usize, usize), met: &mut [(u32, u32)]) {
        let in_queue = self.in_queue_before();
        // Bytes that went in before send `at`, and that came out before the receive.
        let (mut at, mut sent, mut received) = (0, 0, 0);
        for (number, &receive) in self.receives.iter().enumerate() {
            let from = u64::saturating_sub(received, in_queue);
            received += self.bytes(receive);
            let to = received.saturating_sub(in_queue);
            while at < self.sends.len() && sent + self.bytes(self.sends[at]) <= from {
                sent += self.bytes(self.sends[at]);
                at += 1;
            }
            let (mut last, mut start) = (at, sent);
            while last < self.sends.len() && start < to {
                let send = self.sends[last];
                let receivers = &mut met[send as usize];
                let place = (first.1 + number) as u32;
                if receivers.0 == receivers.1 {
                    receivers.0 = place;
                }
                receivers.1 = place + 1;
                start += self.bytes(send);
                last += 1;
            }
            met[receive as usize] = ((first.0 + at) as u32, (first.0 + last) as u32);
        }
    }

    /// How many bytes lay in the queue when the trace began, at least: as many as came out that
    /// nobody was yet seen to have sent, or to be sending.
    fn in_queue_before(&self) -> u64 {
        let (mut before, mut at, mut sent, mut received) = (0, 0, 0, 0);
        let mut began = Vec::new();
        for &receive in self.receives {
            let ts = self.ts(receive);
            received += self.bytes(receive);
            while at < self.sends.len() && self.ts(self.sends[at]) <= ts {
                sent += self.bytes(self.sends[at]);
                at += 1;
            }
            let missing = u64::saturating_sub(received, sent + before);
            if missing > 0 {
                let late = self.being_sent(at, ts, missing, &mut began);
                before += missing - late;
            }
        }
        before
    }

    /// How many of so many bytes the next sends, from `at` on, may have given at `ts` already.
    fn being_sent(&self, at: usize, ts: u64, bytes: u64, began: &mut Vec<Option<u64>>) -> u64 {
        /// More threads than this are not looked for in their calls at once.
        const AT_ONCE: usize = 8;
        began.resize(self.sends.len(), None);
        let mut given = 0;
        for next in (at..self.sends.len()).take(AT_ONCE) {
            let send = self.sends[next];
            if *began[next].get_or_insert_with(|| self.call_began(send)) <= ts {
                given += self.bytes(send);
            }
            if given >= bytes {
                return bytes;
            }
        }
        given
    }

    /// When the call of a send may have begun at the earliest: after what its thread sent or
    /// received before, after its last wait for anything else, and no longer ago than it takes to
    /// copy the bytes.
    fn call_began(&self, send: u32) -> u64 {
        let (transfers, timeline) = (self.tables.transfers, self.tables.timeline);
        let (thread, ts) = (transfers.thread[send as usize], self.ts(send));
        let own = self.by_thread.get(thread as usize);
        let before = own.partition_point(|&row| row < send).checked_sub(1);
        let after = before.map_or(0, |at| self.ts(own[at]));
        let intervals = timeline.intervals(thread);
        let here = intervals.index_at(ts).map_or(0, |at| at + 1);
        // Time on a CPU that the call may still have taken.
        let mut left = LONGEST_CALL_NS + self.bytes(send);
        for interval in (0..here).rev().filter_map(|at| intervals.get(at)) {
            let end = interval.end.min(ts);
            if end <= after {
                break;
            }
            match interval.state {
                State::Blocked if !self.is_in_call(interval.cause, send) => return end.max(after),
                State::Running if end - interval.start > left => return (end - left).max(after),
                State::Running => left -= end - interval.start,
                _ => {}
            }
        }
        after
    }

    /// Whether a wait was in a call that sends to the same end.
    fn is_in_call(&self, cause: Cause, send: u32) -> bool {
        let Cause::Switch(row) = cause else {
            return false;
        };
        let (switches, row) = (self.tables.switches, row as usize);
        let call = self.tables.calls.kind(switches.call[row]);
        let on = switches.object[row];
        matches!(call, Call::Send | Call::Write)
            && (on == self.tables.transfers.object[send as usize] || Object(on).is_none())
    }
}
