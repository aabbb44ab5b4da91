//! `hangdog step` and `diverge`: where two calls part and by what, as the program is made; and what is
//! stepped goes on as if nothing had been.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Background, Machine, hangdog, machine, number, text, wait_until};

fn step(machine: &Machine, output: &str, how: &[&str]) -> Output {
    let output = hangdog()
        .current_dir(machine.dir())
        .args(["step", "check", "-o", output])
        .args(how)
        .output();
    output.expect("a run")
}

/// Steps the program's call with these arguments, into a file of this name.
fn stepped(machine: &Machine, program: &Path, name: &str, arguments: &[&str]) {
    let program = program.to_str().expect("a path");
    let output = step(machine, name, &[&["--", program], arguments].concat());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("until it returned"), "{errors}");
    // The command's own output goes where it would.
    assert_eq!(output.stdout, b"0\n");
}

fn diverge(machine: &Machine, good: &str, bad: &str) -> (Option<i32>, Value) {
    let output = hangdog()
        .current_dir(machine.dir())
        .args(["diverge", good, bad, "--json"])
        .output()
        .expect("a run");
    let answer = serde_json::from_slice(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (
        output.status.code(),
        answer.unwrap_or_else(|_| panic!("{errors}")),
    )
}

/// Each reason is found, with its value in both runs, and nothing else parts them.
#[cfg(target_arch = "x86_64")]
#[test]
fn partings_have_their_reason() {
    let Some(machine) = machine() else { return };
    let program = machine.program("parting");
    stepped(
        &machine,
        &program,
        "good.call",
        &["0", "5", "wait", "/nowhere", "3"],
    );
    for (arguments, what, good, bad) in [
        (
            ["1", "5", "wait", "/nowhere", "3"],
            "strict, 4 bytes",
            "0",
            "1",
        ),
        (
            ["0", "50", "wait", "/nowhere", "3"],
            "argument 1",
            "5",
            "50",
        ),
        (
            ["0", "5", "wait", "/", "3"],
            "what access returned",
            "-1",
            "0",
        ),
        (["0", "5", "wait", "/nowhere", "5"], "argument 4", "3", "5"),
        (["0", "5", "ready", "/nowhere", "3"], "libc.so", "", "0"),
    ] {
        stepped(&machine, &program, "bad.call", &arguments);
        let (code, answer) = diverge(&machine, "good.call", "bad.call");
        assert_eq!(code, Some(0), "{answer}");
        let partings = answer["partings"].as_array().expect("partings");
        assert_eq!(partings.len(), 1, "{answer:#}");
        let parting = &partings[0];
        assert_eq!(text(&parting["at"]["function"]), "check", "{parting}");
        assert!(
            text(&parting["at"]["source"]).contains("parting.c:"),
            "{parting}"
        );
        assert_eq!(parting["meet_again"], true, "{parting}");
        let data = parting["decided_by"].as_array().expect("what decided");
        assert_eq!(data.len(), 1, "{parting:#}");
        assert!(text(&data[0]["what"]).contains(what), "{parting:#}");
        assert_eq!(data[0]["differs"], true);
        assert_eq!(text(&data[0]["bad"]), bad);
        if !good.is_empty() {
            assert_eq!(text(&data[0]["good"]), good);
        }
    }
    stepped(
        &machine,
        &program,
        "same.call",
        &["0", "7", "wait", "/nowhere", "3"],
    );
    let (code, answer) = diverge(&machine, "good.call", "same.call");
    assert_eq!(
        (code, answer["partings"].as_array().map(Vec::len)),
        (Some(1), Some(0))
    );
    assert!(number(&answer["common"]) > 20, "{answer}");
}

fn tracer(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    line.unwrap_or("").trim().to_owned()
}

/// How often the threads of a process went to sleep.
fn sleeps(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let of = |path: PathBuf| {
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok())
            .unwrap_or(0)
    };
    tasks.flatten().map(|task| of(task.path())).sum()
}

/// A thread of a process that runs is stepped at the call that is asked for, and goes on; also where who
/// waits for a call is killed.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_process_goes_on_behind_its_call() {
    let Some(machine) = machine() else { return };
    let program = machine.program("parting");
    let child = Command::new(&program)
        .arg("loop")
        .stdout(Stdio::null())
        .spawn();
    let child = Background(child.expect("a run"));
    let pid = child.0.id();
    let selector = pid.to_string();
    wait_until("it calls", || sleeps(pid) > 20);
    let goes_on = || {
        assert_eq!(tracer(pid), "0");
        let before = sleeps(pid);
        wait_until("it goes on", || sleeps(pid) > before + 20);
    };
    // Of five calls in a row one is another.
    for call in ["1", "2", "3", "4", "5"] {
        let name = format!("{call}.call");
        let output = step(&machine, &name, &["--process", &selector, "--call", call]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        goes_on();
    }
    let output = hangdog()
        .current_dir(machine.dir())
        .args([
            "step",
            "main",
            "-o",
            "none.call",
            "--for",
            "300ms",
            "--process",
            &selector,
        ])
        .output()
        .expect("a run");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("did not call main"), "{errors}");
    assert_eq!(output.status.code(), Some(2));
    goes_on();

    let waits = hangdog()
        .current_dir(machine.dir())
        .args(["step", "main", "-o", "none.call", "--process", &selector])
        .stderr(Stdio::null())
        .spawn();
    let mut waits = Background(waits.expect("a run"));
    wait_until("it is traced", || tracer(pid) != "0");
    let stepper: i32 = tracer(pid).parse().expect("a pid");
    // SAFETY: a signal to the process that steps, which is our own grandchild.
    unsafe { libc::kill(stepper, libc::SIGKILL) };
    let _ = waits.0.wait();
    wait_until("nobody traces it", || tracer(pid) == "0");
    goes_on();
    std::thread::sleep(Duration::from_millis(50));
    assert!(fs::exists(format!("/proc/{pid}/exe")).unwrap_or(false));
}
