//! The command as people use it: a trace in, text or JSON and an exit status out.
//!
//! The traces are texts in `golden/`, and so is what the command must say of them. The figures
//! there were worked out by hand from the texts.

use hangdog_trace::Meta;
use hangdog_trace::meta::{Hook, Options};
use hangdog_trace::text;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A trace on disk for as long as the test runs.
struct Fixture {
    dir: TempDir,
}

impl Fixture {
    /// Of `golden/NAME.trace`.
    fn new(name: &str) -> Fixture {
        let path = golden(&format!("{name}.trace"));
        Fixture::of(&fs::read_to_string(path).expect("the trace's text"))
    }

    fn of(trace: &str) -> Fixture {
        let dir = TempDir::new().expect("a directory");
        let meta = Meta {
            hangdog: "0.1.0".into(),
            started: "2026-11-21T10:00:00Z".into(),
            host: "lab".into(),
            kernel: "6.18.0".into(),
            cpus: 2,
            command: vec!["./app".into(), "--fast".into()],
            command_tid: Some(100),
            options: Options {
                stacks: true,
                sample_hz: 1000,
                transfers: false,
                calls: false,
                faults: false,
            },
            hooks: vec![
                Hook {
                    name: "sched_switch".into(),
                    attached: true,
                    reason: String::new(),
                },
                Hook {
                    name: "block_rq_issue".into(),
                    attached: false,
                    reason: "this kernel has no such tracepoint".into(),
                },
                Hook {
                    name: "cycles".into(),
                    attached: false,
                    reason: "this machine has no PMU".into(),
                },
                Hook {
                    name: "block_rq_complete".into(),
                    attached: false,
                    reason: "this kernel has no such tracepoint".into(),
                },
            ],
            ..Meta::default()
        };
        text::parse(trace)
            .expect("a trace in text form")
            .write_to(dir.path().join("t.hang"), meta)
            .expect("a trace on disk");
        Fixture { dir }
    }

    fn run(&self, args: &[&str]) -> Output {
        hangdog()
            .args(args)
            .current_dir(&self.dir)
            .output()
            .expect("a run")
    }

    /// What the command says, given that all is well.
    fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn json(&self, args: &[&str]) -> Value {
        let args = [args, &["--json"]].concat();
        serde_json::from_str(&self.text(&args)).expect("JSON")
    }

    /// What the command says on standard error, given its exit status.
    fn refusal(&self, args: &[&str], status: i32) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?} printed an answer");
        String::from_utf8(output.stderr).expect("UTF-8")
    }
}

fn hangdog() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hangdog"));
    command.stdin(Stdio::null());
    command
}

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

/// Compares with `golden/NAME`, or writes it where UPDATE_GOLDEN is set: then read it before
/// committing it.
fn assert_golden(name: &str, found: &str) {
    let path = golden(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, found).expect("a writable golden file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found, expected,
        "{name} differs; UPDATE_GOLDEN=1 writes it anew"
    );
}

/// The story of a thread: every interval, why it blocked, who woke it, how long it then waited.
#[test]
fn story() {
    let fixture = Fixture::new("handover");
    let text = fixture.text(&["story", "t.hang", "--thread", "app"]);
    assert_golden("handover.story.txt", &text);
}

/// The same story as JSON.
#[test]
fn story_json() {
    let fixture = Fixture::new("handover");
    let text = fixture.text(&["story", "t.hang", "--thread", "100", "--json"]);
    assert_golden("handover.story.json", &text);
}

/// Threads sorted by time running.
#[test]
fn threads() {
    let text = Fixture::new("handover").text(&["threads", "t.hang"]);
    assert_golden("handover.threads.txt", &text);
}

/// Where the hardware was counted, two columns more, empty where it was not.
/// Worked out by hand: in the first 10 ms two threads run, in the second one runs and one waits for its
/// CPU for 5 ms of it, in the third one runs for 4 ms.
#[test]
fn load() {
    let fixture = Fixture::new("load");
    assert_golden("load.load.txt", &fixture.text(&["load", "t.hang"]));
    let at = fixture.text(&["load", "t.hang", "--at", "17ms"]);
    assert_golden("load.at.txt", &at);
    let average = |args: &[&str]| {
        let answer = fixture.json(&[&["load", "t.hang"], args].concat());
        answer["average"].clone()
    };
    assert_eq!(average(&["--step", "30ms"]), json!([39.0 / 30.0]));
    assert_eq!(average(&["--process", "app"]), json!([1.0, 1.0, 0.0]));
    // The worker alone comes on its CPU with this priority, also after it waited for that.
    assert_eq!(average(&["--priority", "110"]), json!([1.0, 0.5, 0.4]));
    assert_eq!(average(&["--from", "15ms", "--to", "25ms"]), json!([1.4]));
}

/// The worker waits for 5 ms for the CPU that app has, while the other one is idle; app never waits for one.
#[test]
fn rivals() {
    let fixture = Fixture::new("load");
    let text = fixture.text(&["load", "t.hang", "--rivals", "worker"]);
    assert_golden("load.rivals.txt", &text);
    let answer = fixture.json(&["load", "t.hang", "--rivals", "worker"]);
    assert_eq!(
        (&answer["wanted_ns"], &answer["waits"]),
        (&json!(5_000_000), &json!(1))
    );
    let rival = &answer["rivals"][0];
    assert_eq!(
        (&rival["tid"], &rival["ns"]),
        (&json!(100), &json!(5_000_000))
    );
    let helps: Vec<_> = answer["helps"].as_array().expect("a list").iter().collect();
    assert!(
        helps.iter().all(|help| help["ns"] == 5_000_000) && helps.len() == 3,
        "{helps:?}"
    );
    let app = fixture.text(&["load", "t.hang", "--rivals", "app"]);
    assert!(app.contains("(100) never waited for a CPU."), "{app}");
    fixture.refusal(&["load", "t.hang", "--rivals", "app", "--at", "1ms"], 2);
}

/// Worked out by hand: decode takes 70 us four times and 300 us once: 580 us, mean 116, deviation
/// sqrt((4 * 46^2 + 184^2) / 5) = 92; by nearest rank the 3rd and twice the 5th. Region 7 ends on another
/// thread, download does not end, and one end has no begin.
#[test]
fn regions() {
    let fixture = Fixture::new("regions");
    assert_golden("regions.regions.txt", &fixture.text(&["regions", "t.hang"]));
    let list = ["regions", "t.hang", "dec", "--list", "--sort", "duration"];
    assert_golden("regions.list.txt", &fixture.text(&list));
    let listed = |args: &[&str]| -> Vec<u64> {
        let answer = fixture.json(&[&["regions", "t.hang", "--list"], args].concat());
        let all = answer["occurrences"].as_array().expect("occurrences");
        all.iter()
            .map(|one| one["start_ns"].as_u64().expect("a time") / 1_000_000)
            .collect()
    };
    assert_eq!(listed(&["--arg", "1=3", "--arg", "2=-7"]), [3]);
    assert_eq!(listed(&["--thread", "worker"]), [7]);
    assert_eq!(
        listed(&["--process", "app", "--from", "2ms", "--to", "4ms"]),
        [2, 3]
    );
    assert_eq!(listed(&["7"]), [5]);
    // By the thread the end of 7 is another thread's: it does not end.
    let by_thread = fixture.json(&["regions", "t.hang", "7", "--pair", "thread"]);
    assert_eq!(by_thread["regions"][0]["open"], 1);
    let points = fixture.json(&["regions", "t.hang", "--points"]);
    assert_eq!(points["points"][0]["name"], "frame");
    assert_eq!(points["points"][0]["arguments"], json!([60, 0, 0, 0]));
    assert_eq!(
        fixture.run(&["regions", "t.hang", "nothing"]).status.code(),
        Some(1)
    );
}

/// Four decodes of 70 us run; five of 300 us wait for the worker for 230 us more: all of the difference
/// between the two groups is that wait.
#[test]
fn compare_regions() {
    let mut trace = String::from(
        "process app 100
        thread app app 100
        thread worker app 101
        0 cpu0 switch idle -> app
        0 cpu1 switch idle -> worker
        0 cpu1 switch worker -> idle sleeping read
        ",
    );
    for turn in 1..=24 {
        let at = 1000 * turn;
        trace += &format!("{at}us mark app begin decode\n");
        if turn % 3 == 0 {
            trace += &format!(
                "{}us cpu0 switch app -> idle sleeping futex op=wait object=futex:0x10 stack=wait;decode
                {}us cpu1 switch idle -> worker
                {}us cpu1 wake worker -> app futex op=wake object=futex:0x10
                {}us cpu0 switch idle -> app
                {}us cpu1 switch worker -> idle sleeping read
                {}us mark app end decode\n",
                at + 10,
                at + 20,
                at + 240,
                at + 240,
                at + 250,
                at + 300
            );
        } else {
            trace += &format!("{}us mark app end decode\n", at + 70);
        }
    }
    let fixture = Fixture::of(&(trace + "end 30ms"));
    let answer = fixture.json(&["compare", "t.hang", "--region", "decode"]);
    assert_eq!(answer["occurrences"], 24);
    let difference = &answer["difference"];
    assert_eq!(difference["slow"]["count"], 8);
    assert_eq!(difference["fast"]["count"], 16);
    let first = &difference["factors"][0];
    assert_eq!(first["difference_ns"], 230_000.0, "{first}");
    let none = fixture.run(&["compare", "t.hang", "--region", "nothing"]);
    assert_eq!(none.status.code(), Some(1));
    assert_eq!(fixture.run(&["compare", "t.hang"]).status.code(), Some(2));
}

/// The longest decode waited 230 us for the worker, and the others not at all: `why` is about it and says
/// so; `--nth` takes another one; story and threads take its time.
#[test]
fn why_of_a_region() {
    let fixture = Fixture::new("regions");
    let why = fixture.json(&["why", "t.hang", "--region", "decode"]);
    assert_eq!(why["problem"]["start_ns"], 3_000_000);
    assert_eq!(why["problem"]["duration_ns"], 300_000);
    assert_eq!(why["root"]["thread"], "worker");
    assert_eq!(why["region"]["median_ns"], 70_000);
    assert_eq!(
        why["region"]["states"],
        json!([
            {"state": "running", "ns": 70_000, "others_ns": 70_000},
            {"state": "blocked", "ns": 230_000, "others_ns": 0},
        ])
    );
    let text = fixture.text(&["why", "t.hang", "--region", "decode"]);
    let first = "Region  decode, the longest of 5: 300 µs at 0.003000 s on app/app (100); the median is 70 µs";
    assert!(text.starts_with(first), "{text}");
    let second = fixture.json(&["why", "t.hang", "--region", "decode", "--nth", "2"]);
    assert_eq!(second["problem"]["duration_ns"], 70_000);

    let story = fixture.json(&["story", "t.hang", "--region", "decode"]);
    assert_eq!(
        (&story["from_ns"], &story["to_ns"]),
        (&json!(3_000_000), &json!(3_300_000))
    );
    assert_eq!(story["thread"]["tid"], 100);
    let threads = fixture.json(&["threads", "t.hang", "--region", "decode"]);
    assert_eq!(
        (&threads["from_ns"], &threads["to_ns"]),
        (&json!(3_000_000), &json!(3_300_000))
    );
    assert_eq!(threads["threads"].as_array().expect("threads").len(), 2);
    let none = fixture.run(&["why", "t.hang", "--region", "decode", "--nth", "6"]);
    assert_eq!(none.status.code(), Some(1));
}

/// Worked out by hand: reads of 10 and 60 us by one thread and 20 us by another, and a sleep of 3 ms.
#[test]
fn calls() {
    let fixture = Fixture::new("calls");
    let text = fixture.text(&["calls", "t.hang"]);
    assert_golden("calls.calls.txt", &text);
    let story = fixture.text(&["story", "t.hang", "--thread", "app"]);
    assert_golden("calls.story.txt", &story);
    let counts = |args: &[&str]| {
        let answer = fixture.json(&[&["calls", "t.hang"], args].concat());
        let rows = answer["calls"].as_array().expect("calls").clone();
        let count = |row: &Value| (row["call"].clone(), row["count"].clone());
        rows.iter().map(count).collect::<Vec<_>>()
    };
    let (read, sleep) = (json!("read"), json!("nanosleep"));
    assert_eq!(counts(&["--thread", "101"]), [(read.clone(), json!(1))]);
    let both = [(sleep, json!(1)), (read.clone(), json!(3))];
    assert_eq!(counts(&["--process", "app"]), both);
    assert_eq!(counts(&["--to", "2ms"]), [(read, json!(1))]);
    let refusal = Fixture::new("load").refusal(&["calls", "t.hang"], 1);
    assert!(refusal.contains("--calls"), "{refusal}");
}

/// Of a file of which nothing was executed there is no order.
#[test]
fn paging_orders_what_was_executed() {
    let fixture = Fixture::new("paging");
    let said = fixture.refusal(&["paging", "t.hang", "--order", "libnone.so"], 1);
    assert!(said.contains("libnone.so"), "{said}");
}

/// `--live A --process B` is refused before anything is looked at.
#[test]
fn live_wants_one_process() {
    let fixture = Fixture::new("page");
    let said = fixture.refusal(&["why", "--live", "one", "--process", "two"], 2);
    assert!(said.contains("name the process once"), "{said}");
}

/// What to try is tried on a command, and nothing else is named with it.
#[test]
fn paging_wants_a_trace_or_a_trial() {
    let fixture = Fixture::new("paging");
    for args in [
        vec!["paging"],
        vec!["paging", "--try", "prefetch"],
        vec!["paging", "--try", "prefetch", "--all", "--", "true"],
        vec!["paging", "t.hang", "--", "true"],
        vec!["paging", "t.hang", "--gold"],
        vec!["paging", "t.hang", "--order", "app", "--json"],
    ] {
        fixture.refusal(&args, 2);
    }
}

/// What the recorded command waited for, by segment and function; a minor fault that waited counts, another
/// process does not; what was not recorded is reported as such.
#[test]
fn paging() {
    let fixture = Fixture::new("paging");
    assert_golden("paging.paging.txt", &fixture.text(&["paging", "t.hang"]));
    let other = fixture.json(&["paging", "t.hang", "--process", "other"]);
    assert_eq!(other["sum"]["page_ins"], json!(1));
    assert_eq!(other["segments"][0]["kind"], json!("executable"));
    let later = fixture.json(&["paging", "t.hang", "--from", "6ms"]);
    assert_eq!(later["sum"]["page_ins"], json!(1));
    // It was fetched before the time range.
    assert_eq!(later["sum"]["again"], json!(1));
}

/// A process asks another one twice and waits for it. Of the 3 + 2 ms that takes, the other waits 2 + 1 ms for pages;
/// behind the first answer the first one waits 0.5 ms for a page that it had before.
#[test]
fn exchanges() {
    let fixture = Fixture::new("exchange");
    assert_golden("exchange.paging.txt", &fixture.text(&["paging", "t.hang"]));
    let answer = fixture.json(&["paging", "t.hang"]);
    let exchange = json!({
        "process": "filer", "pid": 100, "with": "app", "with_pid": 200,
        "count": 2, "sum_ns": 5_000_000, "longest_ns": 3_000_000,
        "paging_there_ns": 3_000_000, "paging_back_ns": 500_000, "paged_back_bytes": 4096,
    });
    assert_eq!(answer["exchanges"], json!([exchange]));
}

/// What a start fetched and another start of the same program did not use is cold; a function that runs only
/// at the beginning and fetches what nothing else uses can do so later.
#[test]
fn paging_of_several_starts() {
    let fixture = Fixture::new("starts");
    assert_golden(
        "starts.paging.txt",
        &fixture.text(&["paging", "t.hang", "--process", "100"]),
    );
    let answer = fixture.json(&["paging", "t.hang", "--process", "100"]);
    let in_others = json!({"used_bytes": 8192, "cold_bytes": 4096, "unknown_bytes": 0});
    assert_eq!(answer["segments"][0]["in_others"], in_others);
    assert_eq!(answer["other_occurrences"], 1);
    let advice = answer["advice"].as_array().expect("advice");
    let defer = advice.iter().find(|it| it["kind"] == "defer");
    assert_eq!(
        defer.expect("what can be done later")["saves_at_most_ns"],
        1_000_000
    );
    // Both starts are one operation, and there is no other one.
    let both = fixture.json(&["paging", "t.hang", "--process", "tool"]);
    assert_eq!(both["other_occurrences"], 0);
    assert_eq!(both["segments"][0]["in_others"], Value::Null);
}

/// A page that stayed in memory is used without a fault: only of one that was gone between can be told that the
/// other occurrence did not use it.
#[test]
fn paging_of_several_regions() {
    let fixture = Fixture::of(
        "process app 100
        thread main app 100 name=app
        area app 0x10000..0x40000 library file=/usr/lib/libx.so executable
        0 cpu0 switch idle -> main
        1ms mark main begin open 0
        1ms fault 100us main major 0x10000 of-file stack=open;main
        1ms cache main added /usr/lib/libx.so 0 3
        1ms cache main faulted /usr/lib/libx.so 0 1
        2ms fault 100us main major 0x11000 of-file stack=open;main
        2ms cache main faulted /usr/lib/libx.so 1 1
        3ms fault 100us main major 0x12000 of-file stack=open;main
        3ms cache main faulted /usr/lib/libx.so 2 1
        5ms mark main end open 0
        6ms cache main removed /usr/lib/libx.so 0 2
        10ms mark main begin open 0
        11ms fault 100us main major 0x10000 of-file stack=open;main
        11ms cache main added /usr/lib/libx.so 0 1
        11ms cache main faulted /usr/lib/libx.so 0 1
        12ms mark main end open 0
        end 13ms",
    );
    let answer = fixture.json(&["paging", "t.hang", "--region", "open"]);
    let in_others = json!({"used_bytes": 4096, "cold_bytes": 4096, "unknown_bytes": 4096});
    assert_eq!(answer["segments"][0]["in_others"], in_others);
    // What the shorter one fetched, the longer one used.
    let second = fixture.json(&["paging", "t.hang", "--region", "open", "--nth", "2"]);
    let in_others = json!({"used_bytes": 4096, "cold_bytes": 0, "unknown_bytes": 0});
    assert_eq!(second["segments"][0]["in_others"], in_others);
}

/// The last snapshot of memory with what has grown since the first; another one; one process; none.
#[test]
fn memory_of_a_trace() {
    let fixture = Fixture::new("memory");
    assert_golden(
        "memory.memory.txt",
        &fixture.text(&["memory", "--trace", "t.hang"]),
    );
    let answer = |args: &[&str]| fixture.json(&[&["memory", "--trace", "t.hang"], args].concat());
    let at = |args: &[&str]| answer(args)["at_ns"].clone();
    assert_eq!(at(&[]), 9_000_000);
    assert_eq!(at(&["--at", "6ms"]), 5_000_000);
    assert_eq!(at(&["--at", "0.5ms"]), 1_000_000);
    // It has ended by the last one.
    let other = answer(&["other"]);
    assert_eq!(other["at_ns"], 5_000_000);
    assert_eq!(other["processes"][0]["change_bytes"], -524_288);
    assert_eq!(other["files"], json!([]));
    for args in [&["nobody"][..], &["7"]] {
        let args = [&["memory", "--trace", "t.hang"], args].concat();
        let said = fixture.refusal(&args, 1);
        assert!(said.contains("no snapshot of the trace has"), "{said}");
    }
    let said = Fixture::new("load").refusal(&["memory", "--trace", "t.hang"], 1);
    assert!(said.contains("--memory-every"), "{said}");
}

/// Worked out by hand: four softirqs of 10, 20, 30 and 40 us on two CPUs, an interrupt of 5 us on an
/// idle CPU, and two of the timer.
#[test]
fn interrupts() {
    let text = Fixture::new("interrupts").text(&["interrupts", "t.hang"]);
    assert_golden("interrupts.interrupts.txt", &text);
}

#[test]
fn threads_that_were_counted() {
    let fixture = Fixture::new("counted");
    assert_golden("counted.threads.txt", &fixture.text(&["threads", "t.hang"]));
    let answer = fixture.json(&["threads", "t.hang", "--thread", "slow"]);
    let expected = json!({
        "instructions_per_cycle": 0.25,
        "cache_misses_per_1000_instructions": 40.0,
        "tlb_misses_per_1000_instructions": 2.0,
    });
    assert_eq!(answer["threads"][0]["counters"], expected);
    let answer = fixture.json(&["threads", "t.hang", "--thread", "asleep"]);
    assert_eq!(answer["threads"][0].get("counters"), None);
}

/// The worst problem of a trace: what a person can act on, with the evidence and the loss.
#[test]
fn why() {
    let text = Fixture::new("page").text(&["why", "t.hang"]);
    assert_golden("page.why.txt", &text);
}

/// The same verdict as JSON.
#[test]
fn why_json() {
    let text = Fixture::new("page").text(&["why", "t.hang", "--json"]);
    assert_golden("page.why.json", &text);
}

/// A server that sleeps is idle by itself. Asked about it, `why` tells of the client that it keeps
/// waiting.
#[test]
fn why_process_tells_who_waits_for_it() {
    let trace = "
        process client 100
        thread client client 100
        process server 200
        thread server server 200
        0 socket client object=inet:1 local=127.0.0.1:5000 remote=127.0.0.1:80
        0 socket server object=inet:2 local=127.0.0.1:80 remote=127.0.0.1:5000
        0 cpu0 switch idle -> client
        0 cpu1 switch idle -> server
        5us transfer client sent 10 object=inet:1
        1ms cpu0 switch client -> idle sleeping recvfrom object=inet:1 stack=recv;ask
        2ms cpu1 switch server -> idle sleeping nanosleep arg=3s stack=retry_payment;serve
        3002ms cpu1 wake idle -> server in=timer
        3003ms cpu1 switch idle -> server
        3005ms cpu1 wake server -> client sendto object=inet:2
        3006ms cpu0 switch idle -> client
        3007ms cpu1 switch server -> idle sleeping recvfrom object=inet:2 stack=recv;serve
        3008ms cpu0 switch client -> idle dead
        3008ms exit client 0
        end 4s";
    let answer = Fixture::of(trace).json(&["why", "t.hang", "--process", "server"]);
    assert_eq!(
        answer["problem"]["process"], "client",
        "{}",
        answer["sentence"]
    );
    assert_eq!(answer["root"]["process"], "server");
    assert_eq!(answer["root"]["function"], "retry_payment");
    assert_eq!(answer["number"], 1);
}

/// A circle of waits, broken by a timeout.
#[test]
fn why_knot() {
    let text = Fixture::new("knot").text(&["why", "t.hang"]);
    assert_golden("knot.why.txt", &text);
}

/// A wait that several may have ended: the question with its default, and how such waits went
/// when they went well.
#[test]
fn why_asked() {
    let text = Fixture::new("asked").text(&["why", "t.hang"]);
    assert_golden("asked.why.txt", &text);
}

/// The same beside another recording, with other ids and addresses.
#[test]
fn why_with_a_baseline() {
    let bad = Fixture::new("asked");
    let good = Fixture::new("asked.good");
    let good = good.dir.path().join("t.hang");
    let good = good.to_str().expect("a path in UTF-8");
    let text = bad.text(&["why", "t.hang", "--baseline", good]);
    assert_golden("asked.why-baseline.txt", &text);
}

/// The recorded command as a whole: what each program did for how long, and the problems within.
#[test]
fn why_whole() {
    let text = Fixture::new("build").text(&["why", "t.hang", "--whole"]);
    assert_golden("build.why-whole.txt", &text);
}

/// Without being asked, the run is told of where no problem takes a fifth of it; not where the user
/// names a part of it.
#[test]
fn why_whole_by_default() {
    let dull = "process app 100
        thread app app 100
        0 cpu0 switch idle -> app
        0.9ms exit app 0
        end 1ms";
    let fixture = Fixture::of(dull);
    let answer = fixture.json(&["why", "t.hang"]);
    assert_eq!(answer["whole"]["entries"][0]["ns"], 900_000);
    assert_eq!(answer["number"], Value::Null);
    let part = fixture.json(&["why", "t.hang", "--thread", "app", "--from", "0.1ms"]);
    assert_eq!(part["whole"], Value::Null);
    let answer = Fixture::new("build").json(&["why", "t.hang"]);
    assert_eq!(
        (&answer["whole"], &answer["number"]),
        (&Value::Null, &json!(1))
    );
}

/// A trace that is not of a command has no run.
#[test]
fn why_whole_of_no_command() {
    let fixture = Fixture::of("process app 300\nthread app app 300\nend 1ms");
    let error = fixture.refusal(&["why", "t.hang", "--whole"], 2);
    assert!(error.contains("was not recorded with a command"), "{error}");
}

/// All problems, worst first, each with its verdict in a sentence.
#[test]
fn problems() {
    let text = Fixture::new("asked").text(&["problems", "t.hang"]);
    assert_golden("asked.problems.txt", &text);
}

/// Why an edge is believed: what was seen, how such waits ended before, what else it could be.
#[test]
fn explain() {
    let text = Fixture::new("asked").text(&["explain", "t.hang", "1"]);
    assert_golden("asked.explain.txt", &text);
    let text = Fixture::new("page").text(&["explain", "t.hang", "1"]);
    assert_golden("page.explain.txt", &text);
}

/// What is explained: the problem of a number, that of a thread, or a part of a thread's life.
#[test]
fn why_chosen() {
    let fixture = Fixture::new("page");
    let explained = |args: &[&str]| {
        let answer = fixture.json(&[&["why", "t.hang"], args].concat());
        let problem = &answer["problem"];
        (
            problem["tid"].as_u64(),
            problem["start_ns"].as_u64(),
            problem["duration_ns"].as_u64(),
            answer["number"].as_u64(),
        )
    };
    let main = Some(100);
    let at = |start: u64, duration: u64| (Some(start), Some(duration));
    let (start, duration) = at(49_000_000, 11_000_000);
    assert_eq!(
        explained(&["--problem", "2"]),
        (main, start, duration, Some(2))
    );
    let (start, duration) = at(48_000_000, 12_000_000);
    assert_eq!(
        explained(&["--thread", "worker"]),
        (Some(101), start, duration, Some(3))
    );
    let (start, duration) = at(20_000_000, 10_000_000);
    let part = ["--thread", "app", "--from", "20ms", "--to", "+10ms"];
    assert_eq!(explained(&part), (main, start, duration, None));
    // The worst that has a part in the window.
    let (start, duration) = at(49_000_000, 11_000_000);
    assert_eq!(
        explained(&["--from", "50ms"]),
        (main, start, duration, Some(2))
    );
}

/// Who names a thread is not given the problem of another one of its program.
#[test]
fn why_of_a_thread_without_problems() {
    let fixture = Fixture::new("ticker");
    let problem = |thread| {
        let answer = fixture.json(&["why", "t.hang", "--thread", thread]);
        answer["problem"]["tid"].as_u64()
    };
    assert_eq!(problem("app/app"), Some(100));
    assert_eq!(problem("app/ticker"), Some(102));
}

/// Stalls that claim to have freed more pages than a number holds.
#[test]
fn paging_with_absurd_stalls() {
    let stall = format!("stall 1us main direct-reclaim {}", u64::MAX);
    let fixture = Fixture::of(&format!(
        "process app 100
        thread main app 100 name=app
        0 cpu0 switch idle -> main
        1ms {stall}
        2ms {stall}
        end 4ms"
    ));
    let paging = fixture.json(&["paging", "t.hang", "--process", "app"]);
    assert_eq!(paging["stalls"][0]["pages"], u64::MAX);
}

/// What the trace holds. Sizes on disk are the writer's affair and left out here.
#[test]
fn info() {
    let text = Fixture::new("handover").text(&["info", "t.hang"]);
    let mut without_sizes = String::new();
    for line in text.lines().filter(|line| !line.starts_with("size ")) {
        let row: Vec<&str> = line.split_whitespace().collect();
        match row[..] {
            [table, rows, _, unit] if unit.ends_with('B') => {
                without_sizes.push_str(&format!("  {table} {rows}\n"));
            }
            _ => without_sizes.push_str(&format!("{line}\n")),
        }
    }
    assert_golden("handover.info.txt", &without_sizes);
}

/// The JSON of info: figures that are in the text, and sizes that agree with each other.
#[test]
fn info_json() {
    let info = Fixture::new("handover").json(&["info", "t.hang"]);
    assert_eq!(info["event_count"], 22);
    assert_eq!(
        info["loss"],
        json!({"total": 0, "cut_short": false, "by": []})
    );
    assert_eq!(info["duration_ns"], 10_000_000);
    assert_eq!(info["meta"]["host"], "lab");
    let bytes = info["bytes"].as_u64().expect("a number");
    let each = info["bytes_per_event"].as_f64().expect("a number");
    assert!((bytes as f64 / 22.0 - each).abs() < 0.001);
}

/// A window clips the times: from 2 ms for 1 ms, main is blocked for 0.5 ms, then runnable.
#[test]
fn threads_window() {
    let fixture = Fixture::new("handover");
    let window = ["--from", "2ms", "--to", "+1ms"];
    let answer = fixture.json(&[&["threads", "t.hang", "--thread", "app"], &window[..]].concat());
    assert_eq!(answer["from_ns"], 2_000_000);
    assert_eq!(answer["to_ns"], 3_000_000);
    let main = &answer["threads"][0];
    assert_eq!(
        main["states"]["blocked"],
        json!({"ns": 500_000, "share": 0.5})
    );
    assert_eq!(
        main["states"]["runnable"],
        json!({"ns": 500_000, "share": 0.5})
    );
    assert_eq!(main["switches"], 0);
    assert_eq!(
        main["longest_wait"],
        json!({"start_ns": 2_000_000, "duration_ns": 500_000, "state": "blocked"})
    );
}

/// Filters and sorting: by process; by name ascending; by count descending.
#[test]
fn threads_chosen_and_sorted() {
    let fixture = Fixture::new("handover");
    let names = |args: &[&str]| -> Vec<String> {
        let answer = fixture.json(&[&["threads", "t.hang"], args].concat());
        let rows = answer["threads"].as_array().expect("rows").clone();
        rows.iter()
            .map(|row| row["thread"].as_str().expect("a name").to_string())
            .collect()
    };
    assert_eq!(
        names(&["--process", "app", "--sort", "tid"]),
        ["app", "worker"]
    );
    assert_eq!(names(&["--process", "200"]), ["busy"]);
    assert_eq!(
        names(&["--sort", "thread"]),
        ["app", "busy", "kworker", "worker"]
    );
    assert_eq!(names(&["--sort", "switches"])[0], "app");
}

/// --limit tells so many intervals and says how many it left out.
#[test]
fn story_limit() {
    let fixture = Fixture::new("handover");
    let args = ["story", "t.hang", "--thread", "app", "--limit", "2"];
    let text = fixture.text(&args);
    assert!(text.contains("10 more intervals"), "{text}");
    let answer = fixture.json(&args);
    assert_eq!(answer["intervals"].as_array().map(Vec::len), Some(2));
    assert_eq!(answer["left_out"], 10);
}

/// Loss is stated in every answer.
#[test]
fn loss_is_stated() {
    let fixture = Fixture::of(
        "process app 1\nthread main app 1\n0 cpu0 switch idle -> main\n\
         1ms cpu0 lost 5 events\nend 2ms",
    );
    for args in [
        &["info", "t.hang"][..],
        &["threads", "t.hang"],
        &["story", "t.hang", "--thread", "main"],
        &["why", "t.hang", "--thread", "main"],
    ] {
        assert!(fixture.text(args).contains("5 events on CPU 0"), "{args:?}");
        assert_eq!(fixture.json(args)["loss"]["total"], 5, "{args:?}");
    }
}

/// Exit status 1 where nothing was found.
#[test]
fn nothing_found() {
    let fixture = Fixture::new("handover");
    for args in [
        &["story", "t.hang", "--thread", "nobody"][..],
        &["threads", "t.hang", "--thread", "nobody"],
        &["threads", "t.hang", "--process", "nobody"],
        &["threads", "t.hang", "--process", "busy", "--thread", "app"],
        &["why", "t.hang", "--thread", "nobody"],
        &["why", "t.hang", "--problem", "99"],
        &["explain", "t.hang", "--problem", "99", "1"],
        &["explain", "t.hang", "99"],
    ] {
        fixture.refusal(args, 1);
    }
}

/// Exit status 2 and one line that says what is wrong, for bad use and for bad input.
#[test]
fn bad_use_and_input() {
    let fixture = Fixture::new("handover");
    fs::write(fixture.dir.path().join("file.hang"), "alien").expect("a file");
    fs::create_dir(fixture.dir.path().join("empty.hang")).expect("a directory");
    for (args, says) in [
        (&["info", "none.hang"][..], "does not exist"),
        (&["info", "file.hang"], "not a hangdog trace"),
        (&["threads", "empty.hang"], "not a hangdog trace"),
        (
            &["story", "t.hang", "--thread", "app", "--from", "3"],
            "needs its unit",
        ),
        (
            &["story", "t.hang", "--thread", "app", "--from", "1s"],
            "the trace ends at",
        ),
        (
            &["threads", "t.hang", "--sort", "beauty"],
            "possible values",
        ),
        (&["why", "none.hang"], "does not exist"),
        (&["why", "t.hang", "--problem", "0"], "0 is not in"),
        (
            &["why", "t.hang", "--baseline", "none.hang"],
            "does not exist",
        ),
        (&["why", "t.hang", "--forget", "1"], "there is none"),
        (&["problems", "none.hang"], "does not exist"),
        (&["explain", "t.hang", "0"], "0 is not in"),
        (
            &["why", "t.hang", "--problem", "1", "--thread", "app"],
            "cannot be used with",
        ),
    ] {
        let text = fixture.refusal(args, 2);
        assert!(text.contains(says), "{args:?}: {text}");
        assert!(!text.contains("panicked"), "{args:?}: {text}");
    }
}

/// A damaged part is named, with exit status 2.
#[test]
fn damaged_part() {
    let fixture = Fixture::new("handover");
    let part = fixture.dir.path().join("t.hang/switches/000001.parquet");
    let bytes = fs::read(&part).expect("a part");
    fs::write(&part, &bytes[..bytes.len() / 2]).expect("a shorter part");
    for args in [
        &["threads", "t.hang"][..],
        &["info", "t.hang"],
        &["why", "t.hang"],
    ] {
        let text = fixture.refusal(args, 2);
        assert!(text.contains("000001.parquet"), "{text}");
    }
}

/// Threads of one name are listed to choose from, with exit status 2.
#[test]
fn ambiguous_thread() {
    let fixture = Fixture::of(
        "process app 1\nthread a app 1 name=app\nprocess app2 2\nthread b app2 2 name=app\n\
         0 cpu0 switch a -> b sleeping\nend 1ms",
    );
    let text = fixture.refusal(&["story", "t.hang", "--thread", "app"], 2);
    assert!(text.contains("tid 1 ") && text.contains("tid 2 "), "{text}");
    assert!(text.contains("give the tid"), "{text}");
}

/// A reader that closes the pipe early is no error: no panic, nothing on standard error.
#[test]
fn closed_pipe() {
    let mut trace = String::from("process app 1\nthread a app 1\nthread b app 2\n");
    for i in 1..20_000 {
        let (from, to) = if i % 2 == 0 { ("a", "b") } else { ("b", "a") };
        trace.push_str(&format!("{i}us cpu0 switch {from} -> {to} preempted\n"));
    }
    let fixture = Fixture::of(&trace);
    let mut child = hangdog()
        .args(["story", "t.hang", "--thread", "1"])
        .current_dir(&fixture.dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a run");
    let mut start = [0; 10];
    let mut pipe = child.stdout.take().expect("a pipe");
    pipe.read_exact(&mut start).expect("some output");
    drop(pipe);
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Output that is no terminal has no colours.
#[test]
fn no_colours_in_a_pipe() {
    let fixture = Fixture::new("page");
    for args in [
        &["info", "t.hang"][..],
        &["threads", "t.hang"],
        &["story", "t.hang", "--thread", "app"],
        &["why", "t.hang"],
        &["problems", "t.hang"],
        &["explain", "t.hang", "1"],
    ] {
        assert!(!fixture.text(args).contains('\x1b'), "{args:?}");
    }
}

/// Completions and man pages are made from the arguments.
#[test]
fn completions_and_man_pages() {
    let fixture = Fixture::new("handover");
    for shell in ["bash", "zsh", "fish"] {
        assert!(fixture.text(&["completions", shell]).contains("hangdog"));
    }
    fixture.text(&["man", "."]);
    for page in ["hangdog.1", "hangdog-story.1", "hangdog-record.1"] {
        let text = fs::read_to_string(fixture.dir.path().join(page)).expect("a man page");
        assert!(text.contains(".TH"), "{page}");
    }
}
