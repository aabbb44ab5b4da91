//! What `hangdog numbers` found, from the user's cache into the trace and into answers.

use hangdog_trace::yardstick::Operation;
use hangdog_trace::{Meta, Yardstick, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A thread that waits 98 µs for its CPU, and one second in all.
const TRACE: &str = "
process app 100
thread main app 100
thread other app 101
0      cpu0 switch idle -> main
1ms    cpu0 switch main -> other preempted
1098us cpu0 switch other -> main sleeping futex arg=128 object=futex:0x10 stack=wait
2ms    cpu0 switch main -> idle sleeping nanosleep arg=1s stack=nap
end 3ms
";

fn trace(yardstick: Option<Yardstick>) -> TempDir {
    let dir = TempDir::new().expect("a directory");
    let meta = Meta {
        yardstick,
        ..Meta::default()
    };
    text::parse(TRACE)
        .expect("a trace in text form")
        .write_to(dir.path().join("t.hang"), meta)
        .expect("a trace on disk");
    dir
}

fn hand_over(cost_ns: f64) -> Option<Yardstick> {
    Some(Yardstick {
        taken_unix_s: 1,
        costs_ns: [(Operation::HandOver.id().to_owned(), cost_ns)].into(),
    })
}

fn run(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hangdog"))
        .args(args)
        .current_dir(dir)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .output()
        .expect("a run")
}

fn said(dir: &TempDir, args: &[&str]) -> String {
    String::from_utf8(run(dir.path(), args).stdout).expect("text")
}

/// 98 µs are 30 times a context switch of 3.3 µs; both commands say so.
#[test]
fn a_wait_for_a_cpu_is_held_against_a_hand_over() {
    let dir = trace(hand_over(3300.0));
    let story = said(&dir, &["story", "t.hang", "--thread", "100"]);
    let told = "after 98 µs of waiting for it: 30 times a context switch on this machine";
    assert!(story.contains(told), "{story}");
    let window = ["--thread", "100", "--from", "1ms", "--to", "1098us"];
    let why = said(&dir, &[&["why", "t.hang"], &window[..]].concat());
    assert!(
        why.contains("30 times a context switch on this machine"),
        "{why}"
    );
}

/// Without baseline costs, or with invalid ones, nothing is printed.
#[test]
fn nothing_is_said_without_a_yardstick() {
    for yardstick in [None, hand_over(-5.0), hand_over(0.0)] {
        let dir = trace(yardstick);
        for command in ["story", "why"] {
            let text = said(&dir, &[command, "t.hang", "--thread", "100"]);
            assert!(!text.is_empty() && !text.contains("times a"), "{text}");
        }
    }
}

/// What was measured is kept under the user's cache, and shown again with --stored; a part is not
/// kept, and where nothing is kept that is said with exit status 1.
#[test]
fn the_last_measurement_is_kept() {
    let dir = TempDir::new().expect("a directory");
    let none = run(dir.path(), &["numbers", "--stored"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("hangdog numbers"));

    let part = run(
        dir.path(),
        &["numbers", "--quick", "--json", "--only", "memory.line"],
    );
    assert!(part.status.success(), "{part:?}");
    assert!(!dir.path().join("cache").exists());

    let whole = run(dir.path(), &["numbers", "--quick", "--json"]);
    assert!(whole.status.success(), "{whole:?}");
    let whole: Value = serde_json::from_slice(&whole.stdout).expect("JSON");
    let stored = run(dir.path(), &["numbers", "--stored", "--json"]);
    assert_eq!(
        whole,
        serde_json::from_slice::<Value>(&stored.stdout).expect("JSON")
    );

    // Nothing of what it made is left where it measured files.
    let left: Vec<_> = fs::read_dir(dir.path())
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["cache"]);
}

/// A kept file that is damaged is as none.
#[test]
fn a_damaged_measurement_is_none() {
    let dir = TempDir::new().expect("a directory");
    let kept = run(
        dir.path(),
        &["numbers", "--quick", "--only", "memory.line", "--json"],
    );
    let mut report: Value = serde_json::from_slice(&kept.stdout).expect("JSON");
    let machine = &report["machine"];
    let name = format!(
        "numbers-{}-{}.json",
        machine["key"].as_str().expect("a key"),
        machine["kernel"].as_str().expect("a kernel")
    );
    let cache = dir.path().join("cache/hangdog");
    fs::create_dir_all(&cache).expect("a cache");
    let stored = |text: &str| {
        fs::write(cache.join(&name), text).expect("a file");
        run(dir.path(), &["numbers", "--stored", "--json"])
            .status
            .code()
    };
    assert_eq!(stored(&report.to_string()), Some(0));
    assert_eq!(stored(&report.to_string()[..100]), Some(1));
    report["figures"][0]["low"] = 1e300.into();
    assert_eq!(stored(&report.to_string()), Some(1));
    report["version"] = 99.into();
    assert_eq!(stored(&report.to_string()), Some(1));
    assert_eq!(stored("\0\0\0"), Some(1));
}

/// Two answers of --json are compared; one of a file that is none says which.
#[test]
fn two_measurements_are_compared() {
    let dir = TempDir::new().expect("a directory");
    let measured = run(
        dir.path(),
        &["numbers", "--quick", "--only", "memory.line", "--json"],
    );
    let mut report: Value = serde_json::from_slice(&measured.stdout).expect("JSON");
    fs::write(dir.path().join("a.json"), report.to_string()).expect("a file");
    for part in ["best", "low", "median", "high"] {
        let value = report["figures"][0][part].as_f64().expect("a figure");
        report["figures"][0][part] = (value * 100.0).into();
    }
    fs::write(dir.path().join("b.json"), report.to_string()).expect("a file");
    let compare = |a, b| run(dir.path(), &["numbers", "--compare", a, b, "--json"]);
    let answer =
        |output: Output| -> Value { serde_json::from_slice(&output.stdout).expect("JSON") };
    let same = answer(compare("a.json", "a.json"));
    assert_eq!(
        same["agreeing"],
        same["rows"].as_array().expect("rows").len()
    );
    let differs = answer(compare("a.json", "b.json"));
    assert_eq!(differs["rows"][0]["agrees"], false);
    assert!((differs["rows"][0]["ratio"].as_f64().expect("a ratio") - 100.0).abs() < 0.1);
    fs::write(dir.path().join("c.json"), "{}").expect("a file");
    let refused = compare("a.json", "c.json");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("c.json"));
}

/// A directory that cannot be written, and a figure that there is none: both say so.
#[test]
fn what_cannot_be_measured_is_said() {
    let dir = TempDir::new().expect("a directory");
    let nowhere = run(dir.path(), &["numbers", "--dir", "nowhere", "--quick"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("--dir"));
    let nothing = run(dir.path(), &["numbers", "--only", "teapot"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("--list"));
}
