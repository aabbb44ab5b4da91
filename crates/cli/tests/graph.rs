//! `hangdog graph` on a trace of which every edge is known.

use hangdog_trace::{Meta, text};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// `golden/handover.trace` on disk.
fn fixture() -> TempDir {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/handover.trace");
    let text = fs::read_to_string(path).expect("the text");
    let dir = TempDir::new().expect("a directory");
    let trace = text::parse(&text).expect("a trace in text form");
    let written = trace.write_to(dir.path().join("t.hang"), Meta::default());
    written.expect("a trace on disk");
    dir
}

fn run(dir: &TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hangdog"))
        .args(["graph", "t.hang"])
        .args(args)
        .current_dir(dir.path())
        .output()
        .expect("a run")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// main ends three waits and the kernel's worker one; worker and busy only live. A condition was
/// signalled, a nap came to its end, a disk finished. The kernel's worker is on its CPU at the very
/// time at which it is woken, so that no wait of it is seen to be ended.
#[test]
fn counts() {
    let answer = text(&run(&fixture(), &["--json"]));
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["threads"], 4);
    assert_eq!(
        answer["vertices_by_begin"],
        json!([{"begin": "life", "count": 4}, {"begin": "wait", "count": 4}])
    );
    assert_eq!(
        answer["edges_by_kind"],
        json!([
            {"kind": "disk", "strong": 1, "weak": 0},
            {"kind": "signal", "strong": 1, "weak": 0},
            {"kind": "timer", "strong": 1, "weak": 0},
        ])
    );
    assert_eq!(answer["wakes"], json!({"edges": 3, "moot": 1, "upkeep": 0}));
    assert_eq!(answer["events"], 8 + 4 + 1 + 5);
}

/// The drawing has a row for each thread that matters, what each vertex came to, and each edge from
/// where it came, with kind and time; the longest wait is marked.
#[test]
fn draws() {
    let dir = fixture();
    let drawn = text(&run(&dir, &["--dot", "--thread", "100"]));
    for part in [
        "label=\"app (100)\"",
        "label=\"app/worker (101)\"",
        "in compute\\nslept in nanosleep, as asked for 2 ms\\nfor 2.000 ms\"",
        "label=\"signal\\n0.002500 s\", style=solid",
        "\"timer\" -> ",
        "label=\"timer\\n0.007000 s\"",
        "\"disk\" -> ",
        "label=\"disk\\n0.009000 s\"",
    ] {
        assert!(drawn.contains(part), "{part} is missing:\n{drawn}");
    }
    assert_eq!(drawn.matches("penwidth=2").count(), 1);
    assert!(!drawn.contains("busy"), "busy has no part in it:\n{drawn}");
    run(&dir, &["--dot", "--thread", "100", "-o", "a.dot"]);
    let file = fs::read_to_string(dir.path().join("a.dot")).expect("a file");
    assert_eq!(file, drawn);
}

/// A drawing of nothing in particular is refused with what to say; a thread or problem that is not
/// there is not found.
#[test]
fn refusals() {
    let dir = fixture();
    for (args, code, says) in [
        (&["--dot"][..], 2, "--around N"),
        (&["--around", "1"], 2, "--dot"),
        (&["--dot", "--around", "99"], 1, "no number 99"),
        (&["--dot", "--thread", "nobody"], 1, "nobody"),
    ] {
        let output = run(&dir, args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
