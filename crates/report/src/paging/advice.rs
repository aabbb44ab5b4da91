//! What would make an operation wait less for pages, and how much less at most.
//!
//! A saving is found by leaving waits out: it is by how much less of the operation at least one thread waits
//! for a page then, minus what the remedy itself costs. So it is an upper bound: who no longer waits
//! for a page may wait for something else.

mod early;

use super::waits::{Counted, Page, PageWait, Source};
use super::{PAGE, Paging, Segment, Stalled, union};
use crate::case::Case;
use crate::format;
use crate::select::Window;
use hangdog_trace::ids::{NONE, StackId, Utid};
use hangdog_trace::residence::Snapshot;
use hangdog_trace::tables::{Areas, Files, Ios};
use hangdog_trace::words::{AreaKind, StallKind};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What may be done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// One of: order, prefetch, defer, lock, limit, heap.
    pub kind: &'static str,
    /// What, why, and by which command, in a sentence.
    pub text: String,
    /// How much less of the operation would wait for pages, at most, ns.
    pub saves_at_most_ns: u64,
}

/// Nothing is advised that saves less than this share of the operation.
const NOTABLE: f64 = 0.05;
/// What is fetched again and again is worth to be locked up to this size; what is more needs more memory.
const MOST_LOCKED: u64 = 16 << 20;
/// Fewer page-ins need no other order.
const FEW_PAGE_INS: u64 = 8;
/// Functions lie scattered where so much of what page-ins read is touched, or less.
const SCATTERED: f64 = 0.7;
/// The disk's speed is the best of steps of this length, ns.
const SPEED_STEP: u64 = 250_000_000;

/// What advice follows from.
pub(super) struct Basis<'a> {
    pub case: &'a Case,
    pub areas: &'a Areas,
    pub files: &'a Files,
    pub ios: &'a Ios,
    pub waits: &'a [PageWait],
    /// How long system calls took to read what had been read before, ns.
    pub calls_read_again_ns: u64,
    pub snapshots: &'a BTreeMap<u64, Snapshot>,
    pub window: Window,
    pub is_chosen: &'a dyn Fn(Utid) -> bool,
}

/// What may be done, the largest saving first.
pub(super) fn advice(basis: &Basis<'_>, paging: &Paging) -> Vec<Advice> {
    let mut all = Vec::new();
    all.extend(again(basis, &paging.stalls));
    all.extend(limit_for_calls(basis, paging));
    all.extend(paging.segments.iter().filter_map(|it| order(basis, it)));
    all.extend(prefetch(basis, paging));
    all.extend(early::early(basis).iter().filter_map(|it| defer(basis, it)));
    all.extend(heaps(basis, paging));
    let least = (paging.operation_ns as f64 * NOTABLE) as u64;
    all.retain(|advice| advice.saves_at_most_ns >= least.max(1));
    all.sort_by_key(|advice| Reverse(advice.saves_at_most_ns));
    all
}

impl Basis<'_> {
    /// How much less of the operation at least one thread waits for a page, without some waits, ns.
    fn saving(&self, is_avoided: impl Fn(&PageWait) -> bool) -> u64 {
        let left: Vec<PageWait> = (self.waits.iter())
            .filter(|wait| !is_avoided(wait))
            .copied()
            .collect();
        union(self.waits, self.window).saturating_sub(union(&left, self.window))
    }

    /// The file of a wait (row of the files), if its page came from one.
    fn file(&self, wait: &PageWait) -> Option<u32> {
        let file = *self.areas.file.get(wait.area as usize)?;
        (file != NONE && wait.source == Source::File).then_some(file)
    }

    fn path(&self, wait: &PageWait) -> Option<&str> {
        let path = self.files.path.get(self.file(wait)? as usize)?;
        Some(path).filter(|path| !path.is_empty()).map(|it| &**it)
    }
}

/// What was fetched several times: where no limit is the reason a small set can be locked, a large one needs more
/// memory.
fn again(basis: &Basis<'_>, stalls: &[Stalled]) -> Option<Advice> {
    let mut seen = HashSet::new();
    let mut repeated: HashSet<Page> = HashSet::new();
    let mut refetches: HashSet<(Utid, u64)> = HashSet::new();
    for wait in basis.waits {
        if wait.counted == Counted::Major && !seen.insert(wait.page) && wait.in_window {
            repeated.insert(wait.page);
            refetches.insert((wait.thread, wait.start));
        }
    }
    let saves = basis.saving(|wait| refetches.contains(&(wait.thread, wait.start)));
    let size = repeated.len() as u64 * PAGE;
    let pages = format::things(repeated.len() as u64, "page", "pages");
    let times = format::things(refetches.len() as u64, "time", "times");
    let fetched = format!("{pages} ({}), fetched again {times}", format::bytes(size));
    let (kind, text) = match (size, limited(stalls)) {
        (0, _) => return None,
        (_, Some(_)) => (
            "limit",
            format!("Its control group's limit of memory is too small: {fetched}."),
        ),
        (1..=MOST_LOCKED, None) => (
            "lock",
            format!("Lock what it needs over and over (mlock): {fetched}."),
        ),
        (_, None) => (
            "limit",
            format!("The machine has too little memory for it: {fetched}."),
        ),
    };
    Some(Advice {
        kind,
        text,
        saves_at_most_ns: saves,
    })
}

/// Where the group's limit makes that files are read over and over: so much of what is read was read before.
const NOTABLE_AGAIN: f64 = 0.3;

fn limited(stalls: &[Stalled]) -> Option<&Stalled> {
    let at_limit = StallKind::LimitReclaim.text();
    stalls.iter().find(|stalled| stalled.kind == at_limit)
}

/// What a limit of memory does to files that system calls read.
fn limit_for_calls(basis: &Basis<'_>, paging: &Paging) -> Option<Advice> {
    let (read, again) = (paging.calls_read_bytes, paging.calls_read_again_bytes);
    let freed = limited(&paging.stalls)?;
    if (again as f64) < read as f64 * NOTABLE_AGAIN {
        return None;
    }
    Some(Advice {
        kind: "limit",
        text: format!(
            "The control group's limit of memory leaves too little room for the files that they read: {} were \
             dropped to stay below it.",
            format::bytes(freed.pages.saturating_mul(PAGE))
        ),
        saves_at_most_ns: basis.calls_read_again_ns,
    })
}

/// A program or library of which page-ins read much more than is touched: its functions lie scattered.
fn order(basis: &Basis<'_>, segment: &Segment) -> Option<Advice> {
    let is_code = [AreaKind::Program.text(), AreaKind::Library.text()].contains(&segment.kind);
    let path = segment.path.as_deref().filter(|_| is_code)?;
    let read = segment.sum.read_bytes;
    if segment.sum.page_ins < FEW_PAGE_INS || read == 0 {
        return None;
    }
    let touched = touched(basis, path, &segment.name) * PAGE;
    let share = touched as f64 / read as f64;
    if share > SCATTERED {
        return None;
    }
    let saves = basis.saving(|wait| basis.path(wait) == Some(path)) as f64 * (1.0 - share);
    let name = format::printable(&segment.name);
    Some(Advice {
        kind: "order",
        text: format!(
            "Link {name} so that the functions that run lie side by side, or apart from those that do not: \
             page-ins read {} of it, and faults and stacks touched {}. hangdog paging TRACE --order {name} writes \
             the order for the linker.",
            format::bytes(read),
            format::bytes(touched),
        ),
        saves_at_most_ns: saves as u64,
    })
}

/// How many pages of a file faults were for, or stacks had code in.
fn touched(basis: &Basis<'_>, path: &str, name: &str) -> u64 {
    let mut pages: HashSet<u64> = HashSet::new();
    let mut stacks = HashSet::new();
    for wait in basis.waits.iter().filter(|wait| wait.in_window) {
        if let (Page::Of { number, .. }, Some(of)) = (wait.page, basis.path(wait))
            && of == path
        {
            pages.insert(number);
        }
        stacks.insert(wait.stack);
    }
    stacks.extend(sampled(basis).map(|(_, _, stack)| stack));
    for stack in stacks {
        for frame in basis.case.stacks.stack(stack) {
            if frame.module == Some(name) {
                pages.insert(frame.offset / PAGE);
            }
        }
    }
    pages.len() as u64
}

/// Samples of the operation's threads: when, of which, and the user's stack.
fn sampled<'a>(basis: &'a Basis<'_>) -> impl Iterator<Item = (u64, Utid, StackId)> + use<'a> {
    let samples = &basis.case.samples;
    (0..samples.ts.len())
        .filter(|&row| {
            let window = basis.window.from..basis.window.to;
            window.contains(&samples.ts[row]) && (basis.is_chosen)(samples.thread[row])
        })
        .map(|row| {
            (
                samples.ts[row],
                samples.thread[row],
                samples.user_stack[row],
            )
        })
}

/// Files read on demand, page by page, where one long read would take less.
fn prefetch(basis: &Basis<'_>, paging: &Paging) -> Option<Advice> {
    let files = paging.segments.iter().filter(|it| it.path.is_some());
    let bytes: u64 = files
        .map(
            |segment| match (segment.fetched_bytes, segment.unused_bytes) {
                (Some(fetched), Some(unused)) => fetched.saturating_sub(unused),
                _ => segment.sum.read_bytes,
            },
        )
        .fold(0, u64::saturating_add);
    let speed = best_speed(basis)?;
    let waited = basis.saving(|wait| wait.source == Source::File);
    let needed = (bytes as f64 / speed) as u64;
    let by_disk = format::bytes((speed * 1e9) as u64);
    Some(Advice {
        kind: "prefetch",
        text: format!(
            "Have the {} that it uses of files read before, in the order of the files: in one go they take {} \
             at {by_disk} a second, the most that was read here. hangdog paging --try prefetch -- COMMAND \
             measures it.",
            format::bytes(bytes),
            format::duration(needed),
        ),
        saves_at_most_ns: waited.saturating_sub(needed),
    })
}

/// The most bytes a ns that the operation's threads read from disks for a step's time.
fn best_speed(basis: &Basis<'_>) -> Option<f64> {
    let mut steps: HashMap<u64, u64> = HashMap::new();
    for row in 0..basis.ios.ts.len() {
        let end = basis.ios.ts[row].saturating_add(basis.ios.duration[row]);
        let is_within = (basis.window.from..basis.window.to).contains(&end);
        if super::is_read(basis.ios, row) && is_within && (basis.is_chosen)(basis.ios.thread[row]) {
            let bytes = steps.entry(end / SPEED_STEP).or_default();
            *bytes += u64::from(basis.ios.bytes[row]);
        }
    }
    let most = steps.into_values().max().filter(|&bytes| bytes > 0)?;
    Some(most as f64 / SPEED_STEP as f64)
}

/// What runs only early and fetches what nothing else uses could be done when it is needed.
fn defer(basis: &Basis<'_>, early: &early::Early) -> Option<Advice> {
    let saves = basis.saving(|wait| early.stacks.contains(&wait.stack));
    let until = early.until.saturating_sub(basis.window.from);
    Some(Advice {
        kind: "defer",
        text: format!(
            "Do what {} does when it is needed first, if it is not needed from the start: it was seen only in \
             the first {}, and nothing else used {} of the {} that it fetched.",
            format::printable(&early.function),
            format::duration(until),
            format::count(early.own_pages),
            format::things(early.pages, "page", "pages"),
        ),
        saves_at_most_ns: saves,
    })
}

/// Memory of a process that was swapped out and had to come back.
fn heaps(basis: &Basis<'_>, paging: &Paging) -> Option<Advice> {
    let is_heap = |segment: &&Segment| {
        let heaps = [AreaKind::Heap.text(), AreaKind::Anonymous.text()];
        heaps.contains(&segment.kind) && segment.sum.swap_ins > 0
    };
    let most = paging.segments.iter().find(is_heap)?;
    let pid = most.pid;
    let saves = basis.saving(|wait| {
        let of = basis.case.recording.threads.thread(wait.thread).pid;
        of == pid && wait.source == Source::Swap
    });
    let had = basis.snapshots.range(..=basis.window.to).rev();
    let had = had.flat_map(|(at, snapshot)| {
        let mut processes = snapshot.processes.iter();
        processes.find(|it| it.pid == pid).map(|it| (at, it))
    });
    let had = had.map(|(&at, process)| {
        let mut bytes = hangdog_trace::residence::Bytes::default();
        for segment in &process.segments {
            if [AreaKind::Heap, AreaKind::Anonymous].contains(&segment.kind) {
                bytes += segment.bytes;
            }
        }
        format!(
            "; at {} it had {} in memory and {} swapped out",
            format::moment(at),
            format::bytes(bytes.resident),
            format::bytes(bytes.swapped)
        )
    });
    Some(Advice {
        kind: "heap",
        text: format!(
            "Make the {} of {} smaller, or give back what it does not use (malloc_trim): {} came back from \
             swap{}.",
            most.kind,
            format::printable(&most.process),
            format::things(most.sum.swap_ins, "page", "pages"),
            had.into_iter().next().unwrap_or_default(),
        ),
        saves_at_most_ns: saves,
    })
}
