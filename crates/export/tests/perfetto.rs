//! A Perfetto file read back by its schema. That Perfetto itself makes of it what it should, the
//! tests of the command show.

mod common;

use std::collections::HashMap;

use common::{Fixture, STORY};
use hangdog_export::perfetto::proto::ftrace_event::Event;
use hangdog_export::perfetto::proto::{FtraceEventBundle, Trace};
use hangdog_export::{Span, perfetto};
use hangdog_trace::text;
use proptest::prelude::*;
use prost::Message;

/// CLOCK_MONOTONIC at the trace's start.
const START: u64 = 5_000_000_000;

fn written(fixture: &Fixture, problems: &[Span]) -> Trace {
    let mut out = Vec::new();
    perfetto::write(&fixture.source(), &fixture.all(), problems, &mut out).expect("memory");
    Trace::decode(out.as_slice()).expect("the schema")
}

/// A switch as the file has it: time since the trace's start, CPU, tids of who left and came.
type Switch = (u64, u32, i32, i32);
/// A wake: time, CPU, tids of the thread on the CPU and of the one woken, flags.
type Wake = (u64, u32, i32, i32, u32);

/// The switches and wakes of a CPU's bundles, compact ones in full, by time.
fn replay(cpu: u32, bundles: &[&FtraceEventBundle]) -> (Vec<Switch>, Vec<Wake>) {
    enum Row {
        Full(i32, i32),
        Compact(i32),
        FullWake(i32, i32, u32),
        CompactWake(i32, u32),
    }
    let mut rows = Vec::new();
    for bundle in bundles {
        if let Some(compact) = &bundle.compact_sched {
            let mut ts = 0;
            for (i, delta) in compact.switch_timestamp.iter().enumerate() {
                ts += delta;
                rows.push((ts, Row::Compact(compact.switch_next_pid[i])));
            }
            let mut ts = 0;
            for (i, delta) in compact.waking_timestamp.iter().enumerate() {
                ts += delta;
                let flags = compact.waking_common_flags[i];
                rows.push((ts, Row::CompactWake(compact.waking_pid[i], flags)));
            }
        }
        for event in &bundle.event {
            let ts = event.timestamp.expect("a time");
            match &event.event {
                Some(Event::SchedSwitch(switch)) => {
                    let (prev, next) = (switch.prev_pid, switch.next_pid);
                    rows.push((ts, Row::Full(prev.expect("prev"), next.expect("next"))));
                }
                Some(Event::SchedWaking(wake)) => {
                    let waker = event.pid.expect("a waker") as i32;
                    let flags = event.common_flags.unwrap_or(0);
                    rows.push((ts, Row::FullWake(waker, wake.pid.expect("a wakee"), flags)));
                }
                _ => {}
            }
        }
    }
    rows.sort_by_key(|&(ts, _)| ts);
    let (mut switches, mut wakes, mut current) = (Vec::new(), Vec::new(), -1);
    for (ts, row) in rows {
        let ts = ts - START;
        match row {
            Row::Full(prev, next) => {
                switches.push((ts, cpu, prev, next));
                current = next;
            }
            Row::Compact(next) => {
                switches.push((ts, cpu, current, next));
                current = next;
            }
            Row::FullWake(waker, wakee, flags) => wakes.push((ts, cpu, waker, wakee, flags)),
            Row::CompactWake(wakee, flags) => wakes.push((ts, cpu, current, wakee, flags)),
        }
    }
    (switches, wakes)
}

fn schedule() -> impl Strategy<Value = String> {
    let event = (
        1..5_000_000u64,
        0..2u16,
        0..4usize,
        0..4usize,
        any::<bool>(),
    );
    proptest::collection::vec(event, 0..80).prop_map(|mut events| {
        // At one time a CPU does one thing.
        events.sort();
        events.dedup_by_key(|event| event.0);
        let names = ["idle", "a", "b", "c"];
        let mut text = String::from("process app 1\n");
        text += "thread a app 1\nthread b app 2\nthread c app 3\n";
        for (ts, cpu, x, y, is_switch) in events {
            let (x, y) = (names[x], names[y]);
            text += &match is_switch {
                true => format!("{ts}ns cpu{cpu} switch {x} -> {y} sleeping\n"),
                false => format!("{ts}ns cpu{cpu} wake {x} -> {y} in=softirq\n"),
            };
        }
        text
    })
}

proptest! {
    /// The file has the switches and wakes of the trace, and no others, whatever was lost
    /// between them.
    #[test]
    fn switches_and_wakes_come_back(text in schedule()) {
        let fixture = Fixture::of(text::parse(&text).expect("a text"));
        let trace = written(&fixture, &[]);
        let mut cpus: HashMap<u32, Vec<&FtraceEventBundle>> = HashMap::new();
        for bundle in trace.packet.iter().filter_map(|packet| packet.ftrace_events.as_ref()) {
            cpus.entry(bundle.cpu.expect("a CPU")).or_default().push(bundle);
        }
        let (mut switches, mut wakes) = (Vec::new(), Vec::new());
        for (cpu, bundles) in cpus {
            let (s, w) = replay(cpu, &bundles);
            switches.extend(s);
            wakes.extend(w);
        }
        switches.sort_by_key(|&(ts, ..)| ts);
        wakes.sort_unstable();
        // What stands for a lost switch brings the thread that leaves at the same time.
        let stands_in: Vec<bool> = switches
            .windows(2)
            .map(|pair| (pair[0].0, pair[0].1, pair[0].3) == (pair[1].0, pair[1].1, pair[1].2))
            .chain([false])
            .collect();
        let lost = stands_in.iter().filter(|&&lost| lost).count();
        prop_assert!(lost <= fixture.source().timeline.missing_switches());
        let mut stands_in = stands_in.into_iter();
        switches.retain(|_| stands_in.next() == Some(false));
        let source = fixture.source();
        let tid = |utid| source.threads.thread(utid).tid as i32;
        let table = source.switches;
        let expected: Vec<Switch> = (0..table.len())
            .map(|i| (table.ts[i], table.cpu[i].into(), tid(table.prev[i]), tid(table.next[i])))
            .collect();
        prop_assert_eq!(switches, expected);
        let table = source.wakes;
        let in_softirq = 0x10;
        let expected: Vec<Wake> = (0..table.len())
            .map(|i| {
                let (waker, wakee) = (tid(table.waker[i]), tid(table.wakee[i]));
                (table.ts[i], table.cpu[i].into(), waker, wakee, in_softirq)
            })
            .collect();
        prop_assert_eq!(wakes, expected);
    }
}

/// A thread that left its CPU unseen is told to leave when another is seen to leave that CPU, so
/// that it does not go on running.
#[test]
fn lost_switches_are_stood_in_for() {
    let fixture = Fixture::new(
        "process app 1\nthread a app 1\nthread b app 2\n1ms cpu0 switch idle -> a\n\
         3ms cpu0 switch b -> idle sleeping\nend 9ms",
    );
    let trace = written(&fixture, &[]);
    let bundles: Vec<&FtraceEventBundle> = trace
        .packet
        .iter()
        .filter_map(|packet| packet.ftrace_events.as_ref())
        .collect();
    let (switches, _) = replay(0, &bundles);
    assert_eq!(
        switches,
        [
            (1_000_000, 0, 0, 1),
            (3_000_000, 0, 1, 2),
            (3_000_000, 0, 2, 0)
        ]
    );
}

/// Problems lie on tracks of their own under one named hangdog: two that overlap on two, a third
/// where there is room.
#[test]
fn problems_have_tracks() {
    let fixture = Fixture::new(STORY);
    let span = |name: &str, start, end| Span {
        name: name.into(),
        thread: fixture.t("main"),
        start,
        end,
    };
    let trace = written(
        &fixture,
        &[
            span("late", 5_000, 9_000),
            span("long", 1_000, 4_000),
            span("short", 2_000, 3_000),
        ],
    );
    let tracks: HashMap<u64, String> = trace
        .packet
        .iter()
        .filter_map(|packet| packet.track_descriptor.as_ref())
        .filter_map(|track| Some((track.uuid?, track.name.clone()?)))
        .collect();
    let mut names: Vec<&str> = tracks.values().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["hangdog", "problems", "problems"]);
    let slices: Vec<(String, u64, u64)> = trace
        .packet
        .iter()
        .filter_map(|packet| {
            let event = packet.track_event.as_ref()?;
            let ts = packet.timestamp? - START;
            Some((event.name.clone()?, ts, event.track_uuid?))
        })
        .collect();
    let starts: Vec<(&str, u64)> = slices.iter().map(|(n, ts, _)| (n.as_str(), *ts)).collect();
    assert_eq!(starts, [("long", 1_000), ("short", 2_000), ("late", 5_000)]);
    assert_ne!(slices[0].2, slices[1].2);
    assert_eq!(slices[0].2, slices[2].2);
}

/// A name or a stack is written once, however often it is referred to.
#[test]
fn interned_once() {
    let fixture = Fixture::new(STORY);
    let trace = written(&fixture, &[]);
    let mut functions = Vec::new();
    for data in trace
        .packet
        .iter()
        .filter_map(|packet| packet.interned_data.as_ref())
    {
        functions.extend(
            data.function_names
                .iter()
                .filter_map(|name| name.str.clone()),
        );
    }
    let count = functions.len();
    assert!(functions.contains(&b"main".to_vec()));
    functions.sort_unstable();
    functions.dedup();
    assert_eq!(functions.len(), count);
}
