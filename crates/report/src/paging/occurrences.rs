//! The other occurrences of an operation: a program that was started several times, or a region that is entered
//! again.

use super::{Operation, life, with_descendants};
use crate::case::Case;
use crate::regions::Marked;
use crate::select::Window;
use crate::which::Wanted;
use anyhow::Result;
use hangdog_trace::ids::{KERNEL_PROCESS, Upid};
use std::collections::HashSet;

/// More of them would take long and tell little more.
const MOST: usize = 20;

/// Processes that executed a program of the same name as one that is meant, within `window`, with their
/// descendants.
pub fn other_starts(
    case: &Case,
    name: &str,
    processes: &HashSet<Upid>,
    window: Window,
) -> Vec<Operation> {
    let threads = &case.recording.threads;
    let is_other = |upid: Upid| {
        let process = threads.process(upid);
        let mut own = process.threads.iter().map(|&thread| threads.thread(thread));
        upid != KERNEL_PROCESS
            && process.name == name
            && !processes.contains(&upid)
            && own.any(|thread| thread.is_main() && thread.executed.is_some())
    };
    let mut told: HashSet<Upid> = HashSet::new();
    let mut others = Vec::new();
    for process in threads.processes() {
        if others.len() == MOST || told.contains(&process.upid) || !is_other(process.upid) {
            continue;
        }
        let family = with_descendants(threads, &[process.upid]);
        let Ok(window) = life(case, &family, window) else {
            continue;
        };
        told.extend(&family);
        others.push(Operation {
            window,
            name: name.to_owned(),
            processes: family,
            others: Vec::new(),
        });
    }
    others
}

/// The other regions of the kind of the one that is meant, each of its own process, the longest first.
///
/// # Errors
/// What is wrong with the trace or with what is wanted, in a sentence.
pub fn other_regions(case: &Case, wanted: &Wanted<'_>) -> Result<Vec<Operation>> {
    let recording = &case.recording;
    let marked = Marked::load(recording, None)?;
    let (meant, all) = marked.nth(recording, &wanted.marks(), wanted.nth)?;
    let mut others = Vec::new();
    for region in all.iter().filter(|region| region.begin != meant.begin) {
        let (thread, part) = marked.place(recording, region)?;
        if part.is_empty() {
            continue;
        }
        others.push(Operation {
            window: Window {
                from: part.start,
                to: part.end,
            },
            name: String::new(),
            processes: [recording.threads.thread(thread).upid].into(),
            others: Vec::new(),
        });
        if others.len() == MOST {
            break;
        }
    }
    Ok(others)
}
