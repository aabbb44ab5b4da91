//! The function that a stretch of time is to be named after.

use hangdog_graph::Evidence;
use hangdog_graph::evidence::names_a_program;
use hangdog_trace::ids::{NO_STACK, StackId, Utid};
use std::collections::HashMap;
use std::ops::Range;

/// A function with where it is and how much of the time it was seen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Function {
    pub name: String,
    /// Source as file:line where that is known, otherwise the module.
    pub place: String,
    /// A stack that it was seen in.
    pub stack: StackId,
}

/// In so many of the samples a function must be for all of the time to be named after it.
const MOST: f64 = 0.7;

/// What `samples` show a thread doing: the innermost function of its own program that nearly all
/// of them have in common. Deeper ones are its details, outer ones say less.
///
/// A walk by frame pointers that begins in a library built without them misses the function that
/// called the library. So walks that begin in the program itself are asked first, where they show
/// the same callers as the others do: the missing function is then the one that they begin in.
pub(crate) fn common(evidence: &Evidence<'_>, samples: &[usize]) -> Option<Function> {
    const FEWEST: usize = 3;
    let walks: Vec<Walk<'_>> = samples
        .iter()
        .map(|&row| Walk::new(evidence, evidence.samples.user_stack[row]))
        .collect();
    let (own, foreign): (Vec<&Walk<'_>>, Vec<&Walk<'_>>) =
        walks.iter().partition(|walk| walk.begins_in_program);
    let whole = common_of(&walks.iter().collect::<Vec<_>>());
    if own.len() < FEWEST || foreign.is_empty() {
        return whole;
    }
    let Some(within) = common_of(&own) else {
        return whole;
    };
    let caller = own
        .iter()
        .find(|walk| walk.position(&within.name) == Some(0))
        .and_then(|walk| walk.functions.get(1))
        .map(|&(function, _)| function);
    let agrees = |walk: &&&Walk<'_>| match walk.functions.first() {
        // Nothing of the program is left of it: no word against.
        None => true,
        Some(&(innermost, _)) => Some(innermost) == caller || innermost == within.name,
    };
    let agreeing = foreign.iter().filter(agrees).count();
    match agreeing as f64 >= MOST * foreign.len() as f64 {
        true => Some(within),
        false => whole,
    }
}

/// A sampled stack as far as it is the program's own.
struct Walk<'a> {
    stack: StackId,
    begins_in_program: bool,
    /// Functions of the program with their places, innermost first, each once.
    functions: Vec<(&'a str, &'a str)>,
}

impl<'a> Walk<'a> {
    fn new(evidence: &'a Evidence<'_>, stack: StackId) -> Walk<'a> {
        let mut functions: Vec<(&str, &str)> = Vec::new();
        let mut begins_in_program = false;
        for (depth, frame) in evidence.stacks.stack(stack).enumerate() {
            let (Some(function), Some(module)) = (frame.function, frame.module) else {
                continue;
            };
            if !names_a_program(module) {
                continue;
            }
            begins_in_program |= depth == 0;
            let place = if frame.source.is_empty() {
                module
            } else {
                frame.source
            };
            if !functions.iter().any(|&(known, _)| known == function) {
                functions.push((function, place));
            }
        }
        Walk {
            stack,
            begins_in_program,
            functions,
        }
    }

    fn position(&self, function: &str) -> Option<usize> {
        self.functions
            .iter()
            .position(|&(known, _)| known == function)
    }
}

fn common_of(walks: &[&Walk<'_>]) -> Option<Function> {
    let mut seen: HashMap<&str, (u32, u64, &str, StackId)> = HashMap::new();
    for walk in walks {
        for (depth, &(function, place)) in walk.functions.iter().enumerate() {
            let entry = seen.entry(function).or_insert((0, 0, place, walk.stack));
            entry.0 += 1;
            entry.1 += depth as u64;
        }
    }
    let needed = ((walks.len() as f64 * MOST).ceil() as u32).max(1);
    let (name, &(_, _, place, stack)) = seen
        .iter()
        .filter(|(_, (count, ..))| *count >= needed)
        .min_by(|(a, x), (b, y)| {
            let depth =
                |&(count, depth, ..): &(u32, u64, &str, StackId)| depth as f64 / f64::from(count);
            depth(x).total_cmp(&depth(y)).then(a.cmp(b))
        })?;
    Some(Function {
        name: (*name).to_owned(),
        place: place.to_owned(),
        stack,
    })
}

/// The rows of `samples` that show `thread` in any of `windows`, which are sorted.
pub(crate) fn samples_of(
    evidence: &Evidence<'_>,
    thread: Utid,
    windows: &[Range<u64>],
) -> Vec<usize> {
    let samples = evidence.samples;
    let mut rows = Vec::new();
    for window in windows {
        let first = samples.ts.partition_point(|&ts| ts < window.start);
        rows.extend(
            (first..samples.len())
                .take_while(|&row| samples.ts[row] < window.end)
                .filter(|&row| samples.thread[row] == thread),
        );
    }
    rows
}

/// Whether most of the samples show the thread giving up its CPU.
pub(crate) fn mostly_yielding(evidence: &Evidence<'_>, samples: &[usize]) -> bool {
    const YIELD: [&str; 3] = ["sched_yield", "__sched_yield", "__GI_sched_yield"];
    const KERNEL_YIELD: [&str; 4] = [
        "__x64_sys_sched_yield",
        "__arm64_sys_sched_yield",
        "do_sched_yield",
        "__do_sys_sched_yield",
    ];
    let yielding = samples
        .iter()
        .filter(|&&row| {
            let innermost = evidence
                .stacks
                .stack(evidence.samples.user_stack[row])
                .next();
            innermost.is_some_and(|frame| frame.function.is_some_and(|f| YIELD.contains(&f)))
                || evidence.has_function(evidence.samples.kernel_stack[row], &KERNEL_YIELD)
        })
        .count();
    yielding * 2 > samples.len()
}

/// The frames of a stack in words, innermost first.
pub(crate) fn frames(evidence: &Evidence<'_>, stack: StackId) -> Vec<String> {
    match stack {
        NO_STACK => Vec::new(),
        stack => evidence
            .stacks
            .stack(stack)
            .map(|frame| frame.to_string())
            .collect(),
    }
}
