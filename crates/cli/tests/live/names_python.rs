//! Python's functions in the stacks of its interpreter, against a program that says which thread
//! runs which.

use crate::flight::{Flight, snapped};
use crate::support::{Background, Live, Machine, machine, text};
use hangdog_trace::Calls;
use hangdog_trace::ids::Utid;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{Frames, Modules, Samples, Switches};
use hangdog_trace::words::ModuleKind;
use std::io::Read;
use std::process::{Command, Stdio};

const PROGRAM: &str = include_str!("programs/orchard.py");
const FILE: &str = "orchard.py";
/// A name, and how its definition is written.
type Function = (&'static str, &'static str);
/// For the program to wait until the recorder knows the interpreter, seconds.
const START: &str = "1";

/// The interpreters of a version that there are: Debian's, one in the path, and those that the
/// variable PYTHONS names, with colons between them.
fn pythons(version: &str) -> Vec<String> {
    let named = std::env::var("PYTHONS").unwrap_or_default();
    let found: Vec<String> = [
        format!("/usr/bin/python{version}"),
        format!("python{version}"),
    ]
    .into_iter()
    .chain(named.split(':').map(str::to_owned))
    .filter(|python| {
        let answer = Command::new(python).arg("--version").output();
        answer.is_ok_and(|output| {
            String::from_utf8_lossy(&output.stdout).starts_with(&format!("Python {version}."))
        })
    })
    .collect();
    if found.is_empty() {
        eprintln!("NOT RUN: names_python: needs python{version}");
    }
    found
}

fn python() -> Option<String> {
    pythons("3.11").into_iter().next()
}

fn program(machine: &Machine, file: &str, text: &str) -> String {
    let path = machine.path(file);
    std::fs::write(&path, text).expect("a program");
    path.to_str().expect("plain text").to_owned()
}

/// Where a function begins that is written as `definition`.
fn line(definition: &str) -> usize {
    let mut lines = PROGRAM.lines();
    lines
        .position(|line| line.contains(definition))
        .expect("a definition")
        + 1
}

/// The functions of the program in a stack, innermost first, as `NAME LINE`.
fn functions(stacks: &StackTable, stack: u32) -> Vec<String> {
    let frames = stacks.stack(stack);
    let own = frames.filter(|frame| frame.module == Some(FILE));
    own.map(|frame| {
        let (path, line) = frame.source.rsplit_once(':').expect("a line");
        assert!(path.starts_with('/') && path.ends_with(FILE), "{path}");
        format!("{} {line}", frame.function.expect("a name"))
    })
    .collect()
}

/// The threads that a task ran in, in the order in which they began.
fn threads_of(live: &Live, task: &str) -> Vec<Utid> {
    let facts = live.facts.iter().filter(|fact| fact["task"] == task);
    facts.map(|fact| live.utid(&fact["tid"])).collect()
}

/// The stacks of a thread where it blocked in a system call.
fn waits(live: &Live, thread: Utid, call: &str) -> Vec<u32> {
    let calls = Calls::new(&live.trace.meta().arch);
    let switches: Switches = live.table();
    (0..switches.len())
        .filter(|&i| switches.prev[i] == thread && switches.user_stack[i] != 0)
        .filter(|&i| calls.name(switches.call[i]) == call)
        .map(|i| switches.user_stack[i])
        .collect()
}

/// The program's functions in them.
fn named_waits(live: &Live, stacks: &StackTable, thread: Utid, call: &str) -> Vec<Vec<String>> {
    let waits = waits(live, thread, call).into_iter();
    waits.map(|stack| functions(stacks, stack)).collect()
}

/// Every thread of the program waits in the functions that it is in, named with the lines of their
/// definitions, innermost first: in functions called by Python, by a generator, by a comprehension,
/// by C; in a method; with a name that is not ASCII; in a process that was forked.
#[test]
fn python_functions_are_named_where_threads_wait() {
    let Some(machine) = machine() else { return };
    let Some(python) = python() else { return };
    let live = machine.recorded(&[], &[&python, &program(&machine, FILE, PROGRAM), START]);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let work = ("work", "def work");
    // Task, call that it waits in, functions with how their definitions are written.
    let chains: [(&str, &str, &[Function]); 6] = [
        (
            "harvest",
            "clock_nanosleep",
            &[
                ("pick", "def pick"),
                ("climb", "def climb"),
                ("harvest", "def harvest"),
            ],
        ),
        ("turn", "futex", &[("Press.turn", "def turn")]),
        (
            "watch",
            "clock_nanosleep",
            &[("ripen", "def ripen"), ("watch", "def watch")],
        ),
        (
            "water",
            "clock_nanosleep",
            &[
                ("water.<locals>.<listcomp>", "return [time.sleep"),
                ("water", "def water"),
            ],
        ),
        (
            "sort",
            "clock_nanosleep",
            &[("weigh", "def weigh"), ("sort", "def sort")],
        ),
        ("größer", "clock_nanosleep", &[("größer", "def größer")]),
    ];
    for (task, call, chain) in chains {
        let expected: Vec<String> = chain
            .iter()
            .chain([&work])
            .map(|(name, definition)| format!("{name} {}", line(definition)))
            .collect();
        let threads = threads_of(&live, task);
        assert_eq!(threads.len(), if task == "harvest" { 2 } else { 1 });
        for thread in threads {
            let found = named_waits(&live, &stacks, thread, call);
            // The child of the fork is in `main` still, and so has more callers.
            let right = found.iter().filter(|names| names.starts_with(&expected));
            let right = right.count();
            if call == "futex" {
                // A thread also waits for the interpreter's lock, anywhere.
                assert!(right >= 1, "{task}: {found:?}");
            } else {
                assert!(
                    right >= 20 && right == found.len(),
                    "{task}: {right} {found:?}"
                );
            }
        }
    }
}

/// A snapshot of a flight names Python's functions too, though they were met before it was asked
/// for.
#[test]
fn python_functions_are_named_in_a_snapshot() {
    let Some(machine) = machine() else { return };
    let Some(python) = python() else { return };
    let _flight = Flight::start(&machine, &[]);
    let program = program(&machine, FILE, PROGRAM);
    let output = Command::new(python).args([&program, START]).output();
    let stdout = String::from_utf8(output.expect("a run").stdout).expect("UTF-8");
    snapped(&machine, "python.hang");
    let facts = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a fact"))
        .collect();
    let live = Live::open(&machine.path("python.hang"), facts);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let expected = format!("water {}", line("def water"));
    let [thread] = threads_of(&live, "water")[..] else {
        panic!("one thread: {:?}", live.facts)
    };
    let found = named_waits(&live, &stacks, thread, "clock_nanosleep");
    let right = found.iter().filter(|names| names.contains(&expected));
    let right = right.count();
    assert!(right >= 20 && right == found.len(), "{right} {found:?}");
}

/// A thread that has entered another interpreter, as of a program that gives each of its scripts one, waits in
/// functions of that, and of the first one outside of it.
#[test]
fn python_functions_of_another_interpreter_are_named() {
    let Some(machine) = machine() else { return };
    let Some(python) = python() else { return };
    let text = "import json, threading, time
import _xxsubinterpreters as interpreters
WITHIN = 'import time\\ndef doze_within():\\n    for _ in range(30):\\n        time.sleep(0.02)\\ndoze_within()'
def enter():
    interpreters.run_string(interpreters.create(), WITHIN)
time.sleep(1)
enter()
print(json.dumps({'tid': threading.get_native_id()}))
";
    let script = program(&machine, "scripts.py", text);
    let live = machine.recorded(&[], &[&python, &script]);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let waits = waits(&live, live.utid(&live.facts[0]["tid"]), "clock_nanosleep");
    let is_right = |&stack: &u32| {
        let names: Vec<&str> = stacks.stack(stack).filter_map(|it| it.function).collect();
        let inner = names.iter().position(|&name| name == "doze_within");
        let outer = names.iter().position(|&name| name == "enter");
        matches!((inner, outer), (Some(inner), Some(outer)) if inner < outer)
    };
    let right = waits.into_iter().filter(is_right).count();
    assert!(right >= 20, "{right}");
}

/// Samples of a thread that computes in a method name the method.
#[test]
fn python_functions_are_named_in_samples() {
    let Some(machine) = machine() else { return };
    let Some(python) = python() else { return };
    let program = program(&machine, FILE, PROGRAM);
    let live = machine.recorded(&["--sample", "1000"], &[&python, &program, START]);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let [thread] = threads_of(&live, "crush")[..] else {
        panic!("one thread: {:?}", live.facts)
    };
    let samples: Samples = live.table();
    let own: Vec<Vec<String>> = (0..samples.len())
        .filter(|&i| samples.thread[i] == thread)
        .map(|i| functions(&stacks, samples.user_stack[i]))
        .collect();
    let expected = [
        format!("Press.crush {}", line("def crush")),
        format!("work {}", line("def work")),
    ];
    let right = own.iter().filter(|names| **names == expected).count();
    // 400 ms at 1 kHz; it begins and ends elsewhere.
    assert!(own.len() >= 200, "{}", own.len());
    assert!(right * 20 >= own.len() * 19, "{right} of {}", own.len());
}

/// A program that was stopped while it computed, in no system call, before the recording began: its stack
/// has the function that it was in.
#[test]
fn python_functions_are_named_where_a_program_is_stopped_already() {
    let Some(machine) = machine() else { return };
    let Some(python) = python() else { return };
    let text =
        "def dig():\n    print('digs', flush=True)\n    while True:\n        pass\n\n\ndig()\n";
    let mut command = Command::new(python);
    command
        .arg(program(&machine, FILE, text))
        .stdout(Stdio::piped());
    let mut digger = Background(command.spawn().expect("a program"));
    let mut digs = [0; 5];
    let mut output = digger.0.stdout.take().expect("its output");
    output.read_exact(&mut digs).expect("its word");
    let pid = i32::try_from(digger.0.id()).expect("a pid");
    // SAFETY: kill(2) of a child that was not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
    let live = machine.recorded(&[], &["sleep", "0.5"]);
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let thread = live.utid(&pid.into());
    let switches: Switches = live.table();
    let mut own = (0..switches.len()).filter(|&i| switches.prev[i] == thread);
    let stopped = own.next().expect("its wait");
    assert_eq!(
        functions(&stacks, switches.user_stack[stopped]),
        ["dig 1", "<module> 1"]
    );
}

/// In 400 random chains of calls, between Python and C to and fro, the Python frames of the thread's
/// stack are those that Python itself sees: all of them, in their order, none besides. C functions
/// stand between two of them where one calls the other by C, and nowhere else.
#[test]
fn python_frames_are_those_that_python_sees() {
    for version in ["3.11", "3.12", "3.13"] {
        pythons(version).iter().for_each(|python| walk_maze(python));
    }
}

fn walk_maze(python: &str) {
    let Some(machine) = machine() else { return };
    let program = program(&machine, "maze.py", include_str!("programs/maze.py"));
    let live = machine.recorded(&[], &[python, &program, START]);
    let fact = &live.facts[0];
    let stacks = StackTable::load(&live.trace).expect("stacks");
    let (frames, modules): (Frames, Modules) = (live.table(), live.table());
    let is_script = |frame: &u32| {
        let row = frames.frame.iter().position(|id| id == frame);
        let module = frames.module[row.expect("a frame")];
        let row = modules.module.iter().position(|&id| id == module);
        row.is_some_and(|row| modules.kind[row] == u8::from(ModuleKind::Script))
    };
    let name = |&frame: &u32| {
        let frame = stacks.frame(frame).next().expect("a frame");
        format!("{} {}", frame.function.expect("a name"), frame.source)
    };
    let chain = |stack: u32| -> Vec<String> {
        let ids = stacks.frame_ids(stack);
        for pair in ids.windows(2).filter(|pair| is_script(&pair[1])) {
            let caller = name(&pair[1]);
            match caller.split(' ').next() {
                Some("plainly" | "by_exception") => assert!(is_script(&pair[0]), "{caller}"),
                Some("by_sorting" | "by_reducing") => assert!(!is_script(&pair[0]), "{caller}"),
                _ => {}
            }
        }
        ids.iter().filter(|id| is_script(id)).map(name).collect()
    };
    let found: Vec<Vec<String>> = waits(&live, live.utid(&fact["tid"]), "clock_nanosleep")
        .into_iter()
        // The first is in front of all chains.
        .skip(1)
        .map(chain)
        .collect();
    let chains = fact["chains"].as_array().expect("chains");
    // On a busy machine a sleep may be over before its thread is off the CPU.
    assert!(found.len() * 20 >= chains.len() * 19, "{}", found.len());
    let mut chains = chains.iter().map(|chain| -> Vec<&str> {
        let names = chain.as_array().expect("names").iter();
        names.map(text).collect()
    });
    for found in found {
        assert!(chains.any(|chain| chain == found), "{python}: {found:?}");
    }
}
