//! What an operation waited for to be paged in, segment by segment: how often, how long, from where,
//! for which functions; what was fetched twice, and what was read ahead and never used.
//!
//! An operation is a part of the trace's time and the processes that count. [`waits`](self::waits) finds
//! each wait for a page, [`cache`](self::cache) follows the pages of files where they were recorded; here
//! they are summed.

mod advice;
mod cache;
mod cold;
mod exchanges;
mod occurrences;
mod order;
mod used;
mod verdict;
mod waits;

use crate::case::Case;
use crate::format;
use crate::select::{NothingFound, Window};
use anyhow::Result;
use hangdog_trace::Threads;
use hangdog_trace::ids::{KERNEL_PROCESS, NONE, Upid, Utid};
use hangdog_trace::residence::Snapshot;
use hangdog_trace::tables::{Areas, Faults, Files, Ios, PageCache, Stalls};
use hangdog_trace::words::{AreaKind, IoOperation, StallKind};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

pub use advice::Advice;
pub use cold::InOthers;
pub use exchanges::Exchange;
pub use occurrences::{other_regions, other_starts};
pub use order::{Order, order};
pub use used::{UsedFile, used_files};
pub use verdict::of_verdict;
pub use waits::Reason;
use waits::{Counted, PageWait, Source, Tables, collect};

/// Bytes of a page.
const PAGE: u64 = 4096;
/// The kernel's counts of faults, as the trace's hooks name them.
const MAJOR_HOOK: &str = "major-faults";

/// Which operation is meant.
#[derive(Clone, Debug)]
pub struct Operation {
    /// When.
    pub window: Window,
    /// What people call it: a process's name.
    pub name: String,
    /// Whose waits count.
    pub processes: HashSet<Upid>,
    /// Its other occurrences in the trace, with none of their own.
    pub others: Vec<Operation>,
}

/// What an operation waited for.
#[derive(Debug, PartialEq, Serialize)]
pub struct Paging {
    /// In a sentence.
    pub sentence: String,
    /// What people call the operation.
    pub operation: String,
    /// How long it took, ns.
    pub operation_ns: u64,
    /// What the trace has.
    pub recorded: Recorded,
    /// Major faults and those that waited, all together.
    pub sum: Sum,
    /// How long at least one of its threads waited for a page, ns.
    pub any_ns: u64,
    /// The same by process and segment, the longest time first.
    pub segments: Vec<Segment>,
    /// The same by the function that touched the page, the longest time first.
    pub functions: Vec<Function>,
    /// What those waited for that blocked, the longest time first.
    pub reasons: Vec<Waited>,
    /// How threads had to make memory free before they got any.
    pub stalls: Vec<Stalled>,
    /// What these processes asked others and waited for, those that paged longest first.
    pub exchanges: Vec<Exchange>,
    /// Bytes that system calls of its threads read from disks.
    pub calls_read_bytes: u64,
    /// How much of that had been read before: the page cache did not keep it.
    pub calls_read_again_bytes: u64,
    /// How many other occurrences of the operation there are.
    pub other_occurrences: usize,
    /// What may be done, the largest saving first.
    pub advice: Vec<Advice>,
}

/// What a trace has of paging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// Major faults; otherwise there are only faults that blocked.
    pub major: bool,
    /// Minor faults.
    pub minor: bool,
    /// Which pages of files came, were used and went.
    pub page_cache: bool,
    /// Reclaim.
    pub stalls: bool,
}

/// Figures of page-ins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Faults that the kernel counted as major.
    pub page_ins: u64,
    /// Of these, those of pages that had been swapped out.
    pub swap_ins: u64,
    /// Minor faults that had to wait all the same, as for a page that was being read ahead.
    pub minor_waits: u64,
    /// How long page-ins and such minor faults took, ns.
    pub waited_ns: u64,
    /// The longest of them, ns.
    pub longest_ns: u64,
    /// Bytes that the threads read from disks in these faults, with what was read ahead; 0 where the
    /// device makes no requests, as zram.
    pub read_bytes: u64,
    /// Pages that were fetched a second time or more often in the trace. Where the page cache was not
    /// recorded, only those that a fault was for.
    pub again: u64,
    /// Minor faults; only where they were recorded.
    pub minor: Option<u64>,
}

/// Memory of a process that is of one kind or of one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// The process.
    pub process: String,
    /// The kernel's process id.
    pub pid: u32,
    /// What the process has it for.
    pub kind: &'static str,
    /// The file's name without its directories; otherwise the kind again.
    pub name: String,
    /// The file's path.
    pub path: Option<String>,
    /// Its figures.
    #[serde(flatten)]
    pub sum: Sum,
    /// Bytes of the file that came into memory by these processes' doing; only where the page cache was
    /// recorded.
    pub fetched_bytes: Option<u64>,
    /// Of these, what neither was mapped with a fault in its neighbourhood nor read: it was never used.
    pub unused_bytes: Option<u64>,
    /// Bytes of the file that went from memory in the time of the operation.
    pub evicted_bytes: Option<u64>,
    /// What other occurrences did with the pages of the file that were fetched and used; only where the page
    /// cache was recorded and there are others.
    pub in_others: Option<InOthers>,
}

/// A function that touched pages that were not there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// Its name, or the place where there is none.
    pub function: String,
    /// The file that it is in, without directories.
    pub module: String,
    /// Page-ins, and minor faults that waited.
    pub count: u64,
    /// How long, ns.
    pub waited_ns: u64,
}

/// What faults that blocked waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waited {
    /// For what.
    pub reason: &'static str,
    /// How many.
    pub count: u64,
    /// How long they blocked, ns.
    pub blocked_ns: u64,
}

/// How threads had to make memory free.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stalled {
    /// In which way.
    pub kind: &'static str,
    /// How often.
    pub count: u64,
    /// How long, ns.
    pub sum_ns: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// Pages that became free.
    pub pages: u64,
}

/// The processes of an operation where nobody names any: the recorded command with those that descend
/// from it; where there is none, all but the kernel and the recorder.
pub fn own_processes(
    threads: &Threads,
    command_tid: Option<u32>,
    recorder: Option<u32>,
) -> (String, HashSet<Upid>) {
    let command = command_tid.and_then(|tid| {
        let found = threads
            .iter()
            .filter(|thread| thread.tid == tid && !thread.is_kernel());
        found.last()
    });
    match command {
        Some(thread) => {
            let name = threads.process(thread.upid).name.clone();
            (name, with_descendants(threads, &[thread.upid]))
        }
        None => {
            let others = threads.processes().filter(|process| {
                process.upid != KERNEL_PROCESS && recorder.is_none_or(|pid| process.pid != pid)
            });
            (
                "the system".to_owned(),
                others.map(|process| process.upid).collect(),
            )
        }
    }
}

/// Processes and those that descend from them.
pub fn with_descendants(threads: &Threads, processes: &[Upid]) -> HashSet<Upid> {
    let mut all: HashSet<Upid> = processes.iter().copied().collect();
    // A child has the greater id.
    for process in threads.processes() {
        if process.upid != KERNEL_PROCESS && all.contains(&process.parent) {
            all.insert(process.upid);
        }
    }
    all
}

/// When the first of these processes began and the last ended, within `window`.
///
/// # Errors
/// [`NothingFound`] where they did nothing in it.
pub fn life(case: &Case, processes: &HashSet<Upid>, window: Window) -> Result<Window> {
    let recording = &case.recording;
    let lives = recording.timeline.threads().filter_map(|thread| {
        let known = recording.threads.thread(thread);
        let life = recording.timeline.life(thread);
        // What a forked process did before it executed its program is its parent's doing.
        let begun = known.executed.unwrap_or(life.start).max(life.start);
        (processes.contains(&known.upid) && !life.is_empty()).then_some(begun..life.end)
    });
    let (mut from, mut to) = (u64::MAX, 0);
    for life in lives {
        from = from.min(life.start);
        to = to.max(life.end);
    }
    let part = Window {
        from: from.max(window.from),
        to: to.min(window.to),
    };
    if part.from >= part.to {
        return Err(NothingFound::new("these processes did nothing in the time range").into());
    }
    Ok(part)
}

/// What an operation waited for.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn paging(case: &Case, operation: &Operation) -> Result<Paging> {
    let trace = &case.recording.trace;
    let (mut areas, files): (Areas, Files) = (trace.read()?, trace.read()?);
    let mut faults: Faults = trace.read()?;
    let ios: Ios = trace.read()?;
    let stalls: Stalls = trace.read()?;
    let rows: PageCache = trace.read()?;
    cache::check(&rows)?;
    let same = same_files(&files);
    for file in &mut areas.file {
        *file = same.get(*file as usize).copied().unwrap_or(NONE);
    }
    for area in &mut faults.area {
        if *area as usize >= areas.area.len() {
            *area = NONE;
        }
    }
    let hook = |name: &str| {
        let hooks = &trace.meta().hooks;
        hooks.iter().any(|hook| hook.name == name && hook.attached)
    };
    let recorded = Recorded {
        major: hook(MAJOR_HOOK),
        minor: trace.meta().options.faults,
        page_cache: trace.meta().options.faults,
        stalls: hook("mm_vmscan_direct_reclaim_begin"),
    };
    let is_chosen = |thread: Utid| {
        let known = case.recording.threads.known(thread);
        known.is_some_and(|thread| operation.processes.contains(&thread.upid))
    };
    let tables = Tables {
        case,
        areas: &areas,
        faults: &faults,
        ios: &ios,
    };
    let (waits, calls_read) = collect(&tables, operation.window, &is_chosen);
    // Who was asked may be any process.
    let is_anybody = |thread: Utid| case.recording.threads.known(thread).is_some();
    let (everybodys, _) = collect(&tables, operation.window, &is_anybody);
    let cache = recorded
        .page_cache
        .then(|| cache::follow(&rows, &same, operation.window, &is_chosen));
    let mut segments = segments(case, &areas, &files, &waits, &recorded);
    if let Some(cache) = &cache {
        add_cache(case, &areas, &files, cache, operation, &mut segments);
    }
    if recorded.page_cache && !operation.others.is_empty() {
        let found = cold::in_others(case, &rows, &same, operation);
        for ((process, file, _), segment) in &mut segments {
            segment.in_others = found.get(&(*process, *file)).copied();
        }
    }
    segments.sort_by_key(|(_, segment)| {
        let sum = &segment.sum;
        Reverse((
            sum.waited_ns,
            sum.page_ins,
            segment.fetched_bytes,
            sum.minor,
        ))
    });
    let segments: Vec<Segment> = segments.into_iter().map(|(_, segment)| segment).collect();
    let mut sum = Sum::default();
    for segment in &segments {
        sum.join(&segment.sum);
    }
    let any_ns = union(&waits, operation.window);
    let operation_ns = operation.window.to - operation.window.from;
    let mut paging = Paging {
        sentence: sentence(operation, operation_ns, any_ns, &sum, &segments, &recorded),
        operation: operation.name.clone(),
        operation_ns,
        recorded,
        sum,
        any_ns,
        functions: functions(case, &waits),
        reasons: reasons(&waits),
        stalls: stalled(&stalls, operation.window, &is_chosen),
        exchanges: exchanges::exchanges(case, &everybodys, operation.window, &is_chosen),
        segments,
        calls_read_bytes: calls_read.bytes,
        calls_read_again_bytes: calls_read.again,
        other_occurrences: operation.others.len(),
        advice: Vec::new(),
    };
    let basis = advice::Basis {
        case,
        areas: &areas,
        files: &files,
        ios: &ios,
        waits: &waits,
        calls_read_again_ns: calls_read.again_ns,
        snapshots: &Snapshot::read(&trace.read()?, &trace.read()?, &case.recording.threads),
        window: operation.window,
        is_chosen: &is_chosen,
    };
    paging.advice = advice::advice(&basis, &paging);
    Ok(paging)
}

impl Sum {
    fn add(&mut self, wait: &PageWait, is_again: bool) {
        match wait.counted {
            Counted::Minor if !wait.waits() => {
                self.minor = Some(self.minor.unwrap_or(0) + 1);
                return;
            }
            Counted::Minor => {
                self.minor = Some(self.minor.unwrap_or(0) + 1);
                self.minor_waits += 1;
            }
            Counted::Blocked => self.minor_waits += 1,
            Counted::Major => {
                self.page_ins += 1;
                self.swap_ins += u64::from(wait.source == Source::Swap);
                self.again += u64::from(is_again);
            }
        }
        self.waited_ns += wait.waited;
        self.longest_ns = self.longest_ns.max(wait.waited);
        self.read_bytes += wait.read_bytes;
    }

    fn join(&mut self, other: &Sum) {
        self.page_ins += other.page_ins;
        self.swap_ins += other.swap_ins;
        self.minor_waits += other.minor_waits;
        self.waited_ns += other.waited_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.read_bytes += other.read_bytes;
        self.again += other.again;
        self.minor = match (self.minor, other.minor) {
            (None, None) => None,
            (own, others) => Some(own.unwrap_or(0) + others.unwrap_or(0)),
        };
    }
}

/// By file id, the id that stands for the same file: one that was described again has several.
fn same_files(files: &Files) -> Vec<u32> {
    let mut latest: HashMap<(u32, u64), u32> = HashMap::new();
    for row in 0..files.file.len() {
        latest.insert((files.device[row], files.inode[row]), row as u32);
    }
    (0..files.file.len())
        .map(|row| latest[&(files.device[row], files.inode[row])])
        .collect()
}

/// What a segment is told by: its process, and its file or its kind.
type Key = (Upid, u32, u8);

/// Of a file a process has several areas, of which the most telling kind stands for all.
fn kinds_of_files(areas: &Areas) -> HashMap<(Upid, u32), AreaKind> {
    let order = |kind: AreaKind| match kind {
        AreaKind::Program => 0,
        AreaKind::Library => 1,
        AreaKind::Shared => 2,
        _ => 3,
    };
    let mut kinds: HashMap<(Upid, u32), AreaKind> = HashMap::new();
    for row in 0..areas.area.len() {
        let kind = AreaKind::from(areas.kind[row]);
        if areas.file[row] != NONE {
            let known = kinds
                .entry((areas.process[row], areas.file[row]))
                .or_insert(kind);
            if order(kind) < order(*known) {
                *known = kind;
            }
        }
    }
    kinds
}

fn segment(case: &Case, files: &Files, process: Upid, file: u32, kind: AreaKind) -> Segment {
    let process = case.recording.threads.process(process);
    let path = files
        .path
        .get(file as usize)
        .filter(|path| !path.is_empty());
    let name = match path {
        Some(path) => path.rsplit('/').next().unwrap_or(path).to_owned(),
        None => text(kind).to_owned(),
    };
    Segment {
        process: process.name.clone(),
        pid: process.pid,
        kind: text(kind),
        name,
        path: path.cloned(),
        sum: Sum::default(),
        fetched_bytes: None,
        unused_bytes: None,
        evicted_bytes: None,
        in_others: None,
    }
}

fn text(kind: AreaKind) -> &'static str {
    match kind {
        AreaKind::Unknown => "unknown memory",
        kind => kind.text(),
    }
}

fn segments(
    case: &Case,
    areas: &Areas,
    files: &Files,
    waits: &[PageWait],
    recorded: &Recorded,
) -> Vec<(Key, Segment)> {
    let kinds = kinds_of_files(areas);
    let mut fetched = HashSet::new();
    let mut segments: BTreeMap<Key, Segment> = BTreeMap::new();
    for wait in waits {
        let process = case.recording.threads.thread(wait.thread).upid;
        let (file, kind) = match wait.area {
            NONE => (NONE, AreaKind::Unknown),
            area => match areas.file[area as usize] {
                NONE => (NONE, areas.kind[area as usize].into()),
                file => (
                    file,
                    kinds
                        .get(&(process, file))
                        .copied()
                        .unwrap_or(AreaKind::File),
                ),
            },
        };
        let is_again = wait.counted == Counted::Major && !fetched.insert(wait.page);
        if !wait.in_window {
            // Only what was fetched before counts of what lies before the operation.
            continue;
        }
        let key = (process, file, kind.into());
        let entry = segments.entry(key);
        let segment = entry.or_insert_with(|| segment(case, files, process, file, kind));
        if recorded.minor {
            segment.sum.minor = segment.sum.minor.or(Some(0));
        }
        segment.sum.add(wait, is_again);
    }
    segments.into_iter().collect()
}

/// Adds what is known of the pages of files, to the segments of the processes that fetched them.
fn add_cache(
    case: &Case,
    areas: &Areas,
    files: &Files,
    cache: &cache::Followed,
    operation: &Operation,
    segments: &mut Vec<(Key, Segment)>,
) {
    let kinds = kinds_of_files(areas);
    for (&(thread, file), pages) in &cache.fetched {
        let process = case.recording.threads.thread(thread).upid;
        // A file that is not mapped is read or written by system calls: nobody waits in a fault for it.
        let Some(&kind) = kinds.get(&(process, file)) else {
            continue;
        };
        let key: Key = (process, file, kind.into());
        let at = match segments.iter().position(|(known, _)| *known == key) {
            Some(at) => at,
            None => {
                segments.push((key, segment(case, files, process, file, kind)));
                segments.len() - 1
            }
        };
        let segment = &mut segments[at].1;
        *segment.fetched_bytes.get_or_insert(0) += pages.fetched * PAGE;
        *segment.unused_bytes.get_or_insert(0) += pages.unused * PAGE;
    }
    for ((process, file, _), segment) in segments {
        if *file == NONE || !operation.processes.contains(process) {
            continue;
        }
        segment.fetched_bytes.get_or_insert(0);
        segment.unused_bytes.get_or_insert(0);
        segment.evicted_bytes = Some(cache.evicted.get(file).map_or(0, |pages| pages * PAGE));
        let again = cache.fetched.iter().filter(|((thread, of), _)| {
            of == file && case.recording.threads.thread(*thread).upid == *process
        });
        let again: u64 = again.map(|(_, pages)| pages.again).sum();
        // Swapped pages of a private mapping are no pages of the file.
        segment.sum.again = segment.sum.again.max(again);
    }
}

/// How long at least one of these waited within the window.
fn union(waits: &[PageWait], window: Window) -> u64 {
    let mut spans: Vec<(u64, u64)> = (waits.iter())
        .filter(|wait| wait.in_window && wait.waits())
        .map(|wait| (wait.start.max(window.from), (wait.end()).min(window.to)))
        .collect();
    spans.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (from, to) in spans {
        sum += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    sum
}

/// So many functions are told.
const MOST_FUNCTIONS: usize = 20;

fn functions(case: &Case, waits: &[PageWait]) -> Vec<Function> {
    let mut sums: HashMap<(String, String), (u64, u64)> = HashMap::new();
    for wait in waits.iter().filter(|wait| wait.in_window && wait.waits()) {
        let frame = case.stacks.stack(wait.stack).next();
        let key = frame.map_or_else(
            || ("?".to_owned(), String::new()),
            |frame| {
                let module = frame.module.unwrap_or_default();
                (frame.to_string(), module.to_owned())
            },
        );
        let sum = sums.entry(key).or_default();
        sum.0 += 1;
        sum.1 += wait.waited;
    }
    let mut functions: Vec<Function> = (sums.into_iter())
        .map(|((function, module), (count, waited_ns))| Function {
            function,
            module,
            count,
            waited_ns,
        })
        .collect();
    functions.sort_by(|a, b| (b.waited_ns, &a.function).cmp(&(a.waited_ns, &b.function)));
    functions.truncate(MOST_FUNCTIONS);
    functions
}

fn reasons(waits: &[PageWait]) -> Vec<Waited> {
    let mut sums: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
    for wait in waits
        .iter()
        .filter(|wait| wait.in_window && wait.blocked > 0)
    {
        let sum = sums.entry(wait.reason.text()).or_default();
        sum.0 += 1;
        sum.1 += wait.blocked;
    }
    let mut reasons: Vec<Waited> = (sums.into_iter())
        .map(|(reason, (count, blocked_ns))| Waited {
            reason,
            count,
            blocked_ns,
        })
        .collect();
    reasons.sort_by_key(|waited| Reverse(waited.blocked_ns));
    reasons
}

fn stalled(stalls: &Stalls, window: Window, is_chosen: &dyn Fn(Utid) -> bool) -> Vec<Stalled> {
    let mut kinds: BTreeMap<u8, Stalled> = BTreeMap::new();
    for row in 0..stalls.ts.len() {
        let begins_within = (window.from..window.to).contains(&stalls.ts[row]);
        if !begins_within || !is_chosen(stalls.thread[row]) {
            continue;
        }
        let kind = kinds.entry(stalls.kind[row]).or_insert_with(|| Stalled {
            kind: StallKind::from(stalls.kind[row]).text(),
            count: 0,
            sum_ns: 0,
            longest_ns: 0,
            pages: 0,
        });
        kind.count += 1;
        kind.sum_ns = kind.sum_ns.saturating_add(stalls.duration[row]);
        kind.longest_ns = kind.longest_ns.max(stalls.duration[row]);
        kind.pages = kind.pages.saturating_add(stalls.pages[row]);
    }
    let mut kinds: Vec<Stalled> = kinds.into_values().collect();
    kinds.sort_by_key(|stalled| Reverse(stalled.sum_ns));
    kinds
}

fn sentence(
    operation: &Operation,
    operation_ns: u64,
    any_ns: u64,
    sum: &Sum,
    segments: &[Segment],
    recorded: &Recorded,
) -> String {
    let name = format::printable(&operation.name);
    if sum.page_ins + sum.minor_waits == 0 {
        let whether = if recorded.major {
            "there was no major fault, and no fault blocked"
        } else {
            "no fault blocked; major faults that do not block were not recorded"
        };
        return format!("{name} waited for no page: {whether}.");
    }
    let mut text = format!(
        "{name} waited {} of {} ({}) for pages: {}",
        format::duration(any_ns),
        format::duration(operation_ns),
        format::percent(any_ns, operation_ns),
        format::things(sum.page_ins, "page-in", "page-ins"),
    );
    if sum.swap_ins > 0 {
        text += &format!(", {} of them from swap", format::count(sum.swap_ins));
    }
    if let Some(most) = segments.first().filter(|most| most.sum.waited_ns > 0) {
        let (what, whose) = match &most.path {
            Some(_) => (format::printable(&most.name).into_owned(), String::new()),
            None if segments.iter().any(|other| other.pid != most.pid) => (
                format!("the {}", most.kind),
                format!(" of {}", format::printable(&most.process)),
            ),
            None => (format!("its {}", most.kind), String::new()),
        };
        text += &format!(
            ", most for {what}{whose} ({})",
            format::duration(most.sum.waited_ns)
        );
    }
    text + "."
}

/// Whether a row of `ios` is a read.
fn is_read(ios: &Ios, row: usize) -> bool {
    IoOperation::from(ios.operation[row]) == IoOperation::Read
}
