//! What holds of every trace, valid or not: problems lie in their threads' lives, every verdict
//! adds up, and every question comes to an end.
//!
//! The schedules are those of the timeline's simulated machine, to which calls, objects, holders,
//! stacks and wakers are given at random.

#[path = "../../timeline/tests/common/mod.rs"]
mod timeline;

use crate::support::{Recording, check, setting};
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::{Answers, Problem, Verdict, diagnose, diagnose_run, problem, whole};
use hangdog_graph::{EdgeKind, names};
use hangdog_timeline::State;
use hangdog_trace::calls::Calls;
use hangdog_trace::ids::NONE;
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::tables::*;
use hangdog_trace::text::TextTrace;
use hangdog_trace::words::LifecycleKind;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use timeline::Events;
use timeline::simulator::simulate;

/// Endless numbers from one (splitmix64).
struct Noise(u64);

impl Noise {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 33) as u32 % n
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u32) as usize]
    }
}

/// Stacks 1 to 40 of two frames each, of the functions that mean something and others; a frame of
/// every fifth is not defined.
fn add_stacks(trace: &mut TextTrace) {
    let tables = &mut trace.tables;
    let meaningful = [
        names::LOCK_WAIT,
        names::UNLOCK,
        names::SIGNAL,
        names::DISK_WAIT,
        names::DISK_WAKE,
        names::SENDING,
    ];
    let functions = meaningful.iter().flat_map(|names| names[..5].iter());
    for (i, function) in functions.chain(&["work", "play", "rest"]).enumerate() {
        let frame = i as u32;
        tables.frames.push(Frame {
            frame,
            module: frame % 3,
            offset: 0,
        });
        tables.symbols.push(Symbol {
            frame,
            inline_depth: 0,
            function: (*function).to_owned(),
            function_offset: 0,
            source: String::new(),
            kernel_module: String::new(),
        });
    }
    for stack in 1..=40 {
        tables.stacks.push(Stack {
            stack,
            process: stack % 2,
            frames: vec![stack, stack % 5 * 10],
            end: 0,
        });
    }
    for (module, path) in [(0, "/bin/app"), (1, "/lib/libc.so.6")] {
        tables.modules.push(Module {
            module,
            kind: module as u8,
            path: path.to_owned(),
            build_id: String::new(),
            process: NONE,
        });
    }
}

/// The events with meanings given at random.
fn with_meanings(events: Events, seed: u64) -> Recording {
    let mut noise = Noise(seed);
    let calls = Calls::new("x86_64");
    let mut numbers: Vec<i16> = [
        "futex",
        "futex",
        "futex",
        "read",
        "write",
        "poll",
        "nanosleep",
        "wait4",
        "fsync",
        "sched_yield",
        "exit_group",
        "kill",
        "clone",
        "sendto",
        "recvfrom",
    ]
    .iter()
    .filter_map(|name| calls.number(name))
    .collect();
    numbers.extend([-1, -2, 30_000]);
    let objects = [
        0,
        Object::new(ObjectKind::Futex, 0x10).0,
        Object::new(ObjectKind::Futex, 0x14).0,
        Object::new(ObjectKind::Pipe, 5).0,
        Object::new(ObjectKind::Inet, 6).0,
        u64::MAX,
    ];
    // Few of each in one trace, so that things happen again.
    let numbers: Vec<i16> = (0..4).map(|_| noise.one_of(&numbers)).collect();
    let objects: Vec<u64> = (0..2).map(|_| noise.one_of(&objects)).collect();
    let stacks: Vec<u32> = (0..3).map(|_| noise.below(45)).collect();
    let threads: Vec<u32> = (0..8).chain([NONE, 77]).collect();
    let args = [0, 1, 128, 6, u64::MAX, 102];

    let mut trace = TextTrace {
        end: events.end,
        ..TextTrace::default()
    };
    add_stacks(&mut trace);
    let tables = &mut trace.tables;
    for row in 0..events.switches.len() {
        tables.switches.push(Switch {
            call: noise.one_of(&numbers),
            object: noise.one_of(&objects),
            arg: noise.one_of(&args),
            holder: match noise.below(3) {
                0 => noise.one_of(&threads),
                _ => NONE,
            },
            user_stack: noise.one_of(&stacks),
            kernel_stack: noise.one_of(&[0, 0, 16, 17, 21, 26, 44]),
            next_priority: noise.below(140) as u8,
            ..events.switches.row(row)
        });
    }
    for row in 0..events.wakes.len() {
        tables.wakes.push(Wake {
            waker: noise.one_of(&threads),
            context: noise.one_of(&[0, 0, 0, 0, 1, 2, 3, 4, 200]),
            vector: noise.below(12) as u16,
            call: noise.one_of(&numbers),
            object: noise.one_of(&objects),
            arg: noise.one_of(&args),
            user_stack: noise.one_of(&stacks),
            kernel_stack: noise.one_of(&[0, 0, 16, 17, 21, 26, 44]),
            ..events.wakes.row(row)
        });
    }
    for row in 0..events.lifecycle.len() {
        let process = noise.below(3);
        tables.lifecycle.push(LifecycleEvent {
            process,
            pid: 100 + process,
            parent: noise.one_of(&threads),
            ..events.lifecycle.row(row)
        });
    }
    for sample in 0..60 {
        tables.samples.push(Sample {
            ts: events.end / 60 * sample,
            cpu: 0,
            thread: noise.one_of(&threads),
            user_stack: noise.one_of(&stacks),
            kernel_stack: noise.one_of(&[0, 0, 16, 17, 21, 26, 44]),
        });
    }
    tables.interrupts = events.interrupts;
    Recording::new(trace)
}

/// Every problem that is found and some windows that nobody would ask for: all verdicts hold.
fn check_all(recording: &Recording, windows: &[(u32, u64, u64)]) -> Result<(), TestCaseError> {
    let evidence = recording.evidence();
    let timeline = &recording.timeline;
    let found = problem::find(
        &evidence,
        Scope {
            command_tid: Some(101),
            recorder_pid: None,
            is_snapshot: false,
        },
    );
    for (at, problem) in found.iter().enumerate() {
        let life = timeline.life(problem.thread);
        prop_assert!(problem.window.start < problem.window.end);
        prop_assert!(life.start <= problem.window.start && problem.window.end <= life.end);
        prop_assert!(
            at == 0 || found[at - 1].score >= problem.score,
            "worst first"
        );
        prop_assert!(
            !found[..at]
                .iter()
                .any(|other| other.thread == problem.thread
                    && other.window.start < problem.window.end
                    && problem.window.start < other.window.end),
            "one stretch, one problem"
        );
    }
    let asked = windows.iter().map(|&(thread, from, to)| {
        let part = |share: u64| (u128::from(timeline.end()) * u128::from(share) / 100) as u64;
        let (from, to) = (part(from.min(to)), part(from.max(to)));
        Problem::picked(thread, from..to)
    });
    for problem in found.iter().cloned().chain(asked) {
        let verdict = diagnose(
            &evidence,
            &problem,
            setting(problem.thread % 2 == 0, &Answers::default()),
        );
        if let Err(what) = check(&verdict, &problem) {
            prop_assert!(false, "{what}: {problem:?} {verdict:#?}");
        }
        check_states(recording, &verdict, &problem)?;
        prop_assert!(verdict.path.len() <= 70);
        prop_assert!(!verdict.sentence.is_empty());
    }
    check_run(recording)
}

/// Nobody is blamed for more time in a state than it spent in that state meanwhile.
fn check_states(
    recording: &Recording,
    verdict: &Verdict,
    problem: &Problem,
) -> Result<(), TestCaseError> {
    let timeline = &recording.timeline;
    let mut blamed: BTreeMap<(u32, &str), u64> = BTreeMap::new();
    for row in &verdict.blame_by_thread {
        let state = match row.kind {
            "run" => "running",
            "runnable" => "wanting",
            "interrupt" => "interrupted",
            // It may have been spent in any state.
            "unknown" => continue,
            "exited" => "gone",
            _ => "blocked",
        };
        *blamed.entry((row.who.tid, state)).or_default() += row.ns;
    }
    for ((tid, state), ns) in blamed {
        let evidence = recording.evidence();
        if state == "gone" {
            let gone = (timeline.threads())
                .filter(|&thread| evidence.threads.thread(thread).tid == tid)
                .map(|thread| problem.window.end.saturating_sub(timeline.life(thread).end))
                .fold(0, u64::saturating_add);
            prop_assert!(ns <= gone, "{tid} exited: {ns} of {gone} {problem:?}");
            continue;
        }
        let spent: u64 = timeline
            .threads()
            .filter(|&thread| evidence.threads.thread(thread).tid == tid)
            .flat_map(|thread| timeline.between(thread, problem.window.start, problem.window.end))
            .filter(|interval| match interval.state {
                State::Running => state == "running",
                State::Runnable | State::Preempted => state == "wanting",
                State::Interrupted => state == "interrupted",
                State::Blocked => state == "blocked",
            })
            .fold(0, |sum, interval| sum.saturating_add(interval.duration()));
        prop_assert!(ns <= spent, "{tid} {state}: {ns} of {spent} {problem:?}");
    }
    Ok(())
}

/// The run of any thread: what it went to is all of it, and no share is more than that.
fn check_run(recording: &Recording) -> Result<(), TestCaseError> {
    let evidence = recording.evidence();
    let Some(run) = whole::run_of(&evidence, 101) else {
        return Ok(());
    };
    let verdict = diagnose_run(&evidence, &run, setting(false, &Answers::default()));
    if let Err(what) = check(&verdict, &run) {
        prop_assert!(false, "{what}: {run:?} {verdict:#?}");
    }
    let whole = verdict.whole.expect("a run as a whole");
    let sum: u64 = whole.entries.iter().map(|entry| entry.ns).sum();
    prop_assert_eq!(sum, run.duration());
    prop_assert!(whole.entries.iter().all(|entry| entry.ns > 0));
    for share in [whole.unknown, whole.confidence] {
        prop_assert!((0.0..=1.0 + 1e-9).contains(&share), "{share}");
    }
    Ok(())
}

/// A wake that ended a wait lies within the wait, at its very end, and is by and for whom it says.
fn check_edges(recording: &Recording) -> Result<(), TestCaseError> {
    let evidence = recording.evidence();
    for thread in recording.timeline.threads() {
        for (wait, wake) in recording.waits(thread) {
            let edge = hangdog_graph::ended::ended_by(&evidence, &wait, wake);
            prop_assert!(!edge.reason.is_empty());
            if let Some(row) = edge.wake {
                prop_assert_eq!(Some(row), wake);
                prop_assert_eq!(evidence.wakes.wakee[row], thread);
                let ts = evidence.wakes.ts[row];
                prop_assert!(wait.start < ts && ts <= wait.end, "{} {:?}", ts, wait);
            } else if wake.is_none() {
                let without = [
                    EdgeKind::Unlock,
                    EdgeKind::Signal,
                    EdgeKind::Message,
                    EdgeKind::Exit,
                    EdgeKind::Wake,
                ];
                prop_assert!(!without.contains(&edge.kind), "{edge:?} out of nothing");
            }
        }
    }
    Ok(())
}

fn windows() -> impl Strategy<Value = Vec<(u32, u64, u64)>> {
    let thread = prop_oneof![10 => 0..9u32, 1 => Just(NONE), 1 => Just(77)];
    vec((thread, 0..=100u64, 0..=100u64), 0..8)
}

type Ingredient = (u8, u32, u32, u16, u8);

/// Events that contradict each other, in the order of time as the reader gives them.
fn soup(mut times: Vec<u64>, ingredients: &[Ingredient], end: u64) -> Events {
    times.sort_unstable();
    let mut e = Events::until(end);
    for (&ts, &(kind, a, b, cpu, n)) in times.iter().zip(ingredients) {
        match kind {
            0..=3 => drop(e.switch(ts, cpu, a, b, n % 10)),
            4..=6 => drop(e.wake(ts, a, b)),
            7 => drop(e.interrupt(ts, u64::from(n) << 20, a)),
            8 => drop(e.interrupt(ts, u64::MAX - 5, a)),
            9 => e.step(ts, LifecycleKind::Forked, b),
            10 => e.step(ts, LifecycleKind::Exited, b),
            _ => e.step(ts, LifecycleKind::Seen, b),
        }
    }
    e
}

fn ingredients() -> impl Strategy<Value = Vec<Ingredient>> {
    let thread = prop_oneof![20 => 0..6u32, 1 => Just(4_000_000_000u32)];
    vec((0..13u8, thread, 0..6u32, 0..3u16, any::<u8>()), 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Valid schedules with any meanings.
    #[test]
    fn schedules(
        choices in vec(any::<(u8, u8, u8, u16)>(), 0..300),
        scale in prop_oneof![Just(1u64), Just(3_000), Just(100_000)],
        seed in any::<u64>(),
        windows in windows(),
    ) {
        let mut events = simulate(2, 6, &choices).events;
        stretch_time(&mut events, scale);
        let recording = with_meanings(events, seed);
        check_all(&recording, &windows)?;
        check_edges(&recording)?;
    }

    /// A thread that waits on and on, woken spuriously, in loops: where waits are joined.
    #[test]
    fn loops(
        turns in vec((0..6u32, 1..2_000_000u64, 1..400_000u64, any::<bool>()), 1..150),
        seed in any::<u64>(),
        windows in windows(),
    ) {
        let mut e = Events::default();
        for thread in 1..6 {
            e.step(0, LifecycleKind::Seen, thread);
        }
        let mut now = 0;
        for (waker, waits, runs, moment) in turns {
            e.switch(now, 0, 1, 0, 2);
            now += waits;
            e.wake(now, waker, 1);
            // A thread may come at the very moment of its wake.
            now += u64::from(moment);
            e.switch(now, 0, 0, 1, 0);
            now += runs;
        }
        e.end = now;
        check_all(&with_meanings(e, seed), &windows)?;
    }

    /// Valid schedules of which 30 % of the switches and wakes were lost: all verdicts hold, those
    /// that know of the loss are no surer than that allows, and say that something is missing.
    #[test]
    fn lossy_schedules(
        choices in vec(any::<(u8, u8, u8, u16)>(), 0..300),
        scale in prop_oneof![Just(1u64), Just(3_000), Just(100_000)],
        seed in any::<u64>(),
        windows in windows(),
    ) {
        let mut events = simulate(2, 6, &choices).events;
        thin(&mut events, seed);
        stretch_time(&mut events, scale);
        let recording = with_meanings(events, seed);
        check_all(&recording, &windows)?;
        let evidence = recording.evidence();
        for problem in problem::find(&evidence, Scope::default()) {
            let verdict = diagnose(&evidence, &problem, setting(true, &Answers::default()));
            prop_assert!(verdict.root.confidence <= 0.7 + 1e-9);
            prop_assert!(verdict.hints[0].text.contains("missing"));
        }
    }

    /// Anything at all.
    #[test]
    fn soups(
        ingredients in ingredients(),
        times in vec(0..80_000_000u64, 150),
        seed in any::<u64>(),
        windows in windows(),
    ) {
        check_all(&with_meanings(soup(times, &ingredients, 90_000_000), seed), &windows)?;
    }

    /// Anything at all, to the end of time.
    #[test]
    fn soups_of_extreme_times(
        ingredients in ingredients(),
        times in vec(prop_oneof![any::<u64>(), 0..1000u64, u64::MAX - 1000..], 150),
        seed in any::<u64>(),
        windows in windows(),
    ) {
        check_all(&with_meanings(soup(times, &ingredients, u64::MAX), seed), &windows)?;
    }
}

/// Loses 30 % of the switches and wakes.
fn thin(events: &mut Events, seed: u64) {
    let mut noise = Noise(seed);
    let mut is_kept = || noise.below(10) >= 3;
    let (switches, wakes) = (take(&mut events.switches), take(&mut events.wakes));
    for row in 0..switches.len() {
        if is_kept() {
            events.switches.push(switches.row(row));
        }
    }
    for row in 0..wakes.len() {
        if is_kept() {
            events.wakes.push(wakes.row(row));
        }
    }
}

/// Makes all of it take `scale` times as long.
fn stretch_time(events: &mut Events, scale: u64) {
    let columns = [
        &mut events.switches.ts,
        &mut events.wakes.ts,
        &mut events.interrupts.ts,
        &mut events.interrupts.duration,
        &mut events.lifecycle.ts,
    ];
    columns.into_iter().flatten().for_each(|ts| *ts *= scale);
    events.end *= scale;
}

/// The properties are worth something: the random traces have deep paths, wait cycles, joined
/// waits, habits, and roots of nearly every class.
#[test]
fn random_traces_have_it_all() {
    let mut seen = BTreeSet::new();
    for seed in 0..300u64 {
        let mut noise = Noise(seed);
        let mut byte = || noise.below(256) as u8;
        let choices: Vec<_> = (0..300)
            .map(|_| (byte(), byte(), byte(), u16::from(byte())))
            .collect();
        let mut events = simulate(2, 6, &choices).events;
        stretch_time(&mut events, [100_000, 3_000][seed as usize % 2]);
        let recording = with_meanings(events, seed);
        let evidence = recording.evidence();
        for problem in problem::find(
            &evidence,
            Scope {
                command_tid: None,
                recorder_pid: None,
                is_snapshot: false,
            },
        ) {
            let verdict = diagnose(&evidence, &problem, setting(false, &Answers::default()));
            seen.insert(format!("{:?}", verdict.root.class));
            seen.insert(format!("path of {}", verdict.path.len().min(4)));
            seen.extend(
                verdict
                    .blame
                    .iter()
                    .map(|row| format!("time in {}", row.kind)),
            );
            seen.extend(verdict.knot.map(|_| "knot".to_owned()));
            for step in verdict.path {
                seen.extend(step.edge.map(|edge| edge.kind.to_owned()));
                if step.doing.contains("spurious") {
                    seen.insert("spurious".to_owned());
                }
            }
        }
    }
    for wanted in [
        "LongRunning",
        "LongWait",
        "Starved",
        "Circular",
        "Unknown",
        "time in paging",
        "time in interrupt",
        "time in lock",
        "time in timer",
        "path of 1",
        "path of 4",
        "knot",
        "spurious",
        "unlock",
        "signal",
        "message",
        "exit",
        "kill",
        "timer",
        "holder",
        "habit",
        "awaited",
        "disk",
        "network",
    ] {
        assert!(seen.contains(wanted), "no {wanted} in {seen:?}");
    }
}
