//! `record --calls`: what it counts, against how the program is made and against strace.

use crate::support::{Background, hangdog, json, machine, number, text, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The rows of `hangdog calls`, by the call's name.
fn by_call(trace: &Path, args: &[&str]) -> BTreeMap<String, Value> {
    let answer = json(&[&["calls"], args].concat(), trace);
    assert_eq!(number(&answer["loss"]["total"]), 0, "{}", answer["loss"]);
    let rows = answer["calls"].as_array().expect("calls").iter();
    rows.map(|row| (text(&row["call"]).to_owned(), row.clone()))
        .collect()
}

fn count(rows: &BTreeMap<String, Value>, call: &str) -> u64 {
    rows.get(call).map_or(0, |row| number(&row["count"]))
}

/// Every call of the command, its threads and its children is there, and no other: with its caller, its
/// arguments and its error.
#[test]
fn calls_are_those_that_the_program_makes() {
    let Some(machine) = machine() else { return };
    let program = machine.program("calls");
    let recorded = machine.record(&["--calls"], &[program.to_str().expect("a path")]);
    assert_eq!(recorded.code(), Some(0), "{}", recorded.stderr());
    let rows = by_call(&recorded.path, &[]);
    for (call, times) in [
        ("execve", 1),
        ("getppid", 1000),
        ("getuid", 500),
        ("nanosleep", 5),
        ("wait4", 1),
        // It does not return.
        ("exit_group", 0),
    ] {
        assert_eq!(count(&rows, call), times, "{call}");
    }
    let failed = |call: &str| rows[call]["by_error"][0].clone();
    let (unlink, close) = (failed("unlinkat"), failed("close"));
    assert_eq!(
        (text(&unlink["error"]), number(&unlink["count"])),
        ("ENOENT", 300)
    );
    assert_eq!(
        (text(&close["error"]), number(&close["count"])),
        ("EBADF", 70)
    );
    let slept = number(&rows["nanosleep"]["min_ns"]);
    assert!(slept >= 20_000_000, "{slept}");
    assert!(number(&rows["getppid"]["min_ns"]) < 1_000_000);

    // By function: the first stacks may lack what the tables of files tell.
    let functions = json(&["calls", "--by", "function"], &recorded.path);
    let functions = functions["calls"].as_array().expect("calls").iter();
    let asked = functions
        .filter(|row| row["call"] == "getppid" && row["function"] == "ask")
        .map(|row| number(&row["count"]));
    assert!(asked.sum::<u64>() > 500);

    let trace = hangdog_trace::Trace::open(&recorded.path).expect("a trace");
    let log: hangdog_trace::tables::SystemCalls = trace.read().expect("calls");
    let calls = hangdog_trace::Calls::new(&trace.meta().arch);
    let fcntl = calls.number("fcntl").expect("a call");
    let mut arguments = (0..log.len())
        .filter(|&row| log.call[row] == fcntl)
        .map(|row| log.row(row));
    let own = |it: &hangdog_trace::tables::SystemCall| it.arg2 == 0x12;
    let it = arguments.find(own).expect("the program's fcntl");
    assert_eq!((it.arg0, it.arg3, it.arg4, it.arg5), (1, 0x34, 0x56, 0x78));
}

/// strace counts the same calls of the same program. Not run where there is no strace.
#[test]
fn strace_counts_the_same() {
    let Some(machine) = machine() else { return };
    let program = machine.program("calls");
    let summary = machine.path("strace");
    let traced = Command::new("strace")
        .args(["-f", "-c", "-U", "name,calls", "-o"])
        .args([&summary, &program])
        .status();
    let Ok(traced) = traced else {
        eprintln!("NOT RUN: strace_counts_the_same: no strace");
        return;
    };
    assert!(traced.success());
    let recorded = machine.record(&["--calls"], &[program.to_str().expect("a path")]);
    let rows = by_call(&recorded.path, &[]);
    let ours: BTreeMap<String, u64> = (rows.iter())
        .map(|(call, row)| (call.clone(), number(&row["count"])))
        .collect();
    let summary = fs::read_to_string(summary).expect("strace's summary");
    let theirs: BTreeMap<String, u64> = (summary.lines())
        .filter_map(|line| {
            let (call, calls) = line.trim().split_once(' ')?;
            Some((call.to_owned(), calls.trim().parse().ok()?))
        })
        .filter(|(call, _)| call != "total")
        .collect();
    // Of the thread's end and the join either may come first, and then nobody waits.
    let known = |calls: &BTreeMap<String, u64>| {
        let mut calls = calls.clone();
        calls.remove("futex");
        calls
    };
    assert_eq!(known(&ours), known(&theirs));
    assert!(theirs["getppid"] == 1000, "{theirs:?}");
}

/// Of a process that runs already, all threads are logged, and what it starts later; of others nothing
/// is. A name that nobody has is refused.
#[test]
fn calls_of_a_running_process() {
    let Some(machine) = machine() else { return };
    let script = "while :; do sleep 0.05; done";
    let start = || {
        let child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::null())
            .spawn();
        Background(child.expect("a shell"))
    };
    let (wanted, _other) = (start(), start());
    let pid = wanted.0.id();
    wait_until("it has children", || {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.is_ok_and(|children| !children.trim().is_empty())
    });
    let path = machine.path("of.hang");
    let output = hangdog()
        .args([
            "record",
            "--for",
            "700ms",
            "--calls-of",
            &pid.to_string(),
            "-o",
        ])
        .arg(&path)
        .output()
        .expect("a run");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let rows = by_call(&path, &[]);
    assert!(
        count(&rows, "execve") >= 2 && count(&rows, "wait4") >= 2,
        "{rows:?}"
    );
    let trace = hangdog_trace::Trace::open(&path).expect("a trace");
    let threads = trace.threads().expect("threads");
    let log: hangdog_trace::tables::SystemCalls = trace.read().expect("calls");
    for &thread in &log.thread {
        let mut at = threads.thread(thread);
        while at.tid != pid {
            let parent = threads
                .known(at.parent)
                .expect("it descends from the shell");
            at = parent;
        }
    }
    let refused = hangdog()
        .args([
            "record",
            "--for",
            "100ms",
            "--calls-of",
            "nobody-is-named-so",
            "-o",
        ])
        .arg(machine.path("none.hang"))
        .output()
        .expect("a run");
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("'nobody-is-named-so'"), "{error}");
    assert!(!machine.path("none.hang").exists());
}
