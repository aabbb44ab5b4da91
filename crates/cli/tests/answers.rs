//! What the user is asked, and what becomes of the answers: at a terminal, in `answers.toml`, on
//! the next run, and when the file is damaged.
//!
//! `golden/asked.trace` leaves open for whom main waits: worker is the likeliest with 3.5 of 7.5
//! (it ended three such waits, the last among them), helper and the timeout have 2 each. The
//! terminal is that of `script`, which is on every Debian.

use hangdog_trace::{Meta, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const HANGDOG: &str = env!("CARGO_BIN_EXE_hangdog");

/// The trace with the question as `asked.hang`, one without as `page.hang`.
fn traces() -> TempDir {
    let dir = TempDir::new().expect("a directory");
    for name in ["asked", "page"] {
        let file = format!("tests/golden/{name}.trace");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let meta = Meta {
            command_tid: Some(100),
            ..Meta::default()
        };
        text::parse(&fs::read_to_string(file).expect("the trace's text"))
            .expect("a trace in text form")
            .write_to(dir.path().join(format!("{name}.hang")), meta)
            .expect("a trace on disk");
    }
    dir
}

fn answers_of(dir: &TempDir) -> PathBuf {
    dir.path().join("asked.hang/answers.toml")
}

/// What a person sees who calls `hangdog` with `args` at a terminal and types `typed`.
fn at_terminal(dir: &TempDir, args: &str, typed: &str) -> String {
    let mut script = Command::new("script")
        .args(["-qec", &format!("'{HANGDOG}' {args} 2>/dev/null")])
        .arg("/dev/null")
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script, of bsdutils");
    let mut keyboard = script.stdin.take().expect("a keyboard");
    keyboard.write_all(typed.as_bytes()).expect("typing");
    drop(keyboard);
    let output = script.wait_with_output().expect("an end");
    let screen = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert_eq!(output.status.code(), Some(0), "{screen}");
    screen
}

fn run(dir: &TempDir, args: &[&str]) -> Output {
    Command::new(HANGDOG)
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .expect("a run")
}

fn verdict(dir: &TempDir) -> Value {
    let output = run(dir, &["why", "asked.hang", "--json"]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Who is to blame, in what class.
fn root(dir: &TempDir) -> (String, String) {
    let verdict = verdict(dir);
    let text = |name: &str| verdict["root"][name].as_str().unwrap_or("").to_owned();
    (text("thread"), text("class"))
}

fn pair(thread: &str, class: &str) -> (String, String) {
    (thread.to_owned(), class.to_owned())
}

/// At a terminal one question is asked, with the time, the stack, and a default; another answer
/// changes the verdict, is kept, is replayed without asking, and can be taken back.
#[test]
fn an_answer_is_asked_kept_replayed_and_taken_back() {
    let dir = traces();
    let screen = at_terminal(&dir, "why asked.hang", "2\n");
    for shown in [
        "app waited for a condition: who should have ended this wait?\n",
        "  from 0.110000 s for 100 ms\n",
        "  at pthread_cond_timedwait < next_job < main_loop\n",
        "  1. app/worker (47 %)",
        "  2. app/helper (27 %)",
        "  3. its own timeout",
        "  4. none of these",
        "Which? [1;",
        "app was held up for 100 ms: app/helper waited for the disk in fsync.\n",
        "* by answer 1; hangdog why --forget 1 takes it back",
    ] {
        assert!(screen.contains(shown), "no {shown:?} in {screen}");
    }
    assert_eq!(screen.matches("Which?").count(), 1, "{screen}");

    let kept = fs::read_to_string(answers_of(&dir)).expect("answers");
    assert!(kept.contains("choice = \"app/helper\""), "{kept}");
    assert!(
        !kept.contains("0x"),
        "an address means nothing elsewhere: {kept}"
    );

    let screen = at_terminal(&dir, "why asked.hang", "");
    assert!(!screen.contains("Which?"), "{screen}");
    assert!(
        screen.contains("app/helper waited for the disk"),
        "{screen}"
    );
    assert_eq!(root(&dir), pair("helper", "LongWait"));
    assert_eq!(verdict(&dir)["questions"][0]["answer"], 1);

    let output = run(&dir, &["why", "asked.hang", "--forget", "1"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(root(&dir), pair("worker", "LongRunning"));
    let left = fs::read_to_string(answers_of(&dir)).expect("answers");
    assert!(!left.contains("app/helper"), "{left}");

    // What is not there cannot be taken back.
    let output = run(&dir, &["why", "asked.hang", "--forget", "1"]);
    assert_eq!(output.status.code(), Some(2));
    let says = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(says.contains("has no answer 1"), "{says}");
}

/// That it is none of the possibilities is an answer too: the wait is then attributed to nobody.
#[test]
fn none_of_them_is_an_answer() {
    let dir = traces();
    at_terminal(&dir, "why asked.hang", "4\n");
    let verdict = verdict(&dir);
    assert_eq!(verdict["questions"][0]["possibilities"][3]["chosen"], true);
    assert_eq!(verdict["root"]["thread"], "app", "{}", verdict["sentence"]);
    assert_eq!(verdict["path"][0]["edge"]["kind"], "unknown");
}

/// What is no number of a possibility is asked again; an empty line takes the default, which is
/// no answer, and q or the end of input ask no more.
#[test]
fn defaults_are_not_kept() {
    for (typed, asked) in [("9\nwhat\n\n", 3), ("\n", 1), ("q\n", 1), ("", 1)] {
        let dir = traces();
        let screen = at_terminal(&dir, "why asked.hang", typed);
        assert_eq!(screen.matches("Which?").count(), asked, "{screen}");
        assert!(screen.contains("app/worker ran decode"), "{screen}");
        assert!(!answers_of(&dir).exists(), "{typed:?}");
    }
}

/// `--yes` asks nothing at a terminal, takes the default, and says that it did.
#[test]
fn yes_takes_the_defaults_and_says_so() {
    let dir = traces();
    let screen = at_terminal(&dir, "why asked.hang --yes", "");
    assert!(!screen.contains("Which?"), "{screen}");
    assert!(screen.contains("app/worker ran decode"), "{screen}");
    assert!(
        screen.contains("* by default, because of --yes"),
        "{screen}"
    );
    assert!(!answers_of(&dir).exists());
}

/// Without a terminal nothing is asked and nothing is waited for.
#[test]
fn a_pipe_is_not_asked() {
    let dir = traces();
    let output = run(&dir, &["why", "asked.hang"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0));
    assert!(!text.contains("Which?"), "{text}");
    assert!(text.contains("this is not a terminal"), "{text}");
}

/// A damaged file is refused with its line and exit status 2 by all that go by answers; it stays
/// as it is to the byte, even where an answer is to be taken back; other traces are not affected.
#[test]
fn a_damaged_file_is_refused_and_kept() {
    let dir = traces();
    at_terminal(&dir, "why asked.hang", "2\n");
    let good = fs::read(answers_of(&dir)).expect("answers");
    let text = String::from_utf8(good.clone()).expect("UTF-8");
    let line = 1 + text
        .lines()
        .position(|l| l.starts_with("choice"))
        .expect("a choice");
    let half = text.find("choice").expect("a choice") + 10;
    let cut = format!("line {line}:");
    let damages: [(Vec<u8>, &str); 4] = [
        (good[..half].to_vec(), &cut),
        (text.replace("choice = ", "choice : ").into_bytes(), &cut),
        (
            text.replace("version = 1", "version = 2").into_bytes(),
            "line 1:",
        ),
        (
            [b"version = 1\n\xff\xfe".as_slice(), &good].concat(),
            "answers.toml",
        ),
    ];
    for (damaged, says) in damages {
        fs::write(answers_of(&dir), &damaged).expect("damage");
        for args in [
            &["why", "asked.hang"][..],
            &["why", "asked.hang", "--json"],
            &["why", "asked.hang", "--forget", "1"],
            &["problems", "asked.hang"],
            &["explain", "asked.hang", "1"],
        ] {
            let output = run(&dir, args);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
            assert!(output.stdout.is_empty(), "{args:?} printed an answer");
            assert!(error.contains("answers.toml"), "{args:?}: {error}");
            assert!(error.contains(says), "{args:?}: no {says:?} in {error}");
            assert!(!error.contains("panicked"), "{args:?}: {error}");
            assert_eq!(fs::read(answers_of(&dir)).expect("answers"), damaged);
        }
        assert_eq!(run(&dir, &["why", "page.hang"]).status.code(), Some(0));
    }
    fs::write(answers_of(&dir), &good).expect("mended");
    assert_eq!(root(&dir), pair("helper", "LongWait"));
}

/// Where the answers cannot be written, here since no file may have any bytes, the error says so;
/// the old file stays, and no part of a new one.
#[test]
fn what_cannot_be_written_changes_nothing() {
    let dir = traces();
    at_terminal(&dir, "why asked.hang", "2\n");
    let before = fs::read(answers_of(&dir)).expect("answers");
    let output = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 0; exec \"$@\"",
            "sh",
            HANGDOG,
        ])
        .args(["why", "asked.hang", "--forget", "1"])
        .current_dir(&dir)
        .output()
        .expect("a run");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("answers.toml: File too large"), "{error}");
    assert_eq!(fs::read(answers_of(&dir)).expect("answers"), before);
    let left: Vec<_> = fs::read_dir(dir.path().join("asked.hang"))
        .expect("the trace")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("answers"))
        .collect();
    assert_eq!(left, ["answers.toml"]);
}

/// Comments and other answers survive what hangdog adds and takes back.
#[test]
fn what_a_person_wrote_stays() {
    let dir = traces();
    fs::write(answers_of(&dir), "# asked Anna\nversion = 1\n").expect("a file");
    at_terminal(&dir, "why asked.hang", "2\n");
    let with = fs::read_to_string(answers_of(&dir)).expect("answers");
    assert!(
        with.starts_with("# asked Anna\n") && with.contains("app/helper"),
        "{with}"
    );
    run(&dir, &["why", "asked.hang", "--forget", "1"]);
    let without = fs::read_to_string(answers_of(&dir)).expect("answers");
    assert!(
        without.starts_with("# asked Anna\nversion = 1\n"),
        "{without}"
    );
}
