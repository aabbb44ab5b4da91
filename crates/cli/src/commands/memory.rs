//! `hangdog memory`: what memory processes have, by segment, and what of their files is in the page cache:
//! now, or at the moments at which a recording looked.

mod print;

use crate::args::MemoryArgs;
use crate::output;
use anyhow::Result;
use hangdog_capture::residence::look;
use hangdog_report::format;
use hangdog_report::select::NothingFound;
use hangdog_trace::Trace;
use hangdog_trace::residence::{Bytes, Process, Segment, Snapshot};
use hangdog_trace::words::AreaKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What is shown.
struct View {
    /// Of a trace: when that was, ns since its start, and what else there is.
    traced: Option<Traced>,
    snapshot: Snapshot,
    /// Whether it was asked what is used (`--hot`).
    hot: bool,
    /// Processes that may not be looked at.
    unreadable: usize,
}

/// The moments of a trace.
struct Traced {
    at: u64,
    /// The first moment, where that is another one, and what there was.
    first: Option<(u64, Snapshot)>,
    /// All of them, in the order of time.
    moments: Vec<Sum>,
}

/// What the processes that are shown had at a moment.
#[derive(Serialize)]
struct Sum {
    at_ns: u64,
    processes: usize,
    proportional_bytes: u64,
    swapped_bytes: u64,
    data_share: f64,
}

/// The answer in JSON.
#[derive(Serialize)]
struct Answer {
    sentence: String,
    at_ns: Option<u64>,
    moments: Vec<Sum>,
    unreadable: usize,
    processes: Vec<ProcessLine>,
    files: Vec<FileLine>,
}

#[derive(Serialize)]
struct ProcessLine {
    process: String,
    pid: u32,
    #[serde(flatten)]
    figures: Figures,
    /// Of `proportional_bytes`, since the first moment.
    change_bytes: Option<i64>,
    /// Heap, stack, anonymous and shared memory, of what is resident.
    data_share: f64,
    segments: Vec<SegmentLine>,
}

#[derive(Serialize)]
struct SegmentLine {
    kind: &'static str,
    path: Option<String>,
    #[serde(flatten)]
    figures: Figures,
    change_bytes: Option<i64>,
}

#[derive(Serialize)]
struct Figures {
    resident_bytes: u64,
    proportional_bytes: u64,
    private_bytes: u64,
    swapped_bytes: u64,
    locked_bytes: u64,
    /// Within the time of `--hot`.
    touched_bytes: Option<u64>,
}

#[derive(Serialize)]
struct FileLine {
    path: String,
    size_bytes: u64,
    cached_bytes: u64,
    dirty_bytes: Option<u64>,
    recently_evicted_bytes: Option<u64>,
}

impl From<Bytes> for Figures {
    fn from(bytes: Bytes) -> Figures {
        Figures {
            resident_bytes: bytes.resident,
            proportional_bytes: bytes.proportional,
            private_bytes: bytes.private,
            swapped_bytes: bytes.swapped,
            locked_bytes: bytes.locked,
            touched_bytes: bytes.touched,
        }
    }
}

/// Shows it.
pub fn run(args: &MemoryArgs) -> Result<()> {
    let view = match &args.trace {
        Some(path) => of_trace(path, args)?,
        None => of_now(args)?,
    };
    let sentence = sentence(&view.snapshot.processes);
    if args.json {
        return output::json(&answer(sentence, view));
    }
    print::print(&sentence, &view, args.most as usize)
}

/// Whether a process is meant, by pid and name.
fn is_wanted(args: &MemoryArgs, pid: u32, name: &str) -> bool {
    let Some(selector) = &args.process else {
        return true;
    };
    match selector.parse::<u32>() {
        Ok(number) => pid == number,
        Err(_) => name == selector,
    }
}

fn of_now(args: &MemoryArgs) -> Result<View> {
    let hot = args.hot.map(|time| Duration::from_nanos(time.ns()));
    let (snapshot, unreadable) = look(|pid, name| is_wanted(args, pid, name), hot);
    if snapshot.processes.is_empty() {
        let what = match (&args.process, unreadable) {
            (Some(selector), 0) => format!("no process is named or numbered '{selector}'"),
            (Some(selector), _) => {
                format!("the memory of '{selector}' may not be looked at; run as root")
            }
            (None, _) => "no process may be looked at; run as root".to_owned(),
        };
        return Err(NothingFound::new(what).into());
    }
    Ok(View {
        traced: None,
        snapshot,
        hot: hot.is_some(),
        unreadable,
    })
}

/// The moment that is asked for, otherwise the last one, at which there were processes that are meant.
fn of_trace(path: &Path, args: &MemoryArgs) -> Result<View> {
    let trace = Trace::open(path)?;
    let (shares, files) = (trace.read()?, trace.read()?);
    let mut snapshots = Snapshot::read(&shares, &files, &trace.threads()?);
    if snapshots.is_empty() {
        let what = "the trace has no snapshot of memory; record with --memory-every";
        return Err(NothingFound::new(what).into());
    }
    for snapshot in snapshots.values_mut() {
        narrow(snapshot, args);
    }
    snapshots.retain(|_, snapshot| !snapshot.processes.is_empty());
    let until = match args.at {
        Some(at) => at.resolve(0, trace.meta().duration_ns),
        None => u64::MAX,
    };
    let moments = snapshots.iter().map(|(&at_ns, snapshot)| Sum {
        at_ns,
        processes: snapshot.processes.len(),
        proportional_bytes: total(&snapshot.processes, |it| it.bytes.proportional),
        swapped_bytes: total(&snapshot.processes, |it| it.bytes.swapped),
        data_share: share(
            total(&snapshot.processes, data),
            total(&snapshot.processes, |it| it.bytes.resident),
        ),
    });
    let moments = moments.collect();
    let earlier = snapshots.range(..=until).next_back();
    let Some(at) = earlier.or(snapshots.iter().next()).map(|(&at, _)| at) else {
        let selector = args.process.as_deref().unwrap_or_default();
        let what = format!(
            "no snapshot of the trace has a process that is named or numbered '{selector}'"
        );
        return Err(NothingFound::new(what).into());
    };
    let snapshot = snapshots.remove(&at).unwrap_or_default();
    let first = snapshots
        .into_iter()
        .next()
        .filter(|(first, _)| *first < at);
    Ok(View {
        traced: Some(Traced { at, first, moments }),
        snapshot,
        hot: false,
        unreadable: 0,
    })
}

/// Leaves the processes that are meant, and the files that they have mapped.
fn narrow(snapshot: &mut Snapshot, args: &MemoryArgs) {
    snapshot
        .processes
        .retain(|it| is_wanted(args, it.pid, &it.name));
    if args.process.is_some() {
        let segments = snapshot.processes.iter().flat_map(|it| &it.segments);
        let paths: Vec<&str> = segments.map(|segment| &*segment.path).collect();
        snapshot.files.retain(|file| paths.contains(&&*file.path));
    }
}

fn answer(sentence: String, view: View) -> Answer {
    let changes = Changes::new(&view);
    let (at_ns, moments) = match view.traced {
        Some(traced) => (Some(traced.at), traced.moments),
        None => (None, Vec::new()),
    };
    let processes = view
        .snapshot
        .processes
        .into_iter()
        .map(|process| ProcessLine {
            data_share: share(data(&process), process.bytes.resident),
            change_bytes: changes.of_process(&process),
            segments: (process.segments.iter())
                .map(|segment| SegmentLine {
                    kind: segment.kind.text(),
                    path: Some(segment.path.clone()).filter(|path| !path.is_empty()),
                    figures: segment.bytes.into(),
                    change_bytes: changes.of_segment(process.pid, segment),
                })
                .collect(),
            process: process.name,
            pid: process.pid,
            figures: process.bytes.into(),
        });
    let files = view.snapshot.files.into_iter().map(|file| FileLine {
        path: file.path,
        size_bytes: file.size,
        cached_bytes: file.cached,
        dirty_bytes: file.dirty,
        recently_evicted_bytes: file.recently_evicted,
    });
    Answer {
        sentence,
        at_ns,
        moments,
        unreadable: view.unreadable,
        processes: processes.collect(),
        files: files.collect(),
    }
}

/// What there was at the first moment of a trace: proportional bytes.
struct First {
    processes: BTreeMap<u32, u64>,
    segments: BTreeMap<(u32, u8, String), u64>,
}

/// What has changed since the first moment; nothing where there is none before the one that is shown.
struct Changes(Option<First>);

impl Changes {
    fn new(view: &View) -> Changes {
        let first = view.traced.as_ref().and_then(|it| it.first.as_ref());
        Changes(first.map(|(_, snapshot)| {
            let processes = snapshot.processes.iter();
            let segments = processes.clone().flat_map(|process| {
                let segments = process.segments.iter();
                segments.map(move |it| (key(process.pid, it), it.bytes.proportional))
            });
            First {
                segments: segments.collect(),
                processes: processes
                    .map(|it| (it.pid, it.bytes.proportional))
                    .collect(),
            }
        }))
    }

    fn of_process(&self, process: &Process) -> Option<i64> {
        let before = self.0.as_ref()?.processes.get(&process.pid).copied();
        Some(difference(process.bytes.proportional, before))
    }

    fn of_segment(&self, pid: u32, segment: &Segment) -> Option<i64> {
        let before = (self.0.as_ref()?.segments).get(&key(pid, segment)).copied();
        Some(difference(segment.bytes.proportional, before))
    }
}

fn key(pid: u32, segment: &Segment) -> (u32, u8, String) {
    (pid, segment.kind.into(), segment.path.clone())
}

fn difference(now: u64, before: Option<u64>) -> i64 {
    let before = before.unwrap_or(0);
    let size = i64::try_from(now.abs_diff(before)).unwrap_or(i64::MAX);
    if now < before { -size } else { size }
}

fn is_data(kind: AreaKind) -> bool {
    matches!(
        kind,
        AreaKind::Heap | AreaKind::Stack | AreaKind::Anonymous | AreaKind::Shared
    )
}

fn data(process: &Process) -> u64 {
    let data = process.segments.iter().filter(|it| is_data(it.kind));
    data.map(|segment| segment.bytes.resident)
        .fold(0, u64::saturating_add)
}

fn total(processes: &[Process], of: fn(&Process) -> u64) -> u64 {
    processes.iter().map(of).fold(0, u64::saturating_add)
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

fn sentence(processes: &[Process]) -> String {
    let resident = total(processes, |process| process.bytes.resident);
    let swapped = total(processes, |process| process.bytes.swapped);
    let mut text = match processes {
        [process] => format!(
            "{} ({}) has {} in memory, of which {} is its own share",
            format::printable(&process.name),
            process.pid,
            format::bytes(resident),
            format::bytes(process.bytes.proportional),
        ),
        _ => format!(
            "{} have {} in memory, shared memory counted once",
            format::things(processes.len() as u64, "process", "processes"),
            format::bytes(total(processes, |process| process.bytes.proportional)),
        ),
    };
    if swapped > 0 {
        text += &format!(", and {} swapped out", format::bytes(swapped));
    }
    let share = format::percent(total(processes, data), resident);
    text + &format!(
        "; data segments (heap, stack, anonymous, shared memory) are {share} of what is resident."
    )
}
