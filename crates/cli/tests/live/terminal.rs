//! Terminals whose output was stopped.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::{Background, hangdog, json, machine, text, wait_until};

/// Who writes to a terminal that was stopped by Ctrl-S waits for that: in the recording, and of the moment.
#[test]
fn a_terminal_that_was_stopped() {
    const PROGRAM: &str = "
import os, pty, select, time
child, terminal = pty.fork()
if child == 0:
    time.sleep(0.3)
    while True:
        os.write(1, b'line after line')
os.write(terminal, b'\x13')
print(child, flush=True)
while True:
    if select.select([terminal], [], [], 0.1)[0]:
        os.read(terminal, 65536)
";
    let Some(machine) = machine() else { return };
    let mut starter = Command::new("python3")
        .args(["-c", PROGRAM])
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let stdout = starter.stdout.take().expect("a pipe");
    let _starter = Background(starter);
    let mut child = String::new();
    BufReader::new(stdout)
        .read_line(&mut child)
        .expect("a line");
    let child = child.trim();
    let call = format!("/proc/{child}/syscall");
    wait_until("it is stopped", || {
        // write(2) on x86-64 and arm64.
        let call = std::fs::read_to_string(&call).unwrap_or_default();
        ["1 ", "64 "].iter().any(|number| call.starts_with(number))
    });
    let live = machine.recorded(&[], &["sleep", "0.3"]);
    let of_process = json(&["why", "--process", child], live.trace.path());
    let output = hangdog().args(["why", "--live", child, "--json"]).output();
    let of_moment = serde_json::from_slice(&output.expect("a run").stdout).expect("JSON");
    for verdict in [of_process, of_moment] {
        let sentence = text(&verdict["sentence"]);
        assert!(
            sentence.contains("for its terminal, stopped by Ctrl-S, to take output"),
            "{verdict}"
        );
    }
}
