//! Tasks of Python's asyncio, which wait while the thread of their event loop waits for anything.

use crate::support::{explain, problems, record};

/// The loop's own stack while nothing can run.
const LOOP: &str = "epoll_wait;EpollSelector.select@/lib/python3.11/selectors.py:451;BaseEventLoop._run_once@/lib/python3.11/asyncio/base_events.py:1832";
const SEMAPHORE: &str =
    "Semaphore.acquire@/lib/python3.11/asyncio/locks.py:378;Pool.take@pool.py:7;handle@shop.py:20";
const LOCK: &str = "Lock.acquire@/lib/python3.11/asyncio/locks.py:100;Shop.close@shop.py:8";
const QUEUE: &str = "Queue.get@/lib/python3.11/asyncio/queues.py:149;worker@shop.py:9";
const SLEEP: &str = "sleep@/lib/python3.11/asyncio/tasks.py:627;limit_rate@shop.py:30;handle@shop.py:20;serve@shop.py:12";
const EVENT: &str =
    "Event.wait@/lib/python3.11/asyncio/locks.py:200;parse@shop.py:40;main@shop.py:50";
const READS: &str = "StreamReader._wait_for_data@/lib/python3.11/asyncio/streams.py:515;StreamReader.readline@/lib/python3.11/asyncio/streams.py:540;handle@shop.py:20;a@shop.py:1;b@shop.py:2";

/// Rows for tasks with these stacks, at a time.
fn look(ms: u64, stacks: &[&str]) -> String {
    let row = |(number, stack): (usize, &&str)| {
        format!("{ms}ms goroutine shop {} stack={stack}\n", 4096 + number)
    };
    stacks.iter().enumerate().map(row).collect()
}

/// A loop that wakes each 100 ms for a heartbeat, from 5 ms on until 905 ms; at one of these times it works instead, if there is
/// one.
fn heartbeats(works_at: Option<u64>) -> String {
    let beat = |at: u64| {
        format!(
            "{at}ms cpu1 switch shop -> idle sleeping epoll_wait object=epoll:4 arg=100 stack={LOOP}
            {}.8ms cpu1 wake idle -> shop in=timer
            {}.9ms cpu1 switch idle -> shop\n",
            at + 99,
            at + 99
        )
    };
    (5..900)
        .step_by(100)
        .filter(|&at| Some(at) != works_at)
        .map(beat)
        .collect()
}

/// The sentence for a client that waits for a server with these tasks at both looks, which has `upstream`.
fn of_client(stacks: &[&str], upstream: &str) -> String {
    let recording = record(&format!(
        "process curl 100\nthread curl curl 100
        process shop 200\nthread shop shop 200
        process store 300\nthread store store 300
        0 socket curl object=inet:1 peer=inet:2 local=127.0.0.1:5000 remote=127.0.0.1:80
        0 socket shop object=inet:2 peer=inet:1 local=127.0.0.1:80 remote=127.0.0.1:5000
        0 socket shop object=inet:3 local=127.0.0.1:80
        {upstream}
        {}0 cpu0 switch idle -> curl
        0 cpu1 switch idle -> shop
        1ms transfer curl sent 9 object=inet:1 peer=inet:2
        2ms cpu0 switch curl -> idle sleeping poll object=inet:1 stack=poll;wait_for_reply
        {}905ms cpu1 switch shop -> idle sleeping epoll_wait object=epoll:4 arg=100 stack={LOOP}
        {}end 1s",
        look(0, stacks),
        heartbeats(None),
        look(999, stacks),
    ));
    explain(&recording, "curl", 2_000..1_000_000).sentence
}

/// A client of a server waits for what the task deepest in work waits for; who waits for a lock or for room comes before others. A task that
/// reads from a connection, or that waits for orders, explains nothing.
#[test]
fn a_server_waits_for_what_its_tasks_wait_for() {
    for (stacks, expected) in [
        (&[QUEUE, SLEEP][..], "shop, which slept in limit_rate"),
        (
            &[SLEEP, SEMAPHORE],
            "another task to release a semaphore in Pool.take",
        ),
        (&[EVENT, QUEUE], "another task to set an event in parse"),
    ] {
        let sentence = of_client(stacks, "");
        assert!(sentence.contains(expected), "{sentence}");
    }
    let idle = of_client(&[READS], "");
    assert!(!idle.contains("task"), "{idle}");
}

/// The way goes on from a task that waits for a lock to the one that has it, and from one that awaits another to that, as far as what these wait for is
/// known. Two that wait for each other, and one that waits for a lock that it has itself, are recognised.
#[test]
fn the_way_leads_to_who_has_the_lock() {
    let of = |stacks: &[(&str, u64)]| {
        let stacks: Vec<_> = (stacks.iter())
            .map(|(stack, awaited)| format!("{stack} awaited={}", 4096 + awaited))
            .collect();
        let stacks: Vec<_> = stacks.iter().map(String::as_str).collect();
        of_client(&stacks, "")
    };
    const OWN: &str = "join@shop.py:60;serve@shop.py:12";
    const NOBODY: u64 = 77;
    for (stacks, expected) in [
        (
            &[(SEMAPHORE, 1), (SLEEP, NOBODY)][..],
            "slept in limit_rate",
        ),
        (
            &[(SEMAPHORE, 1), (OWN, 2), (EVENT, NOBODY)],
            "to set an event in parse",
        ),
        (
            &[(SEMAPHORE, 1), (READS, NOBODY)],
            "to release a semaphore in Pool.take",
        ),
        (
            &[(SEMAPHORE, 0)],
            "waited for a lock that the same task has in Pool.take",
        ),
        (
            &[(SEMAPHORE, 1), (LOCK, 0)],
            "to release a lock in Shop.close, and that one for it",
        ),
    ] {
        let sentence = of(stacks);
        assert!(sentence.contains(expected), "{sentence}");
    }
}

/// A server that has asked another, and has no answer, waits for that; one that has its answer does not.
#[test]
fn an_answer_of_another_comes_first() {
    let upstream = |last: &str| {
        format!(
            "0 socket shop object=inet:5 peer=inet:6 local=127.0.0.1:6000 remote=127.0.0.1:90
            0 socket store object=inet:6 peer=inet:5 local=127.0.0.1:90 remote=127.0.0.1:6000
            0 socket store object=inet:7 local=127.0.0.1:90
            0 open shop object=inet:5 last={last} ago=100ms"
        )
    };
    let unanswered = of_client(&[SEMAPHORE], &upstream("sent"));
    assert!(!unanswered.contains("semaphore"), "{unanswered}");
    let answered = of_client(&[SEMAPHORE], &upstream("received"));
    assert!(answered.contains("semaphore in Pool.take"), "{answered}");
}

/// A program whose tasks wait for each other at both looks is a problem: of one that is asked about also where it waits for
/// an event, of another where it waits for a lock. One that serves others may wait for an event.
#[test]
fn tasks_that_hold_each_other_up_are_a_problem() {
    let found = |stack: &str, socket: &str, asked: Option<u32>, works_at: Option<u64>| {
        let recording = record(&format!(
            "process shop 200\nthread shop shop 200
            {socket}
            {}0 cpu1 switch idle -> shop
            {}905ms cpu1 switch shop -> idle sleeping epoll_wait object=epoll:4 arg=100 stack={LOOP}
            {}end 1s",
            look(0, &[stack]),
            heartbeats(works_at),
            look(999, &[stack]),
        ));
        problems(&recording, asked).contains(&("shop".to_owned(), 0..1_000_000))
    };
    let listens =
        "0 socket shop object=inet:3 local=127.0.0.1:80\n0 open shop object=inet:3 kind=listener";
    for (stack, socket, asked, expected) in [
        (SEMAPHORE, "", Some(200), true),
        (SEMAPHORE, "", None, true),
        (EVENT, "", Some(200), true),
        (EVENT, "", None, false),
        (EVENT, listens, Some(200), false),
        (SEMAPHORE, listens, Some(200), true),
        (SLEEP, "", Some(200), false),
    ] {
        assert_eq!(
            found(stack, socket, asked, None),
            expected,
            "{stack} {socket} {asked:?}"
        );
    }
    // Many tasks may take turns, and some always wait.
    assert!(!found(SEMAPHORE, "", None, Some(305)));
}
