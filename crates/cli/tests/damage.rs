//! Damaged traces: every report answers, finds nothing, or says in a line what is wrong, and never
//! panics, hangs or eats the machine's memory.

mod hostile;

use hangdog_trace::Trace;
use hostile::{Noise, damage, files, sound, write};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Runs a report and checks how it ends. `what` says what was done to the trace.
fn check(dir: &Path, args: &[&str], what: &str) -> i32 {
    // Far more than any of these traces needs, far less than the machine has.
    let limited = "ulimit -v 4000000; exec \"$@\"";
    let mut child = Command::new("sh")
        .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_hangdog")])
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(fs::File::create(dir.join("stdout")).expect("a file"))
        .stderr(fs::File::create(dir.join("stderr")).expect("a file"))
        .spawn()
        .expect("a run");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if began.elapsed() > Duration::from_secs(20) {
            let _ = child.kill();
            panic!("{args:?} does not end: {what}");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let read = |name: &str| {
        String::from_utf8_lossy(&fs::read(dir.join(name)).expect("output")).into_owned()
    };
    let (stdout, stderr) = (read("stdout"), read("stderr"));
    let code = status.code().unwrap_or(-1);
    assert!(
        (0..=2).contains(&code) && !stderr.contains("panicked"),
        "{args:?} ended with {status}: {what}\n{stderr}"
    );
    assert_eq!(code == 0, !stdout.is_empty(), "{args:?}: {what}\n{stderr}");
    assert_eq!(code == 0, stderr.is_empty(), "{args:?}: {what}\n{stderr}");
    code
}

const REPORTS: [&[&str]; 13] = [
    &["why", "t.hang"],
    &["why", "t.hang", "--json"],
    &["why", "t.hang", "--thread", "app/", "--from", "4ms"],
    &["paging", "t.hang", "--all", "--json"],
    &["graph", "t.hang"],
    &[
        "graph", "t.hang", "--dot", "--thread", "100", "--depth", "3",
    ],
    &["threads", "t.hang"],
    &["info", "t.hang"],
    &["top", "t.hang", "--view", "off-cpu"],
    &["flame", "t.hang", "--view", "wakes", "-o", "-"],
    &["export", "t.hang", "--format", "perfetto", "-o", "-"],
    &["export", "t.hang", "--format", "firefox", "-o", "-"],
    &["export", "t.hang", "--format", "folded", "-o", "-"],
];

/// Bytes flipped, overwritten or cut off in any file of a trace.
#[test]
fn damaged_files() {
    let mut ends = [0; 3];
    for seed in 0..60 {
        let mut noise = Noise(seed);
        let dir = TempDir::new().expect("a directory");
        let trace = dir.path().join("t.hang");
        write(&sound(seed), &trace);
        let files = files(&trace);
        let file = &files[noise.below(files.len())];
        let mut bytes = fs::read(file).expect("a file");
        match seed % 3 {
            0 => bytes.truncate(noise.below(bytes.len())),
            1 => {
                for _ in 0..1 + noise.below(8) {
                    let at = noise.below(bytes.len());
                    bytes[at] ^= 1 << noise.below(8);
                }
            }
            _ => {
                let from = noise.below(bytes.len());
                let to = bytes.len().min(from + 1 + noise.below(64));
                bytes[from..to].fill_with(|| noise.next() as u8);
            }
        }
        fs::write(file, &bytes).expect("a damaged file");
        let report = REPORTS[noise.below(REPORTS.len())];
        let what = format!("seed {seed}, {}", file.display());
        ends[check(dir.path(), report, &what) as usize] += 1;
    }
    assert!(ends[2] > 10, "the damage is to be noticed: {ends:?}");
}

/// Rows that refer to threads, processes, stacks, frames and modules that do not exist, to each
/// other in circles, and to times at any end of time.
#[test]
fn damaged_rows() {
    let mut ends = [0; 3];
    for seed in 0..90 {
        let mut noise = Noise(seed);
        let mut trace = sound(seed);
        for _ in 0..1 + noise.below(12) {
            damage(&mut trace, &mut noise);
        }
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("t.hang");
        write(&trace, &path);
        assert!(Trace::open(&path).is_ok(), "the file itself is sound");
        let report = REPORTS[noise.below(REPORTS.len())];
        ends[check(dir.path(), report, &format!("seed {seed}")) as usize] += 1;
    }
    assert!(ends[0] > 30, "most can be answered: {ends:?}");
}
