//! Work and locks that go from one thread to another, as programs that know who did what made them.

use crate::flight::{Flight, snapped};
use crate::support::{Live, Machine, hangdog, machine, number};
use hangdog_trace::ids::{NONE, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::tables::{Handoff, Handoffs, Sockets, Switch, Switches, Symbols};
use hangdog_trace::words::{Context, HandoffKind, HandoffStep, KernelLock, Left};
use hangdog_trace::{Calls, SocketTable};
use serde_json::Value;
use std::process::Command;

/// How long the programs hold what another waits for, ns, and the lateness that is borne with.
const HELD: u64 = 50_000_000;
const LATE: u64 = 30_000_000;

/// What the program `handoffs` said of one of its cases, and the trace, which lies in the machine's
/// directory.
fn recorded(case: &str) -> Option<(Machine, Live, Value)> {
    let machine = machine()?;
    let program = machine.program("handoffs");
    let lock = machine.path("lock");
    let words = [&program, &lock].map(|path| path.to_str().expect("plain text"));
    let live = machine.recorded(&[], &words);
    let fact = live.facts.iter().find(|fact| fact["case"] == case);
    let fact = fact.expect("the case").clone();
    match fact["unavailable"] == true {
        true => {
            eprintln!("NOT RUN: {case}: this kernel does not allow it");
            None
        }
        false => Some((machine, live, fact)),
    }
}

fn handoffs(live: &Live, kind: HandoffKind) -> Vec<Handoff> {
    let all: Handoffs = live.table();
    let rows = (0..all.len()).map(|i| all.row(i));
    rows.filter(|row| HandoffKind::from(row.kind) == kind)
        .collect()
}

fn step(row: &Handoff) -> HandoffStep {
    row.step.into()
}

/// The waits of a thread, as it left the CPU.
fn waits(live: &Live, thread: Utid, call: &str) -> Vec<Switch> {
    let calls = Calls::new(&live.trace.meta().arch);
    let all: Switches = live.table();
    let rows = (0..all.len()).map(|i| all.row(i));
    rows.filter(|row| row.prev == thread && calls.name(row.call) == call)
        .filter(|row| !matches!(Left::from(row.left), Left::Preempted | Left::Yielded))
        .collect()
}

/// Of a lock on a file: who was refused it and because of whom, who waited for whom, who took it
/// once it was released; fcntl's and flock's, told apart; and the wait names the holder.
#[test]
fn file_locks_name_their_holder() {
    let Some((_machine, live, fact)) = recorded("file lock") else {
        return;
    };
    assert_eq!(fact["failed"], 0);
    let (holder, waiter) = (live.utid(&fact["holder"]), live.utid(&fact["waiter"]));
    let file = Object::new(ObjectKind::File, number(&fact["file"])).0;
    let rows = handoffs(&live, HandoffKind::FileLock);
    let form = |row: &Handoff| row.detail >> 8 & 0xff;
    let story: Vec<_> = rows
        .iter()
        .filter(|row| row.object == file)
        .map(|row| (row.thread, step(row), form(row), row.other))
        .take(10)
        .collect();
    use HandoffStep::*;
    let (fcntl, flock) = (0, 1);
    let expected = [
        (holder, Taken, fcntl, NONE),
        (holder, Taken, fcntl, NONE),
        (holder, Taken, flock, NONE),
        (waiter, Refused, fcntl, holder),
        (waiter, Waiting, fcntl, holder),
        (holder, Released, fcntl, NONE),
        (waiter, Taken, fcntl, NONE),
        (waiter, Waiting, flock, holder),
        (holder, Released, flock, NONE),
        (waiter, Taken, flock, NONE),
    ];
    assert_eq!(story, expected);
    for call in ["fcntl", "flock"] {
        let waits = waits(&live, waiter, call);
        let [wait] = &waits[..] else {
            panic!("one wait in {call}: {waits:?}");
        };
        assert_eq!((wait.object, wait.holder), (file, holder), "{call}");
    }
}

/// A thread that blocks on a mutex inside the kernel names it as a mutex and the thread that has it.
#[test]
fn a_kernel_mutex_names_its_holder() {
    let Some((_machine, live, fact)) = recorded("kernel lock") else {
        return;
    };
    let (holder, waiter) = (live.utid(&fact["holder"]), live.utid(&fact["waiter"]));
    let waits = waits(&live, waiter, "write");
    let [wait] = &waits[..] else {
        panic!("one wait: {waits:?}");
    };
    assert_eq!(Object(wait.object).kind(), ObjectKind::KernelLock);
    assert_eq!(KernelLock::from(wait.arg as u8), KernelLock::Mutex);
    assert_eq!(wait.holder, holder);
}

/// A timer: who armed it, on which timerfd, when it fired; and that it was disarmed.
#[test]
fn a_timer_is_tied_to_who_armed_it() {
    let Some((_machine, live, fact)) = recorded("timer") else {
        return;
    };
    let (armer, waiter) = (live.utid(&fact["armer"]), live.utid(&fact["waiter"]));
    let wait = waits(&live, waiter, "read");
    let timerfd = wait.first().expect("a wait").object;
    assert_eq!(Object(timerfd).kind(), ObjectKind::Timerfd);
    let rows = handoffs(&live, HandoffKind::Timer);
    let armed = rows.iter().find(|row| row.thread == armer).expect("armed");
    assert_eq!(step(armed), HandoffStep::Submitted);
    assert_eq!(armed.object, timerfd);
    let of_it: Vec<&Handoff> = rows.iter().filter(|row| row.key == armed.key).collect();
    let steps: Vec<_> = of_it.iter().map(|row| step(row)).collect();
    use HandoffStep::*;
    assert_eq!(steps, [Submitted, Begun, Done, Submitted, Cancelled]);
    assert_eq!(Context::from(of_it[1].context), Context::Hrtimer);
    let after = of_it[1].ts - armed.ts;
    let expected = number(&fact["after_ns"]);
    // The clock is read twice; the timer was armed with the earlier one.
    assert!(
        (expected - 1_000_000..expected + LATE).contains(&after),
        "{after}"
    );
    assert!(of_it[3..].iter().all(|row| row.thread == armer));
}

/// A signal that stops a program which runs wakes nobody. The kernel's step of sending it names the sender, and so does
/// the sentence.
#[test]
fn who_stops_a_program_that_runs() {
    const SCRIPT: &str = "while :; do :; done & child=$!
        echo \"{\\\"child\\\": $child}\"
        sleep 0.5; kill -STOP $child; sleep 0.7; kill -CONT $child; sleep 0.1; kill $child";
    let Some(machine) = machine() else { return };
    let live = machine.recorded(&[], &["sh", "-c", SCRIPT]);
    let (child, sender) = (live.utid(&live.facts[0]["child"]), live.command_thread());
    let stop = |row: &&Handoff| row.detail == libc::SIGSTOP as u64 && row.other == child;
    let rows = handoffs(&live, HandoffKind::Signal);
    let stops: Vec<_> = rows.iter().filter(stop).collect();
    let steps: Vec<_> = stops.iter().map(|row| (step(row), row.thread)).collect();
    assert_eq!(
        steps,
        [
            (HandoffStep::Submitted, sender),
            (HandoffStep::Begun, child)
        ]
    );

    let stopped_us = stops[1].ts / 1000;
    let mut why = hangdog();
    why.arg("why").arg(live.trace.path());
    why.args(["--thread", &live.facts[0]["child"].to_string()]);
    why.args(["--from", &format!("{stopped_us}us"), "--to", "+500ms"]);
    let output = why.output().expect("a run");
    let answer = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        answer.contains("stopped by a signal (SIGSTOP) from sh"),
        "{answer}"
    );
}

/// A request of io_uring: who submitted it, which operation on what, in which ring; the thread
/// waits on that ring until it is completed.
#[test]
fn a_request_is_followed_to_its_completion() {
    let Some((_machine, live, fact)) = recorded("io_uring") else {
        return;
    };
    let submitter = live.utid(&fact["submitter"]);
    let rows = handoffs(&live, HandoffKind::IoUring);
    let first = rows.iter().find(|row| row.thread == submitter);
    let key = first.expect("its request").key;
    // Other programs of the machine may have some too.
    let own: Vec<_> = rows.iter().filter(|row| row.key == key).collect();
    let [submitted, done] = own[..] else {
        panic!("one request: {own:?}");
    };
    assert_eq!(
        (step(submitted), step(done)),
        (HandoffStep::Submitted, HandoffStep::Done)
    );
    assert_eq!((submitted.thread, submitted.key), (submitter, done.key));
    let pipe = Object::new(ObjectKind::Pipe, number(&fact["pipe"])).0;
    assert_eq!(submitted.object, pipe);
    assert_eq!(submitted.detail >> 56, number(&fact["operation"]));
    assert_eq!(submitted.detail, done.detail);
    let ring = Object::new(ObjectKind::IoUring, submitted.detail).0;
    let waits = waits(&live, submitter, "io_uring_enter");
    assert!(
        !waits.is_empty() && waits.iter().all(|wait| wait.object == ring),
        "{waits:?}"
    );
    let taken = done.ts - submitted.ts;
    assert!((HELD..HELD + LATE).contains(&taken), "{taken}");
}

/// A signal: who sent which to whom, and when it was delivered there.
#[test]
fn a_signal_goes_from_sender_to_receiver() {
    let Some((_machine, live, fact)) = recorded("signal") else {
        return;
    };
    let (sender, receiver) = (live.utid(&fact["sender"]), live.utid(&fact["receiver"]));
    let rows = handoffs(&live, HandoffKind::Signal);
    let rows: Vec<_> = rows
        .iter()
        .filter(|row| row.detail == number(&fact["number"]) && row.other == receiver)
        .collect();
    let [sent, delivered] = rows[..] else {
        panic!("one signal: {rows:?}");
    };
    assert_eq!((sent.thread, step(sent)), (sender, HandoffStep::Submitted));
    assert_eq!(
        (delivered.thread, step(delivered)),
        (receiver, HandoffStep::Begun)
    );
    assert_eq!(sent.key, delivered.key);
}

/// What is written to a terminal is a work item of the writer's, named by its function, which a
/// kernel thread begins and ends.
#[test]
fn a_work_item_is_tied_to_who_queued_it() {
    let Some((_machine, live, fact)) = recorded("work item") else {
        return;
    };
    let writer = live.utid(&fact["writer"]);
    let symbols: Symbols = live.table();
    let rows = handoffs(&live, HandoffKind::Work);
    let function = |frame| {
        let at = symbols.frame.iter().position(|&f| f == frame);
        at.map(|at| symbols.function[at].as_str())
    };
    let queued = rows
        .iter()
        .find(|row| row.thread == writer && function(row.frame) == Some("flush_to_ldisc"))
        .expect("the writer queues the flush");
    assert_eq!(step(queued), HandoffStep::Submitted);
    assert_eq!(Context::from(queued.context), Context::Task);
    let mut later = rows
        .iter()
        .filter(|row| row.key == queued.key && row.ts > queued.ts);
    let (begun, done) = (later.next().expect("begun"), later.next().expect("done"));
    assert_eq!(
        (step(begun), step(done)),
        (HandoffStep::Begun, HandoffStep::Done)
    );
    assert_eq!((begun.frame, begun.thread), (queued.frame, done.thread));
    assert!(live.threads.thread(begun.thread).is_kernel());
}

/// Both ends of a connection are known: of a unix socket that the server has not accepted yet, who
/// listens, by credentials and path; of TCP on loopback, by the addresses.
#[test]
fn connections_know_both_ends() {
    let Some(machine) = machine() else { return };
    let program = machine.program("connections");
    let path = machine.path("socket");
    let words = [&program, &path].map(|path| path.to_str().expect("plain text"));
    let live = machine.recorded(&[], &words);
    let end = |kind: &str, end: &str| {
        let found = live
            .facts
            .iter()
            .find(|f| f["kind"] == kind && f["end"] == end);
        found.expect("every end reports")
    };
    let process = |fact: &Value| live.threads.thread(live.utid(&fact["pid"])).upid;
    let rows: Sockets = live.table();
    let sockets = SocketTable::new(live.table(), &live.table());
    for (kind, object) in [("unix", ObjectKind::Unix), ("tcp", ObjectKind::Inet)] {
        let (client, server) = (end(kind, "client"), end(kind, "server"));
        let near = Object::new(object, number(&client["socket"]));
        let far = Object::new(object, number(&server["socket"]));
        assert_eq!(sockets.peer(near), Some(far), "{kind}");
        assert_eq!(sockets.peer(far), Some(near), "{kind}");
        assert_eq!(sockets.peer_process(near), Some(process(server)), "{kind}");
        assert_eq!(sockets.peer_process(far), Some(process(client)), "{kind}");
        let (_, remote) = sockets.addresses(near).expect("known");
        match kind {
            "unix" => assert_eq!(remote, path.to_str().expect("plain text")),
            _ => assert_eq!(remote, format!("127.0.0.1:{}", number(&server["port"]))),
        }
        let first = (0..rows.len())
            .find(|&i| rows.object[i] == near.0)
            .expect("a row");
        assert_eq!(rows.process[first], process(client), "{kind}");
    }
    // While it waited, nobody had accepted: there was a peer's process and no peer.
    let client = end("unix", "client");
    let near = Object::new(ObjectKind::Unix, number(&client["socket"])).0;
    let first = (0..rows.len())
        .find(|&i| rows.object[i] == near)
        .expect("a row");
    assert_eq!(
        (rows.peer[first], rows.peer_process[first]),
        (0, process(end("unix", "server")))
    );
}

/// A socket is described once, and every snapshot of a flight has it all the same.
#[test]
fn every_snapshot_describes_the_sockets() {
    let Some(machine) = machine() else { return };
    let program = machine.program("connections");
    let path = machine.path("socket");
    let flight = Flight::start(&machine, &["--sample", "0"]);
    let output = Command::new(&program).arg(&path).output().expect("a run");
    assert!(output.status.success());
    snapped(&machine, "first.hang");
    snapped(&machine, "second.hang");
    drop(flight);
    for name in ["first.hang", "second.hang"] {
        let facts = String::from_utf8_lossy(&output.stdout);
        let facts = facts
            .lines()
            .map(|line| serde_json::from_str(line).expect("a fact"));
        let live = Live::open(&machine.path(name), facts.collect());
        let sockets = SocketTable::new(live.table(), &live.table());
        assert_eq!(live.facts.len(), 4);
        for fact in &live.facts {
            let kind = match fact["kind"] == "unix" {
                true => ObjectKind::Unix,
                false => ObjectKind::Inet,
            };
            let object = Object::new(kind, number(&fact["socket"]));
            assert!(sockets.peer(object).is_some(), "{name}: {fact}");
        }
    }
}
