//! What `top`, `flame` and `export` make of traces whose figures were worked out by hand; and
//! each export opened in the program that it is for.
//!
//! These programs are Perfetto's trace processor, Perfetto's schema and the Firefox Profiler;
//! scripts/readers.sh fetches them. Where they are missing, the tests that need them say that
//! they were not run.

use hangdog_timeline::{Cause, State, Timeline};
use hangdog_trace::meta::{Clock, Options};
use hangdog_trace::text::{self, TextTrace};
use hangdog_trace::words::{Context, Left};
use hangdog_trace::{Meta, Threads};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// CLOCK_MONOTONIC at the trace's start.
const START: u64 = 5_000_000_000;

/// `golden/NAME.trace` on disk for as long as the test runs.
struct Fixture {
    dir: TempDir,
    trace: TextTrace,
}

impl Fixture {
    fn new(name: &str) -> Fixture {
        let text = fs::read_to_string(golden(&format!("{name}.trace"))).expect("the text");
        Fixture::of(&text)
    }

    fn of(text: &str) -> Fixture {
        let dir = TempDir::new().expect("a directory");
        let trace = text::parse(text).expect("a trace in text form");
        let meta = Meta {
            kernel: "6.18.0".into(),
            cpus: 3,
            command_tid: Some(100),
            clock: Clock {
                monotonic_start_ns: START,
            },
            options: Options {
                stacks: true,
                sample_hz: 1000,
                transfers: false,
                calls: false,
                faults: false,
            },
            ..Meta::default()
        };
        let path = dir.path().join("t.hang");
        trace.write_to(path, meta).expect("a trace on disk");
        Fixture { dir, trace }
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_hangdog"))
            .args(args)
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .output()
            .expect("a run")
    }

    /// What the command prints, given that all is well.
    fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Exports the trace and gives the file.
    fn export(&self, format: &str) -> PathBuf {
        self.text(&["export", "t.hang", "--format", format, "-o", format]);
        self.dir.path().join(format)
    }
}

fn golden(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("tests/golden").join(name)
}

/// Compares with `golden/NAME`, or writes it where UPDATE_GOLDEN is set.
fn assert_golden(name: &str, found: &str) {
    let path = golden(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, found).expect("a writable golden file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{name} differs; UPDATE_GOLDEN=1 writes it");
}

/// The functions that ran, with shares, and how far the stacks tell.
#[test]
fn top() {
    let text = Fixture::new("handover").text(&["top", "t.hang"]);
    assert_golden("handover.top.txt", &text);
}

/// The functions that one thread blocked in, and how long it waited for a CPU besides.
#[test]
fn top_off_cpu() {
    let fixture = Fixture::new("handover");
    let args = ["top", "t.hang", "--view", "off-cpu", "--by", "total"];
    let text = fixture.text(&[&args[..], &["--thread", "app", "-n", "6"]].concat());
    assert_golden("handover.top-off-cpu.txt", &text);
}

/// Every view as folded stacks.
#[test]
fn folded() {
    let fixture = Fixture::new("handover");
    let mut text = String::new();
    for view in ["on-cpu", "off-cpu", "wakes"] {
        let args = ["export", "t.hang", "--format", "folded", "--view", view];
        let lines = fixture.text(&[&args[..], &["-o", "-", "--thread", "app"]].concat());
        text += &format!("# {view}\n{lines}");
    }
    assert_golden("handover.folded.txt", &text);
}

/// A flame graph says of whom it is and when, and is drawn from the selection alone.
#[test]
fn flame() {
    let fixture = Fixture::new("handover");
    let args = ["flame", "t.hang", "-o", "a.svg", "--view", "off-cpu"];
    fixture.text(&[&args[..], &["--thread", "app", "--to", "2ms"]].concat());
    let svg = fs::read_to_string(fixture.dir.path().join("a.svg")).expect("the picture");
    for says in [
        "Off-CPU",
        "app/app (100) from 0.000000 s to 0.002000 s",
        "wait_for_worker (1,000 µs, 100.00%)",
    ] {
        assert!(svg.contains(says), "{says}");
    }
    assert!(!svg.contains("nanosleep"), "that comes later");
}

/// Exit status 1 where there is nothing, 2 where the arguments make no sense; either way nothing
/// is left under the name.
#[test]
fn refusals() {
    let fixture = Fixture::new("handover");
    let idle =
        Fixture::of("process app 100\nthread main app 100\n0 cpu0 switch idle -> main\nend 1ms");
    for (fixture, args, status, says) in [
        (&idle, &["top", "t.hang"][..], 1, "no CPU samples"),
        (&idle, &["flame", "t.hang", "-o", "a"], 1, "no CPU samples"),
        (
            &idle,
            &["flame", "t.hang", "-o", "a", "--view", "wakes"],
            1,
            "in the selection blocked",
        ),
        (
            &fixture,
            &["top", "t.hang", "--thread", "none"],
            1,
            "no thread",
        ),
        (
            &fixture,
            &["export", "t.hang", "--format", "svg", "-o", "a"],
            2,
            "possible values",
        ),
        (
            &fixture,
            &["export", "t.hang", "--format", "folded"],
            2,
            "--output",
        ),
        (
            &fixture,
            &["export", "t.hang", "--format", "folded", "-o", "no/a"],
            2,
            "cannot write no/a",
        ),
        (
            &fixture,
            &["export", "t.hang", "--format", "folded", "-o", "t.hang"],
            2,
            "is a directory",
        ),
        (
            &fixture,
            &[
                "export", "t.hang", "--format", "perfetto", "-o", "a", "--view", "wakes",
            ],
            2,
            "--view applies to",
        ),
        (
            &fixture,
            &[
                "export", "t.hang", "--format", "perfetto", "-o", "a", "--thread", "app",
            ],
            2,
            "takes no --thread",
        ),
    ] {
        let output = fixture.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {errors}");
        assert!(errors.contains(says), "{args:?}: {errors}");
        assert_eq!(fs::read_dir(&fixture.dir).expect("a folder").count(), 1);
    }
}

/// Where the readers are, or none: then says that the test was not run.
fn readers(test: &str) -> Option<PathBuf> {
    let binary = Path::new(env!("CARGO_BIN_EXE_hangdog"));
    let readers = binary.ancestors().nth(2).expect("target").join("readers");
    if readers.join("stamp").exists() {
        return Some(readers);
    }
    let line = format!("NOT RUN: {test}: scripts/readers.sh has not been run\n");
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("stderr");
    None
}

fn script(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("tests/readers").join(name)
}

/// The rows that Perfetto's trace processor answers each query with.
fn perfetto(readers: &Path, trace: &Path, queries: &[&str]) -> Vec<Value> {
    let mut child = Command::new(readers.join("node"))
        .arg(script("perfetto.mjs"))
        .args([readers, trace])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node");
    let mut input = child.stdin.take().expect("a pipe");
    for query in queries {
        writeln!(input, "{}", query.replace('\n', " ")).expect("a reader");
    }
    drop(input);
    let output = child.wait_with_output().expect("an end");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    assert_eq!(answers.len(), queries.len(), "{errors}");
    answers
}

/// The states of all threads as Perfetto names them: tid, start, state, and who woke it and
/// whether in an interrupt.
fn states(trace: &TextTrace) -> Vec<Value> {
    let tables = &trace.tables;
    let threads = Threads::new(&tables.lifecycle);
    let timeline = Timeline::build(
        &tables.switches,
        &tables.wakes,
        &tables.interrupts,
        &threads,
        trace.end,
    );
    let mut rows = Vec::new();
    for utid in timeline.threads() {
        let tid = threads.thread(utid).tid;
        let mut before = None;
        // Perfetto knows a thread from its first switch or wake on.
        let is_known = |cause| matches!(cause, Cause::Switch(_) | Cause::Wake(_));
        let intervals = timeline.intervals(utid);
        let unknown = intervals.iter().take_while(|i| !is_known(i.cause)).count();
        for interval in intervals.iter().skip(unknown) {
            let (state, waker) = match (interval.state, interval.cause) {
                (State::Running | State::Interrupted, _) => ("Running", None),
                (State::Preempted, _) => ("R+", None),
                (State::Runnable, Cause::Wake(row)) => ("R", Some(row as usize)),
                (State::Runnable, _) => ("R", None),
                (State::Blocked, Cause::Switch(row)) => {
                    let left = Left::from(tables.switches.left[row as usize]);
                    let state = match left {
                        Left::Uninterruptible => "D",
                        Left::Idle => "I",
                        _ => "S",
                    };
                    (state, None)
                }
                (State::Blocked, cause) => panic!("{utid} blocked by {cause:?}"),
            };
            if before.replace(state) == Some(state) {
                continue;
            }
            let (waker, in_interrupt): (Value, u8) = match waker {
                None => (Value::Null, 0),
                Some(row) => {
                    let waker = threads.thread(tables.wakes.waker[row]).tid;
                    let context = Context::from(tables.wakes.context[row]);
                    match context {
                        Context::Task => (waker.into(), 0),
                        _ => (waker.into(), 1),
                    }
                }
            };
            rows.push(json!([tid, interval.start, state, waker, in_interrupt]));
        }
    }
    rows.sort_by_key(|row| (row[0].as_u64(), row[1].as_u64()));
    rows
}

/// Perfetto derives from the export the same states of all threads as hangdog has, with the same
/// wakers, and finds nothing wrong with the file.
#[test]
fn perfetto_has_the_same_states() {
    let Some(readers) = readers("perfetto_has_the_same_states") else {
        return;
    };
    for name in ["handover", "page", "knot"] {
        let fixture = Fixture::new(name);
        let answers = perfetto(
            &readers,
            &fixture.export("perfetto"),
            &[
                "select name, value from stats
                 where value > 0 and severity in ('error', 'data_loss')",
                &format!(
                    "select t.tid, s.ts - {START}, s.state, w.tid, coalesce(s.irq_context, 0)
                     from thread_state s join thread t using (utid)
                     left join thread w on s.waker_utid = w.utid
                     where t.tid != 0 and s.state != 'X' order by t.tid, s.ts"
                ),
            ],
        );
        assert_eq!(answers[0], json!([]), "{name}");
        assert_eq!(answers[1], Value::from(states(&fixture.trace)), "{name}");
    }
}

/// Perfetto has the samples with their stacks, the calls that threads waited in with stack, object
/// and waker, interrupts, processes, and the problems under their sentences.
#[test]
fn perfetto_has_the_rest() {
    let Some(readers) = readers("perfetto_has_the_rest") else {
        return;
    };
    let fixture = Fixture::new("handover");
    let answers = perfetto(
        &readers,
        &fixture.export("perfetto"),
        &[
            &format!(
                "select t.tid, p.ts - {START}, f.name, m.name, o.name
                 from perf_sample p join thread t using (utid)
                 join stack_profile_callsite c on p.callsite_id = c.id
                 join stack_profile_frame f on c.frame_id = f.id
                 join stack_profile_mapping m on f.mapping = m.id
                 left join stack_profile_callsite b on c.parent_id = b.id
                 left join stack_profile_frame o on b.frame_id = o.id
                 order by p.ts"
            ),
            &format!(
                "select t.tid, s.ts - {START}, s.dur, s.name,
                 extract_arg(s.arg_set_id, 'debug.on'),
                 extract_arg(s.arg_set_id, 'debug.woken by')
                 from slice s join thread_track k on s.track_id = k.id
                 join thread t using (utid) order by s.ts"
            ),
            &format!(
                "select s.name, s.ts - {START}, s.dur from slice s
                 join cpu_track k on s.track_id = k.id order by s.ts"
            ),
            "select t.tid, p.pid, t.name, p.name from thread t join process p using (upid)
             where t.tid != 0 order by t.tid",
            "select s.name, k.name from slice s join track k on s.track_id = k.id
             where s.category = 'problem' order by s.ts",
        ],
    );
    assert_eq!(
        answers[0],
        json!([
            [100, 500_000, "start", "/app", "main"],
            [100, 4_400_000, "compute", "/app", "main"],
            [100, 4_500_000, "parse", "/app", "main"],
            [100, 4_600_000, "compute", "/app", "main"],
            [101, 4_700_000, "spin", "/app", null],
        ])
    );
    // Each wait lasts from where the thread blocked to where it ran again.
    assert_eq!(
        answers[1],
        json!([
            [
                100,
                1_000_000,
                2_100_000,
                "futex wait",
                "futex 0x1000",
                "app/worker (101)"
            ],
            [100, 5_000_000, 2_010_000, "nanosleep", null, "[timer]"],
            [
                100,
                8_000_000,
                1_500_000,
                "fsync",
                "file 42",
                "[softirq block]"
            ],
        ])
    );
    assert_eq!(
        answers[2],
        json!([["IRQ (interrupt 33)", 2_000_000, 50_000]])
    );
    assert_eq!(
        answers[3],
        json!([
            // The parent of kernel threads, of which the trace says nothing.
            [2, 2, null, null],
            [7, 7, "kworker", "kworker"],
            [100, 100, "app", "app"],
            [101, 100, "worker", "app"],
            [200, 200, "busy", "busy"],
        ])
    );
    let why: Value =
        serde_json::from_str(&fixture.text(&["why", "t.hang", "--json"])).expect("JSON");
    let problems: Vec<&Value> = answers[4].as_array().expect("rows").iter().collect();
    assert_eq!(
        problems.len(),
        why["problems"].as_array().expect("a list").len()
    );
    assert!(
        problems.iter().any(|row| row[0] == why["sentence"]),
        "{problems:?}"
    );
    assert!(problems.iter().all(|row| row[1] == "problems"));
}

/// Perfetto's schema knows every field of the export.
#[test]
fn perfetto_schema() {
    let Some(readers) = readers("perfetto_schema") else {
        return;
    };
    let fixture = Fixture::new("handover");
    let output = Command::new(readers.join("venv/bin/python"))
        .arg(script("schema.py"))
        .arg(fixture.export("perfetto"))
        .output()
        .expect("python");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let kinds: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(kinds["perf_sample"], 5);
    assert_eq!(kinds["clock_snapshot"], 1);
}

/// The Firefox Profiler's daemon, for as long as a test asks it.
struct Profiler {
    readers: PathBuf,
    sessions: TempDir,
}

impl Profiler {
    /// Opens a profile in it.
    fn open(readers: &Path, profile: &Path) -> Profiler {
        let profiler = Profiler {
            readers: readers.into(),
            sessions: TempDir::new().expect("a directory"),
        };
        profiler.run(&["load", profile.to_str().expect("UTF-8")]);
        profiler
    }

    fn run(&self, args: &[&str]) -> String {
        let output = Command::new(self.readers.join("node"))
            .arg(
                self.readers
                    .join("@firefox-devtools/profiler-cli/dist/profiler-cli.js"),
            )
            .args(args)
            .env("PROFILER_CLI_SESSION_DIR", self.sessions.path())
            .stdin(Stdio::null())
            .output()
            .expect("node");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn json(&self, args: &[&str]) -> Value {
        let answer = self.run(&[args, &["--json"]].concat());
        serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{args:?}: {e}: {answer}"))
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        self.run(&["stop"]);
    }
}

/// The names and numbers of a list of objects.
fn pairs<'a>(list: &'a Value, name: &str, number: &str) -> Vec<(&'a str, u64)> {
    let list = list.as_array().expect("a list").iter();
    list.map(|each| {
        let name = each[name].as_str().expect("a name");
        (name, each[number].as_u64().expect("a number"))
    })
    .collect()
}

/// The Firefox Profiler opens the export and finds in a thread its samples by category, its CPU
/// time, its functions with their modules, and its waits with who ended them.
#[test]
fn firefox_opens_it() {
    let Some(readers) = readers("firefox_opens_it") else {
        return;
    };
    let fixture = Fixture::new("handover");
    let profiler = Profiler::open(&readers, &fixture.export("firefox"));
    let list = profiler.json(&["thread", "list"]);
    let threads = list["threads"].as_array().expect("threads");
    let thread = |tid: &str| {
        let found = threads.iter().find(|thread| thread["tid"] == tid);
        found.unwrap_or_else(|| panic!("no thread {tid}: {list}"))
    };
    let main = thread("100");
    assert_eq!(main["name"], "app");
    // 0 to 1 ms, 3.1 to 4, 4.2 to 5, 7.01 to 8, 9.5 to 10.
    let cpu = main["cpuMs"].as_f64().expect("a number");
    assert!((cpu - 4.19).abs() < 0.001, "{cpu}");
    // Three waits; worker ended one.
    assert_eq!(main["markerCount"], 3);
    assert_eq!(thread("101")["markerCount"], 1);

    let handle = main["threadHandle"].as_str().expect("a handle");
    let samples = profiler.json(&["thread", "samples", "--thread", handle]);
    // Four samples on the CPU; blocked for 1.5, 2 and 1 ms at a sample a millisecond.
    let categories = &samples["categoryBreakdown"]["categories"];
    let mut categories = pairs(categories, "name", "samples");
    categories.sort_unstable();
    assert_eq!(categories, [("Blocked", 4), ("User", 4)]);
    let functions = pairs(&samples["topFunctionsByTotal"], "name", "totalSamples");
    for function in [
        ("app!main", 8),
        ("app!compute", 2),
        ("app!nanosleep", 2),
        ("app!wait_for_worker", 1),
        ("[kernel]!io_schedule", 1),
    ] {
        assert!(functions.contains(&function), "{function:?}: {functions:?}");
    }

    let markers = profiler.json(&["thread", "markers", "--thread", handle]);
    let mut labels: Vec<&str> = markers["byType"]
        .as_array()
        .expect("markers")
        .iter()
        .filter_map(|kind| kind["topMarkers"][0]["label"].as_str())
        .collect();
    labels.sort_unstable();
    assert_eq!(
        labels,
        [
            "fsync, woken by [softirq block]",
            "futex wait, woken by app/worker (101)",
            "nanosleep, woken by [timer]",
        ]
    );
}

/// The Firefox Profiler shows inlined functions as such, with source lines.
#[test]
fn firefox_inlining() {
    let Some(readers) = readers("firefox_inlining") else {
        return;
    };
    let fixture = Fixture::of(
        "process app 100\nthread main app 100\n0 cpu0 switch idle -> main\n\
         1ms cpu0 sample main stack=parse@parse.c:7^read_all@main.c:3;main\nend 2ms",
    );
    let profiler = Profiler::open(&readers, &fixture.export("firefox"));
    let tree = profiler.json(&["thread", "samples-top-down", "--thread", "t-0"]);
    let main = &tree["regularCallTree"]["children"][0];
    let read_all = &main["children"][0];
    let parse = &read_all["children"][0];
    let names = [main, read_all, parse].map(|node| node["name"].as_str());
    assert_eq!(names, [Some("main"), Some("read_all"), Some("parse")]);
    let exported: Value =
        serde_json::from_slice(&fs::read(fixture.dir.path().join("firefox")).expect("the profile"))
            .expect("JSON");
    let frames = &exported["threads"][0]["frameTable"];
    assert_eq!(frames["inlineDepth"], json!([0, 0, 1]));
    assert_eq!(frames["line"], json!([null, 3, 7]));
}
