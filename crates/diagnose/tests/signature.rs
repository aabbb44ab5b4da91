//! The signature: the same for the same cause on another occasion, another for another cause.

use crate::support::*;
use hangdog_diagnose::{Verdict, signature};

/// What differs between two occasions.
struct Occasion {
    pid: u32,
    worker: &'static str,
    /// ms; the hang begins then.
    start: u64,
    /// ms
    length: u64,
    object: &'static str,
    function: &'static str,
    caller: &'static str,
}

const ONCE: Occasion = Occasion {
    pid: 100,
    worker: "worker1",
    start: 1,
    length: 40,
    object: "0x10",
    function: "sort@list.c:7",
    caller: "work",
};

/// main waits for a worker, which runs a function.
fn verdict(occasion: &Occasion) -> Verdict {
    let Occasion {
        pid,
        worker,
        start,
        length,
        object,
        function,
        caller,
    } = occasion;
    let end = start + length;
    let recording = record(&format!(
        "process app {pid}
        thread main app {pid} name=app
        thread {worker} app {}
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> {worker}
        {start}ms cpu0 switch main -> idle sleeping futex op=wait object=futex:{object} stack=pthread_cond_wait;ask;main
        {end}ms cpu1 wake {worker} -> main futex op=wake object=futex:{object} stack=pthread_cond_signal;{caller}
        {end}ms cpu0 switch idle -> main
        {}
        end 200ms",
        pid + 7,
        samples(1, worker, start + 1..end, &format!("{function};{caller}"))
    ));
    explain(&recording, "main", start * 1000..end * 1000)
}

/// Pids, times, addresses, lines, callers and which of the pool it was make no difference.
#[test]
fn same_cause() {
    let first = verdict(&ONCE);
    assert_eq!(first.root.function.as_deref(), Some("sort"));
    let second = verdict(&Occasion {
        pid: 4321,
        worker: "worker12",
        start: 30,
        length: 90,
        object: "0x7f0010",
        function: "sort@list.c:19",
        caller: "work",
    });
    assert_ne!(first, second);
    let text = signature(&first);
    assert_eq!(text, signature(&second));
    assert_eq!(text.len(), 16);
    assert!(text.bytes().all(|b| b.is_ascii_hexdigit()), "{text}");
}

/// Another function, another thread, another class: another signature each.
#[test]
fn other_causes() {
    let waits = record(
        "process app 100
        thread main app 100 name=app
        0 cpu0 switch idle -> main
        1ms cpu0 switch main -> idle uninterruptible fsync object=file:5 stack=fsync;save;main
        41ms cpu0 wake idle -> main in=softirq vector=4
        41ms cpu0 switch idle -> main
        end 200ms",
    );
    let all = [
        verdict(&ONCE),
        verdict(&Occasion {
            function: "merge@list.c:7",
            ..ONCE
        }),
        verdict(&Occasion {
            worker: "loader",
            ..ONCE
        }),
        explain(&waits, "main", 1_000..41_000),
    ];
    let mut signatures: Vec<String> = all.iter().map(signature).collect();
    signatures.sort();
    signatures.dedup();
    assert_eq!(signatures.len(), all.len());
}

/// A circle of waits has the same signature from whichever of its threads it is entered, as long
/// as the same program is held up.
#[test]
fn knots() {
    let knot = |first: &str, second: &str| {
        let recording = record(&format!(
            "process app 100
            thread main app 100 name=app
            thread {first} app 101
            thread {second} app 102
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> {first}
            1ms cpu0 switch main -> {second} sleeping futex arg=128 object=futex:0x10 holder={first} stack=__lll_lock_wait;main
            2ms cpu1 switch {first} -> idle sleeping futex arg=128 object=futex:0x20 holder={second} stack=__lll_lock_wait;a
            3ms cpu0 switch {second} -> idle sleeping futex arg=128 object=futex:0x30 holder={first} stack=__lll_lock_wait;b
            end 100ms",
        ));
        explain(&recording, "main", 1_000..100_000)
    };
    let (one, other) = (knot("left", "right"), knot("right", "left"));
    assert!(one.knot.is_some() && other.knot.is_some());
    assert_eq!(signature(&one), signature(&other));
}
