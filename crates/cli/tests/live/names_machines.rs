//! Functions of virtual machines in stacks, interpreted and compiled, against programs that are known:
//! of processes that have ended when the recording ends, and of threads that waited already when it
//! began. Java's methods, and JavaScript's functions.

use crate::support::{Live, Machine, hangdog, machine, machine_alone};
use hangdog_trace::Trace;
use hangdog_trace::ids::Utid;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{Samples, Switches};
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// For the recorder to learn where the machine is: Java's library has 20 MB, node 100.
const START_MS: &str = "2500";
/// So often a moment is looked at: on a busy machine a thread may be without a CPU in it.
const TRIES: usize = 5;

/// The program of most tests, compiled.
fn orchard(machine: &Machine) -> Option<()> {
    compiled(
        machine,
        "Orchard.java",
        include_str!("programs/Orchard.java"),
    )
}

/// Compiles a program; says that a test is not run where there is no compiler.
fn compiled(machine: &Machine, file: &str, text: &str) -> Option<()> {
    let source = machine.path(file);
    std::fs::write(&source, text).expect("a program");
    match Command::new("javac").arg(&source).status() {
        Ok(status) => assert!(status.success()),
        Err(_) => {
            not_run("javac");
            return None;
        }
    }
    Some(())
}

/// Says past the harness that a test is not run.
fn not_run(lacking: &str) {
    let line = format!("NOT RUN: names_machines: needs {lacking}\n");
    io::stderr()
        .write_all(line.as_bytes())
        .expect("standard error");
}

/// The command's thread of a name.
fn thread(live: &Live, name: &str) -> Utid {
    let process = live.threads.thread(live.command_thread()).upid;
    let own = live.threads.iter().filter(|thread| thread.upid == process);
    let mut found = own.filter(|thread| thread.name() == name);
    let thread = found.next().expect(name);
    assert!(found.next().is_none(), "two are called {name}");
    thread.utid
}

/// The program's methods in a stack, innermost first.
fn methods(stacks: &StackTable, stack: u32) -> Vec<String> {
    let names = stacks.stack(stack).filter_map(|frame| frame.function);
    let own = names.filter(|name| name.starts_with("Orchard.") || name.starts_with("Mill."));
    own.map(str::to_owned).collect()
}

/// What a thread that waits is in; what computes, interpreted at first and compiled then; and what
/// waits for a monitor. Sources have their files.
#[test]
fn java_methods_are_named() {
    let Some(machine) = machine() else {
        return;
    };
    let Some(()) = orchard(&machine) else { return };
    let live = machine.recorded(&[], &["java", "-cp", ".", "Orchard", START_MS]);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let switches: Switches = live.table();
    let waits = |name: &str| -> Vec<u32> {
        let thread = thread(&live, name);
        (0..switches.len())
            .filter(|&row| switches.prev[row] == thread && switches.object[row] != 0)
            .map(|row| switches.user_stack[row])
            .collect()
    };
    let harvest = ["Orchard.pick", "Orchard.climb", "Orchard.harvest"];
    let picks = waits("harvest")
        .into_iter()
        .filter(|&stack| methods(&stacks, stack) == harvest);
    assert!(picks.count() >= 9);
    let kept = |&stack: &u32| methods(&stacks, stack) == ["Orchard.await"];
    assert!(waits("await").iter().any(kept));
    let crush = thread(&live, "crush");
    let samples: Samples = live.table();
    let own: Vec<u32> = (0..samples.len())
        .filter(|&row| samples.thread[row] == crush)
        .map(|row| samples.user_stack[row])
        .collect();
    let is_crush = |&&stack: &&u32| {
        methods(&stacks, stack)
            .first()
            .is_some_and(|m| m == "Orchard.crush")
    };
    let right = own.iter().filter(is_crush).count();
    assert!(own.len() >= 50, "{}", own.len());
    assert!(right * 10 >= own.len() * 9, "{right} of {}", own.len());
    let sources: Vec<&str> = waits("harvest")
        .iter()
        .flat_map(|&stack| stacks.stack(stack))
        .filter(|frame| frame.function == Some("Orchard.pick"))
        .map(|frame| frame.source)
        .collect();
    assert!(sources.iter().all(|&source| source == "Orchard.java"));
}

/// Whether most samples are of a method, compiled or not.
fn is_sampled_in(trace: &Trace, method: &str) -> bool {
    let stacks = StackTable::load(trace).expect("stacks");
    let samples: Samples = trace.read().expect("samples");
    let is_of = |&&stack: &&u32| methods(&stacks, stack).iter().any(|own| own == method);
    let all = samples.user_stack.iter();
    all.filter(is_of).count() * 2 > samples.len()
}

/// A thread that waited when the recording began is in the methods that it waits in.
#[test]
fn java_methods_of_who_waits_already_are_named() {
    let Some(machine) = machine() else {
        return;
    };
    let Some(()) = orchard(&machine) else { return };
    let mut java = Command::new("java")
        .args(["-cp", ".", "Orchard", "100000"])
        .current_dir(machine.dir())
        .stdout(Stdio::null())
        .spawn()
        .expect("java");
    std::thread::sleep(Duration::from_secs(2));
    let live = machine.recorded(&[], &["sleep", "1"]);
    java.kill().expect("a process");
    java.wait().expect("a process");
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let switches: Switches = live.table();
    let main = ["Orchard.main"];
    let found = switches
        .user_stack
        .iter()
        .any(|&stack| methods(&stacks, stack) == main);
    assert!(found, "nobody waits in main");
}

/// A thread that computes at the moment that is looked at is in the compiled method that it is in.
#[test]
fn java_methods_of_who_runs_now_are_named() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let source = include_str!("programs/Mill.java");
    let Some(()) = compiled(&machine, "Mill.java", source) else {
        return;
    };
    let mut java = Command::new("java")
        .args(["-cp", ".", "Mill"])
        .current_dir(machine.dir())
        .spawn()
        .expect("java");
    std::thread::sleep(Duration::from_secs(1));
    let is_named = (0..TRIES).any(|at| {
        let moment = machine.path(&format!("moment{at}.hang"));
        let pid = java.id().to_string();
        let mut why = hangdog();
        why.args(["why", "--live", &pid, "-o"]).arg(&moment);
        why.output().expect("a run");
        is_sampled_in(&Trace::open(&moment).expect("a moment"), "Mill.grind")
    });
    java.kill().expect("a process");
    java.wait().expect("a process");
    assert!(is_named, "nobody runs in grind");
}

/// Functions of JavaScript, of an arrow function and of a class among them, are named with file and
/// line where they wait and where they compute, without any option of node.
#[test]
fn javascript_needs_no_option() {
    let Some(machine) = machine() else { return };
    if Command::new("node").arg("--version").output().is_err() {
        return not_run("node");
    }
    let program = machine.path("orchard.js");
    std::fs::write(&program, include_str!("programs/orchard.js")).expect("a program");
    let path = program.to_str().expect("plain text");
    let live = machine.recorded(&[], &["node", path, START_MS]);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let own = |stack: u32| -> Vec<String> {
        let frames = stacks.stack(stack);
        let own = frames.filter_map(|frame| {
            let line = frame.source.strip_prefix(path)?.strip_prefix(':')?;
            Some(format!("{} {line}", frame.function?))
        });
        own.collect()
    };
    let main = live.command_thread();
    let switches: Switches = live.table();
    let picks = (0..switches.len()).filter(|&row| {
        let harvest = ["pick 5", "climb 9", "harvest 12", "begin 30"];
        switches.prev[row] == main && own(switches.user_stack[row]) == harvest
    });
    assert!(picks.count() >= 9);
    let samples: Samples = live.table();
    let crushes = (0..samples.len()).filter(|&row| {
        let computes = |name: &String| name == "crush 19";
        samples.thread[row] == main && own(samples.user_stack[row]).first().is_some_and(computes)
    });
    // 400 ms at 250 a second; some fall into V8 itself.
    let found = crushes.count();
    assert!(found >= 30, "{found}");
}
