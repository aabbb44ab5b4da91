//! The verdict as a structure: what it has, what it says first, and how sure it is.

use crate::support::*;
use hangdog_diagnose::{Answers, Problem, diagnose};
use serde_json::Value;

/// main waits from 1 ms to 41 ms for worker, which runs, waits for the disk, and runs again.
fn recording() -> Recording {
    record(&format!(
        "process app 100
        thread main app 100 name=app
        thread worker app 101
        0 cpu0 switch idle -> main
        0 cpu1 switch idle -> worker
        1ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;ask;main
        11ms cpu1 switch worker -> idle uninterruptible fsync object=file:5 stack=fsync;save;work
        16ms cpu1 wake idle -> worker in=softirq vector=4
        16ms cpu1 switch idle -> worker
        41ms cpu1 wake worker -> main futex op=wake object=futex:0x10 stack=pthread_cond_signal;work
        41.1ms cpu0 switch idle -> main
        {}
        end 50ms",
        samples(1, "worker", 17..40, "sort@list.c:7;work")
    ))
}

/// What the issue asks of the JSON form is there, with the values that follow from the trace.
#[test]
fn json() {
    let verdict = explain(&recording(), "main", 1_000..41_000);
    let json = serde_json::to_value(&verdict).expect("a verdict in JSON");
    let number = |pointer: &str| json.pointer(pointer).and_then(Value::as_u64);
    let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str);
    assert_eq!(text("/problem/thread"), Some("app"));
    assert_eq!(text("/problem/process"), Some("app"));
    assert_eq!(
        (number("/problem/tid"), number("/problem/pid")),
        (Some(100), Some(100))
    );
    assert_eq!(number("/problem/start_ns"), Some(MS));
    assert_eq!(number("/problem/duration_ns"), Some(40 * MS));
    assert_eq!(text("/problem/class"), Some("LongWait"));
    assert_eq!(text("/root/class"), Some("LongRunning"));
    assert_eq!(
        (text("/root/process"), text("/root/thread")),
        (Some("app"), Some("worker"))
    );
    assert_eq!(
        (number("/root/tid"), number("/root/pid")),
        (Some(101), Some(100))
    );
    assert_eq!(text("/root/function"), Some("sort"));
    assert_eq!(text("/root/where"), Some("list.c:7"));
    let share = |at: &str| json.pointer(at).and_then(Value::as_f64);
    // It ran for 35 of the 40 ms, and waited for the disk for the rest.
    assert_eq!(share("/root/share"), Some(0.875));
    let confidence = share("/root/confidence");
    assert!(confidence.is_some_and(|sure| sure > 0.7 && sure < 1.0));
    assert_eq!(text("/blame/0/kind"), Some("run"));
    assert_eq!(number("/blame/0/ns"), Some(35 * MS));
    assert_eq!(
        json.pointer("/blame/0/share").and_then(Value::as_f64),
        Some(0.875)
    );
    assert_eq!(
        (text("/blame/1/kind"), number("/blame/1/ns")),
        (Some("disk"), Some(5 * MS))
    );
    assert_eq!(text("/path/0/thread"), Some("app"));
    assert_eq!(
        (number("/path/0/from_ns"), number("/path/0/to_ns")),
        (Some(MS), Some(41 * MS))
    );
    assert_eq!(text("/path/0/doing"), Some("waited for a condition"));
    assert_eq!(text("/path/0/edge/kind"), Some("signal"));
    assert_eq!(text("/path/0/edge/strength"), Some("strong"));
    assert_eq!(
        text("/path/0/edge/reason"),
        Some("app/worker signalled what it waited for")
    );
    assert_eq!(text("/path/0/stack/1"), Some("ask"));
    assert_eq!(text("/path/1/thread"), Some("worker"));
    assert_eq!(json.pointer("/path/1/edge"), Some(&Value::Null));
    assert_eq!(json.pointer("/knot"), Some(&Value::Null));
    assert_eq!(json.pointer("/questions"), Some(&Value::Array(Vec::new())));
}

/// The sentence names who was held up, for how long, by whom, and in which function.
#[test]
fn sentence() {
    let verdict = explain(&recording(), "main", 1_000..41_000);
    assert_eq!(
        verdict.sentence,
        "app was held up for 40.0 ms: app/worker ran sort (list.c:7) for 88 % of that time."
    );
    // Of 1 ms of its own and 3 ms of worker's, the latter are 75 %.
    let verdict = explain(&recording(), "main", 0..4_000);
    assert!(
        verdict.sentence.ends_with("for 75 % of that time."),
        "{}",
        verdict.sentence
    );
    assert!((verdict.root.share - 0.75).abs() < 1e-9);
}

/// The path ends at the root.
#[test]
fn path_ends_at_the_root() {
    let verdict = explain(&recording(), "main", 1_000..41_000);
    let last = verdict.path.last().expect("a path");
    assert_eq!(
        (last.who.thread.as_str(), last.edge.as_ref()),
        ("worker", None)
    );
    assert_eq!(last.doing, "ran sort");
    assert_eq!(last.stack, ["sort", "work"]);
}

/// Lost events make a verdict less sure and change nothing else.
#[test]
fn loss_lowers_confidence() {
    let recording = recording();
    let problem = Problem::picked(recording.t("main"), MS..41 * MS);
    let whole = diagnose(
        &recording.evidence(),
        &problem,
        crate::support::setting(false, &Answers::default()),
    );
    let mut lossy = diagnose(
        &recording.evidence(),
        &problem,
        crate::support::setting(true, &Answers::default()),
    );
    assert!(lossy.root.confidence < whole.root.confidence);
    lossy.root.confidence = whole.root.confidence;
    for (lossy, whole) in lossy.suspects.iter_mut().zip(&whole.suspects) {
        assert!(lossy.confidence < whole.confidence);
        lossy.confidence = whole.confidence;
    }
    // It says what it cannot know.
    assert!(lossy.hints[0].text.starts_with("Events are missing"));
    lossy.hints.clear();
    assert_eq!(lossy, whole);
}

/// What nobody would ask for has an answer too: no time at all, a time after the end, the idle
/// thread, a thread that is not there.
#[test]
fn odd_questions() {
    let recording = recording();
    let main = recording.t("main");
    for (thread, window) in [
        (main, 0..0),
        (main, 41 * MS..41 * MS),
        (main, 80 * MS..90 * MS),
        (main, 0..u64::MAX),
        (0, 0..50 * MS),
        (u32::MAX, 0..50 * MS),
    ] {
        let verdict = explain_ns(&recording, thread, window.clone());
        assert!(!verdict.sentence.is_empty(), "{thread} {window:?}");
    }
    let after = explain_ns(&recording, main, 80 * MS..90 * MS);
    assert_eq!(of_kind(&after, "unknown"), 10_000);
}

/// Where all that is known is whom it waited for, the path says that much.
#[test]
fn unknown_with_a_path() {
    let recording = record(
        "process app 100
        thread main app 100 name=app
        thread gone app 101
        0 cpu0 switch idle -> main
        1ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 holder=gone
        1ms exit gone 0
        end 40ms",
    );
    let verdict = explain(&recording, "main", 1_000..40_000);
    assert_eq!(of_kind(&verdict, "unknown"), 39_000);
    assert_eq!(
        verdict.path.first().map(|step| step.who.thread.as_str()),
        Some("app")
    );
    let edge = verdict.path[0].edge.as_ref().expect("an edge");
    assert!(edge.reason.contains("app/gone"), "{}", edge.reason);
}

/// The edge of the last step that is explained is the one that the path has there: none where it is
/// for running that worker is to blame, though one wait for the disk was longer than each of its
/// runs; the disk's where it is for waiting, though one run was longer than each wait.
#[test]
fn the_last_step_is_explained_as_the_path_has_it() {
    let waits = [
        (vec![(12, 27)], "run", None),
        (vec![(13, 21), (22, 30), (31, 39)], "disk", Some("disk")),
    ];
    for (disk, kind, edge) in waits {
        let disk: String = disk
            .iter()
            .map(|(from, to)| {
                format!(
                    "{from}ms cpu1 switch worker -> idle uninterruptible fsync object=file:5 stack=fsync;save;work
                     {to}ms cpu1 wake idle -> worker in=softirq vector=4
                     {to}ms cpu1 switch idle -> worker\n"
                )
            })
            .collect();
        let recording = record(&format!(
            "process app 100
            thread main app 100 name=app
            thread worker app 101
            0 cpu0 switch idle -> main
            0 cpu1 switch idle -> worker
            1ms cpu0 switch main -> idle sleeping futex op=wait object=futex:0x10 stack=pthread_cond_wait;ask;main
            {disk}
            41ms cpu1 wake worker -> main futex op=wake object=futex:0x10 stack=pthread_cond_signal;work
            41.1ms cpu0 switch idle -> main
            end 50ms"
        ));
        let verdict = explain(&recording, "main", 1_000..41_000);
        assert_eq!(verdict.blame[0].kind, kind);
        let in_path = verdict.path[1].edge.as_ref().map(|edge| edge.kind);
        assert_eq!(in_path, edge);
        let problem = Problem::picked(recording.t("main"), MS..41 * MS);
        let explained = |number| {
            let answers = Answers::default();
            let evidence = recording.evidence();
            hangdog_diagnose::explain::explain(
                &evidence,
                &problem,
                setting(false, &answers),
                number,
            )
            .map(|explained| explained.edge.kind)
        };
        assert_eq!((explained(1), explained(2)), (Some("signal"), edge));
    }
}
