//! What is done at a pace, frame by frame, and is late now and then.

use crate::support::*;
use hangdog_diagnose::problem::{self, Problem, ProblemKind, Scope};

/// A thread that works for a moment and sleeps for 20 ms, again and again; in two of its turns it does what
/// `late` says, which takes 150 ms.
fn paced(late: impl Fn(u64) -> String) -> String {
    let mut text = String::from("0 cpu0 switch idle -> game\n");
    let mut at = 1;
    for turn in 1..=30 {
        if turn % 10 == 0 {
            text += &late(at);
            at += 150;
        }
        text += &format!(
            "{at}ms cpu0 switch game -> idle sleeping clock_nanosleep arg=20ms stack=nanosleep;pace
            {}ms cpu0 wake idle -> game in=timer
            {}ms cpu0 switch idle -> game\n",
            at + 20,
            at + 20
        );
        at += 21;
    }
    text + &format!(
        "{at}ms cpu0 switch game -> idle sleeping clock_nanosleep arg=20ms stack=nanosleep;pace\nend {}ms",
        at + 10
    )
}

fn found(text: &str) -> (Recording, Vec<Problem>) {
    let recording = record(text);
    let found = problem::find(&recording.evidence(), Scope::default());
    (recording, found)
}

/// A frame that takes long is a turn that did not come back, and is felt more than a batch job. A program
/// that computes before it begins to sleep is no such thing.
#[test]
fn a_late_frame_is_a_turn() {
    let game = "process game 100\nthread game game 100\n";
    let (_, late) = found(&format!("{game}{}", paced(|_| String::new())));
    let frames: Vec<&Problem> = (late.iter())
        .filter(|problem| problem.duration() > 100_000_000)
        .collect();
    assert!(!frames.is_empty(), "{late:?}");
    for frame in &frames {
        assert_eq!(frame.kind, ProblemKind::Turn, "{frame:?}");
    }
    let (_, poll) = found(&format!(
        "{game}0 cpu0 switch idle -> game
        {}end 900ms",
        (0..20)
            .map(|turn| 200 + turn * 21)
            .map(|at| format!(
                "{at}ms cpu0 switch game -> idle sleeping clock_nanosleep arg=20ms stack=nanosleep;poll
                {}ms cpu0 wake idle -> game in=timer
                {}ms cpu0 switch idle -> game\n",
                at + 20,
                at + 20
            ))
            .collect::<String>()
    ));
    let long = |problem: &&Problem| problem.duration() > 100_000_000;
    for problem in poll.iter().filter(long) {
        assert!(problem.felt < frames[0].felt, "{problem:?}");
    }
}

/// Frames that wait for the same lock holder again and again count together: more than a build beside them
/// that waits longer for its own compiler.
#[test]
fn frames_that_are_late_for_one_reason_count_together() {
    let wait = |at: u64| {
        format!(
            "{at}ms cpu0 switch game -> idle sleeping futex arg=128 object=futex:0x10 holder=scan stack=__lll_lock_wait;pthread_mutex_lock;fill
            {}ms cpu1 wake scan -> game futex op=wake object=futex:0x10 stack=__lll_lock_wake;pthread_mutex_unlock;scan
            {}ms cpu0 switch idle -> game\n",
            at + 149,
            at + 150
        )
    };
    let text = format!(
        "process game 100
        thread game game 100
        thread scan game 101
        process make 200
        thread make make 200
        process cc 300
        0 cpu1 switch idle -> scan
        0 cpu2 switch idle -> make
        1us fork make -> cc cc 300
        2us cpu2 wake make -> cc fork new
        5us cpu2 switch make -> cc sleeping wait4 stack=wait4;run_job
        700ms exit cc 0
        700ms cpu2 wake cc -> make exit
        701ms cpu2 switch cc -> make dead
        702ms cpu2 switch make -> idle sleeping poll stack=poll;idle
        {}",
        paced(wait)
    );
    let (recording, found) = found(&text);
    assert_eq!(found[0].thread, recording.t("game"), "{found:#?}");
}
