//! The slice: from the root back to what set it going.

use crate::support::*;
use hangdog_diagnose::Verdict;

const SIGNAL: &str = "futex op=wake stack=pthread_cond_signal;give";

/// Whose work, what began it, and when, in ms.
fn steps(verdict: &Verdict) -> Vec<(&str, &str, u64)> {
    verdict
        .slice
        .iter()
        .map(|step| {
            (
                step.who.thread.as_str(),
                step.begun.kind,
                step.begun.at_ns / MS,
            )
        })
        .collect()
}

/// A device wakes input at 10 ms; input signals a at 12, a signals b at 14, which computes until
/// 100 while main waits for it. Back from b it goes to the device, past each by what began it,
/// and ends there.
#[test]
fn back_to_the_input() {
    let recording = record(&format!(
        "process app 100
        thread main app 100 name=app
        thread input app 101
        thread a app 102
        thread b app 103
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> input
        0 cpu2 switch idle -> a
        0 cpu3 switch idle -> b
        1ms cpu1 switch input -> idle sleeping poll stack=poll;next_event
        2ms cpu2 switch a -> idle sleeping futex op=wait object=futex:0x20 stack=pthread_cond_wait;a_loop
        3ms cpu3 switch b -> idle sleeping futex op=wait object=futex:0x30 stack=pthread_cond_wait;b_loop
        4ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x40 stack=pthread_cond_wait;show
        10ms cpu1 wake idle -> input in=interrupt vector=33
        10.1ms cpu1 switch idle -> input
        12ms cpu1 wake input -> a {SIGNAL}
        12.1ms cpu2 switch idle -> a
        14ms cpu2 wake a -> b {SIGNAL}
        14.1ms cpu3 switch idle -> b
        {}
        100ms cpu3 wake b -> main {SIGNAL}
        100.1ms cpu0 switch idle -> main
        end 110ms",
        samples(3, "b", 15..100, "layout;b_loop")
    ));
    let verdict = explain(&recording, "main", 4_000..100_000);
    assert_eq!(verdict.root.who.thread, "b");
    assert_eq!(
        steps(&verdict),
        [
            ("b", "signal", 14),
            ("a", "signal", 12),
            ("input", "interrupt", 10)
        ]
    );
    let by = |at: usize| verdict.slice[at].begun.by.as_ref().map(|who| who.tid);
    assert_eq!((by(0), by(1), by(2)), (Some(102), Some(101), None));
}

/// Two that begin each other's work, turn after turn, are visited twice each and no more: each
/// step is earlier than the one before, and none is told twice.
#[test]
fn a_circle_ends() {
    let mut text = String::from(
        "process app 100
        thread ping app 101
        thread pong app 102
        0 cpu1 switch idle -> ping
        0 cpu2 switch idle -> pong\n",
    );
    let wait = |object: &str| {
        format!("sleeping futex op=wait object=futex:{object} stack=pthread_cond_wait;play")
    };
    text += &format!("500us cpu2 switch pong -> idle {}\n", wait("0x20"));
    for turn in 0..100 {
        let at = 1_000 + turn * 10_000;
        text += &format!(
            "{at}us cpu1 wake ping -> pong {SIGNAL}
             {at}us cpu2 switch idle -> pong
             {}us cpu1 switch ping -> idle {}
             {}us cpu2 wake pong -> ping {SIGNAL}
             {}us cpu1 switch idle -> ping
             {}us cpu2 switch pong -> idle {}\n",
            at + 1,
            wait("0x10"),
            at + 5_000,
            at + 5_000,
            at + 5_001,
            wait("0x20"),
        );
    }
    let recording = record(&format!("{text}end 1100ms"));
    // ping runs from 996 ms on, on behalf of nobody else.
    let verdict = explain(&recording, "ping", 996_000..1_100_000);
    assert_eq!(verdict.root.who.thread, "ping");
    let slice = &verdict.slice;
    // Each of the two is visited twice at most.
    assert!((2..=4).contains(&slice.len()), "{}", slice.len());
    assert!(
        slice
            .windows(2)
            .all(|pair| pair[1].begun.at_ns < pair[0].begun.at_ns),
        "{:?}",
        steps(&verdict)
    );
    assert_eq!(
        steps(&verdict)[..3],
        [
            ("ping", "signal", 996),
            ("pong", "signal", 991),
            ("ping", "signal", 986)
        ]
    );
}

/// Two that wake each other at one and the same moment have no beginning: the way ends there.
#[test]
fn a_circle_in_one_moment_ends() {
    let recording = record(&format!(
        "process app 100
        thread a app 101
        thread b app 102
        0 cpu1 switch idle -> a
        0 cpu2 switch idle -> b
        1ms cpu1 switch a -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;play
        1ms cpu2 switch b -> idle sleeping futex op=wait object=futex:0x20 stack=pthread_cond_wait;play
        9ms cpu1 wake a -> b {SIGNAL}
        9ms cpu2 wake b -> a {SIGNAL}
        9ms cpu1 switch idle -> a
        9ms cpu2 switch idle -> b
        end 50ms"
    ));
    let verdict = explain(&recording, "a", 9_000..50_000);
    let who: Vec<&str> = verdict
        .slice
        .iter()
        .map(|s| s.who.thread.as_str())
        .collect();
    assert!(who.len() <= 2, "{who:?}");
}
