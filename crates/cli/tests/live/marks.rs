//! Marks: all of them are in the trace or counted, whatever becomes of the program and its memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hangdog_trace::meta::Marking;
use hangdog_trace::tables::{Losses, Marks};
use hangdog_trace::words::LossKind;

use crate::flight::{Flight, snapped};
use crate::support::{Background, Live, Machine, hangdog, machine_alone, number, wait_until};

/// How many marks each thread had made when it last said so.
fn counts(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).unwrap_or_default();
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

fn lost(live: &Live, kind: LossKind) -> u64 {
    let losses: Losses = live.table();
    let rows = (0..losses.len()).filter(|&row| LossKind::from(losses.kind[row]) == kind);
    rows.map(|row| losses.count[row]).sum()
}

/// The first arguments of the marks of each thread of the program that marked, which count them. Other
/// programs of the machine may mark too.
fn numbers(live: &Live) -> Vec<Vec<i64>> {
    let marks: Marks = live.table();
    let mut threads: Vec<u32> = marks.thread.clone();
    threads.sort_unstable();
    threads.dedup();
    threads.retain(|&thread| {
        let process = live.threads.thread(thread).upid;
        live.threads.process(process).name == "marks"
    });
    let of = |thread: u32| {
        let rows = (0..marks.len()).filter(|&row| marks.thread[row] == thread);
        rows.map(|row| marks.arg0[row]).collect()
    };
    threads.into_iter().map(of).collect()
}

fn figures(live: &Live) -> Marking {
    live.trace.meta().marks.expect("figures of marks")
}

struct Marker {
    program: PathBuf,
    counts: PathBuf,
}

impl Marker {
    fn new(machine: &Machine) -> Marker {
        Marker {
            program: machine.program("marks"),
            counts: machine.path("counts"),
        }
    }

    /// So many threads mark so many times each millisecond for so many milliseconds.
    fn command(&self, threads: &str, each_ms: &str, for_ms: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args([threads, each_ms, for_ms]).arg(&self.counts);
        command
    }

    fn sum(&self) -> u64 {
        counts(&self.counts).iter().sum()
    }
}

/// Eight threads that mark 5 million times a second: every mark is in the trace or counted as lost, each
/// thread's in its order. How many are lost depends on the machine: bench/marks.py measures that.
#[test]
fn five_million_a_second() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let marker = Marker::new(&machine);
    let (program, file) = (marker.program.to_str(), marker.counts.to_str());
    let command = [
        program.expect("text"),
        "8",
        "625",
        "300",
        file.expect("text"),
    ];
    let live = machine.recorded(&[], &command);
    assert_eq!(marker.sum(), 8 * 625 * 300);
    let numbers = numbers(&live);
    assert_eq!(numbers.len(), 8);
    let recorded: usize = numbers.iter().map(Vec::len).sum();
    assert_eq!(recorded as u64 + lost(&live, LossKind::Marks), marker.sum());
    assert_eq!(figures(&live).lost, lost(&live, LossKind::Marks));
    for thread in numbers {
        assert!(thread.is_sorted_by(|a, b| a < b));
    }
}

/// A program that ran before, and is killed in the middle: of each thread the trace has all that it had
/// marked since it was found, to the last one.
#[test]
fn killed_in_the_middle() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let marker = Marker::new(&machine);
    let running = marker.command("4", "20", "60000").spawn();
    let mut running = Background(running.expect("a run"));
    wait_until("it marks", || marker.sum() > 0);
    let mut recorder = hangdog();
    recorder
        .args(["record", "-o", "killed.hang", "--for", "8s"])
        .current_dir(machine.dir());
    let recorder = recorder.stderr(Stdio::null()).spawn();
    let mut recorder = Background(recorder.expect("a run"));
    wait_until("it is recorded", || {
        machine.path("killed.hang/marks").exists()
    });
    running.0.kill().expect("SIGKILL");
    running.0.wait().expect("its end");
    let made = counts(&marker.counts);
    if recorder.0.try_wait().expect("a child").is_some() {
        eprintln!(
            "NOT RUN: killed_in_the_middle: the machine is so busy that the recording was over"
        );
        return;
    }
    assert!(recorder.0.wait().expect("its end").success());

    let live = Live::open(&machine.path("killed.hang"), Vec::new());
    assert_eq!(
        live.trace.meta().state,
        hangdog_trace::meta::RecordingState::Complete
    );
    let numbers = numbers(&live);
    assert_eq!(numbers.len(), 4);
    let mut missing = 0;
    let mut lasts: Vec<u64> = Vec::new();
    for thread in &numbers {
        let (first, last) = (thread[0], *thread.last().expect("marks"));
        missing += (last - first + 1) as u64 - thread.len() as u64;
        lasts.push(last as u64 + 1);
    }
    // A thread is killed before it counts its last mark, or after.
    let mut made = made;
    made.sort_unstable();
    lasts.sort_unstable();
    let lost = lost(&live, LossKind::Marks);
    if lost == 0 {
        assert_eq!(missing, 0);
        for (last, made) in lasts.iter().zip(&made) {
            assert!(*last == *made || *last == *made + 1, "{lasts:?} {made:?}");
        }
    } else {
        assert!(missing <= lost);
    }
}

/// A program that writes what cannot be is not read any further, and says nothing of others': they are
/// recorded to the end, and so is the trace.
#[test]
fn damaged_memory() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let marker = Marker::new(&machine);
    let good = Marker {
        program: marker.program.clone(),
        counts: machine.path("good"),
    };
    let script = format!(
        "{} 1 10 400 {} damage & {} 2 10 400 {}; wait",
        marker.program.display(),
        marker.counts.display(),
        good.program.display(),
        good.counts.display()
    );
    let live = machine.recorded(&[], &["sh", "-c", &script]);
    let figures = figures(&live);
    assert_eq!((figures.programs, figures.damaged), (2, 1));
    let numbers = numbers(&live);
    let whole = numbers.iter().filter(|thread| thread.len() == 4000).count();
    assert!(whole == 2 || figures.lost > 0, "{:?}", figures);
    assert!(numbers.iter().all(|thread| thread.len() <= 4000));
}

/// A program in a pid namespace of its own, as in a container: its threads are told by the kernel's
/// numbers.
#[test]
fn in_a_container() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let marker = Marker::new(&machine);
    let (program, file) = (marker.program.to_str(), marker.counts.to_str());
    let command = [
        "unshare",
        "--pid",
        "--fork",
        program.expect("text"),
        "2",
        "10",
        "3000",
        file.expect("text"),
    ];
    let live = machine.recorded(&[], &command);
    let figures = figures(&live);
    let numbers = numbers(&live);
    assert_eq!(numbers.len(), 2);
    let recorded: usize = numbers.iter().map(Vec::len).sum();
    assert_eq!(recorded as u64 + figures.lost, 60_000);
}

/// A flight recorder's snapshot has what the ring holds, the last 65,536 marks of a thread, and says how
/// many more there were, as far as it saw them begin.
#[test]
fn flight() {
    let Some(machine) = machine_alone() else {
        return;
    };
    let marker = Marker::new(&machine);
    let _flight = Flight::start(&machine, &[]);
    // It is seen to begin, and waits at its end, so that nothing is marked while it is looked at.
    let mut command = marker.command("1", "200", "600");
    let running = command.arg("wait").spawn();
    let _running = Background(running.expect("a run"));
    wait_until("it has marked", || marker.sum() == 120_000);
    std::thread::sleep(Duration::from_millis(100));
    let info = snapped(&machine, "marks.hang");
    let live = Live::open(&machine.path("marks.hang"), Vec::new());
    let numbers = numbers(&live);
    assert_eq!(numbers.len(), 1);
    assert_eq!(
        numbers[0],
        (120_000 - 65_536..120_000).collect::<Vec<i64>>()
    );
    let overwritten = number(&info["loss"]["overwritten_marks"]);
    assert!(
        (1..=120_000 - 65_536).contains(&overwritten),
        "{overwritten}"
    );
    assert_eq!(lost(&live, LossKind::OverwrittenMarks), overwritten);
}
