//! Names from each of the places that have them, in recordings: debug information with inlined
//! functions, a just-in-time compiler's own files, programs that have ended or are gone.

use crate::support::{Live, Machine, machine, number};
use hangdog_trace::ids::Utid;
use hangdog_trace::stacks::{ResolvedFrame, StackTable};
use hangdog_trace::tables::Samples;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program `programs/NAME.cc`, optimised, with debug information.
fn optimised(machine: &Machine, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/live/programs")
        .join(format!("{name}.cc"));
    let binary = machine.path(name);
    let built = Command::new("c++")
        .args(["-Wall", "-Werror", "-O2", "-g", "-o"])
        .args([&binary, &source])
        .status();
    assert!(built.expect("a C++ compiler (c++)").success(), "{name}");
    binary
}

fn plain(path: &Path) -> &str {
    path.to_str().expect("plain text")
}

/// How many of a process's samples, of how many, have a frame of which something is true.
fn count(live: &Live, pid: &Value, is_it: impl Fn(&ResolvedFrame<'_>) -> bool) -> (usize, usize) {
    let upid = live.threads.thread(live.utid(pid)).upid;
    let of_process = |thread: Utid| live.threads.thread(thread).upid == upid;
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let samples: Samples = live.table();
    let own = (0..samples.len()).filter(|&i| of_process(samples.thread[i]));
    let user: Vec<u32> = own
        .map(|i| samples.user_stack[i])
        .filter(|&s| s != 0)
        .collect();
    let found = user
        .iter()
        .filter(|&&stack| stacks.stack(stack).any(|frame| is_it(&frame)));
    (found.count(), user.len())
}

/// Nine of ten, of enough to tell.
fn is_most((found, of): (usize, usize)) -> bool {
    of >= 20 && found * 10 >= of * 9
}

/// A function that the compiler inlined is named as such, with its line, in front of the one that
/// it was inlined into; both as people write them.
#[test]
fn inlined_functions_are_named() {
    let Some(machine) = machine() else { return };
    let program = optimised(&machine, "bakery");
    let live = machine.recorded(&[], &[plain(&program), "300"]);
    let pid = &live.facts[0]["pid"];
    let inner = count(&live, pid, |frame| {
        frame.inlined
            && frame.function == Some("bakery::Oven<int>::bake(int)")
            && frame.source.contains("bakery.cc:")
    });
    let outer = count(&live, pid, |frame| {
        !frame.inlined && frame.function == Some("bakery::work(int)")
    });
    assert!(is_most(inner) && is_most(outer), "{inner:?} {outer:?}");
}

/// The program has ended when names are sought, and they are found.
#[test]
fn an_ended_process_is_named() {
    let Some(machine) = machine() else { return };
    let program = optimised(&machine, "bakery");
    let script = format!("{} 300; sleep 0.1", plain(&program));
    let live = machine.recorded(&[], &["sh", "-c", &script]);
    let work = count(&live, &live.facts[0]["pid"], |frame| {
        frame.function == Some("bakery::work(int)")
    });
    assert!(is_most(work), "{work:?}");
}

/// A program that was replaced while it was recorded gets none of the new file's names; module
/// and offset remain.
#[test]
fn a_replaced_program_keeps_its_module() {
    let Some(machine) = machine() else { return };
    let program = optimised(&machine, "bakery");
    let other = machine.path("other");
    fs::copy("/bin/true", &other).expect("a copy");
    let (path, other) = (plain(&program), plain(&other));
    let script = format!("{path} 300; rm {path}; cp {other} {path}");
    let live = machine.recorded(&[], &["sh", "-c", &script]);
    let pid = &live.facts[0]["pid"];
    let named = count(&live, pid, |frame| {
        frame.function.is_some() && frame.module == Some("bakery")
    });
    let unnamed = count(&live, pid, |frame| frame.module == Some("bakery"));
    assert_eq!(named.0, 0, "{named:?}");
    assert!(is_most(unnamed), "{unnamed:?}");
}

/// A program that was deleted while it runs is read through its process.
#[test]
fn a_deleted_program_is_named_while_it_runs() {
    let Some(machine) = machine() else { return };
    let program = optimised(&machine, "bakery");
    let path = plain(&program);
    // It computes, and goes on sleeping while the names are sought.
    let script = format!("{path} 300 60 >said & sleep 0.1; rm {path}; sleep 0.6; cat said");
    let live = machine.recorded(&[], &["sh", "-c", &script]);
    let pid = &live.facts[0]["pid"];
    // SAFETY: a plain call; the program sleeps, nobody else has its pid.
    unsafe { libc::kill(number(pid) as libc::pid_t, libc::SIGKILL) };
    let work = count(&live, pid, |frame| {
        frame.function == Some("bakery::work(int)")
    });
    assert!(is_most(work), "{work:?}");
}

/// A JavaScript function is named from the file that node's compiler leaves, of either kind, with
/// the line where it is defined.
#[test]
fn javascript_functions_are_named() {
    let Some(machine) = machine() else { return };
    if Command::new("node").arg("--version").output().is_err() {
        return eprintln!("NOT RUN: javascript_functions_are_named: needs node");
    }
    let script = machine.path("mill.js");
    let source = "function grindHere(n) {
  let s = 0;
  for (let i = 0; i < n; i++) s = (s * 31 + i) | 0;
  return s;
}
const end = Date.now() + 400;
let sum = 0;
while (Date.now() < end) sum += grindHere(100000);
console.log(JSON.stringify({ pid: process.pid, sum }));
";
    fs::write(&script, source).expect("a script");
    for option in ["--perf-basic-prof", "--perf-prof"] {
        let command = ["node", option, plain(&script)];
        let live = machine.recorded(&["--sample", "1000"], &command);
        let pid = &live.facts[0]["pid"];
        let ground = count(&live, pid, |frame| {
            frame.function == Some("grindHere") && frame.source.ends_with("mill.js:1")
        });
        // It also starts, and compiles.
        assert!(
            ground.1 >= 200 && ground.0 * 2 > ground.1,
            "{option}: {ground:?}"
        );
        fs::remove_dir_all(live.trace.path()).expect("removed");
        let _ = fs::remove_file(format!("/tmp/perf-{pid}.map"));
    }
}
