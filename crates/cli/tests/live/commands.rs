//! `hangdog record` as a command among others: exit codes, streams, signals.

use crate::support::{Background, hangdog, json, machine, number, send, text, wait_until};
use std::fs;
use std::process::Stdio;

/// The exit code is that of the recorded command, as a shell would give it.
#[test]
fn the_commands_exit_code_is_passed_on() {
    let Some(machine) = machine() else { return };
    for (script, code) in [("true", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let recorded = machine.record(&[], &["sh", "-c", script]);
        assert_eq!(recorded.code(), Some(code), "{script}");
        let info = json(&["info"], &recorded.path);
        assert_eq!(info["loss"]["cut_short"], false, "{script}");
        fs::remove_dir_all(&recorded.path).expect("the trace");
    }
}

/// A command that cannot run is told as a shell tells it, and leaves no trace.
#[test]
fn a_command_that_cannot_run() {
    let Some(machine) = machine() else { return };
    for (command, code) in [("/nowhere/at/all", 127), ("/etc/passwd", 126)] {
        let recorded = machine.record(&[], &[command]);
        assert_eq!(recorded.code(), Some(code), "{command}");
        assert!(recorded.stderr().contains(command), "{}", recorded.stderr());
        assert!(!recorded.path.exists(), "{command} left a trace");
    }
}

/// Standard output is the command's alone; on standard error, after the command's own, one line
/// says what was recorded and what to do next.
#[test]
fn the_streams_belong_to_the_command() {
    let Some(machine) = machine() else { return };
    let recorded = machine.record(&[], &["sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(recorded.output.stdout, b"out\n");
    let stderr = recorded.stderr();
    let lines: Vec<&str> = stderr.lines().collect();
    let [error, closing] = lines[..] else {
        panic!("two lines: {stderr}");
    };
    assert_eq!(error, "err");
    let path = recorded.path.display().to_string();
    for part in [
        &path,
        " events, ",
        "no loss",
        &format!("hangdog why {path}"),
    ] {
        assert!(closing.contains(part), "{part:?} is not in {closing:?}");
    }
}

/// A trace that was given no name is named by the time; `--for` ends the recording.
#[test]
fn a_name_and_an_end_of_its_own() {
    let Some(machine) = machine() else { return };
    let output = hangdog()
        .args(["record", "--for", "300ms", "--no-stacks"])
        .current_dir(machine.dir())
        .output()
        .expect("a run");
    assert_eq!(output.status.code(), Some(0));
    let entries: Vec<_> = fs::read_dir(machine.dir())
        .expect("the directory")
        .collect();
    let [Ok(entry)] = &entries[..] else {
        panic!("one trace: {entries:?}");
    };
    let name = entry.file_name().into_string().expect("plain text");
    let time = name
        .strip_prefix("hangdog-")
        .and_then(|n| n.strip_suffix(".hang"));
    assert_eq!(time.map(str::len), Some("20261121-223000".len()), "{name}");
    let info = json(&["info"], &entry.path());
    let lasted = number(&info["duration_ns"]);
    // It begins before the programs are loaded, so that nothing is missed.
    assert!((300_000_000..2_000_000_000).contains(&lasted), "{lasted}");
    assert_eq!(info["meta"]["options"]["stacks"], false);
    assert_eq!(info["meta"]["options"]["sample_hz"], 0);
}

/// Ctrl-C and SIGTERM end a recording cleanly: exit code 0, and a whole trace.
#[test]
fn signals_end_a_recording() {
    let Some(machine) = machine() else { return };
    for (name, signal) in [("int.hang", libc::SIGINT), ("term.hang", libc::SIGTERM)] {
        let path = machine.path(name);
        let recorder = hangdog()
            .args(["record", "-o"])
            .arg(&path)
            .stderr(Stdio::null())
            .spawn();
        let mut recorder = Background(recorder.expect("a run"));
        wait_until("it records", || {
            fs::read_to_string(path.join("meta.json")).is_ok_and(|meta| meta.contains("hooks"))
                && path.join("switches").exists()
        });
        send(&recorder.0, signal);
        assert_eq!(
            recorder.0.wait().expect("its end").code(),
            Some(0),
            "{name}"
        );
        let info = json(&["info"], &path);
        assert_eq!(text(&info["meta"]["state"]), "complete", "{name}");
        assert!(number(&info["event_count"]) > 0, "{name}");
    }
}

/// A command that is asked to end because the recording does is waited for, and its exit code
/// passed on.
#[test]
fn the_command_is_asked_to_end() {
    let Some(machine) = machine() else { return };
    let script = "trap 'exit 9' TERM; while :; do sleep 0.05; done";
    let recorded = machine.record(&["--for", "300ms"], &["sh", "-c", script]);
    assert_eq!(recorded.code(), Some(9));
}
