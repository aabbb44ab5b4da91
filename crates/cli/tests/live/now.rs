//! What programs wait for while they hang: `hangdog why --live` and `hangdog record --limit`.

use crate::support::{Background, hangdog, json, machine, number, text, wait_until};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// What `why --live` says of a process.
fn why(pid: u32) -> Value {
    let pid = pid.to_string();
    let output = hangdog().args(["why", "--live", &pid, "--json"]).output();
    let output = output.expect("a run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Whether all threads of a process, `count`, wait in the system call.
fn all_wait_in(pid: u32, count: usize, call: libc::c_long) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    let prefix = format!("{call} ");
    let calls = threads.flatten().filter_map(|thread| {
        let path = thread.path().join("syscall");
        fs::read_to_string(path).ok()
    });
    calls.filter(|line| line.starts_with(&prefix)).count() == count
}

/// Two threads that wait for each other are told as a circle, in the present, with their stacks.
#[test]
fn a_circle_is_told_while_it_is_there() {
    let Some(machine) = machine() else { return };
    let knot = machine.program("knot");
    let hung = Background(Command::new(&knot).spawn().expect("the program"));
    let pid = hung.0.id();
    wait_until("all three wait", || all_wait_in(pid, 3, libc::SYS_futex));
    let verdict = why(pid);
    let knot = verdict["knot"].as_array().expect("a circle");
    let mut names: Vec<&str> = knot.iter().map(|who| text(&who["thread"])).collect();
    names.sort_unstable();
    assert_eq!(names, ["left", "right"]);
    assert_eq!(verdict["root"]["class"], "Circular");
    assert_eq!(number(&verdict["problem"]["pid"]), u64::from(pid));
    let sentence = text(&verdict["sentence"]);
    assert!(sentence.contains(" wait for each other"), "{sentence}");
    let steps = verdict["path"].as_array().expect("a path").iter();
    let mut stacks = steps.map(|step| step["stack"].to_string());
    assert!(stacks.any(|stack| stack.contains("take")), "{verdict}");
    assert_eq!(verdict["trace"], Value::Null);
}

/// The sampling clock copies a part of a running thread's stack only, which a native function fills: the
/// program's own function, further out, is named all the same. On a busy machine it may be seen to wait for a CPU.
#[test]
fn who_runs_deep_in_a_library_is_named_by_its_own_function() {
    const SCRIPT: &str = "import random
def load_model():
    data = [random.random() for _ in range(200000)]
    while True:
        sorted(data)
load_model()
";
    let Some(machine) = machine() else { return };
    let script = machine.path("load.py");
    fs::write(&script, SCRIPT).expect("a script");
    let Ok(child) = Command::new("python3").arg(&script).spawn() else {
        eprintln!("NOT RUN: now: needs python3");
        return;
    };
    let program = Background(child);
    thread::sleep(Duration::from_secs(1));
    let looks = (0..6).map(|_| text(&why(program.0.id())["sentence"]).to_owned());
    let runs: Vec<String> = looks.filter(|it| it.contains(" runs ")).collect();
    let right = runs.iter().filter(|it| it.contains("load_model"));
    assert!(right.count() * 5 >= runs.len() * 4, "{runs:?}");
}

/// Of two children a program waits for one by a descriptor that stands for it.
#[test]
fn who_is_awaited_by_a_descriptor_is_named() {
    const SCRIPT: &str = "import os, select, subprocess, sys
first = subprocess.Popen(['sleep', '600'])
second = subprocess.Popen(['sleep', '600'])
awaited = os.pidfd_open(first.pid)
print(first.pid, second.pid, flush=True)
if sys.argv[1] == 'poll':
    poll = select.poll()
    poll.register(awaited, select.POLLIN)
    poll.poll()
else:
    os.waitid(os.P_PIDFD, awaited, os.WEXITED)
";
    let Some(machine) = machine() else { return };
    let script = machine.path("starter.py");
    fs::write(&script, SCRIPT).expect("a script");
    for (how, call) in [("poll", libc::SYS_poll), ("waitid", libc::SYS_waitid)] {
        let starter = Command::new("python3")
            .arg(&script)
            .arg(how)
            .stdout(Stdio::piped())
            .spawn();
        let Ok(starter) = starter else {
            eprintln!("NOT RUN: now: needs python3");
            return;
        };
        let mut starter = Background(starter);
        let mut line = String::new();
        let stdout = starter.0.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("pids");
        let children: Vec<u32> = (line.split_whitespace())
            .map(|pid| pid.parse().expect("a pid"))
            .collect();
        let pid = starter.0.id();
        wait_until("it waits", || all_wait_in(pid, 1, call));
        let verdict = why(pid);
        for &child in &children {
            let child = rustix::process::Pid::from_raw(child.cast_signed()).expect("a pid");
            rustix::process::kill_process(child, rustix::process::Signal::KILL).expect("a kill");
        }
        assert_eq!(
            number(&verdict["root"]["pid"]),
            u64::from(children[0]),
            "{verdict}"
        );
        let sentence = text(&verdict["sentence"]);
        assert!(
            sentence.contains("waits for a process to end"),
            "{sentence}"
        );
    }
}

/// Who waits for the answer of a server that is stopped waits for that server; `-o` keeps what was
/// seen.
#[test]
fn a_server_that_is_stopped_is_named() {
    let Some(machine) = machine() else { return };
    let program = machine.program("unanswered");
    let client = Command::new(&program).stdout(Stdio::piped()).spawn();
    let mut client = Background(client.expect("the program"));
    let pid = client.0.id();
    let mut fact = String::new();
    let stdout = client.0.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut fact).expect("a fact");
    let fact: Value = serde_json::from_str(&fact).expect("JSON");
    wait_until("it waits", || all_wait_in(pid, 1, libc::SYS_read));
    let verdict = why(pid);
    assert_eq!(verdict["root"]["pid"], fact["server"], "{verdict}");
    assert_eq!(verdict["root"]["thread"], "server");
    assert_eq!(number(&verdict["problem"]["pid"]), u64::from(pid));

    let kept = machine.path("now.hang");
    let output = hangdog()
        .args(["why", "--live", "unanswered", "-o"])
        .arg(&kept)
        .output();
    let stdout = String::from_utf8(output.expect("a run").stdout).expect("UTF-8");
    let first = stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("unanswered waits "), "{stdout}");
    assert!(
        first.contains(": server ") && first.contains("is stopped by a signal (SIGSTOP)"),
        "{stdout}"
    );
    assert_eq!(json(&["info"], &kept)["meta"]["mode"], "instant");
}

/// `why --live` names the thread that holds a lock of the kernel as a reader, although both threads blocked before
/// it looked.
#[test]
fn a_reader_that_holds_a_lock_of_the_kernel_is_named() {
    let Some(machine) = machine() else { return };
    // Where the kernel looks for hung tasks, a task says for which lock it waits.
    if !Path::new("/proc/sys/kernel/hung_task_timeout_secs").exists() {
        eprintln!("NOT RUN: a_reader_that_holds_a_lock: this kernel does not look for hung tasks");
        return;
    }
    let program = machine.program("reader");
    let folder = machine.path("folder");
    fs::create_dir(&folder).expect("a folder");
    let mut command = Command::new(&program);
    let child = command.arg(&folder).stdout(Stdio::piped()).spawn();
    let mut child = Background(child.expect("the program"));
    let mut fact = String::new();
    let stdout = child.0.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut fact).expect("a fact");
    let fact: Value = serde_json::from_str(&fact).expect("JSON");
    if fact["unavailable"] == true {
        eprintln!("NOT RUN: a_reader_that_holds_a_lock: no userfaultfd");
        return;
    }
    let verdict = why(child.0.id());
    let steps = verdict["path"].as_array().expect("a path").iter();
    let mut edges = steps.map(|step| (&step["tid"], &step["edge"]["kind"]));
    assert!(
        edges.any(|edge| edge == (&fact["maker"], &"holder".into())),
        "{verdict}"
    );
    assert_eq!(verdict["root"]["tid"], fact["reader"], "{verdict}");
}

/// A program that stalls again and again is met in a stall, though it may rest at the first look. A look takes
/// less time than it rests; where the machine is so busy that no stall is met, it is tried again.
#[test]
fn a_stall_that_comes_again_is_met() {
    /// So often it is tried.
    const TRIES: usize = 5;
    let Some(_machine) = machine() else { return };
    let script = "import time\ndef reindex():\n  end = time.monotonic() + 1\n  while time.monotonic() < end: pass\n\
                  while True:\n  time.sleep(1.2)\n  reindex()\n";
    let stalls = Command::new("python3").args(["-c", script]).spawn();
    let stalls = Background(stalls.expect("python3"));
    let pid = stalls.0.id();
    let nap = libc::SYS_clock_nanosleep;
    let mut found = (0..TRIES).map(|_| {
        wait_until("it naps", || all_wait_in(pid, 1, nap));
        // Of one that gets no CPU at a look it is not known what it does.
        (why(pid)["root"]["function"].as_str()).map(str::to_owned)
    });
    assert!(found.any(|function| function.as_deref() == Some("reindex")));
}

/// Asked to stop while it looks at a program at rest again, it tells what it has seen, and takes away the traces that it made for itself.
#[test]
fn what_was_seen_is_taken_away() {
    let Some(machine) = machine() else { return };
    let naps = Command::new("python3")
        .args(["-c", "import time\nwhile True: time.sleep(0.05)"])
        .spawn();
    let naps = Background(naps.expect("python3"));
    let nap = libc::SYS_clock_nanosleep;
    wait_until("it naps", || all_wait_in(naps.0.id(), 1, nap));
    let folder = machine.path("seen");
    fs::create_dir(&folder).expect("a folder");
    let why = hangdog()
        .args(["why", "--live", &naps.0.id().to_string()])
        .env("TMPDIR", &folder)
        .stdout(Stdio::piped())
        .spawn();
    let why = why.expect("a run");
    let folders = || fs::read_dir(&folder).expect("a folder").flatten();
    wait_until("it looks again", || {
        folders().any(|entry| entry.path().join("2.hang").exists())
    });
    let pid = libc::pid_t::try_from(why.id()).expect("a pid");
    // SAFETY: takes plain numbers; the child has not been waited for, so the pid is its.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let output = why.wait_with_output().expect("an end");
    assert!(output.status.success(), "{}", output.status);
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(said.contains("sleeps"), "{said}");
    assert_eq!(folders().count(), 0);
}

/// A process that is not there is nothing found.
#[test]
fn nobody_of_that_name() {
    let Some(_machine) = machine() else { return };
    let output = hangdog()
        .args(["why", "--live", "no such process"])
        .output();
    let output = output.expect("a run");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
}

/// Of a command that is not done at its limit the chain is printed and the trace saved; then it is
/// ended with all that it started; one that is done in time is as without a limit.
#[test]
fn a_command_at_its_limit() {
    let Some(machine) = machine() else { return };
    let knot = machine.program("knot");
    let script = format!("echo $$; {}; true", knot.display());
    let hung = machine.record(&["--limit", "2s"], &["sh", "-c", &script]);
    assert_eq!(hung.code(), Some(124), "{}", hung.stderr());
    let stderr = hung.stderr();
    assert!(
        stderr.contains("wait for each other in a circle"),
        "{stderr}"
    );
    let stdout = String::from_utf8(hung.output.stdout.clone()).expect("UTF-8");
    let shell: u32 = stdout.trim().parse().expect("a pid");
    assert!(!Path::new(&format!("/proc/{shell}")).exists());
    let info = json(&["info"], &hung.path);
    assert_eq!(info["loss"]["cut_short"], false);
    let problems = json(&["problems"], &hung.path)["problems"].to_string();
    assert!(problems.contains("knot"), "{problems}");
    fs::remove_dir_all(&hung.path).expect("the trace");

    let done = machine.record(&["--limit", "60s"], &["sh", "-c", "exit 7"]);
    assert_eq!(done.code(), Some(7), "{}", done.stderr());
}
