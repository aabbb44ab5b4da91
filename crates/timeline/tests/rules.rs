//! The rules by which events become states, one by one, on traces small enough to do by hand.

mod common;

use common::{Events, interval};
use hangdog_timeline::Cause::{Interrupt, Switch, Unknown, Wake};
use hangdog_timeline::State::*;
use hangdog_trace::words::{Left, LifecycleKind};

/// The plain round: runs, blocks, is woken, waits for the CPU, runs to the trace's end.
#[test]
fn blocks_and_comes_back() {
    let mut e = Events::until(100);
    e.switch(10, 0, 1, 2, Left::Sleeping);
    e.wake(30, 2, 1);
    e.switch(50, 0, 2, 1, Left::Sleeping);
    assert_eq!(
        e.intervals(1),
        [
            interval(0, 10, Running, Unknown),
            interval(10, 30, Blocked, Switch(0)),
            interval(30, 50, Runnable, Wake(0)),
            interval(50, 100, Running, Switch(1)),
        ]
    );
    assert_eq!(
        e.intervals(2),
        [
            interval(0, 10, Runnable, Unknown),
            interval(10, 50, Running, Switch(0)),
            interval(50, 100, Blocked, Switch(1)),
        ]
    );
}

/// Each way to leave a CPU leads to its state.
#[test]
fn ways_to_leave() {
    for (left, state) in [
        (Left::Preempted, Preempted),
        (Left::Throttled, Preempted),
        (Left::Yielded, Runnable),
        (Left::Sleeping, Blocked),
        (Left::Uninterruptible, Blocked),
        (Left::Stopped, Blocked),
        (Left::Idle, Blocked),
        (Left::Unknown, Blocked),
    ] {
        let mut e = Events::until(20);
        e.switch(10, 0, 1, 0, left);
        assert_eq!(
            e.intervals(1)[1],
            interval(10, 20, state, Switch(0)),
            "{left:?}"
        );
    }
}

/// What comes first tells what was before: a wake, that it was blocked.
#[test]
fn before_the_first_event() {
    let mut e = Events::until(100);
    e.wake(10, 0, 1);
    e.switch(20, 0, 0, 1, Left::Preempted);
    assert_eq!(
        e.intervals(1)[..2],
        [
            interval(0, 10, Blocked, Unknown),
            interval(10, 20, Runnable, Wake(0)),
        ]
    );
}

/// A thread that is woken and then leaves a CPU without having come on it was running all along:
/// the wake came while it ran.
#[test]
fn woken_while_running_from_the_start() {
    let mut e = Events::until(100);
    e.wake(10, 2, 1);
    e.switch(20, 0, 1, 0, Left::Sleeping);
    e.switch(30, 0, 0, 1, Left::Preempted);
    assert_eq!(
        e.intervals(1),
        [
            interval(0, 20, Running, Unknown),
            interval(20, 30, Runnable, Wake(0)),
            interval(30, 100, Running, Switch(1)),
        ]
    );
}

/// A forked thread lives from its fork, and is runnable from its first wake.
#[test]
fn fork() {
    let mut e = Events::until(100);
    e.step(0, LifecycleKind::Seen, 1);
    e.step(40, LifecycleKind::Forked, 2);
    e.wake(41, 1, 2);
    e.switch(50, 0, 1, 2, Left::Preempted);
    assert_eq!(e.timeline().life(2), 40..100);
    assert_eq!(
        e.intervals(2),
        [
            interval(40, 41, Blocked, Unknown),
            interval(41, 50, Runnable, Wake(0)),
            interval(50, 100, Running, Switch(0)),
        ]
    );
}

/// The switch as dead ends the life, and a wake that is too late changes nothing.
#[test]
fn death() {
    let mut e = Events::until(100);
    e.step(0, LifecycleKind::Seen, 1);
    e.step(50, LifecycleKind::Exited, 1);
    e.switch(60, 0, 1, 0, Left::Dead);
    e.wake(70, 2, 1);
    assert_eq!(e.timeline().life(1), 0..60);
    assert_eq!(e.intervals(1), [interval(0, 60, Running, Unknown)]);
}

/// Where the switch as dead was lost, the exit ends the life.
#[test]
fn exit_without_its_switch() {
    let mut e = Events::until(100);
    e.step(0, LifecycleKind::Seen, 1);
    e.switch(10, 0, 0, 1, Left::Preempted);
    e.step(50, LifecycleKind::Exited, 1);
    assert_eq!(e.timeline().life(1), 0..50);
}

/// The race: a wake stamped just before the switch-out that it undoes makes the thread runnable
/// from that switch-out on; of several wakes while it ran, the last.
#[test]
fn wake_before_the_switch_out() {
    let mut e = Events::until(100);
    e.switch(10, 0, 0, 1, Left::Preempted);
    e.wake(15, 2, 1);
    e.wake(19, 2, 1);
    e.switch(20, 0, 1, 0, Left::Sleeping);
    e.switch(30, 0, 0, 1, Left::Preempted);
    assert_eq!(
        e.intervals(1)[1..],
        [
            interval(10, 20, Running, Switch(0)),
            interval(20, 30, Runnable, Wake(1)),
            interval(30, 100, Running, Switch(2)),
        ]
    );
}

/// The kept wake is not used when a wake follows the switch-out, nor one from an earlier stay on
/// the CPU, nor where the thread never comes back.
#[test]
fn kept_wake_is_not_used() {
    let mut e = Events::until(100);
    e.switch(10, 0, 0, 1, Left::Preempted);
    e.wake(15, 2, 1);
    e.switch(20, 0, 1, 0, Left::Sleeping);
    e.wake(25, 2, 1);
    e.switch(30, 0, 0, 1, Left::Preempted);
    e.switch(40, 0, 1, 0, Left::Sleeping);
    e.switch(50, 0, 0, 1, Left::Preempted);
    e.wake(55, 2, 1);
    e.switch(60, 0, 1, 0, Left::Sleeping);
    assert_eq!(
        e.intervals(1)[2..],
        [
            interval(20, 25, Blocked, Switch(1)),
            interval(25, 30, Runnable, Wake(1)),
            interval(30, 40, Running, Switch(2)),
            interval(40, 50, Blocked, Switch(3)),
            interval(50, 60, Running, Switch(4)),
            interval(60, 100, Blocked, Switch(5)),
        ]
    );
}

/// Nor is it used for a second switch-out of which the switch-in before was lost: the thread ran
/// in between, so that the wake is spent.
#[test]
fn kept_wake_is_spent() {
    let mut e = Events::until(100);
    e.switch(10, 0, 0, 1, Left::Preempted);
    e.wake(15, 2, 1);
    e.switch(20, 0, 1, 0, Left::Sleeping);
    e.switch(30, 0, 1, 0, Left::Sleeping);
    e.switch(40, 0, 0, 1, Left::Preempted);
    assert_eq!(
        e.intervals(1)[3],
        interval(30, 40, Blocked, Switch(2)),
        "{:?}",
        e.intervals(1)
    );
}

/// Of a wake and a switch-in at one time the wake comes first: it is not kept for later.
#[test]
fn wake_and_switch_at_one_time() {
    let mut e = Events::until(100);
    e.switch(10, 0, 1, 0, Left::Sleeping);
    e.switch(20, 0, 0, 1, Left::Preempted);
    e.wake(20, 2, 1);
    e.switch(30, 0, 1, 0, Left::Sleeping);
    e.switch(40, 0, 0, 1, Left::Preempted);
    assert_eq!(
        e.intervals(1)[1..4],
        [
            interval(10, 20, Blocked, Switch(0)),
            interval(20, 30, Running, Switch(1)),
            interval(30, 40, Blocked, Switch(2)),
        ]
    );
}

/// A wake of a thread that is runnable already changes nothing.
#[test]
fn moot_wakes() {
    let mut e = Events::until(100);
    e.switch(10, 0, 1, 0, Left::Preempted);
    e.wake(15, 2, 1);
    e.switch(20, 0, 0, 1, Left::Preempted);
    assert_eq!(
        e.intervals(1)[1..],
        [
            interval(10, 20, Preempted, Switch(0)),
            interval(20, 100, Running, Switch(1)),
        ]
    );
}

/// Lost events: a state lasts until the next event, whichever it is.
#[test]
fn lost_events() {
    let mut e = Events::until(100);
    e.switch(10, 0, 1, 0, Left::Sleeping);
    e.switch(20, 0, 1, 0, Left::Preempted);
    e.switch(30, 0, 0, 1, Left::Preempted);
    e.switch(40, 1, 0, 1, Left::Preempted);
    assert_eq!(
        e.intervals(1),
        [
            interval(0, 10, Running, Unknown),
            interval(10, 20, Blocked, Switch(0)),
            interval(20, 30, Preempted, Switch(1)),
            interval(30, 40, Running, Switch(2)),
            interval(40, 100, Running, Switch(3)),
        ]
    );
}

/// A thread whose switch-out was lost does not go on running while its CPU is seen to leave
/// another: from there on why it is off the CPU is unknown.
#[test]
fn lost_switch_out() {
    let mut e = Events::until(100);
    e.switch(10, 0, 0, 1, Left::Preempted);
    e.switch(30, 0, 2, 3, Left::Sleeping);
    e.wake(50, 3, 1);
    e.switch(60, 1, 0, 1, Left::Preempted);
    assert_eq!(
        e.intervals(1)[1..],
        [
            interval(10, 30, Running, Switch(0)),
            interval(30, 50, Blocked, Unknown),
            interval(50, 60, Runnable, Wake(0)),
            interval(60, 100, Running, Switch(2)),
        ]
    );
    let mut e = Events::until(100);
    e.switch(10, 0, 0, 1, Left::Preempted);
    e.switch(30, 0, 2, 3, Left::Sleeping);
    assert_eq!(e.intervals(1)[2], interval(30, 100, Blocked, Unknown));
    assert_eq!(e.timeline().missing_switches(), 1);
}

/// An interrupt splits a running interval, and both halves keep their cause.
#[test]
fn interrupt_splits() {
    let mut e = Events::until(100);
    e.switch(10, 0, 0, 1, Left::Preempted);
    e.interrupt(20, 5, 1);
    assert_eq!(
        e.intervals(1)[1..],
        [
            interval(10, 20, Running, Switch(0)),
            interval(20, 25, Interrupted, Interrupt(0)),
            interval(25, 100, Running, Switch(0)),
        ]
    );
}

/// Of nested interrupts the outer has the time; of overlapping ones the earlier; of two that
/// begin together the longer; one outside a running interval, or of no length, has none.
#[test]
fn interrupts_merge() {
    let mut e = Events::until(100);
    e.switch(10, 0, 0, 1, Left::Preempted);
    e.interrupt(2, 3, 1); // before it runs
    e.interrupt(20, 10, 1); // outer
    e.interrupt(22, 3, 1); // nested
    e.interrupt(28, 4, 1); // overlaps until 32
    e.interrupt(40, 1, 1); // begins with a longer one
    e.interrupt(40, 3, 1);
    e.interrupt(50, 0, 1); // no length
    e.interrupt(58, 5, 1); // reaches beyond the switch-out
    e.switch(60, 0, 1, 0, Left::Sleeping);
    e.interrupt(70, 5, 1); // after
    assert_eq!(
        e.intervals(1)[1..],
        [
            interval(10, 20, Running, Switch(0)),
            interval(20, 30, Interrupted, Interrupt(1)),
            interval(30, 32, Interrupted, Interrupt(3)),
            interval(32, 40, Running, Switch(0)),
            interval(40, 43, Interrupted, Interrupt(5)),
            interval(43, 58, Running, Switch(0)),
            interval(58, 60, Interrupted, Interrupt(7)),
            interval(60, 100, Blocked, Switch(1)),
        ]
    );
}

/// An interrupt whose recorded end lies beyond the thread's return has the time at both ends.
#[test]
fn interrupt_across_a_switch() {
    let mut e = Events::until(100);
    e.switch(10, 0, 0, 1, Left::Preempted);
    e.interrupt(15, 20, 1);
    e.switch(20, 0, 1, 0, Left::Preempted);
    e.switch(30, 0, 0, 1, Left::Preempted);
    assert_eq!(
        e.intervals(1)[1..],
        [
            interval(10, 15, Running, Switch(0)),
            interval(15, 20, Interrupted, Interrupt(0)),
            interval(20, 30, Preempted, Switch(1)),
            interval(30, 35, Interrupted, Interrupt(0)),
            interval(35, 100, Running, Switch(2)),
        ]
    );
}

/// A thread without any event was blocked throughout; one that was only ever interrupted, ran.
#[test]
fn no_events() {
    let mut e = Events::until(100);
    e.step(0, LifecycleKind::Seen, 1);
    e.step(0, LifecycleKind::Seen, 2);
    e.interrupt(10, 5, 2);
    assert_eq!(e.intervals(1), [interval(0, 100, Blocked, Unknown)]);
    assert_eq!(
        e.intervals(2),
        [
            interval(0, 10, Running, Unknown),
            interval(10, 15, Interrupted, Interrupt(0)),
            interval(15, 100, Running, Unknown),
        ]
    );
}

/// Idle has no timeline; an unknown thread has none, and asking for it is no error.
#[test]
fn idle_and_unknown() {
    let mut e = Events::until(100);
    e.switch(10, 0, 0, 1, Left::Preempted);
    let timeline = e.timeline();
    assert_eq!(timeline.threads(), 1..2);
    for utid in [0, 2, u32::MAX] {
        assert!(timeline.intervals(utid).is_empty());
        assert_eq!(timeline.life(utid), 0..0);
        assert_eq!(timeline.between(utid, 0, 100).count(), 0);
    }
}

/// A damaged thread id does not make the timeline ask for memory without bound.
#[test]
fn damaged_thread_id() {
    let mut e = Events::until(100);
    e.switch(10, 0, u32::MAX - 1, 1, Left::Preempted);
    e.interrupt(10, 1, 4_000_000_000);
    let timeline = e.timeline();
    assert!(timeline.threads().len() < 10);
    assert_eq!(timeline.intervals(1).len(), 2);
}

/// The end moves to the last event where that lies behind it.
#[test]
fn end_is_at_least_the_last_event() {
    let mut e = Events::until(5);
    e.switch(10, 0, 1, 0, Left::Sleeping);
    e.wake(40, 0, 1);
    assert_eq!(e.timeline().end(), 40);
    assert_eq!(e.timeline().life(1), 0..40);
}

/// What a CPU ran: the one that was there, then each that came, to the end; another CPU apart.
#[test]
fn occupancy() {
    let mut e = Events::until(100);
    e.switch(10, 0, 1, 2, Left::Sleeping);
    e.switch(20, 2, 0, 3, Left::Preempted);
    e.switch(30, 0, 2, 0, Left::Sleeping);
    let timeline = e.timeline();
    let cpu = timeline.cpu(&e.switches, 0);
    let all: Vec<_> = cpu
        .iter()
        .map(|o| (o.start, o.end, o.thread, o.row))
        .collect();
    assert_eq!(
        all,
        [
            (0, 10, 1, None),
            (10, 30, 2, Some(0)),
            (30, 100, 0, Some(2))
        ]
    );
    let at: Vec<_> = [0, 9, 10, 29, 30, 99, 100].map(|t| cpu.index_at(t)).into();
    assert_eq!(
        at,
        [Some(0), Some(0), Some(1), Some(1), Some(2), Some(2), None]
    );
    let part: Vec<_> = cpu
        .between(5, 15)
        .map(|o| (o.start, o.end, o.thread))
        .collect();
    assert_eq!(part, [(5, 10, 1), (10, 15, 2)]);
    assert!(timeline.cpu(&e.switches, 1).is_empty());
    assert!(timeline.cpu(&e.switches, 9).is_empty());
    assert_eq!(timeline.cpu(&e.switches, 2).len(), 2);
    assert_eq!(timeline.cpu_count(), 3);
}
