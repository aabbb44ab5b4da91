//! Where 30 % of the switches and wakes are lost, a verdict still comes: it adds up, it is less
//! sure, and it says what it cannot know.

use crate::support::*;
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::{Answers, Class, Problem, Verdict, diagnose, problem};
use hangdog_trace::tables::{Loss, Switches, Wakes};
use hangdog_trace::text::{self, TextTrace};
use hangdog_trace::words::LossKind;

/// A trace without 30 % of its switches and wakes, which of them a seed says; with the loss.
fn thinned(text: &str, seed: u64) -> Recording {
    let mut trace = text::parse(text).expect("a trace in text form");
    thin(&mut trace, seed);
    Recording::new(trace)
}

fn thin(trace: &mut TextTrace, seed: u64) {
    let mut state = seed;
    let mut is_lost = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % 10 < 3
    };
    let tables = &mut trace.tables;
    let mut switches = Switches::default();
    let mut wakes = Wakes::default();
    let mut lost = 0;
    for row in 0..tables.switches.len() {
        match is_lost() {
            true => lost += 1,
            false => switches.push(tables.switches.row(row)),
        }
    }
    for row in 0..tables.wakes.len() {
        match is_lost() {
            true => lost += 1,
            false => wakes.push(tables.wakes.row(row)),
        }
    }
    (tables.switches, tables.wakes) = (switches, wakes);
    tables.losses.push(Loss {
        ts: trace.end,
        cpu: 0,
        kind: LossKind::Events.into(),
        count: lost,
    });
}

/// A page that waits for a worker, that for another process, twenty times 10 ms, and then 300 ms.
fn requests() -> String {
    let mut text = String::from(
        "process app 100
        thread main app 100 name=app
        thread worker app 101
        process store 200
        thread store store 200
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        0 cpu2 switch idle -> store\n",
    );
    let mut at = 0;
    for turn in 0..21 {
        let long = if turn < 20 { 10_000 } else { 300_000 };
        let (asked, done) = (at + 2_000, at + 2_000 + long);
        text += &format!(
            "{}us cpu1 switch worker -> idle sleeping futex op=wait object=futex:0x20 stack=pthread_cond_wait;work_loop
             {asked}us cpu0 wake main -> worker futex op=wake object=futex:0x20 stack=pthread_cond_signal;show
             {asked}us cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;show
             {}us cpu1 switch idle -> worker
             {}us cpu2 switch store -> idle sleeping recvfrom object=unix:7 stack=recv;serve
             {}us cpu1 wake worker -> store sendto object=unix:8
             {}us cpu1 switch worker -> idle sleeping recvfrom object=unix:8 stack=recv;ask
             {}us cpu2 switch idle -> store
             {}us cpu2 wake store -> worker sendto object=unix:7
             {}us cpu1 switch idle -> worker
             {done}us cpu1 wake worker -> main futex op=wake object=futex:0x10 stack=pthread_cond_signal;give
             {}us cpu0 switch idle -> main\n",
            asked - 500,
            asked + 50,
            asked - 400,
            asked + 500,
            asked + 600,
            asked + 550,
            done - 1_000,
            done - 950,
            done + 50,
        );
        at = done + 3_000;
    }
    text += &samples(2, "store", 310..600, "compress;serve");
    format!("{text}end {}us", at + 5_000)
}

/// The last wait of main: from 302 ms (twenty turns of 15 ms, and 2) for 300 ms.
const LONG: (u64, u64) = (302 * MS, 602 * MS);

fn verdict_on(recording: &Recording, problem: &Problem, lost: bool) -> Verdict {
    let answers = Answers::default();
    let verdict = diagnose(&recording.evidence(), problem, setting(lost, &answers));
    if let Err(what) = check(&verdict, problem) {
        panic!("{what}\n{verdict:#?}");
    }
    verdict
}

/// What a verdict on a trace with loss must say: that events are missing, with what that hides.
fn says_what_is_lost(verdict: &Verdict) {
    let hint = verdict.hints.first().expect("a hint");
    assert!(hint.text.contains("missing"), "{hint:?}");
    let unknown: u64 = verdict
        .blame
        .iter()
        .filter(|row| row.kind == "unknown")
        .map(|row| row.ns)
        .sum();
    let share = unknown as f64 / verdict.problem.duration_ns as f64 * 100.0;
    assert!(
        hint.text.contains(&format!("{share:.0} %")),
        "{share} {hint:?}"
    );
    assert!(!hint.how.is_empty());
}

/// Of the whole trace store is found, as surely as by strong edges: it has all of the 300 ms but the first and
/// the last.
#[test]
fn nothing_is_lost() {
    let recording = whole(&requests());
    let problem = Problem::picked(recording.t("main"), LONG.0..LONG.1);
    let verdict = verdict_on(&recording, &problem, false);
    assert_eq!(verdict.root.who.tid, 200);
    assert!(verdict.root.confidence > 0.6);
    assert_eq!(verdict.hints, []);
    assert_eq!(verdict.questions, []);
}

fn whole(text: &str) -> Recording {
    Recording::new(text::parse(text).expect("a trace in text form"))
}

/// With 30 % of its events gone, whichever they are, a verdict on the same time comes, adds up, is
/// less sure than that on the whole, and says what it cannot know.
#[test]
fn a_verdict_comes_and_is_less_sure() {
    let text = requests();
    let sure = {
        let recording = whole(&text);
        let problem = Problem::picked(recording.t("main"), LONG.0..LONG.1);
        verdict_on(&recording, &problem, false).root.confidence
    };
    for seed in 0..100 {
        let recording = thinned(&text, seed);
        let problem = Problem::picked(recording.t("main"), LONG.0..LONG.1);
        let verdict = verdict_on(&recording, &problem, true);
        assert!(verdict.root.confidence < sure, "seed {seed}");
        assert!(!verdict.sentence.is_empty());
        says_what_is_lost(&verdict);
    }
}

/// Problems are still found in what is left, and each has a verdict that adds up.
#[test]
fn problems_are_found_in_what_is_left() {
    let text = requests();
    for seed in 0..50 {
        let recording = thinned(&text, seed);
        let evidence = recording.evidence();
        let scope = Scope {
            command_tid: Some(100),
            recorder_pid: None,
            is_snapshot: false,
        };
        let problems = problem::find(&evidence, scope);
        assert!(!problems.is_empty(), "seed {seed}");
        for problem in &problems {
            says_what_is_lost(&verdict_on(&recording, problem, true));
        }
    }
}

/// The golden traces of the command line, thinned: nothing about them is special to the above.
#[test]
fn other_traces() {
    for text in [
        include_str!("../../cli/tests/golden/page.trace"),
        include_str!("../../cli/tests/golden/knot.trace"),
        include_str!("../../cli/tests/golden/asked.trace"),
        include_str!("../../cli/tests/golden/handover.trace"),
    ] {
        for seed in 0..100 {
            let recording = thinned(text, seed);
            let evidence = recording.evidence();
            let end = recording.timeline.end();
            let found = problem::find(&evidence, Scope::default());
            let threads = recording.timeline.threads();
            let lives = threads.map(|thread| Problem::picked(thread, 0..end));
            for problem in found.iter().cloned().chain(lives) {
                let verdict = verdict_on(&recording, &problem, true);
                assert!(verdict.root.confidence <= 0.7 + 1e-9, "seed {seed}");
                says_what_is_lost(&verdict);
            }
        }
    }
}

/// What is named with events lost is who it was, or it is said that it is not known, in most cases.
#[test]
fn most_roots_are_right_or_not_known() {
    let text = requests();
    let (mut right, mut unknown) = (0, 0);
    for seed in 0..100 {
        let recording = thinned(&text, seed);
        let problem = Problem::picked(recording.t("main"), LONG.0..LONG.1);
        let verdict = verdict_on(&recording, &problem, true);
        if verdict.root.class == Class::Unknown {
            unknown += 1;
        } else if verdict.root.who.tid == 200 {
            right += 1;
        }
    }
    println!("{right} right, {unknown} not known");
    assert!(right + unknown > 50, "{right} right, {unknown} not known");
}
