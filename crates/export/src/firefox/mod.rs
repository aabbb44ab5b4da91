//! A profile for the Firefox Profiler: open it at profiler.firefox.com.
//!
//! Each thread has its samples, the time that it was off the CPU as samples of zero CPU time
//! (with the stack at which it left, in a category of its own), and markers for its waits and for
//! the waits of others that it ended.
//!
//! This is the "processed profile format", version 55, in which each thread has tables of its
//! own. They are made and written one thread at a time, so that the memory that it takes is that
//! of the largest thread. (The crate fxprof-processed-profile keeps all threads, and knows neither
//! inlined functions nor source lines of functions that have their names already.)

mod tables;
mod thread;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Write};

use hangdog_timeline::State;
use hangdog_trace::ids::Utid;
use hangdog_trace::words::Context;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::fold::waker_row;
use crate::{Selection, Source};
use tables::Libraries;

/// Version of the format.
const VERSION: u32 = 55;
/// Waits that get a marker: the profiler becomes slow beyond, and a marker takes 150 bytes.
const MOST_MARKERS: usize = 200_000;
/// Time between samples where the trace does not tell, ns.
const PERIOD: u64 = 1_000_000;

/// Colours of stacks and markers; a frame's category is its place in this list.
pub(crate) const CATEGORIES: [(&str, &str); 5] = [
    ("Other", "grey"),
    ("User", "yellow"),
    ("Kernel", "orange"),
    ("Blocked", "blue"),
    ("Waiting for a CPU", "red"),
];

/// A row of [`CATEGORIES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Category {
    Other = 0,
    User = 1,
    Kernel = 2,
    Blocked = 3,
    Waiting = 4,
}

/// Which waits have a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Markers {
    /// Waits in the selection.
    pub waits: usize,
    /// Those that have a marker are as long as this, ns, or longer.
    pub at_least: u64,
}

impl Markers {
    /// Whether some waits were too short to have one.
    pub fn are_limited(&self) -> bool {
        self.at_least > 0
    }
}

/// Writes a profile.
///
/// # Errors
/// What `out` answers.
pub fn write(source: &Source<'_>, selection: &Selection, out: impl Write) -> io::Result<Markers> {
    let threads = threads(source, selection);
    let markers = limit(source, selection, &threads);
    let profile = Profile {
        source,
        selection,
        ended: ended(source, selection, &threads, markers),
        samples: samples_by_thread(source, selection),
        names: names(source, &threads),
        threads,
        markers,
        libraries: RefCell::default(),
    };
    serde_json::to_writer(out, &profile)?;
    Ok(markers)
}

/// All that is written.
pub(crate) struct Profile<'a> {
    pub(crate) source: &'a Source<'a>,
    pub(crate) selection: &'a Selection,
    pub(crate) markers: Markers,
    /// Rows of wakes that ended a wait with a marker, by the thread that woke.
    pub(crate) ended: HashMap<Utid, Vec<u32>>,
    /// Rows of samples by thread.
    pub(crate) samples: HashMap<Utid, Vec<u32>>,
    /// What the threads' processes and threads are numbered.
    names: HashMap<Utid, (String, String)>,
    threads: Vec<Utid>,
    pub(crate) libraries: RefCell<Libraries>,
}

impl Profile<'_> {
    /// Time between two samples, ns.
    pub(crate) fn period(&self) -> u64 {
        self.source.sampling_period().unwrap_or(PERIOD).max(1)
    }

    /// Process and thread id, as texts that no other thread has.
    pub(crate) fn ids(&self, thread: Utid) -> (&str, &str) {
        self.names
            .get(&thread)
            .map_or(("0", "0"), |(pid, tid)| (pid, tid))
    }

    fn meta(&self) -> Value {
        let meta = self.source.meta;
        let categories: Vec<Value> = CATEGORIES
            .iter()
            .map(|(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]}))
            .collect();
        let product = match meta.command.first() {
            Some(command) => command.rsplit('/').next().unwrap_or(command),
            None => "hangdog",
        };
        json!({
            "version": 24,
            "preprocessedProfileVersion": VERSION,
            "product": product,
            "importedFrom": "hangdog",
            "oscpu": format!("Linux {} {}", meta.kernel, meta.arch),
            "platform": meta.host,
            "logicalCPUs": meta.cpus,
            "startTime": meta.started_unix_ns as f64 / 1e6,
            "interval": tables::ms(self.period()),
            "processType": 0,
            "stackwalk": 1,
            "debug": false,
            "symbolicated": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "extensions": {"length": 0, "baseURL": [], "id": [], "name": []},
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
            "categories": categories,
            "markerSchema": [tables::wait_schema(), tables::wake_schema()],
        })
    }
}

impl Serialize for Profile<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        struct Threads<'a, 'b>(&'a Profile<'b>);
        impl Serialize for Threads<'_, '_> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let threads = self.0.threads.iter();
                to.collect_seq(threads.map(|&thread| thread::build(self.0, thread)))
            }
        }
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("meta", &self.meta())?;
        map.serialize_entry("threads", &Threads(self))?;
        // The threads have named them by now.
        map.serialize_entry("libs", &*self.libraries.borrow())?;
        map.serialize_entry("pages", &[(); 0])?;
        map.serialize_entry("profilerOverhead", &[(); 0])?;
        map.serialize_entry("counters", &[(); 0])?;
        map.end()
    }
}

/// The threads that did anything in the selection, those of a process together, its first thread
/// first.
fn threads(source: &Source<'_>, selection: &Selection) -> Vec<Utid> {
    let mut threads: Vec<Utid> = source
        .timeline
        .threads()
        .filter(|&thread| selection.has_thread(thread))
        .filter(|&thread| {
            let mut parts = source
                .timeline
                .between(thread, selection.from, selection.to);
            parts.any(|part| part.state != State::Blocked)
        })
        .collect();
    threads.sort_by_key(|&utid| {
        let thread = source.threads.thread(utid);
        (thread.upid, !thread.is_main(), utid)
    });
    threads
}

/// Ids of processes and threads; one that the kernel used again has its own id in the trace
/// behind it.
fn names(source: &Source<'_>, threads: &[Utid]) -> HashMap<Utid, (String, String)> {
    let mut owners: HashMap<(bool, u32), u32> = HashMap::new();
    let mut unique =
        |is_process, number: u32, id: u32| match *owners.entry((is_process, number)).or_insert(id)
            == id
        {
            true => number.to_string(),
            false => format!("{number}.{id}"),
        };
    threads
        .iter()
        .map(|&utid| {
            let thread = source.threads.thread(utid);
            let pid = if thread.is_kernel() { 0 } else { thread.pid };
            let pid = unique(true, pid, thread.upid);
            (utid, (pid, unique(false, thread.tid, utid)))
        })
        .collect()
}

fn samples_by_thread(source: &Source<'_>, selection: &Selection) -> HashMap<Utid, Vec<u32>> {
    let mut rows: HashMap<Utid, Vec<u32>> = HashMap::new();
    for (row, (&ts, &thread)) in (0..).zip(source.samples.ts.iter().zip(&source.samples.thread)) {
        if selection.has_time(ts) && selection.has_thread(thread) {
            rows.entry(thread).or_default().push(row);
        }
    }
    rows
}

/// Does something with each wait: its thread, its number among the intervals, its length.
fn each_wait(
    source: &Source<'_>,
    selection: &Selection,
    threads: &[Utid],
    mut take: impl FnMut(Utid, usize, u64),
) {
    for &thread in threads {
        let intervals = source.timeline.intervals(thread);
        let (from, to) = (selection.from, selection.to);
        let parts = intervals.indexes(from, to).zip(intervals.between(from, to));
        for (i, part) in parts.filter(|(_, part)| part.state == State::Blocked) {
            take(thread, i, part.duration());
        }
    }
}

/// How long a wait must be to have a marker.
fn limit(source: &Source<'_>, selection: &Selection, threads: &[Utid]) -> Markers {
    let mut lengths = Vec::new();
    each_wait(source, selection, threads, |_, _, ns| lengths.push(ns));
    let waits = lengths.len();
    let at_least = match waits.checked_sub(MOST_MARKERS) {
        None | Some(0) => 0,
        Some(shorter) => *lengths.select_nth_unstable(shorter).1,
    };
    Markers { waits, at_least }
}

/// The wakes that get a marker: those that ended a wait that has one.
fn ended(
    source: &Source<'_>,
    selection: &Selection,
    threads: &[Utid],
    markers: Markers,
) -> HashMap<Utid, Vec<u32>> {
    let mut ended: HashMap<Utid, Vec<u32>> = HashMap::new();
    each_wait(source, selection, threads, |thread, i, ns| {
        let row = waker_row(source.timeline.intervals(thread), i);
        let wakes = source.wakes;
        if let Some(row) = row.filter(|_| ns >= markers.at_least)
            && Context::from(wakes.context[row as usize]) == Context::Task
            && selection.has_time(wakes.ts[row as usize])
        {
            let waker = wakes.waker[row as usize];
            ended.entry(waker).or_default().push(row);
        }
    });
    for rows in ended.values_mut() {
        rows.sort_unstable();
    }
    ended
}
