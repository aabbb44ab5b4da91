//! What an operation fetched and used, and its other occurrences did not use: it is cold, and may not belong here.
//!
//! An occurrence uses a page of a file if one of its threads faults on it, has it mapped around a fault, or
//! reads it. A page that stayed mapped is used without a fault: so of an occurrence in the same process, a
//! page counts as not used only if it was not in memory at some time between the two.

use super::cache::MOST_PAGES;
use super::{Operation, PAGE};
use crate::case::Case;
use crate::select::Window;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::tables::PageCache;
use hangdog_trace::words::CacheAction;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A page of a file: the file that stands for it, and its number.
type Page = (u32, u64);

/// Pages of a file that an operation fetched and used, by what its other occurrences did with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InOthers {
    /// Bytes that another occurrence used.
    pub used_bytes: u64,
    /// Bytes that no other used.
    pub cold_bytes: u64,
    /// Bytes of which that cannot be told, as they stayed in memory.
    pub unknown_bytes: u64,
}

/// The same of one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fate {
    is_used: bool,
    /// In so many occurrences it certainly was not used.
    not_used: usize,
}

/// By process and file, what became in other occurrences of the pages that the operation fetched and used.
pub(super) fn in_others(
    case: &Case,
    rows: &PageCache,
    same: &[u32],
    operation: &Operation,
) -> HashMap<(Upid, u32), InOthers> {
    let rows = Rows { case, rows, same };
    let pages = rows.fetched(operation);
    let keys: BTreeSet<Page> = pages.keys().copied().collect();
    let mut fates: HashMap<Page, Fate> = HashMap::new();
    for other in &operation.others {
        for (page, is_used) in rows.told(&keys, operation, other) {
            let fate = fates.entry(page).or_default();
            fate.is_used |= is_used;
            fate.not_used += usize::from(!is_used);
        }
    }
    let mut sums: HashMap<(Upid, u32), InOthers> = HashMap::new();
    for (page, process) in pages {
        let sum = sums.entry((process, page.0)).or_default();
        match fates.get(&page).copied().unwrap_or_default() {
            Fate { is_used: true, .. } => sum.used_bytes += PAGE,
            Fate { not_used, .. } if not_used == operation.others.len() => sum.cold_bytes += PAGE,
            _ => sum.unknown_bytes += PAGE,
        }
    }
    sums
}

/// What the trace has of the page cache.
struct Rows<'a> {
    case: &'a Case,
    rows: &'a PageCache,
    same: &'a [u32],
}

/// A row: some pages of a file.
struct Step {
    ts: u64,
    thread: Utid,
    action: CacheAction,
    from: Page,
    to: Page,
}

impl Rows<'_> {
    fn steps(&self) -> impl Iterator<Item = Step> {
        let rows = self.rows;
        (0..rows.ts.len()).filter_map(move |row| {
            let file = *self.same.get(rows.file[row] as usize)?;
            let (first, pages) = (rows.first[row], u64::from(rows.pages[row]));
            Some(Step {
                ts: rows.ts[row],
                thread: rows.thread[row],
                action: rows.action[row].into(),
                from: (file, first),
                to: (file, first.saturating_add(pages.min(MOST_PAGES))),
            })
        })
    }

    /// Whose a step is, if it is of an operation.
    fn of(&self, step: &Step, operation: &Operation) -> Option<Upid> {
        let Window { from, to } = operation.window;
        let process = self.case.recording.threads.known(step.thread)?.upid;
        let is_its = (from..to).contains(&step.ts) && operation.processes.contains(&process);
        is_its.then_some(process)
    }

    /// The pages that an operation had fetched and then used, by the process that had them fetched.
    fn fetched(&self, operation: &Operation) -> BTreeMap<Page, Upid> {
        let (mut added, mut used) = (BTreeMap::new(), BTreeMap::new());
        for step in self.steps() {
            let Some(process) = self.of(&step, operation) else {
                continue;
            };
            if step.action == CacheAction::Added {
                let (file, first) = step.from;
                added.extend((first..step.to.1).map(|number| ((file, number), process)));
            } else if is_use(step.action) {
                used.extend(
                    added
                        .range(step.from..step.to)
                        .map(|(&page, &by)| (page, by)),
                );
            }
        }
        used
    }

    /// Of `pages` those of which it can be told whether another occurrence used them.
    fn told(
        &self,
        pages: &BTreeSet<Page>,
        operation: &Operation,
        other: &Operation,
    ) -> Vec<(Page, bool)> {
        let has_same_process = !other.processes.is_disjoint(&operation.processes);
        let (first, last) = match operation.window.from <= other.window.from {
            true => (operation.window, other.window),
            false => (other.window, operation.window),
        };
        let (mut used, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for step in self.steps() {
            let touched = pages.range(step.from..step.to).copied();
            if is_use(step.action) && self.of(&step, other).is_some() {
                used.extend(touched);
            } else if step.action == CacheAction::Removed
                && (first.from..last.from).contains(&step.ts)
            {
                // Whoever uses it after that has to fetch it again.
                gone.extend(touched);
            }
        }
        let told = |page: &Page| {
            let is_used = used.contains(page);
            (is_used || !has_same_process || gone.contains(page)).then_some((*page, is_used))
        };
        pages.iter().filter_map(told).collect()
    }
}

fn is_use(action: CacheAction) -> bool {
    matches!(
        action,
        CacheAction::Mapped | CacheAction::Faulted | CacheAction::Read
    )
}
