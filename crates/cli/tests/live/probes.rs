//! `--uprobe` and `--usdt`: each call and each probe is a mark, and nothing stays behind.

use std::path::Path;
use std::process::Command;

use hangdog_trace::tables::Marks;
use hangdog_trace::words::MarkKind;

use crate::flight::{Flight, snapped};
use crate::support::{Live, json, machine, number, text};

/// Rows of `regions`, of this name.
fn row(trace: &Path, name: &str) -> serde_json::Value {
    let answer = json(&["regions"], trace);
    let rows = answer["regions"].as_array().expect("regions").clone();
    rows.into_iter()
        .find(|row| text(&row["name"]) == name)
        .unwrap_or_else(|| panic!("no region {name}: {answer}"))
}

/// All calls of a function and all passes of a static probe are marks, with their arguments and what was
/// returned, in order of time; a region is on one thread.
#[test]
fn calls_and_passes_are_marks() {
    let Some(machine) = machine() else { return };
    let program = machine.program("probes");
    let path = program.to_str().expect("a path");
    let function = format!("{path}:serve");
    let passed = format!("{path}:shop:sold");
    let mut options = vec!["--uprobe", &function];
    let has_static = cfg!(target_arch = "x86_64");
    if has_static {
        options.extend(["--usdt", &passed]);
    }
    let recorded = machine.record(&options, &[path]);
    assert_eq!(recorded.code(), Some(0), "{}", recorded.stderr());
    let live = Live::open(&recorded.path, Vec::new());
    let marks: Marks = live.table();
    assert!(marks.ts.is_sorted());
    let of = |kind: MarkKind| {
        let rows = (0..marks.len()).filter(|&row| MarkKind::from(marks.kind[row]) == kind);
        let mut values: Vec<i64> = rows.map(|row| marks.arg0[row]).collect();
        values.sort_unstable();
        values
    };
    assert_eq!(of(MarkKind::Begin), (0..200).collect::<Vec<_>>());
    let doubled: Vec<i64> = (0..200).map(|number| number * 2).collect();
    assert_eq!(of(MarkKind::End), doubled);
    if has_static {
        assert_eq!(of(MarkKind::Point), (0..200).collect::<Vec<_>>());
        let points =
            (0..marks.len()).filter(|&row| MarkKind::from(marks.kind[row]) == MarkKind::Point);
        assert!(points.map(|row| marks.arg1[row]).all(|seven| seven == 7));
    }
    let serve = row(&recorded.path, "serve");
    assert_eq!((number(&serve["count"]), number(&serve["open"])), (200, 0));
    let listed = json(&["regions", "--list"], &recorded.path);
    for it in listed["occurrences"].as_array().expect("regions") {
        let arguments = it["arguments"].as_array().expect("arguments");
        let returned = it["end_arguments"].as_array().expect("what was returned");
        assert_eq!(
            returned[0].as_i64(),
            arguments[0].as_i64().map(|n| n * 2),
            "{it}"
        );
        assert!(it["ended_by"].is_null(), "{it}");
    }
}

/// A flight recorder has them in its snapshots, of programs that begin later too; when it is gone, so are
/// the probes.
#[test]
fn a_flight_with_probes() {
    let Some(machine) = machine() else { return };
    let program = machine.program("probes");
    let function = format!("{}:serve", program.display());
    let flight = Flight::start(&machine, &["--uprobe", &function]);
    let run = || {
        Command::new(&program)
            .output()
            .expect("a run")
            .status
            .success()
    };
    assert!(run());
    snapped(&machine, "probes.hang");
    let serve = row(&machine.path("probes.hang"), "serve");
    assert_eq!((number(&serve["count"]), number(&serve["open"])), (200, 0));
    drop(flight);
    assert!(run());
}

/// What a program writes into the kernel's trace_marker is a mark, and what it writes elsewhere is none: regions
/// of a thread nest, one ends on another thread, a number is an argument. A flight has them too.
#[test]
fn texts_of_trace_marker_are_marks() {
    let Some(machine) = machine() else { return };
    let marker = "/sys/kernel/tracing/trace_marker";
    if !Path::new(marker).exists() {
        // As every distribution does at boot.
        let mount = ["-t", "tracefs", "nodev", "/sys/kernel/tracing"];
        let mounted = Command::new("mount").args(mount).status();
        assert!(mounted.expect("a run").success(), "tracefs can be mounted");
    }
    let program = machine.program("markers");
    let path = program.to_str().expect("a path");
    let recorded = machine.record(&["--trace-marker"], &[path, marker]);
    assert_eq!(recorded.code(), Some(0), "{}", recorded.stderr());

    let flight = Flight::start(&machine, &["--trace-marker"]);
    let run = Command::new(&program).arg(marker).status();
    assert!(run.expect("a run").success());
    snapped(&machine, "markers.hang");
    drop(flight);

    for trace in [&recorded.path, &machine.path("markers.hang")] {
        let [draw, inner, load] = ["draw", "inner", "load"].map(|name| row(trace, name));
        for (region, count) in [(&draw, 3), (&inner, 3), (&load, 1)] {
            let counts = (number(&region["count"]), number(&region["open"]));
            assert_eq!(counts, (count, 0), "{region}");
        }
        assert!(number(&draw["min_ns"]) > number(&inner["min_ns"]));
        assert!(number(&load["sum_ns"]) > number(&draw["sum_ns"]));
        let listed = json(&["regions", "--list"], trace);
        let mut listed = listed["occurrences"].as_array().expect("regions").iter();
        let load = listed.find(|it| text(&it["name"]) == "load").expect("load");
        assert_eq!(load["arguments"][0], 77, "{load}");
        assert!(load["ended_by"].is_object(), "{load}");
        let points = json(&["regions", "--points"], trace);
        let of = |name: &str| {
            let points = points["points"].as_array().expect("points").iter();
            let of_name = points.filter(|point| text(&point["name"]) == name);
            of_name
                .map(|point| point["arguments"][0].as_i64())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("queue"), [Some(12)]);
        assert_eq!(of("all is drawn"), [Some(0)]);
    }
}
