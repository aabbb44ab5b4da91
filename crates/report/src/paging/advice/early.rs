//! Functions that are seen only at an operation's beginning, and fetch what nothing else uses.
//!
//! Seen is what stands in a stack of a wait for a page or of a sample. Of nested ones the outermost counts
//! after which its thread was still seen: where that is not so, nothing tells that it is over.

use super::{Basis, sampled};
use crate::paging::PAGE;
use crate::paging::waits::{Page, PageWait};
use hangdog_trace::ids::{NO_STACK, StackId, Utid};
use std::collections::{HashMap, HashSet};

/// Such a function.
pub(super) struct Early {
    pub function: String,
    /// When it was seen last, ns.
    pub until: u64,
    /// Pages that were fetched beneath it.
    pub pages: u64,
    /// Of these, those that nothing else was seen to use.
    pub own_pages: u64,
    /// The stacks that go through it.
    pub stacks: HashSet<StackId>,
}

/// Over by this share of the operation.
const OVER_BY: f64 = 0.6;
/// So much of what it fetches is used by nothing else.
const OWN: f64 = 0.8;
/// So much of all waiting for pages is beneath it.
const NOTABLE: f64 = 0.1;
/// So many are told.
const MOST: usize = 3;
/// The dynamic linker: what it does at the start cannot be done later by the program.
const LINKER: &str = "ld-linux";

/// What is seen of a function.
#[derive(Default)]
struct Seen {
    /// When, last, and in which thread.
    last: (u64, Utid),
    waited: u64,
}

/// A function by its name and module; numbers stand for them.
#[derive(Default)]
struct Names<'a> {
    numbers: HashMap<(&'a str, &'a str), u32>,
    by_stack: HashMap<StackId, Vec<u32>>,
}

impl<'a> Names<'a> {
    /// The functions of a stack, each once, the outermost first.
    fn of(&mut self, basis: &Basis<'a>, stack: StackId) -> &[u32] {
        let Names { numbers, by_stack } = self;
        by_stack.entry(stack).or_insert_with(|| {
            let mut functions = Vec::new();
            for frame in basis.case.stacks.stack(stack) {
                let module = frame.module.unwrap_or_default();
                let Some(function) = frame.function.filter(|_| !frame.is_kernel()) else {
                    continue;
                };
                if module.starts_with(LINKER) {
                    continue;
                }
                let next = numbers.len() as u32;
                let number = *numbers.entry((function, module)).or_insert(next);
                // An outer one takes the place of an inner one of the same function.
                functions.retain(|&known| known != number);
                functions.push(number);
            }
            functions.reverse();
            functions
        })
    }
}

/// The waits of the operation that have a stack.
fn waits<'a>(basis: &Basis<'a>) -> impl Iterator<Item = &'a PageWait> {
    let waits = basis.waits.iter();
    waits.filter(|wait| wait.in_window && wait.waits() && wait.stack != NO_STACK)
}

/// The functions, those that wait longest first.
pub(super) fn early(basis: &Basis<'_>) -> Vec<Early> {
    let mut names = Names::default();
    let mut seen: HashMap<u32, Seen> = HashMap::new();
    let mut stacks: HashSet<StackId> = HashSet::new();
    // When each thread was seen last.
    let mut ends: HashMap<Utid, u64> = HashMap::new();
    let mut all_waited = 0u64;
    for wait in waits(basis) {
        all_waited = all_waited.saturating_add(wait.waited);
        stacks.insert(wait.stack);
        let last = ends.entry(wait.thread).or_default();
        *last = wait.end().max(*last);
        for &function in names.of(basis, wait.stack) {
            let seen = seen.entry(function).or_default();
            seen.last = seen.last.max((wait.end(), wait.thread));
            seen.waited = seen.waited.saturating_add(wait.waited);
        }
    }
    for (ts, thread, stack) in sampled(basis).filter(|&(_, _, stack)| stack != NO_STACK) {
        stacks.insert(stack);
        let last = ends.entry(thread).or_default();
        *last = ts.max(*last);
        for &function in names.of(basis, stack) {
            let seen = seen.entry(function).or_default();
            seen.last = seen.last.max((ts, thread));
        }
    }
    let length = (basis.window.to - basis.window.from) as f64;
    let over_by = basis.window.from + (length * OVER_BY) as u64;
    let mut candidates: Vec<(u32, Seen)> = (seen.into_iter())
        .filter(|(_, seen)| seen.last.0 <= over_by && seen.last.0 < ends[&seen.last.1])
        .filter(|(_, seen)| seen.waited as f64 >= all_waited as f64 * NOTABLE)
        .collect();
    // Of those with the same waits the outermost: it is seen in no fewer stacks.
    let depth = |function: u32| {
        let stacks = names.by_stack.values();
        let depths = stacks.filter_map(|all| all.iter().position(|&it| it == function));
        depths.min().unwrap_or(usize::MAX)
    };
    let depths: HashMap<u32, usize> = (candidates.iter())
        .map(|(function, _)| (*function, depth(*function)))
        .collect();
    candidates.sort_by_key(|(function, seen)| {
        (std::cmp::Reverse(seen.waited), depths[function], *function)
    });
    let text: HashMap<u32, &str> = (names.numbers.iter())
        .map(|((function, _), &number)| (number, *function))
        .collect();
    let mut told: Vec<Early> = Vec::new();
    for (function, seen) in candidates {
        if told.len() == MOST {
            break;
        }
        let through: HashSet<StackId> = (stacks.iter().copied())
            .filter(|stack| names.by_stack[stack].contains(&function))
            .collect();
        let nested = |other: &Early| !other.stacks.is_disjoint(&through);
        if told.iter().any(nested) {
            continue;
        }
        let elsewhere = Elsewhere::new(basis, &stacks, &through);
        let beneath = waits(basis).filter(|wait| through.contains(&wait.stack));
        let fetched: HashSet<Page> = beneath.map(|wait| wait.page).collect();
        let own = fetched.iter().filter(|page| !elsewhere.uses(basis, page));
        let (pages, own_pages) = (fetched.len() as u64, own.count() as u64);
        if own_pages as f64 >= pages as f64 * OWN {
            told.push(Early {
                function: text[&function].to_owned(),
                until: seen.last.0,
                pages,
                own_pages,
                stacks: through,
            });
        }
    }
    told
}

/// What is used by stacks that do not go through a function.
struct Elsewhere<'a> {
    /// Pages that faults were for.
    pages: HashSet<Page>,
    /// Pages of code that ran, by module.
    code: HashSet<(&'a str, u64)>,
}

impl<'a> Elsewhere<'a> {
    fn new(
        basis: &Basis<'a>,
        stacks: &HashSet<StackId>,
        through: &HashSet<StackId>,
    ) -> Elsewhere<'a> {
        let others = basis
            .waits
            .iter()
            .filter(|wait| !through.contains(&wait.stack));
        let mut code = HashSet::new();
        for &stack in stacks.difference(through) {
            for frame in basis.case.stacks.stack(stack) {
                code.extend(frame.module.map(|module| (module, frame.offset / PAGE)));
            }
        }
        Elsewhere {
            pages: others.map(|wait| wait.page).collect(),
            code,
        }
    }

    fn uses(&self, basis: &Basis<'_>, page: &Page) -> bool {
        let by_code = || match page {
            Page::Of { file, number } => {
                let path = basis.files.path.get(*file as usize);
                let name = path.and_then(|path| path.rsplit('/').next());
                name.is_some_and(|name| self.code.contains(&(name, *number)))
            }
            Page::Own { .. } => false,
        };
        self.pages.contains(page) || by_code()
    }
}
