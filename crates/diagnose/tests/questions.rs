//! What is asked, and what an answer holds for.
//!
//! The waiter usually gets its work from two others: "few" ended two such waits, then "many"
//! three. Where nobody ends one and a timeout passes, "many" is the likeliest with 3 + 0.5 (it
//! was the last) of 7.5, "few" and the timeout have 2 each. Meanwhile many runs and few waits
//! for the disk.

use crate::support::*;
use hangdog_diagnose::shape::NOBODY;
use hangdog_diagnose::{Answers, Class, Problem, Verdict, diagnose};

/// The five good turns of a waiter on a CPU, from 10 ms on, at one place.
fn turns(cpu: u16, waiter: &str, object: &str) -> String {
    let wakers = ["few", "few", "many", "many", "many"];
    let mut text = String::new();
    for (turn, waker) in wakers.iter().enumerate() {
        let at = 10 + 20 * turn;
        text += &format!(
            "{at}ms cpu{cpu} switch {waiter} -> idle {}
             {}ms cpu9 wake {waker} -> {waiter} futex op=wake object={object} stack=pthread_cond_signal;give
             {}100us cpu{cpu} switch idle -> {waiter}\n",
            place(object),
            at + 10,
            at + 10
        );
    }
    text
}

/// A wait from `from` to `to` ms at the same place, which a timeout ends.
fn vain(cpu: u16, waiter: &str, object: &str, from: u64, to: u64) -> String {
    format!(
        "{from}ms cpu{cpu} switch {waiter} -> idle {}
         {to}ms cpu{cpu} wake idle -> {waiter} in=timer
         {to}100us cpu{cpu} switch idle -> {waiter}\n",
        place(object)
    )
}

fn place(object: &str) -> String {
    format!("sleeping futex op=wait object={object} stack=pthread_cond_timedwait;next_job;work")
}

/// The program that all tests have: many runs throughout, few waits for the disk from 105 ms on.
fn program(threads: &str, events: &str) -> Recording {
    record(&format!(
        "process app 100
        thread main app 100 name=app
        thread few app 101
        thread many app 102
        {threads}
        0 cpu0 switch idle -> main
        0 cpu8 switch idle -> few
        0 cpu9 switch idle -> many
        {events}
        105ms cpu8 switch few -> idle uninterruptible fsync object=file:42 stack=fsync;save
        400ms cpu8 wake idle -> few in=softirq vector=4 kstack=blk_done_softirq
        400.1ms cpu8 switch idle -> few
        end 410ms"
    ))
}

fn verdict_on(recording: &Recording, thread: &str, ms: (u64, u64), answers: &Answers) -> Verdict {
    let problem = Problem::picked(recording.t(thread), ms.0 * MS..ms.1 * MS);
    let verdict = diagnose(&recording.evidence(), &problem, setting(false, answers));
    if let Err(what) = check(&verdict, &problem) {
        panic!("{what}\n{verdict:#?}");
    }
    verdict
}

/// The choices of the first question with their probabilities in percent.
fn choices(verdict: &Verdict) -> Vec<(&str, u64)> {
    let possibilities = &verdict.questions[0].possibilities;
    let percent = |probability: f64| (probability * 100.0).round() as u64;
    possibilities
        .iter()
        .map(|p| (p.choice.as_str(), percent(p.probability)))
        .collect()
}

/// Answers with one: to the first question of a verdict.
fn answered(verdict: &Verdict, choice: &str) -> Answers {
    let mut answers = Answers::default();
    let question = &verdict.questions[0];
    answers
        .add(&question.text, question.wait.clone(), choice)
        .expect("an answer");
    answers
}

/// Two waits of one shape are one question, with the likeliest as its default; an answer to it
/// holds for both, so that all their time goes elsewhere.
#[test]
fn one_answer_for_two_waits_of_a_shape() {
    let object = "futex:0x10";
    let events = turns(0, "main", object)
        + &vain(0, "main", object, 110, 210)
        + &vain(0, "main", object, 220, 320);
    let recording = program("", &events);
    let before = verdict_on(&recording, "main", (110, 320), &Answers::default());
    assert_eq!(before.questions.len(), 1, "{:#?}", before.questions);
    assert_eq!(
        choices(&before)[..3],
        [("app/many", 47), ("app/few", 27), ("a timer", 27)]
    );
    assert_eq!(choices(&before)[3].0, NOBODY);
    assert_eq!(of_thread(&before, 102, "run"), 200_000);
    assert_eq!(
        (before.root.who.tid, before.root.class),
        (102, Class::LongRunning)
    );

    let after = verdict_on(
        &recording,
        "main",
        (110, 320),
        &answered(&before, "app/few"),
    );
    assert_eq!(of_thread(&after, 101, "disk"), 200_000);
    assert_eq!(of_thread(&after, 102, "run"), 0);
    assert_eq!(
        (after.root.who.tid, after.root.class),
        (101, Class::LongWait)
    );
    assert_eq!(
        after.questions[0].answer,
        Some(1),
        "it is replayed, not asked"
    );
    // What was answered is sure: only the weakness of the edge is left.
    assert!(after.root.confidence > before.root.confidence);

    let by_timer = verdict_on(
        &recording,
        "main",
        (110, 320),
        &answered(&before, "a timer"),
    );
    assert_eq!(of_thread(&by_timer, 100, "timer"), 200_000);
    let by_none = verdict_on(&recording, "main", (110, 320), &answered(&before, NOBODY));
    assert_eq!(of_kind(&by_none, "unknown"), 200_000);
}

/// What each possibility would lead to is what an answer then leads to.
#[test]
fn possibilities_foretell_the_root() {
    let object = "futex:0x10";
    let events = turns(0, "main", object) + &vain(0, "main", object, 110, 210);
    let recording = program("", &events);
    let asked = verdict_on(&recording, "main", (110, 210), &Answers::default());
    let possibilities = &asked.questions[0].possibilities;
    for possibility in possibilities.iter().filter(|p| p.choice != NOBODY) {
        let answers = answered(&asked, &possibility.choice);
        let root = verdict_on(&recording, "main", (110, 210), &answers).root;
        let name = if root.who.thread == "app" {
            "app".to_owned()
        } else {
            format!("app/{}", root.who.thread)
        };
        let found = format!("{:?} of {name}", root.class);
        assert_eq!(found, possibility.root);
    }
}

/// An answer given for one worker of a pool holds for another, though thread, stack id and lock
/// are others; the number in its name is no part of its role.
#[test]
fn an_answer_holds_for_all_of_a_role() {
    let events = turns(1, "w1", "futex:0x10")
        + &turns(2, "w2", "futex:0x9990")
        + &vain(1, "w1", "futex:0x10", 110, 210)
        + &vain(2, "w2", "futex:0x9990", 110, 310);
    let recording = program(
        "thread w1 app 111 name=worker1
        thread w2 app 112 name=worker2
        0 cpu1 switch idle -> w1
        0 cpu2 switch idle -> w2",
        &events,
    );
    let first = verdict_on(&recording, "w1", (110, 210), &Answers::default());
    let answers = answered(&first, "app/few");
    let second = verdict_on(&recording, "w2", (110, 310), &answers);
    assert_eq!(second.root.who.thread, "few");
    assert_eq!(of_thread(&second, 101, "disk"), 200_000);
    assert_eq!(second.questions[0].answer, Some(1));
}

/// An answer says nothing about a wait at another place, nor one whose choice is not among what
/// is possible there.
#[test]
fn an_answer_holds_for_no_other_wait() {
    let object = "futex:0x10";
    let events = turns(0, "main", object) + &vain(0, "main", object, 110, 210);
    let recording = program("", &events);
    let asked = verdict_on(&recording, "main", (110, 210), &Answers::default());
    let mut elsewhere = asked.questions[0].wait.clone();
    elsewhere.at[1] = "other_job".to_owned();
    let mut answers = Answers::default();
    answers
        .add("Who?", elsewhere, "app/few")
        .expect("an answer");
    let verdict = verdict_on(&recording, "main", (110, 210), &answers);
    assert_eq!(verdict.root.who.thread, "many");
    assert_eq!(verdict.questions[0].answer, None);

    let absent = answered(&asked, "app/ghost");
    let verdict = verdict_on(&recording, "main", (110, 210), &absent);
    assert_eq!(verdict.root.who.thread, "many");
}

/// Nothing is asked where every answer gives the same root: few and many both wait for a lock
/// that owner has, and the wait still lasts when the recording ends, so there was no timeout.
#[test]
fn what_changes_nothing_is_not_asked() {
    let lock = "sleeping futex op=wait object=futex:0x80 holder=owner stack=__lll_lock_wait;take";
    let turns = turns(0, "main", "futex:0x10");
    let recording = record(&format!(
        "process app 100
        thread main app 100 name=app
        thread few app 101
        thread many app 102
        thread owner app 103
        0 cpu0 switch idle -> main
        0 cpu3 switch idle -> owner
        0 cpu8 switch idle -> few
        0 cpu9 switch idle -> many
        {turns}
        105ms cpu8 switch few -> idle {lock}
        106ms cpu9 switch many -> idle {lock}
        110ms cpu0 switch main -> idle {}
        end 210ms",
        place("futex:0x10")
    ));
    let verdict = verdict_on(&recording, "main", (110, 210), &Answers::default());
    assert_eq!(verdict.root.who.thread, "owner");
    assert_eq!(verdict.questions, []);
}
