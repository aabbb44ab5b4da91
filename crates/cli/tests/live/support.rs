//! What every live test needs: whether it can run at all, programs to record, and recordings.

use hangdog_trace::ids::Utid;
use hangdog_trace::tables::{Lifecycle, Table};
use hangdog_trace::{Threads, Trace};
use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The machine, for as long as a test has it.
pub struct Machine {
    dir: TempDir,
    _turn: Turn,
}

/// What a test has of the machine.
enum Turn {
    /// It has it beside another: recordings are of the whole system, but it looks at its own programs only.
    Shared {
        _guard: RwLockReadGuard<'static, ()>,
    },
    /// Nothing else is recorded, nor computes.
    Alone {
        _guard: RwLockWriteGuard<'static, ()>,
    },
}

// Whoever wants it alone is not passed by those who share it.
static TURN: RwLock<()> = RwLock::new(());

/// The machine, beside another test, if it allows recordings. Otherwise says that the test was not run, and
/// why, past the test harness, which would swallow it.
pub fn machine() -> Option<Machine> {
    let guard = TURN.read().unwrap_or_else(PoisonError::into_inner);
    machine_in(Turn::Shared { _guard: guard })
}

/// The machine for one test alone: where a recording of another test would change what this one finds, as how
/// long something took, how full a disk is, or which of two recorders answers.
pub fn machine_alone() -> Option<Machine> {
    let guard = TURN.write().unwrap_or_else(PoisonError::into_inner);
    machine_in(Turn::Alone { _guard: guard })
}

fn machine_in(turn: Turn) -> Option<Machine> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    if let Some(reason) = REASON.get_or_init(reason_against) {
        let test = thread::current().name().unwrap_or("live test").to_owned();
        // In one piece: the harness writes at the same time.
        let line = format!("NOT RUN: {test}: {reason}\n");
        io::stderr()
            .write_all(line.as_bytes())
            .expect("standard error");
        return None;
    }
    Some(Machine {
        dir: TempDir::new().expect("a directory"),
        _turn: turn,
    })
}

/// What `hangdog doctor` has against recording here.
fn reason_against() -> Option<String> {
    let output = hangdog().args(["doctor", "--json"]).output();
    let answer: Value = serde_json::from_slice(&output.expect("a run").stdout).expect("JSON");
    if answer["works"] == true {
        return None;
    }
    let bad = answer["checks"].as_array().expect("checks").iter();
    let bad = bad.filter(|check| check["finding"] == "bad");
    let reasons: Vec<String> = bad
        .map(|check| format!("{}: {}", text(&check["name"]), text(&check["detail"])))
        .collect();
    Some(reasons.join("; "))
}

/// The command under test.
pub fn hangdog() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hangdog"));
    command.stdin(Stdio::null());
    command
}

impl Machine {
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A path for a trace, or for what else a test makes.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// The program `programs/NAME.c`, compiled with frame pointers.
    pub fn program(&self, name: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/live/programs")
            .join(format!("{name}.c"));
        let binary = self.path(name);
        let built = Command::new("cc")
            .args(["-D_GNU_SOURCE", "-Wall", "-Werror", "-O1", "-g", "-pthread"])
            .args(["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"])
            .arg("-o")
            .args([&binary, &source])
            .status();
        assert!(built.expect("a C compiler (cc)").success(), "{name}");
        binary
    }

    /// Records a command to its end with hangdog's options.
    pub fn record(&self, options: &[&str], command: &[&str]) -> Recorded {
        let path = self.path("live.hang");
        let output = hangdog()
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(&path)
            .arg("--")
            .args(command)
            .current_dir(self.dir())
            .output()
            .expect("a run");
        Recorded { output, path }
    }

    /// Records a command that must succeed, and opens the trace.
    pub fn recorded(&self, options: &[&str], command: &[&str]) -> Live {
        let recorded = self.record(options, command);
        let errors = String::from_utf8_lossy(&recorded.output.stderr);
        assert_eq!(recorded.output.status.code(), Some(0), "{errors}");
        let stdout = String::from_utf8(recorded.output.stdout).expect("UTF-8");
        let facts = stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("a fact of the program's"))
            .collect();
        Live::open(&recorded.path, facts)
    }
}

/// What `hangdog record` answered.
pub struct Recorded {
    pub output: Output,
    pub path: PathBuf,
}

impl Recorded {
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

/// A recording, and what the recorded program said of itself, an object a line.
pub struct Live {
    pub trace: Trace,
    pub threads: Threads,
    pub facts: Vec<Value>,
}

impl Live {
    pub fn open(path: &Path, facts: Vec<Value>) -> Live {
        let trace = Trace::open(path).expect("a trace");
        let threads = Threads::new(&trace.read::<Lifecycle>().expect("lifecycle"));
        Live {
            trace,
            threads,
            facts,
        }
    }

    pub fn table<T: Table>(&self) -> T {
        self.trace.read().expect("a table")
    }

    /// The tid of the command that was recorded, as people type it.
    pub fn command(&self) -> String {
        self.trace
            .meta()
            .command_tid
            .expect("a command")
            .to_string()
    }

    /// The main thread of the command that was recorded. Its name is not enough: another test's program may
    /// have it too.
    pub fn command_thread(&self) -> Utid {
        self.utid(&self.trace.meta().command_tid.into())
    }

    /// The thread that a program named by its tid.
    pub fn utid(&self, tid: &Value) -> Utid {
        let tid = number(tid);
        let found = self.threads.iter().filter(|t| u64::from(t.tid) == tid);
        let thread = found.last();
        thread.unwrap_or_else(|| panic!("no thread {tid}")).utid
    }
}

/// The answer of a command in JSON.
pub fn json(args: &[&str], trace: &Path) -> Value {
    let output = hangdog().args(args).arg(trace).arg("--json").output();
    let output = output.expect("a run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Whether a stack of the thread's waits has the function. The first stacks of a program may lack what
/// the tables of its files would tell: these are built meanwhile.
pub fn blocks_in(trace: &Path, tid: &str, function: &str) -> bool {
    let args = ["top", "--view", "off-cpu", "-n", "0", "--thread", tid];
    let top = json(&args, trace);
    let functions = top["functions"].as_array().expect("functions");
    functions.iter().any(|row| row["function"] == function)
}

pub fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("a number: {value}"))
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}"))
}

pub fn send(child: &Child, signal: libc::c_int) {
    // SAFETY: a plain call; the child has not been waited for, so the pid is its own.
    let failed = unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    assert_eq!(failed, 0);
}

/// Waits until something is so.
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < end, "not within 120 s: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A child that does not outlive its test.
pub struct Background(pub Child);

impl Background {
    /// A program that hands over until it is ended.
    pub fn load(pingpong: &Path) -> Background {
        let load = Command::new(pingpong)
            .arg("0")
            .stdout(Stdio::null())
            .spawn();
        Background(load.expect("the load"))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Both fail if it has ended, which is as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
