//! The flight recorder and its snapshots.

use crate::support::{Background, Machine, hangdog, json, machine, number, send, wait_until};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A flight recorder on a socket of its own.
pub struct Flight<'a> {
    machine: &'a Machine,
    process: Background,
}

impl Flight<'_> {
    pub fn start<'a>(machine: &'a Machine, options: &[&str]) -> Flight<'a> {
        let said = File::create(machine.path("said")).expect("a file");
        let process = on_socket(machine)
            .arg("flight")
            .args(options)
            .stderr(said)
            .spawn();
        let flight = Flight {
            machine,
            process: Background(process.expect("a run")),
        };
        wait_until("it records", || flight.said().contains("recording into"));
        flight
    }

    pub fn said(&self) -> String {
        fs::read_to_string(self.machine.path("said")).unwrap_or_default()
    }
}

pub fn on_socket(machine: &Machine) -> Command {
    let mut command = hangdog();
    command.current_dir(machine.dir());
    command.env("HANGDOG_SOCKET", machine.path("flight.sock"));
    command
}

fn snap(machine: &Machine, name: &str) -> Output {
    let snap = on_socket(machine).args(["snap", "-o", name]).output();
    snap.expect("a run")
}

pub fn snapped(machine: &Machine, name: &str) -> serde_json::Value {
    let output = snap(machine, name);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains(&format!("hangdog why {name}")), "{errors}");
    assert!(output.stdout.is_empty());
    json(&["info"], &machine.path(name))
}

fn end(info: &serde_json::Value) -> u64 {
    number(&info["meta"]["started_unix_ns"]) + number(&info["duration_ns"])
}

/// Snapshots are traces, each of its own moment; the recorder keeps recording, ends when asked, and
/// takes its socket away.
#[test]
fn snapshots_of_a_flight() {
    let Some(machine) = machine() else { return };
    let mut flight = Flight::start(&machine, &["--memory", "64M"]);
    let first = snapped(&machine, "first.hang");
    let mut sleep = Command::new("sleep").arg("0.3").spawn().expect("sleep");
    let tid = sleep.id().to_string();
    assert!(sleep.wait().expect("its end").success());
    let second = snapped(&machine, "second.hang");
    for info in [&first, &second] {
        assert_eq!(info["meta"]["mode"], "flight");
        assert_eq!(info["loss"]["total"], 0);
        assert_eq!(info["loss"]["cut_short"], false);
        assert!(number(&info["event_count"]) > 0);
    }
    assert!(end(&second) >= end(&first) + 300_000_000);
    // What ran between the two is in the second alone, and whole.
    let story = json(&["story", "--thread", &tid], &machine.path("second.hang"));
    let intervals = story["intervals"].as_array().expect("intervals").iter();
    let slept = intervals
        .filter(|interval| interval["call"]["name"] == "clock_nanosleep")
        .map(|interval| number(&interval["duration_ns"]))
        .max();
    assert!(
        slept.is_some_and(|ns| ns >= 290_000_000),
        "{slept:?} in {}",
        second["duration_ns"]
    );

    assert!(
        flight.process.0.try_wait().expect("its state").is_none(),
        "it fell"
    );
    // The recorder answers first and then writes what it did.
    wait_until("the second snapshot is announced", || {
        flight.said().contains("snapshot 2")
    });
    send(&flight.process.0, libc::SIGINT);
    let code = flight.process.0.wait().expect("its end").code();
    assert_eq!(code, Some(0), "{}", flight.said());
    assert!(!machine.path("flight.sock").exists());
}

/// When the ring wraps around the recorder says how far back it reaches, and a snapshot holds as
/// much: a thread that lives throughout is whole in it, and none of its switches is missing.
#[test]
fn a_ring_that_has_come_round() {
    let Some(machine) = machine() else { return };
    let pingpong = machine.program("pingpong");
    let flight = Flight::start(&machine, &["--memory", "2M"]);
    let load = Background::load(&pingpong);
    wait_until("the ring is full", || {
        flight.said().contains("at the present rate")
    });
    let info = snapped(&machine, "round.hang");
    assert_eq!(info["loss"]["total"], 0);
    // 2 MiB of at least 12 bytes an event, of which the busier CPU has at most half.
    assert!(
        (1_000..175_000).contains(&number(&info["event_count"])),
        "{info}"
    );
    let pid = load.0.id().to_string();
    let threads = json(&["threads", "--process", &pid], &machine.path("round.hang"));
    let ping = &threads["threads"][0];
    let tid = ping["tid"].to_string();
    let is_lost = |interval: &Value| interval["what"] == "lost";
    let lost = intervals(&machine, &tid, is_lost);
    // Some kernels hide when a thread of process 1 leaves its CPU (perf does not see it either).
    // Who is switched in after it has no visible begin; a timer interrupt makes two intervals of it.
    let all = json(&["threads"], &machine.path("round.hang"));
    let hidden: usize = (all["threads"].as_array().expect("threads").iter())
        .filter(|thread| thread["pid"] == 1)
        .map(|first| {
            let ran = |interval: &Value| interval["state"] == "running";
            intervals(&machine, &first["tid"].to_string(), ran)
        })
        .sum();
    assert!(lost <= 2 * hidden, "{lost} lost, {hidden} of process 1");
    assert_eq!(ping["time_ns"], info["duration_ns"]);
    assert!(number(&ping["switches"]) > 100, "{ping}");
}

/// How many intervals of the thread in `round.hang` are such.
fn intervals(machine: &Machine, tid: &str, is_such: impl Fn(&Value) -> bool) -> usize {
    let story = json(&["story", "--thread", tid], &machine.path("round.hang"));
    let intervals = story["intervals"].as_array().expect("intervals").iter();
    intervals.filter(|interval| is_such(interval)).count()
}

/// Without a flight recorder there is nothing to save: exit code 2, and how to start one. A second
/// flight recorder on the same socket is refused.
#[test]
fn one_flight_at_a_time() {
    let Some(machine) = machine() else { return };
    let nothing = snap(&machine, "nothing.hang");
    assert_eq!(nothing.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert!(errors.contains("hangdog flight"), "{errors}");
    assert!(!machine.path("nothing.hang").exists());

    let flight = Flight::start(&machine, &["--memory", "1M"]);
    let second = on_socket(&machine).arg("flight").output().expect("a run");
    assert_eq!(second.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(errors.contains("already running"), "{errors}");
    assert_eq!(
        snap(&machine, "still.hang").status.code(),
        Some(0),
        "{}",
        flight.said()
    );
    let again = snap(&machine, "still.hang");
    assert_eq!(again.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(errors.contains("exists already"), "{errors}");
    assert!(Path::new(&machine.path("flight.sock")).exists());
}

/// A flight recorder whose terminal is gone, so that nobody reads what it says, still saves.
#[test]
fn nobody_listens() {
    let Some(machine) = machine() else { return };
    let mut process = on_socket(&machine)
        .args(["flight", "--memory", "1M"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("a run");
    let said = BufReader::new(process.stderr.take().expect("a pipe"));
    let started = said
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("recording into"));
    assert!(started.is_some());
    let _running = Background(process);
    let saved = snap(&machine, "unheard.hang");
    assert_eq!(
        saved.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&saved.stderr)
    );
}
