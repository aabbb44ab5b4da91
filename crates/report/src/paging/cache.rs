//! The pages of files through an operation: which came into memory, which of them for a second time, and
//! which were never used.
//!
//! A fault maps the pages around it too, if they are there; those count as used, since nothing tells
//! whether they are touched. So what is called unused certainly is.

use crate::format;
use crate::select::Window;
use anyhow::{Result, ensure};
use hangdog_trace::ids::Utid;
use hangdog_trace::tables::PageCache;
use hangdog_trace::words::CacheAction;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Pages of a file that a thread brought into memory during an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fetched {
    pub fetched: u64,
    /// Of these, those that had come into memory before in the trace.
    pub again: u64,
    /// Of these, those that nobody used until they went or the trace ended.
    pub unused: u64,
}

/// What became of the pages of files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Followed {
    /// By thread and file.
    pub fetched: HashMap<(Utid, u32), Fetched>,
    /// Pages that went during the operation, by file.
    pub evicted: HashMap<u32, u64>,
}

/// No row has more pages in a file of a trace that is as it was recorded.
pub(super) const MOST_PAGES: u64 = 1 << 18;

/// So many pages that come and go are followed, each by itself: 128 GB of them in a gigabyte.
const MOST_FOLLOWED: u64 = 1 << 25;

/// Whether the pages of a trace can be followed.
///
/// # Errors
/// If they are so many that they would take too much memory.
pub(super) fn check(rows: &PageCache) -> Result<()> {
    let moves = (0..rows.ts.len()).filter(|&row| {
        let action = CacheAction::from(rows.action[row]);
        matches!(action, CacheAction::Added | CacheAction::Removed)
    });
    let pages = moves.fold(0_u64, |sum, row| {
        sum.saturating_add(u64::from(rows.pages[row]).min(MOST_PAGES))
    });
    ensure!(
        pages <= MOST_FOLLOWED,
        "{} pages of files came into memory and went: no more than {} are followed; record a shorter time, or \
         without --faults",
        format::count(pages),
        format::count(MOST_FOLLOWED)
    );
    Ok(())
}

/// What is known of a file's pages.
#[derive(Default)]
struct Known {
    /// Those that came or went before, in the trace.
    seen: BTreeSet<u64>,
    /// Those that came during the operation and are not used yet, by who brought them.
    unused: BTreeMap<u64, Utid>,
}

/// Follows all pages through the trace; `same` has the file that stands for each.
pub(super) fn follow(
    rows: &PageCache,
    same: &[u32],
    window: Window,
    is_chosen: &dyn Fn(Utid) -> bool,
) -> Followed {
    let mut followed = Followed::default();
    let mut files: HashMap<u32, Known> = HashMap::new();
    for row in 0..rows.ts.len() {
        let Some(&file) = same.get(rows.file[row] as usize) else {
            continue;
        };
        let known = files.entry(file).or_default();
        let (thread, first) = (rows.thread[row], rows.first[row]);
        let is_within = (window.from..window.to).contains(&rows.ts[row]);
        let all = first..first.saturating_add(u64::from(rows.pages[row]).min(MOST_PAGES));
        match CacheAction::from(rows.action[row]) {
            CacheAction::Added => {
                let counts = is_within && is_chosen(thread);
                for page in all {
                    let is_new = known.seen.insert(page);
                    if counts {
                        known.unused.insert(page, thread);
                        let fetched = followed.fetched.entry((thread, file)).or_default();
                        fetched.fetched += 1;
                        fetched.unused += 1;
                        fetched.again += u64::from(!is_new);
                    } else {
                        known.unused.remove(&page);
                    }
                }
            }
            CacheAction::Removed => {
                if is_within {
                    *followed.evicted.entry(file).or_default() += u64::from(rows.pages[row]);
                }
                for page in all {
                    // It was there before the trace, and may come again.
                    known.seen.insert(page);
                    known.unused.remove(&page);
                }
            }
            CacheAction::Mapped | CacheAction::Faulted | CacheAction::Read => {
                let used: Vec<u64> = known.unused.range(all).map(|(&page, _)| page).collect();
                for page in used {
                    let by = known.unused.remove(&page).unwrap_or_default();
                    if let Some(fetched) = followed.fetched.get_mut(&(by, file)) {
                        fetched.unused -= 1;
                    }
                }
            }
            CacheAction::Unknown => {}
        }
    }
    followed
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangdog_trace::text;

    fn followed(events: &str, from: u64, to: u64) -> Followed {
        let text = format!(
            "process app 100\nthread main app 100\nprocess x 200\nthread x x 200\n{events}"
        );
        let tables = text::parse(&text).expect("a trace in text form").tables;
        let same: Vec<u32> = tables.files.file.clone();
        follow(&tables.page_cache, &same, Window { from, to }, &|thread| {
            thread == 1
        })
    }

    /// A damaged trace may say that far more pages came than there are.
    #[test]
    fn more_pages_than_can_be_followed_are_refused() {
        let row = "1ms cache main added /lib 0 262144\n";
        let rows = |count: usize| {
            let text = format!(
                "process app 100\nthread main app 100\n{}",
                row.repeat(count)
            );
            text::parse(&text)
                .expect("a trace in text form")
                .tables
                .page_cache
        };
        assert!(check(&rows(128)).is_ok());
        let why = check(&rows(129)).expect_err("too many").to_string();
        assert!(why.starts_with("33,816,576 pages of files"), "{why}");
    }

    /// Of 32 pages that were read ahead, 16 are mapped and one of the others is read: 15 are unused.
    #[test]
    fn what_is_not_touched_is_unused() {
        let found = followed(
            "1ms cache main added /f 0 32
             2ms cache main faulted /f 3 1
             2ms cache main mapped /f 0 16
             3ms cache main read /f 20 1
             4ms cache x mapped /f 64 16",
            0,
            10_000_000,
        );
        let expected = Fetched {
            fetched: 32,
            again: 0,
            unused: 15,
        };
        assert_eq!(found.fetched[&(1, 0)], expected);
    }

    /// A page that went and came again is fetched again; one that went unused stays so; what others fetch
    /// or what lies before the operation is not counted, but is known.
    #[test]
    fn what_comes_again_is_told() {
        let found = followed(
            "1ms cache x added /f 0 4
             2ms cache x removed /f 0 4
             3ms cache main added /f 0 2
             4ms cache main removed /f 0 1
             5ms cache main added /f 0 1
             6ms cache main faulted /f 0 1
             7ms cache x added /f 8 1
             8ms cache main removed /g 5 7",
            2_500_000,
            10_000_000,
        );
        let expected = Fetched {
            fetched: 3,
            again: 3,
            unused: 2,
        };
        assert_eq!(found.fetched.len(), 1);
        assert_eq!(found.fetched[&(1, 0)], expected);
        assert_eq!((found.evicted[&0], found.evicted[&1]), (1, 7));
    }
}
