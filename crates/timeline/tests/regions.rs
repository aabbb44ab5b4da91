//! Begins and ends become regions by the rules that docs/MARKS.md states.

use hangdog_timeline::Regions;
use hangdog_trace::tables::{Mark, Marks};
use hangdog_trace::text::{self, TextTrace};
use hangdog_trace::words::{MarkKind, Pairing};
use hangdog_trace::{Threads, ids::Utid};
use proptest::prelude::*;
use std::collections::HashSet;

const CAST: &str = "process app 100\nthread main app 100\nthread worker app 101\n\
                    process other 200\nthread other other 200\n";

fn regions_of(trace: &TextTrace, rule: Option<Pairing>) -> Regions {
    let threads = Threads::new(&trace.tables.lifecycle);
    Regions::pair(&trace.tables.marks, &threads, rule, trace.end)
}

/// Begin and end of each region in µs, an end of 0 for none; and how many ends have no begin.
fn pairs(events: &str, rule: Option<Pairing>) -> (Vec<(u64, u64)>, usize) {
    let trace = text::parse(&format!("{CAST}{events}end 1ms")).unwrap();
    let regions = regions_of(&trace, rule);
    let pair = |region: &hangdog_timeline::Region| {
        let to = if region.end.is_some() {
            region.to / 1000
        } else {
            0
        };
        (region.from / 1000, to)
    };
    (
        regions.all.iter().map(pair).collect(),
        regions.stray_ends.len(),
    )
}

/// Regions of one thread nest: an end is the last begin's.
#[test]
fn nested() {
    let events = "10us mark main begin load\n20us mark main begin load\n30us mark main end load\n\
                  50us mark main end load\n";
    assert_eq!(pairs(events, None), (vec![(10, 50), (20, 30)], 0));
}

/// Another thread's end, another process's and another code's are of no use.
#[test]
fn others() {
    let events = "10us mark main begin load\n20us mark worker end load\n30us mark other end load\n\
                  40us mark main end 7\n50us mark main end load\n";
    assert_eq!(pairs(events, None), (vec![(10, 50)], 3));
}

/// By the first argument regions overlap and end on other threads.
#[test]
fn by_argument() {
    let events = "10us mark main begin get 1 pair=argument\n20us mark main begin get 2 pair=argument\n\
                  30us mark worker end get 1 9 pair=argument\n40us mark worker end get 2 pair=argument\n\
                  50us mark worker end get 3 pair=argument\n";
    assert_eq!(pairs(events, None), (vec![(10, 30), (20, 40)], 1));
}

/// By the code alone an end is the last begin's of any thread of the process.
#[test]
fn by_code() {
    let events = "10us mark main begin 5 pair=code\n20us mark worker begin 5 1 pair=code\n\
                  30us mark other end 5 pair=code\n35us mark main end 5 2 pair=code\n\
                  40us mark main end 5 3 pair=code\n";
    assert_eq!(pairs(events, None), (vec![(10, 40), (20, 35)], 1));
}

/// A rule for all takes the place of what the program said.
#[test]
fn one_rule_for_all() {
    let events = "10us mark main begin 5 1\n20us mark main begin 5 2\n30us mark main end 5 1\n\
                  40us mark main end 5 2\n";
    assert_eq!(pairs(events, None).0, [(10, 40), (20, 30)]);
    assert_eq!(
        pairs(events, Some(Pairing::Argument)).0,
        [(10, 30), (20, 40)]
    );
}

/// What does not end lasts as long as the trace.
#[test]
fn without_end() {
    let trace = text::parse(&format!("{CAST}10us mark main begin 5\nend 1ms")).unwrap();
    let regions = regions_of(&trace, None);
    assert_eq!(regions.all[0].end, None);
    assert_eq!(regions.all[0].duration(), 990_000);
}

fn marks() -> impl Strategy<Value = Marks> {
    let mark = (0u64..100, 1u32..4, 0u32..2, 0u8..3, 0u8..3, 0i64..2);
    proptest::collection::vec(mark, 0..60).prop_map(|rows| {
        let mut rows: Vec<Mark> = (rows.into_iter())
            .map(|(ts, thread, code, kind, pairing, arg0)| Mark {
                ts,
                thread,
                code,
                kind,
                pairing,
                colour: 0,
                arg0,
                arg1: 0,
                arg2: 0,
                arg3: 0,
            })
            .collect();
        rows.sort_by_key(|row| row.ts);
        rows.into_iter().collect()
    })
}

proptest! {
    /// Whatever is marked: each begin begins one region, each end ends at most one and is stray
    /// otherwise, no region ends before it begins, and both are alike as the pairing wants it.
    #[test]
    fn every_mark_once(marks in marks(), rule in proptest::option::of(0u8..3)) {
        let cast = text::parse(CAST).unwrap();
        let threads = Threads::new(&cast.tables.lifecycle);
        let rule = rule.map(Pairing::from);
        let regions = Regions::pair(&marks, &threads, rule, 100);
        let of_kind = |kind: MarkKind| -> HashSet<u32> {
            (0..marks.len() as u32).filter(|&row| MarkKind::from(marks.kind[row as usize]) == kind).collect()
        };
        let begins: HashSet<u32> = regions.all.iter().map(|region| region.begin).collect();
        prop_assert_eq!(begins.len(), regions.all.len());
        prop_assert_eq!(begins, of_kind(MarkKind::Begin));
        let ends: Vec<u32> = (regions.all.iter().filter_map(|region| region.end))
            .chain(regions.stray_ends.iter().copied())
            .collect();
        let distinct: HashSet<u32> = ends.iter().copied().collect();
        prop_assert_eq!(distinct.len(), ends.len());
        prop_assert_eq!(distinct, of_kind(MarkKind::End));
        for region in &regions.all {
            prop_assert!(region.from <= region.to && region.to <= 100);
            let Some(end) = region.end else { continue };
            let (begin, end) = (region.begin as usize, end as usize);
            prop_assert!(begin < end);
            prop_assert_eq!(marks.code[begin], marks.code[end]);
            let process = |thread: Utid| threads.thread(thread).upid;
            prop_assert_eq!(process(marks.thread[begin]), process(marks.thread[end]));
            match rule.unwrap_or(Pairing::from(marks.pairing[begin])) {
                Pairing::Argument => prop_assert_eq!(marks.arg0[begin], marks.arg0[end]),
                Pairing::Thread => prop_assert_eq!(marks.thread[begin], marks.thread[end]),
                _ => {}
            }
        }
    }
}
