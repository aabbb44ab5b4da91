//! Circles of waits are reported, and not walked for ever.

use crate::support::*;
use hangdog_diagnose::{Class, Verdict};

fn lock(address: u32, holder: &str) -> String {
    format!(
        "sleeping futex arg=128 object=futex:{address:#x} holder={holder} stack=__lll_lock_wait;take"
    )
}

fn knot(verdict: &Verdict) -> Vec<u32> {
    let knot = verdict.knot.as_ref().expect("a wait cycle");
    let mut tids: Vec<u32> = knot.iter().map(|who| who.tid).collect();
    tids.sort_unstable();
    tids
}

/// Two threads that wait for each other's lock, for ever.
#[test]
fn of_two() {
    let recording = record(&format!(
        "process app 100
        thread main app 100 name=app
        thread worker app 101
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        2ms cpu0 switch main -> idle {}
        3ms cpu1 switch worker -> idle {}
        end 12ms",
        lock(0x10, "worker"),
        lock(0x50, "main")
    ));
    for (victim, from, ran) in [("main", 2_000, 1_000), ("worker", 3_000, 0)] {
        let verdict = explain(&recording, victim, from..12_000);
        assert_eq!(verdict.root.class, Class::Circular);
        assert_eq!(verdict.problem.class, Class::Circular);
        assert_eq!(knot(&verdict), [100, 101]);
        assert_eq!(of_kind(&verdict, "lock"), 9_000);
        assert_eq!(of_kind(&verdict, "run"), ran);
        assert!(
            verdict.sentence.contains("in a circle"),
            "{}",
            verdict.sentence
        );
        assert!(
            verdict
                .sentence
                .contains("app in take and app/worker in take")
                || verdict
                    .sentence
                    .contains("app/worker in take and app in take"),
            "{}",
            verdict.sentence
        );
    }
}

/// Three in a circle, broken by a timeout of the first.
#[test]
fn of_three_broken_by_a_time_out() {
    let recording = record(&format!(
        "process app 100
        thread a app 100 name=app
        thread b app 101
        thread c app 102
        0 cpu0 switch idle -> a
        0 cpu1 switch idle -> b
        0 cpu2 switch idle -> c
        1ms cpu0 switch a -> idle {}
        2ms cpu1 switch b -> idle {}
        3ms cpu2 switch c -> idle {}
        23ms cpu0 wake idle -> a in=timer
        23.1ms cpu0 switch idle -> a
        23.5ms cpu0 wake a -> c futex op=wake object=futex:0x90
        23.6ms cpu2 switch idle -> c
        23.9ms cpu2 wake c -> b futex op=wake object=futex:0x50
        24ms cpu1 switch idle -> b
        end 30ms",
        lock(0x10, "b"),
        lock(0x50, "c"),
        lock(0x90, "a")
    ));
    let verdict = explain(&recording, "a", 1_000..23_000);
    assert_eq!(verdict.root.class, Class::Circular);
    assert_eq!(knot(&verdict), [100, 101, 102]);
    assert_eq!(of_kind(&verdict, "lock"), 20_000);
}

/// A thread that waits for a circle is not a part of it.
#[test]
fn victim_outside() {
    let recording = record(&format!(
        "process app 100
        thread main app 100 name=app
        thread a app 101
        thread b app 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> a
        0 cpu2 switch idle -> b
        1ms cpu1 switch a -> idle {}
        1ms cpu2 switch b -> idle {}
        2ms cpu0 switch main -> idle {}
        end 12ms",
        lock(0x10, "b"),
        lock(0x50, "a"),
        lock(0x90, "a")
    ));
    let verdict = explain(&recording, "main", 2_000..12_000);
    assert_eq!(knot(&verdict), [101, 102]);
    assert_eq!(verdict.root.class, Class::Circular);
    assert_eq!(verdict.path[0].who.thread, "app");
}

/// A lock that names its own waiter as its holder (taken twice) is a circle of one.
#[test]
fn of_one() {
    let recording = record(&format!(
        "process app 100
        thread main app 100 name=app
        0 cpu0 switch idle -> main
        2ms cpu0 switch main -> idle {}
        end 12ms",
        lock(0x10, "main")
    ));
    let verdict = explain(&recording, "main", 2_000..12_000);
    assert_eq!(verdict.root.class, Class::Circular);
    assert_eq!(knot(&verdict), [100]);
    assert_eq!(of_kind(&verdict, "lock"), 10_000);
}

/// A circle that a timeout soon broke is not the cause of what took long after it: of 40 ms, the
/// circle lasts 5 ms, and the worker then computes.
#[test]
fn a_small_circle_is_not_the_cause() {
    let recording = record(&format!(
        "process app 100
        thread main app 100 name=app
        thread worker app 101
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        1ms cpu0 switch main -> idle {}
        1ms cpu1 switch worker -> idle {}
        6ms cpu1 wake idle -> worker in=timer
        6.1ms cpu1 switch idle -> worker
        41ms cpu1 wake worker -> main futex op=wake object=futex:0x10
        41.1ms cpu0 switch idle -> main
        end 50ms",
        lock(0x10, "worker"),
        lock(0x50, "main")
    ));
    let verdict = explain(&recording, "main", 1_000..41_000);
    assert_eq!(verdict.knot, None);
    assert_eq!(verdict.root.class, Class::LongRunning);
    assert_eq!(of_thread(&verdict, 101, "run"), 34_900);
    assert_eq!(of_kind(&verdict, "lock"), 5_000);
}

/// Two threads that hand work to and fro, each waiting while the other works, are no wait cycle.
#[test]
fn handing_over_is_no_knot() {
    let mut text = String::from(
        "process app 100\nthread main app 100 name=app\nthread worker app 101\n0 cpu0 switch idle -> main\n",
    );
    let wait = "sleeping read object=pipe:5 stack=read;take_turns";
    for turn in 0..10 {
        let at = 1000 + turn * 2000;
        text += &format!(
            "{at}us cpu0 wake main -> worker write object=pipe:5
            {}us cpu0 switch main -> worker {wait}
            {}us cpu0 wake worker -> main write object=pipe:5
            {}us cpu0 switch worker -> main {wait}\n",
            at + 10,
            at + 1500,
            at + 1510
        );
    }
    let recording = record(&format!("{text}end 25ms"));
    let verdict = explain(&recording, "main", 1_000..20_000);
    assert_eq!(verdict.knot, None);
    assert_ne!(verdict.root.class, Class::Circular);
    assert_eq!(verdict.root.class, Class::LongRunning);
    assert_eq!(verdict.root.who.tid, 101);
}

/// A child that was forked from a program of several threads waits for a lock of its own: no other thread of
/// it can have that, and it may have come with the fork. One that executed a program of its own is not such a
/// copy.
#[test]
fn a_lock_that_came_with_a_fork() {
    let sentence = |executes: &str| {
        let recording = record(&format!(
            "process app 100
            thread main app 100 name=app
            thread refresher app 101
            process app_child 200
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> refresher
            1ms fork main -> child app_child 200
            1ms cpu2 switch idle -> child
            {executes}
            2ms cpu0 switch main -> idle sleeping wait4 stack=wait4;run_all
            3ms cpu2 switch child -> idle sleeping futex arg=128 object=futex:0x10 stack=sem_wait;PyThread_acquire_lock_timed;lock_PyThread_acquire_lock;read_rate
            3ms cpu1 switch refresher -> idle sleeping clock_nanosleep arg=9s stack=nanosleep;refresh
            end 5s"
        ));
        explain(&recording, "child", 3_000..5_000_000).sentence
    };
    let forked = sentence("");
    assert!(
        forked.contains("that no thread in its process can release"),
        "{forked}"
    );
    let executed = sentence("1500us exec child /usr/bin/other");
    assert!(!executed.contains("fork"), "{executed}");
}

/// The same where the recording has the end: a signal that ends the process, and not one that ends the wait.
#[test]
fn a_lock_that_came_with_a_fork_until_a_signal() {
    let sentence = |status: &str| {
        let recording = record(&format!(
            "process app 100
            thread main app 100 name=app
            thread refresher app 101
            process app_child 200
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> refresher
            1ms fork main -> child app_child 200
            1ms cpu2 switch idle -> child
            2ms cpu0 switch main -> idle sleeping wait4 stack=wait4;run_all
            3ms cpu2 switch child -> idle sleeping futex arg=128 object=futex:0x10 stack=sem_wait;PyThread_acquire_lock_timed;lock_PyThread_acquire_lock;read_rate
            4s cpu1 wake refresher -> child kill arg=15
            4s cpu2 switch idle -> child
            4001ms exit child {status}
            4001ms cpu2 switch child -> idle dead
            end 5s"
        ));
        explain(&recording, "child", 3_000..4_000_000).sentence
    };
    let killed = sentence("15");
    assert!(
        killed.contains("that no thread in its process can release"),
        "{killed}"
    );
    let exited = sentence("0");
    assert!(!exited.contains("fork"), "{exited}");
}

/// Two threads that each wait for what the other is to send by the other end of a pair of sockets, of which one
/// waits for it by poll: it is no server that waits to be asked.
#[test]
fn of_two_by_pairs_of_sockets() {
    let recording = record(
        "process app 100
        thread main app 100
        thread other app 101
        0 socket app object=unix:1 peer=unix:2 peer-process=app
        0 socket app object=unix:2 peer=unix:1 peer-process=app
        0 open app object=unix:1
        0 open app object=unix:2
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> other
        100us transfer main sent 1 object=unix:1 peer=unix:2
        200us transfer other received 1 object=unix:2 peer=unix:1
        300us transfer other sent 1 object=unix:2 peer=unix:1
        400us transfer main received 1 object=unix:1 peer=unix:2
        1ms cpu0 switch main -> idle sleeping read object=unix:1 stack=read;get
        2ms cpu1 switch other -> idle sleeping ppoll object=unix:2 stack=poll;can_read
        end 1s",
    );
    let verdict = explain(&recording, "main", 1_000..1_000_000);
    assert_eq!(verdict.root.class, Class::Circular, "{}", verdict.sentence);
    assert_eq!(knot(&verdict), [100, 101]);
}
