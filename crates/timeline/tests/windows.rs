//! Windows onto a thread's intervals, and what a summary says of them.

mod common;

use common::{Events, interval};
use hangdog_timeline::Cause::{Switch, Wake};
use hangdog_timeline::State::*;
use hangdog_timeline::summary::{Summary, summaries};
use hangdog_trace::words::Left;

/// Thread 1: runs 0-10, blocked 10-30, runnable 30-50, runs 50-70 with an interrupt 60-63,
/// preempted 70-100.
fn example() -> Events {
    let mut e = Events::until(100);
    e.switch(10, 0, 1, 0, Left::Sleeping);
    e.wake(30, 2, 1);
    e.switch(50, 0, 0, 1, Left::Preempted);
    e.interrupt(60, 3, 1);
    e.switch(70, 0, 1, 2, Left::Preempted);
    e
}

/// A window clips its first and last interval and leaves out what lies outside.
#[test]
fn between_clips() {
    let timeline = example().timeline();
    let part: Vec<_> = timeline.between(1, 15, 55).collect();
    assert_eq!(
        part,
        [
            interval(15, 30, Blocked, Switch(0)),
            interval(30, 50, Runnable, Wake(0)),
            interval(50, 55, Running, Switch(1)),
        ]
    );
    assert_eq!(timeline.between(1, 30, 30).count(), 0);
    assert_eq!(timeline.between(1, 40, 20).count(), 0);
    assert_eq!(timeline.between(1, 100, 200).count(), 0);
}

/// An instant belongs to the interval that begins with it.
#[test]
fn index_at() {
    let timeline = example().timeline();
    let intervals = timeline.intervals(1);
    assert_eq!(intervals.index_at(0), Some(0));
    assert_eq!(intervals.index_at(29), Some(1));
    assert_eq!(intervals.index_at(30), Some(2));
    assert_eq!(intervals.index_at(99), Some(6));
    assert_eq!(intervals.index_at(100), None);
}

/// Times, switches and the longest wait of a whole life.
#[test]
fn summary_of_a_life() {
    let timeline = example().timeline();
    let summary = Summary::of(timeline.intervals(1), 0, 100);
    assert_eq!(summary.time_in(Running), 10 + 10 + 7);
    assert_eq!(summary.time_in(Interrupted), 3);
    assert_eq!(summary.time_in(Blocked), 20);
    assert_eq!(summary.time_in(Runnable), 20);
    assert_eq!(summary.time_in(Preempted), 30);
    assert_eq!(summary.total(), 100);
    assert_eq!(summary.switches, 1);
    assert_eq!(
        summary.longest_wait,
        Some(interval(70, 100, Preempted, Switch(2)))
    );
}

/// Within a window: a stay on the CPU that began before it is not a switch, and of waits as long
/// as each other the first counts.
#[test]
fn summary_of_a_window() {
    let timeline = example().timeline();
    let summary = Summary::of(timeline.intervals(1), 55, 75);
    assert_eq!(summary.total(), 20);
    assert_eq!(summary.switches, 0);
    assert_eq!(Summary::of(timeline.intervals(1), 50, 51).switches, 1);
    let tie = Summary::of(timeline.intervals(1), 20, 40);
    assert_eq!(tie.longest_wait, Some(interval(20, 30, Blocked, Switch(0))));
}

/// Threads that do not live in the window have no summary.
#[test]
fn summaries_leave_out_the_dead() {
    let mut e = example();
    e.switch(80, 0, 2, 3, Left::Dead);
    let timeline = e.timeline();
    let utids = |from, to| -> Vec<u32> {
        summaries(&timeline, from, to)
            .iter()
            .map(|(utid, _)| *utid)
            .collect()
    };
    assert_eq!(utids(0, 100), [1, 2, 3]);
    assert_eq!(utids(80, 100), [1, 3]);
}
