//! `hangdog spans`: OTLP in JSON over a trace, and what the other commands then say.

use hangdog_trace::{Meta, text};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A server with two workers; the trace starts at 1 s of the wall clock.
const TRACE: &str = "\
    process server 500\n\
    process other 700\n\
    thread server server 500\n\
    thread worker server 501 name=request-worker-\n\
    thread twin1 server 502 name=twin\n\
    thread twin2 server 503 name=twin\n\
    thread other other 700\n\
    0ms cpu0 switch idle -> worker\n\
    40ms cpu0 switch worker -> idle sleeping\n\
    100ms cpu0 switch idle -> server\n\
    110ms cpu0 switch server -> idle sleeping\n";

const SECOND: u64 = 1_000_000_000;

fn span(name: &str, id: &str, ms: (u64, u64), attributes: &str) -> String {
    let [start, end] = [ms.0, ms.1].map(|ms| SECOND + ms * 1_000_000);
    format!(
        r#"{{"name":"{name}","traceId":"00","spanId":"{id}","startTimeUnixNano":"{start}",
            "endTimeUnixNano":"{end}","attributes":[{attributes}]}}"#
    )
}

fn request(pid: u32, spans: &[String]) -> String {
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[
            {{"key":"service.name","value":{{"stringValue":"shop"}}}},
            {{"key":"process.pid","value":{{"intValue":"{pid}"}}}}]}},
            "scopeSpans":[{{"scope":{{"name":"s"}},"spans":[{}]}}]}}]}}"#,
        spans.join(",")
    )
}

struct Fixture(TempDir);

impl Fixture {
    fn new() -> Fixture {
        let dir = TempDir::new().expect("a directory");
        let meta = Meta {
            started_unix_ns: SECOND,
            ..Meta::default()
        };
        text::parse(TRACE)
            .expect("a trace in text form")
            .write_to(dir.path().join("t.hang"), meta)
            .expect("a trace on disk");
        Fixture(dir)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_hangdog"))
            .args(args)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .expect("a run")
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn spans(&self, text: &str) -> Output {
        fs::write(self.0.path().join("spans.json"), text).expect("a file");
        self.run(&["spans", "t.hang", "spans.json", "--json"])
    }
}

/// Spans are on the threads that they name, by id or by name, or else on the process's first; those of no
/// process and of another time are counted. They overlap, nest, and are regions like others; the next file
/// replaces them, and what is not in it is gone.
#[test]
fn spans_become_regions() {
    let fixture = Fixture::new();
    let id = r#"{"key":"thread.id","value":{"intValue":502}}"#;
    let name = r#"{"key":"thread.name","value":{"stringValue":"request-worker-7"}}"#;
    let both = r#"{"key":"thread.id","value":{"intValue":"12"}},
                  {"key":"thread.name","value":{"stringValue":"twin"}}"#;
    let first = request(
        500,
        &[
            span("GET /", "0000000000000001", (10, 50), id),
            span("GET /", "ffffffffffffffff", (20, 100), name),
            span("query", "0000000000000003", (30, 40), both),
            span("late", "0000000000000004", (90, 500), ""),
            span("early", "0000000000000005", (400, 500), ""),
        ],
    );
    let second = request(999, &[span("foreign", "0000000000000006", (10, 20), "")]);
    let output = fixture.spans(&format!("{first}\n{second}\n"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let tally: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for (key, count) in [
        ("spans", 4),
        ("by_thread_id", 1),
        ("by_thread_name", 1),
        ("by_process", 2),
        ("of_no_process", 1),
        ("of_another_time", 1),
    ] {
        assert_eq!(tally[key], count, "{key}: {tally}");
    }
    let listed = fixture.json(&["regions", "t.hang", "--list"]);
    let rows = listed["occurrences"].as_array().expect("regions").iter();
    let rows: Vec<_> = rows
        .map(|row| {
            let number = |key: &str| row[key].as_u64().expect("a number") / 1_000_000;
            (
                row["name"].as_str().expect("a name"),
                number("start_ns"),
                number("duration_ns"),
                row["thread"]["tid"].as_u64().expect("a tid"),
                row["arguments"][0].as_i64().expect("an id"),
                row["open"].as_bool().expect("a truth"),
            )
        })
        .collect();
    let expected = [
        ("GET /", 10, 40, 502, 1, false),
        ("GET /", 20, 80, 501, -1, false),
        ("query", 30, 10, 500, 3, false),
        ("late", 90, 20, 500, 4, true),
    ];
    assert_eq!(rows, expected);

    let again = fixture.spans(&request(500, &[span("only", "07", (1, 2), "")]));
    assert_eq!(again.status.code(), Some(0));
    let regions = fixture.json(&["regions", "t.hang"]);
    assert_eq!(
        regions["regions"].as_array().map(Vec::len),
        Some(1),
        "{regions}"
    );
}

/// All spans can be taken for one process's.
#[test]
fn spans_of_a_container() {
    let fixture = Fixture::new();
    let text = request(7, &[span("a", "01", (1, 2), "")]);
    assert_eq!(fixture.spans(&text).status.code(), Some(1));
    let taken = fixture.json(&["spans", "t.hang", "spans.json", "--process", "other"]);
    assert_eq!(taken["spans"], 1);
    let listed = fixture.json(&["regions", "t.hang", "--list"]);
    assert_eq!(listed["occurrences"][0]["thread"]["tid"], 700, "{listed}");
}

/// What is no OTLP, or damaged, is refused with the place; what the trace had stays. A damaged file in the
/// trace's folder is named with what to do.
#[test]
fn damaged_files() {
    let fixture = Fixture::new();
    let good = request(500, &[span("a", "01", (1, 2), "")]);
    assert_eq!(fixture.spans(&good).status.code(), Some(0));
    for text in [
        "junk",
        "[1]",
        r#"{"resourceSpans":7}"#,
        &good[..good.len() - 3],
        r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}]}]}]}"#,
        r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"a","endTimeUnixNano":1}]}]}]}"#,
    ] {
        let output = fixture.spans(text);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}: {errors}");
        assert!(errors.contains("spans.json"), "{errors}");
    }
    assert_eq!(
        fixture.spans(r#"{"resourceSpans":[]}"#).status.code(),
        Some(1)
    );
    let regions = fixture.json(&["regions", "t.hang"]);
    assert_eq!(regions["regions"][0]["name"], "a");

    let kept = fixture.0.path().join("t.hang/spans.json");
    for text in [
        "junk",
        r#"{"version":2,"spans":[]}"#,
        r#"{"version":1,"spans":[{"thread":99,"name":"x","start":1,"end":2,"id":1}]}"#,
    ] {
        fs::write(&kept, text).expect("a file");
        let output = fixture.run(&["regions", "t.hang"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(errors.contains("delete it"), "{errors}");
    }
    fs::write(
        &kept,
        r#"{"version":1,"spans":[{"thread":1,"name":"x","start":18446744073709551615,"end":0,"id":1}]}"#,
    )
    .expect("a file");
    fixture.run(&["regions", "t.hang", "--list"]);
}
