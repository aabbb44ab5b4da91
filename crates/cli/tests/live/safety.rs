//! What others can do to a recording: files that are no files, servers that are gone, processes of
//! other namespaces; and what a recorder may still do itself once it records.

use crate::support::{
    Background, Machine, blocks_in, hangdog, json, machine, send, text, wait_until,
};
use serde_json::Value;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The end of a process that must not hang. What is looked for took for ever before, so that the time
/// can be long enough for any machine.
fn end_of(mut child: Child) -> ExitStatus {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if Instant::now() > end {
            let _ = child.kill();
            panic!("it hangs");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Why files of a trace could not be read.
fn unread(trace: &Path) -> Vec<String> {
    let info = json(&["info"], trace);
    let unread = info["meta"]["unread"].as_array().cloned();
    let reasons = unread.unwrap_or_default();
    reasons
        .iter()
        .map(|file| text(&file["reason"]).to_owned())
        .collect()
}

fn record_for_a_second(trace: &Path) -> Command {
    let mut command = hangdog();
    command.args(["record", "--for", "1s", "-o"]).arg(trace);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A program whose file was replaced by a pipe is recorded and named, from what is mapped of it, and
/// the trace says what lies at its path.
#[test]
fn a_pipe_in_a_program_s_place() {
    let Some(machine) = machine() else {
        return;
    };
    let pingpong = machine.program("pingpong");
    let load = Background::load(&pingpong);
    wait_until("the program runs", || {
        fs::read_link(format!("/proc/{}/exe", load.0.id())).is_ok_and(|exe| exe == pingpong)
    });
    let trace = machine.path("pipe.hang");
    let recorder = hangdog()
        .args(["record", "-o"])
        .arg(&trace)
        .stderr(Stdio::null())
        .spawn()
        .expect("a run");
    // It reads the program's file after its first rows, and a busy machine delays that.
    wait_until("rows", || trace.join("switches").exists());
    thread::sleep(Duration::from_secs(1));
    fs::remove_file(&pingpong).expect("its file");
    let made = Command::new("mkfifo").arg(&pingpong).status();
    assert!(made.expect("mkfifo").success());
    send(&recorder, libc::SIGINT);
    assert_eq!(end_of(recorder).code(), Some(0));
    let reasons = unread(&trace);
    assert!(
        reasons.contains(&"not a regular file any more".into()),
        "{reasons:?}"
    );
    let tid = load.0.id().to_string();
    assert!(blocks_in(&trace, &tid, "main"), "no stack names main");
}

/// A mounted file system whose server has gone; it is taken away with this.
struct DeadMount {
    folder: PathBuf,
    server: Background,
}

impl DeadMount {
    /// Serves `program` until it is silenced.
    fn new(machine: &Machine, program: &Path) -> Option<DeadMount> {
        let folder = machine.path("mount");
        fs::create_dir(&folder).expect("a folder");
        let server = Command::new(machine.program("silent"))
            .arg(&folder)
            .arg(program)
            .spawn();
        let mut server = Background(server.expect("a server"));
        let copy = folder.join("program");
        let end = Instant::now() + Duration::from_secs(60);
        while !copy.exists() {
            if let Some(status) = server.0.try_wait().expect("a child") {
                let line = format!("NOT RUN: a_dead_mount: no FUSE here ({status})\n");
                let written = io::stderr().write_all(line.as_bytes());
                written.expect("standard error");
                return None;
            }
            assert!(Instant::now() < end, "no mount");
            thread::sleep(Duration::from_millis(20));
        }
        Some(DeadMount { folder, server })
    }

    fn program(&self) -> PathBuf {
        self.folder.join("program")
    }
}

impl Drop for DeadMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
    }
}

/// A program on a server that has gone does not keep the recording from beginning, nor from ending:
/// neither by itself, nor by a signal. What it is called is missing, and the trace says why.
#[test]
fn a_dead_mount() {
    let Some(machine) = machine() else { return };
    let Some(mount) = DeadMount::new(&machine, &machine.program("pingpong")) else {
        return;
    };
    let load = Background::load(&mount.program());
    wait_until("the program runs", || {
        fs::read_link(format!("/proc/{}/exe", load.0.id())).is_ok_and(|exe| exe == mount.program())
    });
    // All that it needs of its file is in memory after its first round.
    thread::sleep(Duration::from_millis(300));
    send(&mount.server.0, libc::SIGUSR1);
    let trace = machine.path("dead.hang");
    let recorder = record_for_a_second(&trace).spawn().expect("a run");
    assert_eq!(end_of(recorder).code(), Some(0));
    let reasons = unread(&trace);
    let silent = "its disk or server did not answer in time".to_owned();
    assert!(reasons.contains(&silent), "{reasons:?}");

    let (trace, said) = (machine.path("asked.hang"), machine.path("said"));
    let recorder = hangdog()
        .args(["record", "-o"])
        .arg(&trace)
        .stderr(fs::File::create(&said).expect("a file"))
        .spawn()
        .expect("a run");
    wait_until("rows", || trace.join("switches").exists());
    send(&recorder, libc::SIGTERM);
    let status = end_of(recorder).code();
    assert_eq!(
        status,
        Some(0),
        "{}",
        fs::read_to_string(&said).expect("text")
    );
    let info = json(&["info"], &trace);
    assert_eq!(info["meta"]["state"], "complete");
}

/// The second signal ends a recording at once, though the first is not done with: its command does not
/// heed it. What was written opens.
#[test]
fn a_second_signal_ends_at_once() {
    let Some(machine) = machine() else { return };
    let trace = machine.path("twice.hang");
    let command = Background(
        Command::new("sh")
            .args(["-c", "while :; do sleep 0.01; done"])
            .spawn()
            .expect("something that happens"),
    );
    let recorder = hangdog()
        .args(["record", "-o"])
        .arg(&trace)
        .args([
            "--",
            "sh",
            "-c",
            "trap '' TERM INT; sleep 1; sleep 1; sleep 1; sleep 1",
        ])
        .stderr(Stdio::null())
        .spawn()
        .expect("a run");
    wait_until("rows", || trace.join("switches").exists());
    send(&recorder, libc::SIGINT);
    thread::sleep(Duration::from_millis(100));
    send(&recorder, libc::SIGINT);
    assert_eq!(end_of(recorder).code(), Some(128 + libc::SIGINT));
    drop(command);
    let info = json(&["info"], &trace);
    assert_eq!(info["loss"]["cut_short"], true);
}

/// A field of /proc/PID/status, in hexadecimal for capabilities.
fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_whitespace().next());
    let word = word.unwrap_or_else(|| panic!("no {name} in {status}"));
    let radix = if name.starts_with("Cap") { 16 } else { 10 };
    u64::from_str_radix(word, radix).expect("a number")
}

/// The status of each thread of a process.
fn statuses(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let statuses = tasks
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("status")));
    statuses.flatten().collect()
}

fn children(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |&child: &u32| {
        let status = fs::read_to_string(format!("/proc/{child}/status"));
        status.is_ok_and(|status| field(&status, "PPid:") == u64::from(pid))
    };
    pids.filter(is_child).collect()
}

/// The processes that helpers come from, of all recorders: no recorder is their parent.
fn nurseries() -> Vec<u32> {
    let is_helper = |pid: u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words
            .split(|&byte| byte == 0)
            .any(|word| word == b"hangdog-helpers")
    };
    let is_first = |&pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        is_helper(pid) && !status.is_empty() && !is_helper(field(&status, "PPid:") as u32)
    };
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(is_first).collect()
}

/// A capability's bit.
fn bit(capability: u32) -> u64 {
    1 << capability
}

/// By the kernel's numbers, as docs/SECURITY.md has them.
const CHOWN: u32 = 0;
const DAC_OVERRIDE: u32 = 1;
const DAC_READ_SEARCH: u32 = 2;
const FOWNER: u32 = 3;
const KILL: u32 = 5;
const SETGID: u32 = 6;
const SETUID: u32 = 7;
const SYS_CHROOT: u32 = 18;
const SYS_PTRACE: u32 = 19;
const SYS_NICE: u32 = 23;
const SYSLOG: u32 = 34;
const CHECKPOINT_RESTORE: u32 = 40;

fn bits(capabilities: &[u32]) -> u64 {
    capabilities.iter().map(|&capability| bit(capability)).sum()
}

/// While they record, no thread of `record`, `flight` and `watch` has a capability beyond those that
/// docs/SECURITY.md lists, nor has any of their helpers; who takes files apart has none, is nobody, and
/// may ask little of the kernel. The recorded command has all that its caller has.
#[test]
fn privileges_are_given_up() {
    let Some(machine) = machine() else { return };
    let pingpong = machine.program("pingpong");
    let _load = Background::load(&pingpong);
    let looks = [SYS_PTRACE, CHECKPOINT_RESTORE];
    let kept = bits(&[CHOWN, DAC_OVERRIDE, FOWNER, SYSLOG]) | bits(&looks);
    let opens = bits(&[DAC_READ_SEARCH, SYS_PTRACE, CHECKPOINT_RESTORE]);
    let makes = bits(&[SETUID, SETGID, SYS_CHROOT]);
    let own = field(
        &fs::read_to_string("/proc/self/status").expect("a status"),
        "CapEff:",
    );
    let out = machine.path("capabilities");
    let script = format!(
        "grep CapEff: /proc/self/status > {}; sleep 60",
        out.display()
    );
    let record = [
        "record",
        "-o",
        "kept.hang",
        "--",
        "sh",
        "-c",
        script.as_str(),
    ];
    let commands: [(&[&str], u64); 3] = [
        (&record, kept | bits(&[KILL, SYS_NICE])),
        (&["flight"], kept),
        (&["watch", "--dir", "caught"], kept),
    ];
    for (words, allowed) in commands {
        let others = nurseries();
        let recorder = hangdog()
            .args(words)
            .env("HANGDOG_SOCKET", machine.path("flight.sock"))
            .current_dir(machine.dir())
            .stderr(Stdio::null())
            .spawn();
        let recorder = Background(recorder.expect("a run"));
        let pid = recorder.0.id();
        // The helpers of unwind tables are there once something is recorded.
        let pairs = || {
            let mut nurseries = nurseries();
            nurseries.retain(|nursery| !others.contains(nursery));
            let openers: Vec<u32> = nurseries.iter().flat_map(|&n| children(n)).collect();
            let parsers: Vec<u32> = openers.iter().flat_map(|&o| children(o)).collect();
            (nurseries, openers, parsers)
        };
        wait_until("programs are attached and helpers work", || {
            let is_attached = statuses(pid).iter().all(|s| field(s, "NoNewPrivs:") == 1);
            let (_, _, parsers) = pairs();
            let confined = parsers
                .iter()
                .all(|&parser| statuses(parser).iter().all(|s| field(s, "Seccomp:") == 2));
            is_attached && !parsers.is_empty() && confined
        });
        if words == record {
            wait_until("the command says what it may do", || {
                fs::read_to_string(&out).is_ok_and(|text| text.ends_with('\n'))
            });
        }
        for status in statuses(pid) {
            assert_eq!(
                field(&status, "CapEff:") & !allowed,
                0,
                "{words:?}: {status}"
            );
            assert_eq!(
                field(&status, "CapPrm:") & !allowed,
                0,
                "{words:?}: {status}"
            );
        }
        let (nurseries, _, parsers) = pairs();
        for nursery in nurseries {
            let status = &statuses(nursery)[0];
            assert_eq!(field(status, "NoNewPrivs:"), 1, "{status}");
            assert_eq!(field(status, "CapEff:") & !(opens | makes), 0, "{status}");
        }
        for parser in parsers {
            let status = &statuses(parser)[0];
            assert_eq!(field(status, "CapPrm:"), 0, "{status}");
            assert_eq!(field(status, "NoNewPrivs:"), 1, "{status}");
            if own & makes == makes {
                assert_eq!(field(status, "Uid:"), 65534, "{status}");
            }
        }
    }
    let command = fs::read_to_string(&out).expect("what the command wrote");
    assert_eq!(field(&command, "CapEff:"), own);
}

/// In a pid namespace of its own, where the kernel's numbers mean other processes, nothing is recorded
/// with numbers mixed: `record` and `doctor` say what it would need.
#[test]
fn a_pid_namespace() {
    let Some(machine) = machine() else { return };
    let inside = |words: &[&str]| {
        let output = Command::new("unshare")
            .args(["-p", "-f", "--mount-proc"])
            .arg(env!("CARGO_BIN_EXE_hangdog"))
            .args(words)
            .current_dir(machine.dir())
            .output()
            .expect("unshare");
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    };
    let (code, said) = inside(&["record", "-o", "inside.hang", "--", "true"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--pid=host"), "{said}");
    assert!(!machine.path("inside.hang").exists());
    let (code, said) = inside(&["doctor", "--json"]);
    assert_eq!(code, Some(1), "{said}");
    let doctor: Value = serde_json::from_str(&said).expect("JSON");
    let checks = doctor["checks"].as_array().expect("checks").iter();
    let bad: Vec<&str> = checks
        .filter(|check| check["finding"] == "bad")
        .map(|check| text(&check["name"]))
        .collect();
    assert_eq!(bad, ["pid namespace"]);
}

/// A client of debuginfod that never ends is ended.
#[test]
fn a_debuginfod_that_never_ends() {
    let Some(machine) = machine() else { return };
    let pingpong = machine.program("pingpong");
    let stripped = Command::new("strip").arg(&pingpong).status();
    assert!(stripped.expect("strip").success());
    let find = machine.path("debuginfod-find");
    fs::write(&find, "#!/bin/sh\nexec sleep 10000\n").expect("a script");
    fs::set_permissions(&find, fs::Permissions::from_mode(0o755)).expect("a program");
    let _load = Background::load(&pingpong);
    let path = std::env::var("PATH").expect("a PATH");
    let recorder = record_for_a_second(&machine.path("slow.hang"))
        .env("PATH", format!("{}:{path}", machine.dir().display()))
        .env("DEBUGINFOD_URLS", "http://localhost:9/")
        .env("DEBUGINFOD_MAXTIME", "1")
        .spawn();
    assert_eq!(end_of(recorder.expect("a run")).code(), Some(0));
}

/// Without CAP_SYS_PTRACE recording works, with limits, and so says `doctor`.
#[test]
fn doctor_knows_what_is_needed() {
    let Some(_machine) = machine() else { return };
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"])
        .arg(env!("CARGO_BIN_EXE_hangdog"))
        .args(["doctor", "--json"])
        .output()
        .expect("setpriv");
    let doctor: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = doctor["checks"].as_array().expect("checks").iter();
    let privileges: Vec<&Value> = checks.filter(|c| c["name"] == "privileges").collect();
    assert_eq!(privileges[0]["finding"], "limited", "{doctor}");
    assert_eq!(doctor["works"], true);
}
