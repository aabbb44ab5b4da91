//! What holds of every trace, on random schedules and on damaged ones.

mod common;

use common::Fixture;
use hangdog_export::fold::Doing;
use hangdog_export::top::{By, Top};
use hangdog_export::{Fold, Selection, View, firefox, folded, perfetto};
use hangdog_timeline::State;
use hangdog_trace::text;
use proptest::prelude::*;

/// Switches, wakes and samples of three threads on two CPUs, at any times and in any order: most
/// contradict each other, as in a trace with losses.
fn schedule() -> impl Strategy<Value = String> {
    let event = (0..9_000_000u64, 0..2u16, 0..4usize, 0..4usize, 0..8usize);
    proptest::collection::vec(event, 0..60).prop_map(|events| {
        let names = ["idle", "a", "b", "c"];
        let mut text = String::from(
            "process app 1\nthread a app 1\nthread b app 2\nprocess other 3\nthread c other 3\n",
        );
        for (ts, cpu, x, y, kind) in events {
            let (x, y) = (names[x], names[y]);
            text += &match kind {
                0 => format!("{ts}ns cpu{cpu} switch {x} -> {y} preempted\n"),
                1 | 2 => format!("{ts}ns cpu{cpu} switch {x} -> {y} sleeping futex stack=f;g\n"),
                3 => format!("{ts}ns cpu{cpu} switch {x} -> {y} uninterruptible kstack=k;l\n"),
                4 | 5 => format!("{ts}ns cpu{cpu} wake {x} -> {y} stack=w;g\n"),
                6 => format!("{ts}ns cpu{cpu} irq 1000ns soft 3 {x}\n"),
                _ => format!("{ts}ns cpu{cpu} sample {x} stack=f;g kstack=k\n"),
            };
        }
        text + "end 10ms"
    })
}

proptest! {
    /// Off the CPU, rows add up to the states of the timeline; wakes divide the same time; on
    /// the CPU, rows add up to the samples; what top calls self adds up to the whole.
    #[test]
    fn folds_add_up(text in schedule(), from in 0..10_000_000u64, length in 1..10_000_000u64) {
        let fixture = Fixture::of(text::parse(&text).expect("a text"));
        let source = fixture.source();
        let selection = Selection::all(from, from + length);
        let mut states = [0u64; State::COUNT];
        for thread in source.timeline.threads() {
            for part in source.timeline.between(thread, selection.from, selection.to) {
                states[part.state as usize] += part.duration();
            }
        }
        let off = Fold::new(&source, &selection, View::OffCpu);
        let blocked = states[State::Blocked as usize];
        prop_assert_eq!(off.total(|key| key.doing == Doing::Blocked).ns, blocked);
        prop_assert_eq!(
            off.total(|key| key.doing == Doing::WaitingForCpu).ns,
            states[State::Runnable as usize] + states[State::Preempted as usize]
        );
        let wakes = Fold::new(&source, &selection, View::Wakes);
        prop_assert_eq!(wakes.total(|_| true).ns, blocked);
        let on = Fold::new(&source, &selection, View::OnCpu);
        let samples = source.samples.ts.iter().zip(&source.samples.thread);
        let samples = samples.filter(|&(&ts, &thread)| thread != 0 && selection.has_time(ts));
        prop_assert_eq!(on.total(|_| true).count, samples.count() as u64);
        for fold in [&on, &off] {
            let top = Top::new(&source, fold, By::Own);
            let own: u64 = top.functions.iter().map(|f| f.own.ns).sum();
            prop_assert_eq!(own, top.whole.ns);
            prop_assert!(top.functions.iter().all(|f| f.own.ns <= f.total.ns));
            prop_assert!(top.functions.iter().all(|f| f.total.ns <= top.whole.ns));
        }
    }

    /// Every trace can be written in every format, and the JSON is JSON.
    #[test]
    fn formats_take_every_trace(text in schedule(), damage in any::<u32>(), row in any::<usize>()) {
        let mut trace = text::parse(&text).expect("a text");
        let tables = &mut trace.tables;
        for column in [
            &mut tables.switches.prev,
            &mut tables.switches.user_stack,
            &mut tables.wakes.waker,
            &mut tables.wakes.kernel_stack,
            &mut tables.samples.thread,
            &mut tables.stacks.stack,
            &mut tables.lifecycle.tid,
        ] {
            let len = column.len().max(1);
            if let Some(value) = column.get_mut(row % len) {
                *value = damage;
            }
        }
        let fixture = Fixture::of(trace);
        let source = fixture.source();
        let mut out = Vec::new();
        for view in [View::OnCpu, View::OffCpu, View::Wakes] {
            let fold = Fold::new(&source, &fixture.all(), view);
            folded::write(&source, &fold, &mut out)?;
        }
        perfetto::write(&source, &fixture.all(), &[], &mut out)?;
        let mut json = Vec::new();
        firefox::write(&source, &fixture.all(), &mut json)?;
        prop_assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
    }
}
