//! Goroutines of a Go program that wait: all of them are read, and the diagnosis names the one that tells most.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::Goroutines;

use crate::support::{Background, Live, Machine, hangdog, json, machine, text};

/// `programs/queues.go`, compiled without symbols as programs are shipped; none, and a word about it, without a compiler.
fn queues(machine: &Machine) -> Option<PathBuf> {
    let source = machine.path("queues.go");
    std::fs::write(&source, include_str!("programs/queues.go")).expect("a program");
    let binary = machine.path("queues");
    let mut compiler = Command::new("go");
    compiler
        .args(["build", "-ldflags=-s -w", "-o"])
        .args([&binary, &source])
        .env("GOCACHE", machine.path("go-cache"))
        .env("GO111MODULE", "off")
        .env("GOFLAGS", "");
    match compiler.status() {
        Ok(status) => assert!(status.success()),
        Err(_) => {
            let line = b"NOT RUN: goroutines: needs go\n";
            io::stderr().write_all(line).expect("standard error");
            return None;
        }
    }
    Some(binary)
}

/// The methods of the program's that its goroutines wait in at each look of a trace, in order.
fn methods(trace: &Live) -> Vec<Vec<String>> {
    let stacks = StackTable::load(&trace.trace).expect("stacks");
    let table: Goroutines = trace.table();
    let mut looks: Vec<(u64, Vec<String>)> = Vec::new();
    for row in 0..table.len() {
        let names = stacks.stack(table.user_stack[row]);
        let mut names = names.filter_map(|frame| frame.function);
        let own = names.find(|name| name.starts_with("main.(*shop)."));
        match looks.last_mut().filter(|(ts, _)| *ts == table.ts[row]) {
            Some((_, look)) => look.extend(own.map(str::to_owned)),
            None => looks.push((table.ts[row], own.map(str::to_owned).into_iter().collect())),
        }
    }
    let sorted = |(_, mut look): (u64, Vec<String>)| {
        look.sort();
        look
    };
    looks.into_iter().map(sorted).collect()
}

/// All that wait are in the trace, at its begin and its end, though the thread that ran each has gone on with the others.
/// The one that waits to send is named: in the recording, and of the moment.
#[test]
fn goroutines_that_wait_are_read() {
    let Some(machine) = machine() else { return };
    let Some(program) = queues(&machine) else {
        return;
    };
    let mut child = Command::new(program)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let stdout = child.stdout.take().expect("a pipe");
    let hung = Background(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line, "waits\n");
    let live = machine.recorded(&[], &["sleep", "1"]);
    let order = "main.(*shop).order";
    let mut all = vec!["main.(*shop).deliver"];
    all.extend(["main.(*shop).enter"; 4]);
    all.push(order);
    assert_eq!(methods(&live), [all.clone(), all]);
    let pid = hung.0.id().to_string();
    let of_process = json(&["why", "--process", &pid], live.trace.path());
    let output = hangdog().args(["why", "--live", &pid, "--json"]).output();
    let of_moment = serde_json::from_slice(&output.expect("a run").stdout).expect("JSON");
    for verdict in [of_process, of_moment] {
        let sentence = text(&verdict["sentence"]);
        let ending = "for another to receive from a channel in main.(*shop).order.";
        assert!(sentence.ends_with(ending), "{verdict}");
    }
}
