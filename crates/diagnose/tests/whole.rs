//! A recorded command as a whole: its run, and where its time went.

use crate::support::*;
use hangdog_diagnose::verdict::{Entry, Whole};
use hangdog_diagnose::whole::{run_of, stands_out};
use hangdog_diagnose::{Answers, Problem, Verdict, diagnose_run};

/// The verdict on the run of the command with tid 100.
fn verdict_on(recording: &Recording) -> Verdict {
    let evidence = recording.evidence();
    let run = run_of(&evidence, 100).expect("a run");
    let verdict = diagnose_run(&evidence, &run, setting(false, &Answers::default()));
    if let Err(what) = check(&verdict, &run) {
        panic!("{what}\n{verdict:#?}");
    }
    verdict
}

fn whole(verdict: &Verdict) -> &Whole {
    verdict.whole.as_ref().expect("a run as a whole")
}

/// Program, words and time in µs.
fn told(entry: &Entry) -> (&str, &str, u64) {
    (&entry.process, &entry.what, entry.ns / 1000)
}

/// A command and its child; the text tells what takes how long.
const BUILD: &str = include_str!("../../cli/tests/golden/build.trace");

/// The time goes on to the child, and is distinguished by samples and by who had the CPU.
#[test]
fn a_command_and_its_child() {
    let recording = record(BUILD);
    let verdict = verdict_on(&recording);
    let entries: Vec<_> = whole(&verdict).entries.iter().map(told).collect();
    assert_eq!(
        entries,
        [
            ("cc", "waiting for the disk", 20_000),
            ("sh", "running", 14_000),
            ("cc", "importing modules", 10_000),
            ("cc", "running", 6_000),
            ("cc", "waiting for a CPU held by rustc", 6_000),
            ("cc", "starting and ending processes", 4_000),
        ]
    );
    assert_eq!(
        verdict.sentence,
        "sh took 60.0 ms: 20.0 ms of cc waiting for the disk, 14.0 ms running, \
         10.0 ms of cc importing modules, 16.0 ms for the rest."
    );
    let function = |at: usize| whole(&verdict).entries[at].function.as_deref();
    assert_eq!(function(0), Some("save"));
    assert_eq!(function(3), Some("compile"));
    assert_eq!(whole(&verdict).unknown, 0.0);
}

/// A run of 20 s in which sh starts 50 children of 100 µs: each is waited for so briefly that a
/// problem of that length would not look at it, and together they are 5 ms.
#[test]
fn short_children_of_a_long_run() {
    let mut text = String::from(
        "process sh 100
        thread sh sh 100\n",
    );
    for child in 0..50 {
        text += &format!("process job{tid} {tid}\n", tid = 200 + child);
    }
    text += "0 cpu0 switch idle -> sh\n";
    for child in 0..50 {
        let (tid, at) = (200 + child, 1_000 * (child + 1));
        text += &format!(
            "{at}us fork sh -> job{tid} job{tid} {tid}
            {at}us cpu0 wake sh -> job{tid} fork new
            {at}us rename job{tid} job
            {at}us cpu0 switch sh -> job{tid} sleeping wait4 arg={tid} stack=wait4;loop
            {end}us cpu0 wake job{tid} -> sh exit_group
            {end}us exit job{tid} 0
            {end}us cpu0 switch job{tid} -> sh dead\n",
            end = at + 100
        );
    }
    let recording = record(&format!("{text}20s exit sh 0\nend 20s"));
    let verdict = verdict_on(&recording);
    let entries = &whole(&verdict).entries;
    assert_eq!(told(&entries[0]), ("sh", "running", 19_995_000));
    assert_eq!(told(&entries[1]), ("job", "running", 5_000));
    assert_eq!((entries[1].processes, entries.len()), (50, 2));
    // What is too little to be told of is not told of.
    assert_eq!(verdict.sentence, "sh took 20.0 s: 20.0 s running.");
}

/// A quota is nobody's CPU; of two processes of one name it is said that it was the other.
#[test]
fn wants_of_a_cpu() {
    let recording = record(
        "process app 100
        thread main app 100 name=app
        process other 200
        thread other other 200 name=app
        0 cpu0 switch idle -> main
        10ms cpu0 switch main -> idle throttled
        40ms cpu0 switch idle -> main
        50ms cpu0 switch main -> other preempted
        60ms cpu0 switch other -> main preempted
        70ms exit main 0
        end 80ms",
    );
    let verdict = verdict_on(&recording);
    let entries: Vec<_> = whole(&verdict).entries.iter().map(told).collect();
    let quota = "held back by the CPU quota of its control group";
    assert_eq!(
        entries,
        [
            ("app", "running", 30_000),
            ("app", quota, 30_000),
            ("app", "waiting for a CPU held by another app", 10_000),
        ]
    );
}

/// A program's own threads may have the CPU that it waits for.
#[test]
fn own_threads_had_the_cpu() {
    let recording = record(
        "process app 100
        thread main app 100 name=app
        thread worker app 101 name=worker
        0 cpu0 switch idle -> main
        10ms cpu0 switch main -> worker preempted
        60ms cpu0 switch worker -> main preempted
        70ms exit main 0
        end 80ms",
    );
    let verdict = verdict_on(&recording);
    let entries: Vec<_> = whole(&verdict).entries.iter().map(told).collect();
    assert_eq!(
        entries[0],
        ("app", "waiting for a CPU held by its own threads", 50_000)
    );
}

/// What is lost is said to be unknown, and takes the confidence with it.
#[test]
fn unknown_time() {
    let recording = record(
        "process app 100
        thread app app 100
        0 cpu0 switch idle -> app
        30ms cpu0 switch app -> idle sleeping wait4 arg=none
        40ms cpu0 switch idle -> app
        40ms exit app 0
        end 40ms",
    );
    let verdict = verdict_on(&recording);
    let whole = whole(&verdict);
    assert_eq!(whole.unknown, 0.25);
    assert!(whole.confidence <= 0.75, "{}", whole.confidence);
    let unknown = ("app", "with no data in the trace", 10_000);
    assert_eq!(told(&whole.entries[1]), unknown);
}

/// The run begins with the first exec, or, where that is not in the trace, with the thread; a tid
/// that is used again is the first one's.
#[test]
fn the_run() {
    let run = |text: &str| {
        let recording = record(text);
        let run = run_of(&recording.evidence(), 100);
        run.map(|run| (run.thread, run.window.start / MS, run.window.end / MS))
    };
    let app = "process app 100\nthread app app 100\n";
    let again = "process again 100\n";
    assert_eq!(
        run(&format!(
            "{app}{again}2ms exec app /bin/a\n3ms exec app /bin/b\n5ms exit app 0
            6ms fork app -> again again 100\nend 9ms"
        )),
        Some((1, 2, 5))
    );
    assert_eq!(
        run(&format!("{app}5ms exit app 0\nend 9ms")),
        Some((1, 0, 5))
    );
    assert_eq!(
        run(&format!("{app}1ms exec app /bin/a\nend 9ms")),
        Some((1, 1, 9))
    );
    assert_eq!(run("process app 101\nthread app app 101\nend 9ms"), None);
}

/// A fifth of the run is enough.
#[test]
fn what_stands_out() {
    let run = Problem::picked(1, 0..100);
    assert!(stands_out(&[Problem::picked(2, 50..70)], &run));
    assert!(!stands_out(&[Problem::picked(1, 0..19)], &run));
    assert!(!stands_out(&[], &run));
}

/// python waits from 2 ms to 30 ms for what comes through a pipe. It comes from ld, which gcc, that
/// python made, makes only at 20 ms: until then it is gcc's time, and none of it is unknown.
#[test]
fn before_the_birth_of_who_was_waited_for() {
    let recording = record(
        "process python 100
        thread python python 100
        process gcc 200
        process ld 300
        0 cpu0 switch idle -> python
        1ms fork python -> gcc gcc 200
        1ms cpu0 wake python -> gcc fork new
        2ms cpu0 switch python -> gcc sleeping read object=pipe:5 stack=read;main
        20ms fork gcc -> ld ld 300
        20ms cpu0 wake gcc -> ld fork new
        20ms cpu0 switch gcc -> ld sleeping wait4 arg=300
        30ms cpu0 wake ld -> python write object=pipe:5
        30ms cpu0 switch ld -> python preempted
        35ms exit python 0
        end 40ms",
    );
    let verdict = verdict_on(&recording);
    let entries: Vec<_> = whole(&verdict).entries.iter().map(told).collect();
    assert_eq!(
        entries,
        [
            ("gcc", "running", 18_000),
            ("ld", "running", 10_000),
            ("python", "running", 7_000),
        ]
    );
}

/// A server that lets 20 ms pass before it sends goes on by its own timeout, though such waits
/// were ended by another before: what was seen to lead on counts.
#[test]
fn a_time_out_that_led_on() {
    let mut text = String::from(
        "process curl 100
        thread curl curl 100
        process nginx 200
        thread nginx nginx 200
        process app 300
        thread app app 300
        0 cpu0 switch idle -> curl
        0 cpu1 switch idle -> nginx
        0 cpu2 switch idle -> app\n",
    );
    let wait = "sleeping epoll_wait object=epoll:7 stack=epoll_wait;serve";
    for turn in 1..=5 {
        text += &format!(
            "{turn}ms cpu1 switch nginx -> idle {wait}
            {turn}200us cpu2 wake app -> nginx sendto object=inet:8
            {turn}210us cpu1 switch idle -> nginx\n",
        );
    }
    let recording = record(&format!(
        "{text}
        6ms cpu0 switch curl -> idle sleeping poll object=inet:9 stack=poll;load
        6ms cpu1 switch nginx -> idle {wait}
        26ms cpu1 wake idle -> nginx in=timer
        26ms cpu1 switch idle -> nginx
        27ms cpu1 wake nginx -> curl sendto object=inet:10
        27ms cpu0 switch idle -> curl
        30ms exit curl 0
        end 40ms"
    ));
    let verdict = verdict_on(&recording);
    let entries: Vec<_> = whole(&verdict).entries.iter().map(told).collect();
    assert_eq!(
        entries,
        [
            ("nginx", "sleeping, or waiting for a timeout", 20_000),
            ("curl", "running", 9_000),
            ("nginx", "running", 1_000),
        ]
    );
}

/// Of 12 ms that app wants CPU 0, rustc has it for 7 and ld for 5: neither alone.
#[test]
fn a_cpu_that_several_had() {
    let recording = record(
        "process app 100
        thread app app 100
        process rustc 200
        thread rustc rustc 200
        process ld 300
        thread ld ld 300
        0 cpu0 switch idle -> app
        10ms cpu0 switch app -> rustc preempted
        17ms cpu0 switch rustc -> ld preempted
        22ms cpu0 switch ld -> app preempted
        30ms exit app 0
        end 40ms",
    );
    let verdict = verdict_on(&recording);
    let entry = told(&whole(&verdict).entries[1]);
    let what = "waiting for a CPU held by rustc and others";
    assert_eq!(entry, ("app", what, 12_000));
}

/// curl, which nginx woke from five such waits, and which then passed something on,
/// looks after a timeout at 26 ms, finds nothing, and ends: it waited for nginx, not for time to
/// pass.
#[test]
fn a_time_out_that_led_to_nothing() {
    let mut text = String::from(
        "process curl 100
        thread curl curl 100
        process nginx 200
        thread nginx nginx 200
        process tar 300
        thread tar tar 300
        0 cpu0 switch idle -> curl
        0 cpu1 switch idle -> nginx\n",
    );
    let wait = "sleeping poll object=inet:9 stack=poll;load";
    for turn in 1..=5 {
        text += &format!(
            "{turn}ms cpu0 switch curl -> idle {wait}
            {turn}200us cpu1 wake nginx -> curl sendto object=inet:10
            {turn}210us cpu0 switch idle -> curl
            {turn}500us cpu0 wake curl -> tar write object=pipe:4\n",
        );
    }
    let recording = record(&format!(
        "{text}
        6ms cpu0 switch curl -> idle {wait}
        26ms cpu0 wake idle -> curl in=timer
        26010us cpu0 switch idle -> curl
        30ms exit curl 0
        end 40ms"
    ));
    let verdict = verdict_on(&recording);
    let first = &whole(&verdict).entries[0];
    // 5 times 0.2 ms and 20 ms.
    assert_eq!(told(first), ("nginx", "running", 21_000));
}

/// Interrupts of 1 ms count as running in 10 ms on a CPU, and not in 4 ms.
#[test]
fn interrupts() {
    for (end, expected) in [
        (10, vec![("app", "running", 10_000)]),
        (
            4,
            vec![("app", "running", 3_000), ("app", "interrupted", 1_000)],
        ),
    ] {
        let recording = record(&format!(
            "process app 100
            thread app app 100
            0 cpu0 switch idle -> app
            2ms cpu0 irq 1ms hard 33 app
            {end}ms exit app 0
            end 20ms"
        ));
        let verdict = verdict_on(&recording);
        let entries: Vec<_> = whole(&verdict).entries.iter().map(told).collect();
        assert_eq!(entries, expected);
    }
}
