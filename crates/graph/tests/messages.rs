//! Which sends a receive is matched to, from transfers whose truth is known.

mod common;

use common::Recording;
use hangdog_graph::Messages;
use hangdog_trace::SocketTable;
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::tables::{Losses, Transfer, Transfers};
use hangdog_trace::text::TextTrace;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

const PEOPLE: &str = "
process client 100
process other 200
process server 300
thread client client 100
thread client2 client 101
thread other other 200
thread server server 300
";

fn messages(text: &str) -> (Recording, Messages) {
    let recording = Recording::of(&format!("{PEOPLE}{text}"));
    let tables = &recording.trace.tables;
    let sockets = SocketTable::new(tables.sockets.clone(), &tables.descriptors);
    let messages = Messages::new(&recording.evidence(), &tables.losses, &sockets);
    (recording, messages)
}

/// The sends of each receive, by row.
#[track_caller]
fn assert_senders(messages: &Messages, expected: &[(usize, &[u32])]) {
    for (receive, senders) in expected {
        assert_eq!(messages.senders_of(*receive), *senders, "row {receive}");
        for &send in *senders {
            let receivers = messages.receivers_of(send as usize);
            assert!(
                receivers.contains(&(*receive as u32)),
                "{send}: {receivers:?}"
            );
        }
    }
}

/// A reply goes the other way between the same ends and is a stream of its own.
#[test]
fn request_and_reply() {
    let (_, messages) = messages(
        "1ms transfer client sent 10 object=unix:1 peer=unix:2
        2ms transfer server received 10 object=unix:2 peer=unix:1
        3ms transfer server sent 4 object=unix:2 peer=unix:1
        4ms transfer client received 4 object=unix:1 peer=unix:2",
    );
    assert_senders(&messages, &[(1, &[0]), (3, &[2])]);
    assert!(messages.senders_of(0).is_empty() && messages.receivers_of(1).is_empty());
    let matched = messages.matched();
    assert_eq!((matched.sends, matched.sends_matched), (2, 2));
    assert_eq!((matched.receives, matched.receives_matched), (2, 2));
}

/// One receive may take what several sends gave, and what one send gave may be taken by several;
/// a send whose last byte is taken early is not in the next receive.
#[test]
fn bytes_are_counted() {
    let (_, messages) = messages(
        "1ms transfer client sent 10 object=unix:1 peer=unix:2
        2ms transfer client sent 10 object=unix:1 peer=unix:2
        3ms transfer server received 15 object=unix:2 peer=unix:1
        4ms transfer server received 3 object=unix:2 peer=unix:1
        5ms transfer server received 2 object=unix:2 peer=unix:1
        6ms transfer client sent 1 object=unix:1 peer=unix:2
        7ms transfer server received 1 object=unix:2 peer=unix:1",
    );
    assert_senders(&messages, &[(2, &[0, 1]), (3, &[1]), (4, &[1]), (6, &[5])]);
    assert_eq!(messages.receivers_of(1), [2, 3, 4]);
}

/// Datagrams from several senders to one end come out in the order in which they went in.
#[test]
fn many_to_one() {
    let (_, messages) = messages(
        "1ms transfer client sent 10 object=unix:1 peer=unix:9
        2ms transfer other sent 20 object=unix:3 peer=unix:9
        3ms transfer server received 10 object=unix:9
        4ms transfer server received 20 object=unix:9",
    );
    assert_senders(&messages, &[(2, &[0]), (3, &[1])]);
}

/// Of a pipe both ends are one object.
#[test]
fn pipe() {
    let (_, messages) = messages(
        "1ms transfer client sent 10 object=pipe:1 peer=pipe:1
        2ms transfer server received 10 object=pipe:1 peer=pipe:1",
    );
    assert_senders(&messages, &[(1, &[0])]);
}

/// What was in the queue when the trace began comes out first, and is nobody's.
#[test]
fn mid_stream() {
    let (_, messages) = messages(
        "1ms transfer client sent 10 object=unix:1 peer=unix:2
        2ms transfer server received 7 object=unix:2 peer=unix:1
        3ms transfer server received 10 object=unix:2 peer=unix:1
        4ms transfer client sent 5 object=unix:1 peer=unix:2
        5ms transfer server received 5 object=unix:2 peer=unix:1",
    );
    assert_senders(&messages, &[(1, &[]), (2, &[0]), (4, &[3])]);
}

/// A receiver may be done before the call that sent returns. The sender then did nothing but run
/// a moment, or wait in that call: nothing was in the queue before.
#[test]
fn receiver_is_faster() {
    let (_, messages) = messages(
        "0 cpu0 switch idle -> client
        1ms transfer server received 10 object=unix:2 peer=unix:1
        1010us cpu0 switch client -> idle preempted
        3ms cpu0 switch idle -> client
        3005us transfer client sent 10 object=unix:1 peer=unix:2
        3500us cpu0 switch client -> idle sleeping sendto object=unix:1
        3600us transfer server received 90 object=unix:2 peer=unix:1
        3600us cpu1 wake server -> client recvfrom
        3700us cpu0 switch idle -> client
        3710us transfer client sent 100 object=unix:1 peer=unix:2
        3800us transfer server received 10 object=unix:2 peer=unix:1
        4ms cpu0 switch client -> idle preempted
        end 5ms",
    );
    assert_senders(&messages, &[(0, &[1]), (2, &[3]), (4, &[3])]);
}

/// A sender that waited for something else after the receive, or ran for long, had not yet called:
/// what was received lay in the queue when the trace began.
#[test]
fn sender_was_elsewhere() {
    for meanwhile in [
        "1010us cpu0 switch client -> idle sleeping nanosleep
        3ms cpu1 wake server -> client in=timer
        3ms cpu0 switch idle -> client",
        "1010us cpu0 switch client -> idle preempted
        2900us cpu0 switch idle -> client",
    ] {
        let sent = match meanwhile.contains("nanosleep") {
            true => "3005us",
            false => "3500us",
        };
        let (_, messages) = messages(&format!(
            "0 cpu0 switch idle -> client
            1ms transfer server received 10 object=unix:2 peer=unix:1
            {meanwhile}
            {sent} transfer client sent 10 object=unix:1 peer=unix:2
            4ms cpu0 switch client -> idle sleeping poll
            4500us transfer server received 10 object=unix:2 peer=unix:1
            end 5ms"
        ));
        assert_senders(&messages, &[(0, &[]), (2, &[1])]);
    }
}

/// The row of a socket whose other end was closed meanwhile does not name it; earlier ones do.
#[test]
fn closed() {
    let (_, messages) = messages(
        "1ms transfer client sent 10 object=unix:1 peer=unix:2
        2ms transfer client sent 5 object=unix:1
        3ms transfer server received 15 object=unix:2",
    );
    assert_senders(&messages, &[(2, &[0, 1])]);
}

/// Internet sockets are matched where their addresses tell that they are each other's ends, and not
/// otherwise.
#[test]
fn told_ends() {
    let text = "1ms transfer client sent 10 object=inet:1
        2ms transfer server received 10 object=inet:2\n";
    let (_, unknown) = messages(text);
    assert_senders(&unknown, &[(1, &[])]);
    let (_, known) = messages(&format!(
        "{text}
        1ms socket client object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
        1ms socket server object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000"
    ));
    assert_senders(&known, &[(1, &[0])]);
    assert!(known.peer(0).is_some() && unknown.peer(0).is_none());
}

/// From a second before a loss was noticed, matches are doubtful; other losses do not matter.
#[test]
fn doubts() {
    let (_, lossy) = messages("3s lost 5 transfers\n4s lost 5 transfers");
    assert_eq!(lossy.doubtful_from(), 2_000_000_000);
    let (_, other) = messages("3s lost 5 definitions");
    assert_eq!(other.doubtful_from(), u64::MAX);
}

/// Peers are processes, within a process threads, and never the thread itself.
#[test]
fn peers() {
    let (_, messages) = messages(
        "1ms transfer client sent 1 object=unix:1 peer=unix:2
        2ms transfer server received 1 object=unix:2 peer=unix:1
        3ms transfer other sent 1 object=unix:3 peer=unix:4
        4ms transfer server received 1 object=unix:4 peer=unix:3
        5ms transfer client sent 1 object=unix:5 peer=unix:6
        6ms transfer client2 received 1 object=unix:6 peer=unix:5
        7ms transfer other sent 1 object=pipe:7 peer=pipe:7
        8ms transfer other received 1 object=pipe:7 peer=pipe:7
        9ms transfer server sent 1 object=unix:2 peer=unix:1",
    );
    let peer = |row| messages.peer(row);
    assert!(peer(0).is_some() && peer(0) == peer(2));
    assert!(peer(1).is_some() && peer(1) != peer(3));
    assert_eq!(peer(1), peer(8));
    assert!(peer(4).is_some() && peer(5).is_some() && peer(4) != peer(0));
    assert_eq!((peer(6), peer(7)), (None, None));
}

/// What happens at one of two connections: who is to send or receive, and how much at most.
fn steps() -> impl Strategy<Value = (Vec<(bool, bool, u32)>, usize)> {
    let step = (any::<bool>(), any::<bool>(), 1..50_u32);
    (prop::collection::vec(step, 1..80), 0..20_usize)
}

proptest! {
    /// Every byte that comes out is matched to the send that it went in with, whatever the sizes,
    /// also where the trace begins in mid-stream; nothing is known of what went in before.
    #[test]
    fn bytes_come_out_as_they_went_in((steps, cut) in steps()) {
        let mut rows: Vec<Transfer> = Vec::new();
        let mut truth: Vec<BTreeSet<u32>> = Vec::new();
        // What lies in each queue: the row of the send, and how much of it.
        let mut queues = [VecDeque::new(), VecDeque::new()];
        let drain = [(false, false, u32::MAX), (true, false, u32::MAX)];
        for (queue, sends, bytes) in steps.iter().copied().chain(drain) {
            let (here, there) = if queue { (3, 4) } else { (1, 2) };
            let lying = &mut queues[usize::from(queue)];
            let row = rows.len() as u32;
            let mut senders = BTreeSet::new();
            let mut moved = 0;
            if sends {
                lying.push_back((row, bytes));
                moved = bytes;
            }
            while !sends && moved < bytes && let Some((send, left)) = lying.pop_front() {
                let taken = left.min(bytes - moved);
                moved += taken;
                senders.insert(send);
                if taken < left {
                    lying.push_front((send, left - taken));
                }
            }
            if moved == 0 {
                continue;
            }
            let [here, there] = [here, there].map(|inode| Object::new(ObjectKind::Unix, inode).0);
            let (object, peer) = if sends { (here, there) } else { (there, here) };
            rows.push(Transfer {
                ts: u64::from(row) * 1000,
                thread: if sends { 1 } else { 2 },
                object,
                peer,
                sent: sends,
                bytes: moved,
            });
            truth.push(senders);
        }
        let cut = cut.min(rows.len());
        let mut trace = TextTrace::default();
        trace.tables.transfers = rows.drain(cut..).collect::<Transfers>();
        let recording = Recording::new(trace);
        let messages = Messages::new(
            &recording.evidence(),
            &Losses::default(),
            &SocketTable::default(),
        );
        for (row, truth) in truth[cut..].iter().enumerate() {
            let found: BTreeSet<u32> = messages.senders_of(row).iter().copied().collect();
            let known = truth.iter().filter_map(|&send| send.checked_sub(cut as u32)).collect();
            prop_assert_eq!(found, known, "row {}", row);
        }
    }
}
