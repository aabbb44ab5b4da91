//! docs/JSON.md against what the command prints, in both directions.

use hangdog_trace::yardstick::Operation;
use hangdog_trace::{Meta, Yardstick, text};
use hangdog_watch::archive::{Archive, Catch, Occasion};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Nearly every field that there is: losses, a fork, an interrupt, a preemption, holders and calls.
const TRACE: &str = "
process app 100
thread main app 100
0   cpu0 switch idle -> main
1ms fork main -> child app 101
1ms cpu0 wake main -> child clone new
1.5ms call 10us main read error=11 args=3 stack=a
2ms cpu0 switch main -> child sleeping futex op=wait object=futex:0x10 holder=child stack=a kstack=b
3ms cpu0 irq 10us hard 33 child
4ms cpu0 wake child -> main futex op=wake object=futex:0x10 stack=a kstack=b
4ms cpu0 sample child stack=compute
4ms cpu0 counters child cycles=1000 instructions=2000 cache-misses=2 tlb-misses=1
5ms cpu0 switch child -> main preempted
6ms cpu0 lost 2 events
6.5ms cpu0 lost 2 transfers
6.5ms cpu0 lost 2 handoffs
6.5ms lost 2 overwritten-marks
end 7ms
";

/// Two threads that wait for each other, until the end.
const KNOT: &str = "
process app 100
thread main app 100
thread worker app 101
0   cpu0 switch idle -> main
0   cpu1 switch idle -> worker
1ms cpu0 switch main -> idle sleeping futex arg=128 object=futex:0x10 holder=worker stack=lock;main
2ms cpu1 switch worker -> idle sleeping futex arg=128 object=futex:0x20 holder=main stack=lock;work
end 50ms
";

/// A wait that several may have ended: a question, and the same wait when it went well.
const ASKED: &str = include_str!("golden/asked.trace");

/// Work that another thread began: a slice of several steps.
const PAGE: &str = include_str!("golden/page.trace");

/// Regions, of which one ends on another thread and one does not end, and a point; and losses.
const MARKED: &str = concat!(
    include_str!("golden/regions.trace"),
    "6ms cpu0 lost 2 events\n6ms lost 2 transfers\n6ms lost 2 handoffs\n6ms lost 2 overwritten-marks\n"
);

/// A span of the process of the first trace.
const SPANS: &str = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":100}}]},
    "scopeSpans":[{"spans":[{"name":"a","spanId":"01","startTimeUnixNano":"1","endTimeUnixNano":"2"}]}]}]}"#;

/// Page-ins, of a library and from swap, and a stall.
const PAGED: &str = include_str!("golden/paging.trace");

/// A program that is started twice, and pages.
const STARTS: &str = include_str!("golden/starts.trace");

/// Snapshots of memory.
const MEMORY: &str = include_str!("golden/memory.trace");

/// Two processes that page while one waits for the other.
const EXCHANGE: &str = include_str!("golden/exchange.trace");

/// A thread that polls: that gives a hint.
fn polling() -> String {
    let mut text =
        String::from("process app 100\nthread main app 100\n0 cpu0 switch idle -> main\n");
    for turn in 1..30 {
        text += &format!(
            "{turn}ms cpu0 switch main -> idle sleeping nanosleep arg=900us stack=nap;main
            {turn}900us cpu0 wake idle -> main in=timer
            {turn}950us cpu0 switch idle -> main\n"
        );
    }
    text + "end 30ms"
}

/// A loop of which every fourth turn is slow, with another program beside it.
fn turns() -> String {
    let mut text = "process app 100
        thread app app 100
        process other 200
        thread other other 200
        0 cpu0 switch idle -> app
        1ms cpu0 switch app -> idle sleeping read
        2ms cpu0 lost 2 events
        2ms cpu0 lost 2 transfers
        2ms cpu0 lost 2 handoffs
        2ms lost 2 overwritten-marks
        "
    .to_owned();
    for turn in 1..=40 {
        let (at, slow) = (10 * turn, turn % 4 == 0);
        let end = at + if slow { 4 } else { 1 };
        text += &format!(
            "{at}ms cpu0 wake idle -> app in=interrupt
            {at}ms cpu0 switch idle -> app
            {at}.1ms cpu0 sample app stack=work
            {at}.2ms cpu0 sample app stack=work
            {end}ms cpu0 counters app cycles=9 instructions=9 cache-misses=9 tlb-misses=9
            {end}ms cpu0 switch app -> idle sleeping read
            "
        );
        if slow {
            text += &format!(
                "{at}ms cpu1 switch idle -> other
                {end}ms cpu1 switch other -> idle preempted
                "
            );
        }
    }
    text + "end 450ms"
}

fn answer(dir: &Path, args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_hangdog"))
        .args(args)
        .arg("--json")
        .current_dir(dir)
        .output()
        .expect("a run");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {error}"))
}

fn document() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/JSON.md");
    fs::read_to_string(file).expect("docs/JSON.md")
}

/// The paths of all fields, written as the document writes them. Objects that can be null are
/// fields themselves; others are known by what is in them.
fn paths(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    const NULLABLE: [&str; 13] = [
        "ended_by",
        "compared",
        "baseline",
        "wake",
        "longest_wait",
        "by",
        "call",
        "holder",
        "edge",
        "ran",
        "common",
        "begun",
        "whole",
    ];
    match value {
        Value::Object(_) if path == "meta" => drop(into.insert(path.into())),
        Value::Object(fields) => {
            let name = path.rsplit('.').next().unwrap_or(path);
            if NULLABLE.contains(&name) {
                into.insert(path.into());
            }
            for (key, value) in fields {
                let path = match (path, path.ends_with("states")) {
                    ("", _) => key.clone(),
                    (_, true) => format!("{path}{{}}"),
                    (_, false) => format!("{path}.{key}"),
                };
                paths(value, &path, into);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                paths(element, &format!("{path}[]"), into);
            }
        }
        _ => drop(into.insert(path.into())),
    }
}

/// The fields that a section of the document names.
fn documented(document: &str, section: &str) -> BTreeSet<String> {
    let heading = format!("## {section}\n");
    let (_, rest) = document.split_once(&heading).expect("the section");
    rest.split("\n## ")
        .next()
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(String::from)
        .collect()
}

/// The document names every field that a command prints, and no other.
#[test]
fn document_and_answers_agree() {
    let document = document();
    let dir = TempDir::new().expect("a directory");
    // 10 µs for what a wait of a ms is held against.
    let costs_ns = [(Operation::HandOver.id().to_owned(), 10_000.0)].into();
    let meta = Meta {
        yardstick: Some(Yardstick {
            taken_unix_s: 1,
            costs_ns,
        }),
        command_tid: Some(100),
        ..Meta::default()
    };
    for (name, trace) in [
        ("t.hang", TRACE),
        ("knot.hang", KNOT),
        ("polling.hang", &polling()),
        ("asked.hang", ASKED),
        ("page.hang", PAGE),
        ("marked.hang", MARKED),
        ("turns.hang", &turns()),
        ("paged.hang", PAGED),
        ("exchange.hang", EXCHANGE),
        ("starts.hang", STARTS),
    ] {
        text::parse(trace)
            .expect("a trace in text form")
            .write_to(dir.path().join(name), meta.clone())
            .expect("a trace on disk");
    }
    fs::write(dir.path().join("t.spans"), SPANS).expect("spans");
    let common = documented(&document, "In every answer on a trace");
    for (section, runs) in [
        ("info", vec![vec!["info", "t.hang", "--verify"]]),
        ("threads", vec![vec!["threads", "t.hang"]]),
        ("interrupts", vec![vec!["interrupts", "t.hang"]]),
        (
            "compare",
            vec![vec!["compare", "turns.hang", "--thread", "app"]],
        ),
        (
            "calls",
            vec![
                vec!["calls", "t.hang", "--by", "thread"],
                vec!["calls", "t.hang", "--by", "function"],
            ],
        ),
        (
            "paging",
            vec![
                vec!["paging", "paged.hang"],
                vec!["paging", "exchange.hang"],
                vec!["paging", "starts.hang", "--process", "100"],
                vec!["paging", "t.hang", "--all"],
            ],
        ),
        (
            "load",
            vec![
                vec!["load", "t.hang", "--step", "1ms"],
                vec!["load", "t.hang", "--at", "1ms"],
                vec!["load", "t.hang", "--rivals", "101"],
            ],
        ),
        (
            "regions",
            vec![
                vec!["regions", "marked.hang"],
                vec!["regions", "marked.hang", "--list"],
                vec!["regions", "marked.hang", "--points"],
            ],
        ),
        ("spans", vec![vec!["spans", "t.hang", "t.spans"]]),
        (
            "story",
            vec![
                vec!["story", "t.hang", "--thread", "100"],
                vec!["story", "t.hang", "--thread", "101"],
            ],
        ),
        (
            "why",
            vec![
                vec!["why", "t.hang"],
                vec!["why", "t.hang", "--whole"],
                vec!["why", "marked.hang", "--region", "decode"],
                vec!["why", "knot.hang"],
                vec!["why", "asked.hang", "--thread", "100"],
                vec!["why", "page.hang"],
                vec!["why", "polling.hang", "--thread", "100", "--from", "1ms"],
                vec!["why", "t.hang", "--thread", "100", "--from", "3ms"],
                vec![
                    "why", "t.hang", "--thread", "101", "--from", "4ms", "--to", "5ms",
                ],
            ],
        ),
        ("problems", vec![vec!["problems", "t.hang"]]),
        (
            "explain",
            vec![
                vec!["explain", "asked.hang", "--thread", "100", "1"],
                vec!["explain", "page.hang", "--thread", "100", "1"],
                vec![
                    "explain", "t.hang", "--thread", "100", "--from", "2ms", "--to", "4ms", "1",
                ],
            ],
        ),
        (
            "top",
            vec![
                vec!["top", "t.hang"],
                vec!["top", "t.hang", "--view", "off-cpu", "-n", "1"],
            ],
        ),
        ("graph", vec![vec!["graph", "t.hang"]]),
    ] {
        let mut found = BTreeSet::new();
        for args in runs {
            paths(&answer(dir.path(), &args), "", &mut found);
        }
        let expected: BTreeSet<String> = documented(&document, section)
            .union(&common)
            .cloned()
            .collect();
        assert_eq!(
            found, expected,
            "{section}: printed on the left, documented on the right"
        );
    }
}

/// The document names every field of what the watch caught, damaged reports too.
#[test]
fn document_and_hangs_agree() {
    let dir = TempDir::new().expect("a directory");
    let archive = Archive::at(dir.path());
    let catch = Catch {
        signature: "0123456789abcdef".to_owned(),
        program: "app".to_owned(),
        sign: "window".to_owned(),
        sentence: "app was held up.".to_owned(),
        occasion: Occasion {
            unix_ns: 1,
            duration_ns: 2,
            goes_on: false,
            pid: 3,
            tid: 3,
            trace: "20261122-140322-app.hang".to_owned(),
            from_ns: 4,
            to_ns: 5,
        },
    };
    archive.add(&catch, &()).expect("a report");
    fs::write(dir.path().join("report-00.json"), "{").expect("a damaged report");
    let mut found = BTreeSet::new();
    let args = ["hangs", "--dir", "."];
    paths(&answer(dir.path(), &args), "", &mut found);
    assert_eq!(found, documented(&document(), "hangs"));
}

/// The document names every field that `hangdog memory` prints of a process, here of one that this test began.
#[test]
fn document_and_memory_agree() {
    let mut child = Command::new("sleep").arg("60").spawn().expect("a process");
    let dir = TempDir::new().expect("a directory");
    let mut found = BTreeSet::new();
    // Until it executes its program it is this test, and it has its name before it has anything mapped.
    let mapped = || {
        let maps = fs::read_to_string(format!("/proc/{}/maps", child.id())).expect("its maps");
        maps.contains("/sleep") && maps.contains("[heap]") && maps.contains("libc")
    };
    while !mapped() {
        std::thread::yield_now();
    }
    let args = ["memory", &child.id().to_string(), "--hot", "10ms"];
    paths(&answer(dir.path(), &args), "", &mut found);
    child.kill().expect("an end");
    child.wait().expect("an end");
    let memory = text::parse(MEMORY).expect("a trace in text form");
    let written = memory.write_to(dir.path().join("memory.hang"), Meta::default());
    written.expect("a trace on disk");
    let args = ["memory", "--trace", "memory.hang"];
    paths(&answer(dir.path(), &args), "", &mut found);
    assert_eq!(found, documented(&document(), "memory"));
}

/// The document names every field of the list of templates.
#[test]
fn document_and_templates_agree() {
    let dir = TempDir::new().expect("a directory");
    let mut found = BTreeSet::new();
    paths(&answer(dir.path(), &["template", "list"]), "", &mut found);
    assert_eq!(found, documented(&document(), "template list"));
}

/// The document names every field of doctor's answer, whatever this machine allows.
#[test]
fn document_and_doctor_agree() {
    let dir = TempDir::new().expect("a directory");
    let mut found = BTreeSet::new();
    paths(&answer(dir.path(), &["doctor"]), "", &mut found);
    assert_eq!(found, documented(&document(), "doctor"));
}

/// The document names every field of what was measured, and of a comparison.
#[test]
fn document_and_numbers_agree() {
    let dir = TempDir::new().expect("a directory");
    let measure = |only: &str| answer(dir.path(), &["numbers", "--quick", "--only", only]);
    let a = measure("memory.l");
    let mut found = BTreeSet::new();
    paths(&a, "", &mut found);
    let mut expected = documented(&document(), "numbers");
    if a["machine"]["caches"] == Value::Array(Vec::new()) {
        println!("NOT RUN: caches in numbers --json: this system does not describe its caches");
        expected.retain(|path| !path.starts_with("machine.caches"));
    }
    assert_eq!(found, expected);

    let write = |name: &str, value: &Value| {
        fs::write(dir.path().join(name), value.to_string()).expect("a file");
    };
    let figures = a["figures"].as_array().expect("figures");
    let without = |index: usize| {
        let mut report = a.clone();
        let left = figures.iter().enumerate().filter(|(at, _)| *at != index);
        report["figures"] = left.map(|(_, figure)| figure.clone()).collect();
        report
    };
    write("a.json", &without(0));
    write("b.json", &without(1));
    let mut found = BTreeSet::new();
    let args = ["numbers", "--compare", "a.json", "b.json"];
    paths(&answer(dir.path(), &args), "", &mut found);
    assert_eq!(found, documented(&document(), "numbers --compare"));
}
