//! What holds for every trace: valid schedules give the truth, anything gives states that add up.

mod common;

use common::Events;
use common::simulator::simulate;
use hangdog_timeline::summary::{Summary, summaries};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::words::LifecycleKind;
use proptest::collection::vec;
use proptest::prelude::*;

/// An event of a soup: kind, time, two threads, CPU, a number (way of leaving, duration).
type Ingredient = (u8, u64, u32, u32, u16, u8);

fn soup(ingredients: &[Ingredient], end: u64) -> Events {
    let mut e = Events::until(end);
    for &(kind, ts, a, b, cpu, n) in ingredients {
        match kind {
            0..=2 => drop(e.switch(ts, cpu, a, b, n % 10)),
            3 | 4 => drop(e.wake(ts, a, b)),
            5 => drop(e.interrupt(ts, u64::from(n) * 3, a)),
            6 => drop(e.interrupt(ts, u64::MAX - 5, a)),
            7 => e.step(ts, LifecycleKind::Forked, b),
            8 => e.step(ts, LifecycleKind::Exited, b),
            _ => e.step(ts, LifecycleKind::Seen, b),
        }
    }
    e
}

fn ingredients(max_ts: u64) -> impl Strategy<Value = Vec<Ingredient>> {
    let thread = prop_oneof![20 => 0..6u32, 1 => Just(4_000_000_000u32)];
    vec(
        (0..10u8, 0..=max_ts, thread, 0..6u32, 0..3u16, any::<u8>()),
        0..120,
    )
}

/// Every thread's states cover its life exactly, and add up to it.
fn check_cover(e: &Events) -> Result<(), TestCaseError> {
    let timeline = e.timeline();
    for utid in timeline.threads() {
        let life = timeline.life(utid);
        let intervals: Vec<Interval> = timeline.intervals(utid).iter().collect();
        prop_assert!(life.end <= timeline.end());
        let mut at = life.start;
        for interval in &intervals {
            prop_assert_eq!(interval.start, at, "thread {}: gap or overlap", utid);
            prop_assert!(interval.start < interval.end, "thread {}: empty", utid);
            at = interval.end;
        }
        prop_assert_eq!(at, life.end, "thread {}: does not reach its end", utid);
        let summary = Summary::of(timeline.intervals(utid), 0, u64::MAX);
        prop_assert_eq!(summary.total(), life.end - life.start);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// From a valid schedule, the timeline is the truth: every interval, state and cause.
    #[test]
    fn schedule_gives_truth(
        cpus in 1..4usize,
        threads in 1..7usize,
        choices in vec(any::<(u8, u8, u8, u16)>(), 0..200),
    ) {
        let simulation = simulate(cpus, threads, &choices);
        let timeline = simulation.events.timeline();
        prop_assert_eq!(timeline.threads().len(), simulation.truth.len());
        prop_assert_eq!(timeline.missing_switches(), 0);
        for (utid, truth) in &simulation.truth {
            let found: Vec<Interval> = timeline.intervals(*utid).iter().collect();
            prop_assert_eq!(&found, truth, "thread {}", utid);
        }
        check_cover(&simulation.events)?;
    }

    /// A schedule of which events were lost still gives states that cover and add up.
    #[test]
    fn losses_keep_the_cover(
        choices in vec(any::<(u8, u8, u8, u16)>(), 0..200),
        lost in vec(any::<bool>(), 400),
    ) {
        let mut e = simulate(2, 5, &choices).events;
        let mut kept = lost.iter().copied().chain(std::iter::repeat(true));
        e.switches = (0..e.switches.len())
            .filter(|_| kept.next() == Some(true))
            .map(|i| e.switches.row(i))
            .collect();
        e.wakes = (0..e.wakes.len())
            .filter(|_| kept.next() == Some(true))
            .map(|i| e.wakes.row(i))
            .collect();
        check_cover(&e)?;
    }

    /// Any soup of events, in any order of time, gives states that cover and add up.
    #[test]
    fn soup_keeps_the_cover(ingredients in ingredients(500), end in 0..1000u64) {
        check_cover(&soup(&ingredients, end))?;
    }

    /// The same at the far end of time.
    #[test]
    fn soup_of_extreme_times(ingredients in ingredients(u64::MAX)) {
        check_cover(&soup(&ingredients, u64::MAX))?;
    }

    /// A window is what a walk over all intervals finds, clipped; an instant likewise.
    #[test]
    fn windows_agree_with_a_walk(
        ingredients in ingredients(500),
        from in 0..600u64,
        to in 0..600u64,
    ) {
        let timeline = soup(&ingredients, 500).timeline();
        for utid in timeline.threads() {
            let intervals = timeline.intervals(utid);
            let expected: Vec<Interval> = intervals
                .iter()
                .map(|i| Interval { start: i.start.max(from), end: i.end.min(to), ..i })
                .filter(|i| i.start < i.end)
                .collect();
            let found: Vec<Interval> = timeline.between(utid, from, to).collect();
            prop_assert_eq!(found, expected);
            let at = intervals.iter().position(|i| i.start <= from && from < i.end);
            prop_assert_eq!(intervals.index_at(from), at);
        }
    }

    /// Windows side by side add up to the whole.
    #[test]
    fn windows_add_up(
        choices in vec(any::<(u8, u8, u8, u16)>(), 0..200),
        share in 0..=100u64,
    ) {
        let timeline = simulate(2, 5, &choices).events.timeline();
        let cut = timeline.end() / 100 * share;
        let sum = |from, to| -> (u64, u64) {
            summaries(&timeline, from, to)
                .iter()
                .fold((0, 0), |(t, s), (_, x)| (t + x.total(), s + x.switches))
        };
        let (before, after, whole) = (sum(0, cut), sum(cut, u64::MAX), sum(0, u64::MAX));
        prop_assert_eq!((before.0 + after.0, before.1 + after.1), whole);
    }

    /// What a CPU ran covers the trace without gap or overlap.
    #[test]
    fn occupancy_covers(choices in vec(any::<(u8, u8, u8, u16)>(), 0..200)) {
        let e = simulate(2, 5, &choices).events;
        let timeline = e.timeline();
        for cpu in 0..timeline.cpu_count() as u16 {
            let occupancy = timeline.cpu(&e.switches, cpu);
            let mut at = 0;
            for (i, stretch) in occupancy.iter().enumerate() {
                prop_assert_eq!(stretch.start, at);
                at = stretch.end;
                let middle = stretch.start + (stretch.end - stretch.start) / 2;
                prop_assert!(stretch.start == stretch.end
                    || occupancy.index_at(middle) == Some(i));
            }
            prop_assert!(occupancy.is_empty() || at == timeline.end());
        }
    }
}

/// The simulator's truth is worth something: it has every state, causes of every kind, and a
/// race, so that agreement with it is no accident.
#[test]
fn simulator_reaches_every_state() {
    let choices: Vec<_> = (0..3000u32)
        .map(|i| {
            let x = i.wrapping_mul(2_654_435_761);
            ((x >> 24) as u8, (x >> 16) as u8, (x >> 8) as u8, x as u16)
        })
        .collect();
    let simulation = simulate(3, 6, &choices);
    let all: Vec<&Interval> = simulation.truth.values().flatten().collect();
    for state in State::ALL {
        assert!(all.iter().any(|i| i.state == state), "{state:?}");
    }
    let raced = simulation
        .truth
        .values()
        .flat_map(|t| t.windows(2))
        .any(|pair| {
            let wake = matches!(pair[1].cause, Cause::Wake(_));
            pair[0].state == State::Running && pair[1].state == State::Runnable && wake
        });
    assert!(raced);
}
