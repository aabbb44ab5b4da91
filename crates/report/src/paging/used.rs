//! Which pages of which files an operation used, in the order in which it first did: what would have to
//! be in memory for it to wait for no page of a file.

use super::same_files;
use crate::case::Recording;
use anyhow::Result;
use hangdog_trace::ids::Upid;
use hangdog_trace::tables::{Files, PageCache};
use hangdog_trace::words::CacheAction;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// A file, and which of its pages were used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedFile {
    /// Its path.
    pub path: String,
    /// Pages of 4 KiB, ascending and apart from each other.
    pub pages: Vec<Range<u64>>,
}

/// A gap of so many pages is read with what is around it: that takes less than another request.
const GAP: u64 = 32;
/// The file system of memory: what is in it is not on a disk.
const TMPFS: u32 = 0x0102_1994;

/// What the processes used, of a trace that has the page cache. A fault maps what is around it too, and
/// all of that counts.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn used_files(recording: &Recording, processes: &HashSet<Upid>) -> Result<Vec<UsedFile>> {
    let rows: PageCache = recording.trace.read()?;
    let files: Files = recording.trace.read()?;
    let is_chosen = |thread| {
        let known = recording.threads.known(thread);
        known.is_some_and(|thread| processes.contains(&thread.upid))
    };
    Ok(used(&rows, &files, is_chosen))
}

fn used(rows: &PageCache, files: &Files, is_chosen: impl Fn(u32) -> bool) -> Vec<UsedFile> {
    let same = same_files(files);
    let mut order: Vec<u32> = Vec::new();
    let mut pages: HashMap<u32, BTreeMap<u64, u64>> = HashMap::new();
    for row in 0..rows.ts.len() {
        let Some(&file) = same.get(rows.file[row] as usize) else {
            continue;
        };
        let on_disk = files.magic[file as usize] != TMPFS;
        let is_use = matches!(
            CacheAction::from(rows.action[row]),
            CacheAction::Mapped | CacheAction::Faulted | CacheAction::Read
        );
        let has_path = files.path[file as usize].starts_with('/');
        if !is_use || !on_disk || !has_path || !is_chosen(rows.thread[row]) {
            continue;
        }
        let ranges = pages.entry(file).or_insert_with(|| {
            order.push(file);
            BTreeMap::new()
        });
        let first = rows.first[row];
        let end = ranges.entry(first).or_default();
        *end = (*end).max(first.saturating_add(rows.pages[row].into()));
    }
    let merged = |file: u32| UsedFile {
        path: files.path[file as usize].clone(),
        pages: merge(pages.remove(&file).unwrap_or_default()),
    };
    order.into_iter().map(merged).collect()
}

/// Ranges that lie close to each other, together.
fn merge(ranges: BTreeMap<u64, u64>) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::new();
    for (first, end) in ranges {
        match merged.last_mut() {
            Some(last) if first <= last.end.saturating_add(GAP) => last.end = last.end.max(end),
            _ => merged.push(first..end),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangdog_trace::text;

    /// Files come in the order of their first use, their ranges in the order of the file; what is near is
    /// one range; what was only read ahead, or used by others, is not there.
    #[test]
    fn pages_are_in_the_order_of_the_file() {
        let trace = text::parse(
            "process app 100
            thread main app 100
            process x 200
            thread x x 200
            1ms cache main added /b 0 999
            2ms cache main faulted /b 500 1
            3ms cache main mapped /b 16 16
            3ms cache main mapped /b 40 16
            4ms cache main read /a 0 4
            5ms cache x read /c 0 4",
        );
        let tables = trace.expect("a trace in text form").tables;
        let found = used(&tables.page_cache, &tables.files, |thread| thread == 1);
        let file = |path: &str, pages: &[Range<u64>]| UsedFile {
            path: path.into(),
            pages: pages.to_vec(),
        };
        assert_eq!(
            found,
            [
                file("/b", &[16..56, 500..501]),
                file("/a", std::slice::from_ref(&(0..4)))
            ]
        );
    }
}
