//! The whole graph of traces whose truth is known: where lives are cut, and what leads where.

mod common;

use common::Recording;
use hangdog_graph::edge::{EdgeKind, Strength};
use hangdog_graph::graph::Event;
use hangdog_graph::{Arrow, Begin, Graph, Origin, Sources, VertexId};
use hangdog_trace::SocketTable;

const PEOPLE: &str = "
process app 100
thread main app 100 name=app
thread worker app 101
process a 200
thread a a 200
process b 300
thread b b 300
kthread rcu_preempt 17
kthread kworker/0:1 7
kthread kworker/0:2 8
";

fn graph(text: &str) -> (Recording, Graph) {
    let recording = Recording::of(&format!("{PEOPLE}{text}"));
    let tables = &recording.trace.tables;
    let sources = Sources {
        losses: &tables.losses,
        sockets: &SocketTable::new(tables.sockets.clone(), &tables.descriptors),
        handoffs: &tables.handoffs,
    };
    let graph = Graph::new(&recording.evidence(), sources);
    (recording, graph)
}

/// Where the vertices of the thread start, in µs, and what began them.
fn vertices(recording: &Recording, graph: &Graph, name: &str) -> Vec<(u64, Begin)> {
    let own = graph.vertices.of_thread(recording.t(name));
    own.map(|v| (graph.vertices.start(v) / 1000, graph.vertices.begin(v)))
        .collect()
}

/// The vertex in which the thread is at so many µs.
fn at(recording: &Recording, graph: &Graph, name: &str, us: u64) -> VertexId {
    let vertex = graph.vertices.at(recording.t(name), us * 1000);
    vertex.expect("the thread lives then")
}

fn into(graph: &Graph, vertex: VertexId) -> Vec<Arrow> {
    graph.edges.leading_to(vertex).collect()
}

use Begin::{Batch, Life, Peers, Wait, WorkItem};

const WAIT: &str = "
0 cpu0 switch idle -> main
0 cpu1 switch idle -> worker
1ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10
2ms cpu1 switch worker -> idle sleeping clock_nanosleep
3ms cpu1 wake idle -> worker in=timer
3001us cpu1 switch idle -> worker
5ms cpu1 wake worker -> main futex op=wake object=futex:0x10
6ms cpu0 switch idle -> main
end 10ms";

/// A wait ends a vertex and belongs to it; what woke the thread leads to the next one, from the
/// vertex in which the waker was. A sleep comes from the timer, not from what it interrupted.
#[test]
fn waits_cut() {
    let (recording, graph) = graph(WAIT);
    assert_eq!(
        vertices(&recording, &graph, "main"),
        [(0, Life), (5_000, Wait)]
    );
    assert_eq!(
        vertices(&recording, &graph, "worker"),
        [(0, Life), (3_000, Wait)]
    );
    let woken = at(&recording, &graph, "main", 7_000);
    assert_eq!(
        into(&graph, woken),
        [Arrow {
            kind: EdgeKind::Signal,
            strength: Strength::Strong,
            from: Origin::Vertex(at(&recording, &graph, "worker", 4_000)),
            to: woken,
            ts: 5_000_000,
            event: Event::Wake(1),
        }]
    );
    let slept = into(&graph, at(&recording, &graph, "worker", 4_000));
    assert_eq!(
        (slept[0].kind, slept[0].from),
        (EdgeKind::Timer, Origin::Timer)
    );
}

/// A wake before the thread has left its CPU ends a wait of no length; one of a thread that runs
/// on ends nothing, and is counted.
#[test]
fn wakes_that_race() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        999us cpu1 wake worker -> main futex op=wake object=futex:0x10
        1ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10
        2ms cpu0 switch idle -> main
        3ms cpu1 wake worker -> main futex op=wake object=futex:0x10
        end 10ms",
    );
    assert_eq!(
        vertices(&recording, &graph, "main"),
        [(0, Life), (1_000, Wait)]
    );
    let arrows = into(&graph, at(&recording, &graph, "main", 2_000));
    assert_eq!(arrows.len(), 1);
    assert_eq!((arrows[0].ts, arrows[0].event), (999_000, Event::Wake(0)));
    assert_eq!(arrows[0].strength, Strength::Strong);
    assert_eq!((graph.wakes.edges, graph.wakes.moot), (1, 1));
}

/// The first wake of a new thread is its birth and cuts nothing.
#[test]
fn births() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> main
        1ms fork main -> child app 102
        1500us cpu0 wake main -> child clone new
        2ms cpu1 switch idle -> child
        end 10ms",
    );
    assert_eq!(vertices(&recording, &graph, "child"), [(1_000, Life)]);
    let arrows = into(&graph, at(&recording, &graph, "child", 1_000));
    assert_eq!(arrows.len(), 1);
    assert_eq!((arrows[0].kind, arrows[0].ts), (EdgeKind::Fork, 1_500_000));
    let parent = at(&recording, &graph, "main", 1_000);
    assert_eq!(arrows[0].from, Origin::Vertex(parent));
}

/// A server that answers one client and turns to another without waiting has begun another piece
/// of work; one that talks on with the same has not. The halves stay tied by a guess.
#[test]
fn batches_cut() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> main
        100us transfer a sent 10 object=unix:1 peer=unix:2
        100us transfer b sent 10 object=unix:3 peer=unix:4
        1ms transfer main received 10 object=unix:2 peer=unix:1
        2ms transfer main sent 10 object=unix:2 peer=unix:1
        3ms transfer main received 10 object=unix:4 peer=unix:3
        4ms transfer main sent 10 object=unix:4 peer=unix:3
        end 10ms",
    );
    assert_eq!(
        vertices(&recording, &graph, "main"),
        [(0, Life), (3_000, Batch)]
    );
    let (first, second) = (
        at(&recording, &graph, "main", 1_000),
        at(&recording, &graph, "main", 3_000),
    );
    let message = |arrow: &Arrow| (arrow.kind, arrow.from, arrow.event);
    let from = |name| Origin::Vertex(at(&recording, &graph, name, 100));
    let to_first: Vec<_> = into(&graph, first).iter().map(message).collect();
    assert_eq!(
        to_first,
        [(EdgeKind::Message, from("a"), Event::Transfer(0))]
    );
    let to_second: Vec<_> = into(&graph, second).iter().map(message).collect();
    assert_eq!(
        to_second,
        [
            (EdgeKind::Next, Origin::Vertex(first), Event::Guess),
            (EdgeKind::Message, from("b"), Event::Transfer(1)),
        ]
    );
    assert_eq!(into(&graph, second)[0].strength, Strength::Weak);
}

/// Two sends to different peers are perhaps different work; to the same peer, or to one that is
/// not known, they are not.
#[test]
fn peers_cut() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> main
        1ms transfer main sent 10 object=unix:2 peer=unix:1
        2ms transfer main sent 10 object=unix:2 peer=unix:1
        3ms transfer main sent 10 object=unix:9 peer=unix:8
        4ms transfer main sent 10 object=unix:4 peer=unix:3
        5ms transfer main sent 10 object=unix:2 peer=unix:1
        6ms transfer a received 20 object=unix:1 peer=unix:2
        6ms transfer b received 10 object=unix:3 peer=unix:4
        end 10ms",
    );
    assert_eq!(
        vertices(&recording, &graph, "main"),
        [(0, Life), (5_000, Peers)]
    );
}

/// A message that also woke its receiver is one edge; of many messages between two vertices, one
/// is enough.
#[test]
fn messages_are_not_counted_twice() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> main
        0 cpu1 switch idle -> a
        1ms cpu0 switch main -> idle sleeping recvfrom object=unix:2
        2ms cpu1 wake a -> main sendto object=unix:1
        2ms transfer a sent 10 object=unix:1 peer=unix:2
        3ms cpu0 switch idle -> main
        3ms transfer main received 10 object=unix:2 peer=unix:1
        4ms transfer b sent 10 object=unix:3 peer=unix:4
        5ms transfer b sent 10 object=unix:3 peer=unix:4
        6ms transfer main received 20 object=unix:4 peer=unix:3
        end 10ms",
    );
    let arrows = into(&graph, at(&recording, &graph, "main", 3_000));
    let from_a = Origin::Vertex(at(&recording, &graph, "a", 2_000));
    assert_eq!(arrows.len(), 1);
    assert_eq!((arrows[0].from, arrows[0].event), (from_a, Event::Wake(0)));
    let arrows = into(&graph, at(&recording, &graph, "main", 6_000));
    let messages: Vec<_> = arrows.iter().map(|arrow| arrow.event).collect();
    assert_eq!(messages, [Event::Guess, Event::Transfer(2)]);
}

/// A send that is stamped after its receive leads to it from where its thread was then; matches
/// after a loss are weak.
#[test]
fn messages_of_late_senders_and_after_losses() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> a
        0 cpu1 switch idle -> main
        1ms transfer main received 10 object=unix:2 peer=unix:1
        1010us transfer a sent 10 object=unix:1 peer=unix:2
        2s transfer a sent 10 object=unix:1 peer=unix:2
        2001ms transfer main received 10 object=unix:2 peer=unix:1
        3s lost 1 transfers
        end 4s",
    );
    let arrows = into(&graph, at(&recording, &graph, "main", 1_000));
    // One edge for both, since the vertices are the same; the first one stands for it.
    assert_eq!(arrows.len(), 1);
    assert_eq!(
        (arrows[0].ts, arrows[0].event),
        (1_000_000, Event::Transfer(1))
    );
    assert_eq!(arrows[0].strength, Strength::Strong);
    let (recording, graph) = self::graph(
        "0 cpu0 switch idle -> a
        0 cpu1 switch idle -> main
        2s transfer a sent 10 object=unix:1 peer=unix:2
        2001ms transfer main received 10 object=unix:2 peer=unix:1
        3s lost 1 transfers
        end 4s",
    );
    let arrows = into(&graph, at(&recording, &graph, "main", 1_000));
    assert_eq!(arrows[0].strength, Strength::Weak);
}

/// The kernel's upkeep is counted and is no edge: wakes of its own threads, and of spare workers.
/// A worker that somebody gave work to is none of that.
#[test]
fn upkeep() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> main
        0 cpu1 switch kworker/0:1 -> idle idle
        0 cpu1 switch kworker/0:2 -> idle idle
        0 cpu1 switch rcu_preempt -> idle idle
        1ms cpu0 wake main -> rcu_preempt
        2ms cpu0 wake main -> kworker/0:1 write
        2100us cpu1 switch idle -> kworker/0:1
        2200us cpu1 wake kworker/0:1 -> kworker/0:2 kstack=kick_pool;wq_worker_sleeping;schedule
        end 10ms",
    );
    assert_eq!((graph.wakes.edges, graph.wakes.upkeep), (1, 2));
    let given = into(&graph, at(&recording, &graph, "kworker/0:1", 3_000));
    let main = Origin::Vertex(at(&recording, &graph, "main", 2_000));
    assert_eq!((given.len(), given[0].from), (1, main));
}

/// The idle thread has no vertices, and what it or nobody known woke comes from nobody.
#[test]
fn nobody() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> main
        1ms cpu0 switch main -> idle sleeping futex op=wait
        2ms cpu1 wake idle -> main
        end 10ms",
    );
    assert!(graph.vertices.of_thread(0).is_empty());
    let arrows = into(&graph, at(&recording, &graph, "main", 3_000));
    assert_eq!(
        (arrows[0].kind, arrows[0].from),
        (EdgeKind::Unknown, Origin::Nobody)
    );
}

/// A worker that takes up one work item after another has a vertex for each, which who queued it
/// leads to, though nobody woke it for the second.
#[test]
fn work_items_cut() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> main
        0 cpu1 switch idle -> kworker/0:1
        1ms cpu0 handoff main work-item submitted key=1
        2ms cpu0 handoff worker work-item submitted key=2
        3ms cpu1 handoff kworker/0:1 work-item begun key=1
        4ms cpu1 handoff kworker/0:1 work-item done key=1
        5ms cpu1 handoff kworker/0:1 work-item begun key=2
        6ms cpu1 handoff kworker/0:1 work-item begun key=3
        end 10ms",
    );
    assert_eq!(
        vertices(&recording, &graph, "kworker/0:1"),
        [(0, Life), (3_000, WorkItem), (5_000, WorkItem)]
    );
    for (us, who, given, row) in [(3_500, "main", 1_000, 0), (5_500, "worker", 2_000, 1)] {
        let to = at(&recording, &graph, "kworker/0:1", us);
        let from = Origin::Vertex(at(&recording, &graph, who, given));
        let expected = Arrow {
            kind: EdgeKind::Work,
            strength: Strength::Strong,
            from,
            to,
            ts: given * 1000,
            event: Event::Handoff(row),
        };
        assert_eq!(into(&graph, to), [expected]);
    }
}

/// A signal reaches its receiver where that takes it, also if it woke nobody; one that is
/// cancelled reaches nobody.
#[test]
fn signals_reach_who_runs() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> main
        0 cpu1 switch idle -> a
        1ms cpu1 handoff a signal submitted key=10 other=main
        2ms cpu0 handoff main signal begun key=10
        3ms cpu1 handoff a signal submitted key=12 other=main
        4ms cpu1 handoff a signal cancelled key=12 other=main
        5ms cpu0 handoff main signal begun key=12
        end 10ms",
    );
    assert_eq!(vertices(&recording, &graph, "main"), [(0, Life)]);
    let arrows = into(&graph, at(&recording, &graph, "main", 2_000));
    let sender = Origin::Vertex(at(&recording, &graph, "a", 1_000));
    assert_eq!(arrows.len(), 1);
    assert_eq!(
        (arrows[0].kind, arrows[0].from, arrows[0].event),
        (EdgeKind::Kill, sender, Event::Handoff(0))
    );
}

/// Whom a timer wakes when it fires, who armed it leads to, beside the timer itself; what else
/// wakes on another CPU meanwhile has nothing to do with it.
#[test]
fn timers_come_from_who_armed_them() {
    let (recording, graph) = graph(
        "0 cpu0 switch idle -> main
        0 cpu1 switch idle -> a
        0 cpu2 switch idle -> b
        500us cpu1 handoff a timer submitted key=5
        1ms cpu0 switch main -> idle sleeping read object=timerfd:7
        1ms cpu2 switch b -> idle sleeping read object=timerfd:8
        4000us cpu0 handoff idle timer begun key=5 in=timer
        4001us cpu0 wake idle -> main in=timer
        4001us cpu2 wake idle -> b in=timer
        4002us cpu0 handoff idle timer done key=5 in=timer
        5ms cpu0 switch idle -> main
        5ms cpu2 switch idle -> b
        end 10ms",
    );
    let armed = Origin::Vertex(at(&recording, &graph, "a", 500));
    let origins = |name| -> Vec<(EdgeKind, Origin)> {
        let arrows = into(&graph, at(&recording, &graph, name, 5_000));
        arrows
            .iter()
            .map(|arrow| (arrow.kind, arrow.from))
            .collect()
    };
    let fired = (EdgeKind::Timer, Origin::Timer);
    assert_eq!(origins("main"), [fired, (EdgeKind::Timer, armed)]);
    assert_eq!(origins("b"), [fired]);
}
