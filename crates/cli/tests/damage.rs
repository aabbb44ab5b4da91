//! Damaged traces: every report answers, finds nothing, or says in a line what is wrong, and never
//! panics, hangs or eats the machine's memory.

use hangdog_trace::text::{self, TextTrace};
use hangdog_trace::{Meta, Trace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Endless numbers from one (splitmix64).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// The traces that the golden tests have, in turn.
fn sound(at: u64) -> TextTrace {
    let names = ["page", "knot", "handover"];
    let name = names[at as usize % names.len()];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.trace"));
    let text = fs::read_to_string(path).expect("the trace's text");
    text::parse(&text).expect("a trace in text form")
}

fn write(trace: &TextTrace, path: &Path) {
    let meta = Meta {
        command_tid: Some(100),
        ..Meta::default()
    };
    trace.write_to(path, meta).expect("a trace on disk");
}

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

const REPORTS: [&[&str]; 12] = [
    &["why", "t.hang"],
    &["why", "t.hang", "--json"],
    &["why", "t.hang", "--thread", "app/", "--from", "4ms"],
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

/// The files of a trace, sorted.
fn files(trace: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![trace.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    files
}

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

/// Overwrites one value of one column.
fn damage(trace: &mut TextTrace, noise: &mut Noise) {
    let id = |noise: &mut Noise| match noise.below(4) {
        0 => u32::MAX,
        1 => 4_000_000_000,
        2 => 1000,
        _ => noise.below(8) as u32,
    };
    let time = |noise: &mut Noise| match noise.below(4) {
        0 => u64::MAX,
        1 => 0,
        2 => noise.next(),
        _ => noise.next() % 60_000_000,
    };
    let tables = &mut trace.tables;
    let ids = [
        &mut tables.switches.prev,
        &mut tables.switches.next,
        &mut tables.switches.holder,
        &mut tables.switches.user_stack,
        &mut tables.switches.kernel_stack,
        &mut tables.wakes.waker,
        &mut tables.wakes.wakee,
        &mut tables.wakes.user_stack,
        &mut tables.samples.thread,
        &mut tables.samples.user_stack,
        &mut tables.lifecycle.thread,
        &mut tables.lifecycle.process,
        &mut tables.lifecycle.parent,
        &mut tables.lifecycle.tid,
        &mut tables.stacks.stack,
        &mut tables.stacks.process,
        &mut tables.frames.frame,
        &mut tables.frames.module,
        &mut tables.modules.module,
        &mut tables.symbols.frame,
        &mut tables.interrupts.thread,
    ];
    let times = [
        &mut tables.switches.ts,
        &mut tables.switches.arg,
        &mut tables.switches.object,
        &mut tables.wakes.ts,
        &mut tables.samples.ts,
        &mut tables.lifecycle.ts,
        &mut tables.interrupts.ts,
        &mut tables.interrupts.duration,
        &mut tables.losses.count,
    ];
    let words = [
        &mut tables.switches.left,
        &mut tables.switches.next_priority,
        &mut tables.wakes.context,
        &mut tables.lifecycle.kind,
        &mut tables.modules.kind,
        &mut tables.losses.kind,
    ];
    match noise.below(8) {
        0..=3 => {
            let at = noise.below(ids.len());
            let column = ids.into_iter().nth(at).filter(|column| !column.is_empty());
            if let Some(column) = column {
                let row = noise.below(column.len());
                column[row] = id(noise);
            }
        }
        4 | 5 => {
            let at = noise.below(times.len());
            let column = times
                .into_iter()
                .nth(at)
                .filter(|column| !column.is_empty());
            if let Some(column) = column {
                let row = noise.below(column.len());
                column[row] = time(noise);
            }
        }
        6 => {
            let at = noise.below(words.len());
            let column = words
                .into_iter()
                .nth(at)
                .filter(|column| !column.is_empty());
            if let Some(column) = column {
                let row = noise.below(column.len());
                column[row] = noise.next() as u8;
            }
        }
        _ => trace.end = time(noise),
    }
}
