//! Altered traces: every command that reads one refuses it in a sentence, or answers as if it were
//! not altered. It never panics, never takes longer than 20 s, never more than 1 GB.
//!
//! HANGDOG_TORTURE_SECONDS says for how long; `make torture` takes 15 minutes.

mod hostile;

use hangdog_trace::tables::{LifecycleEvent, Stack, Wake};
use hangdog_trace::{Meta, Tables, TraceWriter};
use hostile::{Noise, damage, files, sound, write};
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const COMMANDS: [&[&str]; 22] = [
    &["info", "t.hang"],
    &["info", "t.hang", "--json"],
    &["info", "t.hang", "--verify"],
    &["threads", "t.hang"],
    &["threads", "t.hang", "--json"],
    &["story", "t.hang", "--thread", "100"],
    &["story", "t.hang", "--thread", "100", "--json"],
    &["problems", "t.hang"],
    &["problems", "t.hang", "--json"],
    &["why", "t.hang"],
    &["why", "t.hang", "--json"],
    &["why", "t.hang", "--whole"],
    &["explain", "t.hang", "1"],
    &["paging", "t.hang"],
    &["paging", "t.hang", "--all", "--json"],
    &["graph", "t.hang"],
    &[
        "graph", "t.hang", "--dot", "--thread", "100", "--depth", "3",
    ],
    &["top", "t.hang", "--view", "off-cpu"],
    &["flame", "t.hang", "--view", "wakes", "-o", "-"],
    &["export", "t.hang", "--format", "perfetto", "-o", "-"],
    &["export", "t.hang", "--format", "firefox", "-o", "-"],
    &["export", "t.hang", "--format", "folded", "-o", "-"],
];

/// How a run ended and what it said.
#[derive(Clone, PartialEq, Eq)]
struct Ended {
    code: i32,
    stdout: Vec<u8>,
    stderr: String,
}

const LONGEST: Duration = Duration::from_secs(20);

/// Runs a command in `dir`; it must end, in time and memory, without a panic.
fn run(dir: &Path, args: &[&str], what: &str) -> Ended {
    let file = |name: &str| File::create(dir.join(name)).expect("a file");
    // Whoever asks for more memory than 1 GB is aborted.
    let limited = "ulimit -d 1048576; exec \"$@\"";
    let mut child = Command::new("sh")
        .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_hangdog")])
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(file("stdout"))
        .stderr(file("stderr"))
        .spawn()
        .expect("a run");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if began.elapsed() > LONGEST {
            let _ = child.kill();
            panic!("{args:?} does not end: {what}");
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let stderr = fs::read(dir.join("stderr")).expect("output");
    let mut stdout = fs::read(dir.join("stdout")).expect("output");
    if args[0] == "graph" {
        // How long it took is another every time.
        let lines = stdout.split_inclusive(|&byte| byte == b'\n');
        stdout = lines
            .filter(|line| !line.starts_with(b"took "))
            .flatten()
            .copied()
            .collect();
    }
    let ended = Ended {
        code: status.code().unwrap_or(-1),
        stdout,
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    };
    assert!(
        (0..=2).contains(&ended.code) && !ended.stderr.contains("panicked"),
        "{args:?} ended with {status}: {what}\n{}",
        ended.stderr
    );
    ended
}

fn birth(id: u32) -> LifecycleEvent {
    LifecycleEvent {
        ts: 60_000_000,
        kind: 0,
        thread: 1_000 + id,
        process: 1_000 + id,
        tid: 1_000 + id % 1_000,
        pid: 1_000 + id % 1_000,
        parent: 1,
        name: "sh".into(),
        detail: String::new(),
    }
}

fn wake(ts: u64, id: u32) -> Wake {
    Wake {
        ts: 60_000_000 + ts,
        cpu: 0,
        waker: 1,
        wakee: 1_000 + id,
        context: 0,
        vector: 0,
        new: true,
        call: -1,
        object: 0,
        arg: 0,
        user_stack: 0,
        kernel_stack: 0,
    }
}

fn stack(id: u32) -> Stack {
    Stack {
        stack: 1_000 + id,
        process: 1,
        frames: Vec::new(),
        end: 0,
    }
}

/// What a case of [`hostile_sizes`] adds to a trace, and whether that is refused.
type Size = (&'static str, bool, fn(&mut Tables));

const SIZES: [Size; 5] = [
    ("120,000 threads", false, |tables| {
        let mut noise = Noise(0);
        for id in 1..=120_000 {
            tables.lifecycle.push(birth(id));
            for at in 0..7 {
                tables.wakes.push(Wake {
                    object: noise.next(),
                    ..wake(u64::from(id) * 7 + at, id)
                });
            }
        }
    }),
    ("a million threads", true, |tables| {
        (1..=1_000_000).for_each(|id| tables.lifecycle.push(birth(id)));
    }),
    ("a stack of ten million frames", true, |tables| {
        tables.stacks.push(Stack {
            frames: vec![1; 10_000_000],
            ..stack(1)
        });
    }),
    ("stacks of 120 MB", true, |tables| {
        for id in 1..=500 {
            tables.stacks.push(Stack {
                frames: vec![1; 60_000],
                ..stack(id)
            });
        }
    }),
    ("texts of 300 MB", true, |tables| {
        for id in 1..=300 {
            tables.lifecycle.push(LifecycleEvent {
                name: "x".repeat(1 << 20),
                ..birth(id)
            });
        }
    }),
];

/// Small traces that claim much are refused, or answered within a gigabyte.
#[test]
fn hostile_sizes() {
    let commands = COMMANDS.iter().filter(|args| {
        let by_size = ["threads", "story", "why", "graph", "top", "export"];
        by_size.contains(&args[0]) && !args.contains(&"--json")
    });
    for (what, is_refused, fill) in SIZES {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("t.hang");
        let mut writer = TraceWriter::create(&path, Meta::default()).expect("a trace");
        writer.tables = sound(0).tables;
        fill(&mut writer.tables);
        let meta = Meta {
            duration_ns: 1_000_000_000,
            command_tid: Some(100),
            ..Meta::default()
        };
        writer.finish(meta).expect("a trace");
        let size = |file: &PathBuf| file.metadata().expect("a file").len();
        let size: u64 = files(&path).iter().map(size).sum();
        assert!(size < 10 << 20, "{what}: {size} bytes");
        let mut refused = 0;
        for args in commands.clone() {
            let ended = run(dir.path(), args, what);
            assert!(
                ended.code != 2 || is_clear(&ended.stderr),
                "{what}: {}",
                ended.stderr
            );
            refused += u32::from(ended.code == 2);
        }
        assert_eq!(refused > 0, is_refused, "{what}");
    }
}

/// Alters a complete trace on disk; says how. Its list of parts stays as it was.
fn alter(trace: &Path, other: &Path, noise: &mut Noise) -> String {
    let all = files(trace);
    let file = &all[noise.below(all.len())];
    let second = &all[noise.below(all.len())];
    let folder = file.parent().expect("a folder");
    let name = file.strip_prefix(trace).expect("a file of it").display();
    let done = match noise.below(12) {
        0 => {
            fs::remove_file(file).expect("removed");
            "removed"
        }
        1 if folder != trace => {
            fs::remove_dir_all(folder).expect("removed");
            "its table removed"
        }
        2 => {
            fs::copy(second, file).expect("a copy");
            return format!("{} copied over {name}", second.display());
        }
        3 => {
            let theirs = other.join(file.strip_prefix(trace).expect("a file of it"));
            if theirs.exists() {
                fs::copy(&theirs, file).expect("a copy");
            }
            "that of another trace"
        }
        4 => {
            let bytes = fs::read(file).expect("a file");
            fs::write(file, &bytes[..noise.below(bytes.len())]).expect("written");
            "truncated"
        }
        5 => {
            fs::remove_file(file).expect("removed");
            symlink(second, file).expect("a link");
            "a link to another file"
        }
        6 => {
            fs::remove_file(file).expect("removed");
            let made = Command::new("mkfifo").arg(file).status();
            assert!(made.expect("mkfifo").success());
            "a pipe"
        }
        7 if folder != trace => {
            fs::copy(file, folder.join("000002.parquet")).expect("a copy");
            "there twice"
        }
        _ => {
            let mut bytes = fs::read(file).expect("a file");
            for _ in 0..1 + noise.below(3) {
                let at = noise.below(bytes.len());
                bytes[at] ^= 1 << noise.below(8);
            }
            fs::write(file, bytes).expect("written");
            "some bits flipped"
        }
    };
    format!("{name}: {done}")
}

/// Exchanges tables of a trace for such as hold hostile values. The files are valid.
fn poison(trace: &Path, number: u64, noise: &mut Noise) -> String {
    let mut poisoned = sound(number);
    for _ in 0..1 + noise.below(12) {
        damage(&mut poisoned, noise);
    }
    let from = trace.with_extension("poisoned");
    write(&poisoned, &from);
    for file in files(&from) {
        let name = file.strip_prefix(&from).expect("a file of it");
        if name != Path::new("meta.json") {
            fs::create_dir_all(trace.join(name).parent().expect("a folder")).expect("a folder");
            fs::copy(&file, trace.join(name)).expect("a copy");
        }
    }
    fs::remove_dir_all(from).expect("removed");
    "hostile values".to_owned()
}

/// Takes a trace's list of parts away: an older one, or, if `recording`, one that was cut short.
fn unlist(trace: &Path, recording: bool) {
    let path = trace.join("meta.json");
    let text = fs::read_to_string(&path).expect("text");
    let mut meta: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let fields = meta.as_object_mut().expect("an object");
    fields.remove("parts");
    fields.remove("checksum");
    if recording {
        fields.insert("state".into(), "recording".into());
        fields.insert("duration_ns".into(), 0.into());
    }
    fs::write(path, meta.to_string()).expect("written");
}

/// Whether a refusal says which file is wrong, or what.
fn is_clear(said: &str) -> bool {
    said.lines().count() == 1
        && [
            "is damaged (",
            "is not a hangdog trace",
            "has format version",
        ]
        .iter()
        .any(|words| said.contains(words))
}

#[test]
fn altered_traces() {
    let seconds = std::env::var("HANGDOG_TORTURE_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(10);
    let end = Instant::now() + Duration::from_secs(seconds);
    let dir = TempDir::new().expect("a directory");
    let place = dir.path().join("place");
    fs::create_dir(&place).expect("a folder");
    let trace = place.join("t.hang");
    let whole: Vec<PathBuf> = (0..3)
        .map(|number| {
            let path = dir.path().join(format!("{number}.hang"));
            write(&sound(number), &path);
            path
        })
        .collect();
    let mut answers: HashMap<(u64, &[&str]), Ended> = HashMap::new();
    let (mut refused, mut as_before, mut unlisted, mut others) = (0, 0, 0, 0);
    for seed in 0.. {
        let mut noise = Noise(seed);
        let number = seed % 3;
        let copy = || {
            if trace.exists() {
                fs::remove_dir_all(&trace).expect("removed");
            }
            let mut copy = Command::new("cp");
            copy.arg("-a").args([&whole[number as usize], &trace]);
            assert!(copy.status().expect("cp").success());
        };
        let args = COMMANDS[noise.below(COMMANDS.len())];
        let original = answers.entry((number, args)).or_insert_with(|| {
            copy();
            run(&place, args, "not altered")
        });
        copy();
        let what = match seed % 4 {
            0 => poison(&trace, number, &mut noise),
            _ => alter(&trace, &whole[(number as usize + 1) % 3], &mut noise),
        };
        let mut what = format!("seed {seed}, trace {number}, {what}");
        let is_listed = noise.below(3) > 0;
        if !is_listed && trace.join("meta.json").is_file() && seed % 4 == 0 {
            unlist(&trace, noise.below(2) == 0);
            what.push_str(", without a list");
            run(&place, args, &what);
            unlisted += 1;
        } else {
            let ended = run(&place, args, &what);
            if ended == *original {
                as_before += 1;
            } else {
                let said = &ended.stderr;
                assert!(
                    ended.code == 2 && ended.stdout.is_empty() && is_clear(said),
                    "{args:?} answers with {} and other words: {what}\n{said}",
                    ended.code
                );
                refused += 1;
            }
        }
        others += 1;
        if Instant::now() >= end {
            break;
        }
    }
    eprintln!("{others} runs: {refused} refused, {as_before} as before, {unlisted} without a list");
    assert!(refused > 0, "nothing was noticed");
}
