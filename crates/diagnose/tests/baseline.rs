//! The same wait where it went well: found in other recordings by what it is, not by ids and
//! addresses, and laid beside the problem.

use crate::support::*;
use hangdog_diagnose::{Answers, Problem, Setting, Verdict, diagnose};

/// One recording of a program, in which main waits for worker again and again.
struct Day {
    process: &'static str,
    /// Tid of main; worker has the next.
    tid: u32,
    /// Of the condition.
    object: &'static str,
    /// The innermost functions of the wait.
    stack: &'static str,
    /// How long main waits each time, ms; it runs for 5 ms in between.
    waits: &'static [u64],
}

const BAD: Day = Day {
    process: "app",
    tid: 100,
    object: "futex:0x1000",
    stack: "pthread_cond_wait;next_job;work",
    waits: &[10, 10, 10, 100],
};

const GOOD: Day = Day {
    process: "app",
    tid: 9000,
    object: "futex:0x7fff00",
    stack: "pthread_cond_wait;next_job;work",
    waits: &[4, 6, 5, 3, 7],
};

impl Day {
    /// Its recording, and the window of the last wait.
    fn record(&self) -> (Recording, (u64, u64)) {
        let Day {
            process,
            tid,
            object,
            stack,
            waits,
        } = self;
        // Threads that the other day does not have, so that ids differ too.
        let others = (0..tid % 7)
            .map(|n| format!("thread other{n} {process} {}\n", tid + 10 + n))
            .collect::<String>();
        let mut text = format!(
            "process {process} {tid}
            {others}
            thread worker {process} {}
            thread main {process} {tid} name={process}
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> worker\n",
            tid + 1
        );
        let mut now = 0;
        let mut last = (0, 0);
        for wait in *waits {
            let from = now + 5;
            now = from + wait;
            last = (from, now);
            text += &format!(
                "{from}ms cpu0 switch main -> idle sleeping futex op=wait object={object} stack={stack}
                 {now}ms cpu1 wake worker -> main futex op=wake object={object} stack=pthread_cond_signal;give
                 {now}100us cpu0 switch idle -> main\n"
            );
        }
        (record(&format!("{text}end {}ms", now + 5)), last)
    }
}

/// Why the last wait of `bad` took so long, beside `good` if there is one.
fn compared(bad: &Day, good: Option<&Day>) -> Verdict {
    let (recording, (from, to)) = bad.record();
    let good = good.map(|day| day.record().0);
    let good = good.as_ref().map(Recording::evidence);
    let answers = Answers::default();
    let problem = Problem::picked(recording.t("main"), from * MS..to * MS);
    let setting = Setting {
        baseline: good.as_ref(),
        ..setting(false, &answers)
    };
    let verdict = diagnose(&recording.evidence(), &problem, setting);
    if let Err(what) = check(&verdict, &problem) {
        panic!("{what}\n{verdict:#?}");
    }
    verdict
}

/// In another recording with other pids and addresses the same wait is found. Of the five waits
/// those count that came about alike: before the problem's there are three such waits, so that at
/// least two must be before theirs, which the last three have: 5, 3 and 7 ms, the median is 5.
#[test]
fn found_in_another_recording() {
    let verdict = compared(&BAD, Some(&GOOD));
    let baseline = verdict.baseline.expect("a baseline");
    assert!(baseline.from_other);
    assert_eq!((baseline.who.tid, baseline.who.pid), (9000, 9000));
    assert_eq!(baseline.found, 3);
    // The third wait begins after two of 4 and 6 ms and three runs of 5.
    assert_eq!((baseline.start_ns, baseline.duration_ns), (25 * MS, 5 * MS));
    assert_eq!(baseline.now_ns, 100 * MS);
    let rows: Vec<_> = baseline
        .compared
        .iter()
        .map(|row| (row.role.as_str(), row.kind, row.now_ns, row.then_ns))
        .collect();
    assert_eq!(rows, [("app/worker", "run", 100 * MS, 5 * MS)]);
}

/// Without another recording, the problem's own trace serves: the three waits of 10 ms before it,
/// of which only the third has two before it.
#[test]
fn found_in_the_same_recording() {
    let baseline = compared(&BAD, None).baseline.expect("a baseline");
    assert!(!baseline.from_other);
    assert_eq!(baseline.found, 1);
    assert_eq!(
        (baseline.start_ns, baseline.duration_ns),
        (35 * MS, 10 * MS)
    );
    assert_eq!(baseline.who.tid, 100);
}

/// What is another wait is not taken: in another program, at another place, in another call's
/// stead, or as long as more than half of the problem's.
#[test]
fn unrelated_waits_are_not_taken() {
    let unrelated = [
        Day {
            process: "editor",
            ..GOOD
        },
        Day {
            stack: "pthread_cond_wait;next_line;work",
            ..GOOD
        },
        Day {
            stack: "pthread_cond_wait;next_job;play",
            ..GOOD
        },
        Day {
            waits: &[51, 51, 51, 51, 51],
            ..GOOD
        },
        // Too few came before any of them.
        Day {
            waits: &[4, 6],
            ..GOOD
        },
    ];
    for day in unrelated {
        let found = compared(&BAD, Some(&day)).baseline;
        assert_eq!(
            found, None,
            "{}: {} {:?}",
            day.process, day.stack, day.waits
        );
    }
    let just = Day {
        waits: &[50, 50, 50],
        ..GOOD
    };
    assert!(
        compared(&BAD, Some(&just)).baseline.is_some(),
        "exactly half"
    );
}

/// A thread that ran has no baseline: there is no wait to compare.
#[test]
fn who_ran_has_none() {
    let recording = record(
        "process app 100
        thread main app 100 name=app
        0 cpu0 switch idle -> main
        end 100ms",
    );
    let verdict = explain(&recording, "main", 0..100_000);
    assert_eq!(verdict.baseline, None);
}

/// The wake never came, and nobody here ever ended such a wait: the baseline tells by its role
/// who should have. Without it nobody is known.
#[test]
fn a_baseline_tells_who_should_have_ended_it() {
    let recording = record(&format!(
        "process app 100
        thread main app 100 name=app
        thread idler app 101
        thread worker app 102
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> idler
        0 cpu2 switch idle -> worker
        5ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x1000 stack={}
        {}
        end 105ms",
        BAD.stack,
        samples(2, "worker", 5..100, "spin;search")
    ));
    let good = GOOD.record().0;
    let good = good.evidence();
    let answers = Answers::default();
    let problem = Problem::picked(recording.t("main"), 5 * MS..105 * MS);
    let alone = diagnose(&recording.evidence(), &problem, setting(false, &answers));
    assert_ne!(alone.root.who.thread, "worker");
    let setting = Setting {
        baseline: Some(&good),
        ..setting(false, &answers)
    };
    let beside = diagnose(&recording.evidence(), &problem, setting);
    assert_eq!(beside.root.who.thread, "worker");
    assert_eq!(beside.root.function.as_deref(), Some("spin"));
    assert_eq!(of_thread(&beside, 102, "run"), 100_000);
    assert_eq!(way(&beside), [("app", "habit"), ("worker", "")]);
    assert!(beside.root.confidence < 1.0, "it is a guess by habit");
}

/// The verdict on what main of a text did from 5 to 105 ms, beside a recording of `good`.
fn beside(text: &str, good: &Recording) -> Verdict {
    let recording = record(text);
    let good = good.evidence();
    let answers = Answers::default();
    let problem = Problem::picked(recording.t("main"), 5 * MS..105 * MS);
    let setting = Setting {
        baseline: Some(&good),
        ..setting(false, &answers)
    };
    let verdict = diagnose(&recording.evidence(), &problem, setting);
    if let Err(what) = check(&verdict, &problem) {
        panic!("{what}\n{verdict:#?}");
    }
    verdict
}

/// Three threads here have the role that ended four waits of four before the last there: each is
/// as likely as the others, 4 of 5 by 3, and 1 of 5 is left for nobody.
#[test]
fn threads_of_one_role_share_its_probability() {
    let workers: String = (1..=3)
        .map(|n| {
            format!(
                "thread worker{n} app {} name=worker\n0 cpu{n} switch idle -> worker{n}\n",
                100 + n
            )
        })
        .collect();
    let verdict = beside(
        &format!(
            "process app 100
            thread main app 100 name=app
            {workers}
            0 cpu0 switch idle -> main
            5ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x1000 stack={}
            end 105ms",
            BAD.stack
        ),
        &GOOD.record().0,
    );
    let percent = |probability: f64| (probability * 100.0).round() as i64;
    let likely: Vec<_> = (verdict.questions[0].possibilities.iter())
        .map(|p| (p.choice.as_str(), percent(p.probability)))
        .collect();
    let worker = ("app/worker", 27);
    assert_eq!(
        likely,
        [
            worker,
            worker,
            worker,
            ("none of these", 20),
            ("none of these", 0)
        ]
    );
}

/// Where a timeout ended the wait, the baseline tells who should have: worker, who ended all of
/// them there; the timeout itself, where three of four ended by it there too.
#[test]
fn a_baseline_tells_of_time_outs() {
    let text = format!(
        "process app 100
        thread main app 100 name=app
        thread worker app 102
        0 cpu0 switch idle -> main
        0 cpu2 switch idle -> worker
        5ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x1000 stack={}
        105ms cpu0 wake idle -> main in=timer
        105.1ms cpu0 switch idle -> main
        end 110ms",
        BAD.stack
    );
    let all = beside(&text, &GOOD.record().0);
    assert_eq!(way(&all), [("app", "habit"), ("worker", "")]);
    assert_eq!(of_thread(&all, 102, "run"), 100_000);

    let mut few = "process app 100
        thread main app 100 name=app
        thread worker app 102
        0 cpu0 switch idle -> main
        0 cpu2 switch idle -> worker\n"
        .to_owned();
    let by_timer = "wake idle -> main in=timer";
    let by_worker = "wake worker -> main futex op=wake object=futex:0x1000";
    let ends = [by_timer, by_worker, by_timer, by_timer, by_worker];
    for (at, end) in ends.iter().enumerate() {
        let from = 10 + 20 * at;
        few += &format!(
            "{from}ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x1000 stack={}
             {}ms cpu2 {end}
             {}100us cpu0 switch idle -> main\n",
            BAD.stack,
            from + 10,
            from + 10
        );
    }
    let mostly_by_timer = beside(&text, &record(&format!("{few}end 200ms")));
    assert_eq!(of_thread(&mostly_by_timer, 100, "timer"), 100_000);
}

/// What is certain stays so: a wait for the disk is the disk's, though worker ended such waits in
/// the baseline, and a sleep is its own.
#[test]
fn a_baseline_does_not_say_who_ended_what_is_certain() {
    let disk = "uninterruptible fsync object=file:42 stack=fsync;save kstack=io_schedule;wait";
    let sleep = "sleeping clock_nanosleep stack=nanosleep;save";
    for (wait, kind) in [(disk, "disk"), (sleep, "timer")] {
        let mut text = "process app 100
            thread main app 100 name=app
            thread worker app 102
            0 cpu0 switch idle -> main
            0 cpu2 switch idle -> worker\n"
            .to_owned();
        let turns = |lengths: &[u64], wake: &str| {
            let mut turns = String::new();
            let mut now = 5;
            for length in lengths {
                turns += &format!(
                    "{now}ms cpu0 switch main -> idle {wait}
                     {}ms {wake}
                     {}100us cpu0 switch idle -> main\n",
                    now + length,
                    now + length
                );
                now += length + 5;
            }
            turns
        };
        let good = text.clone() + &turns(&[10, 10, 10, 10], "cpu2 wake worker -> main write");
        let good = record(&format!("{good}end 200ms"));
        text += &turns(&[100], "cpu0 wake idle -> main in=softirq vector=4");
        let verdict = beside(&format!("{text}end 120ms"), &good);
        assert_eq!(of_thread(&verdict, 100, kind), 100_000, "{wait}");
    }
}
