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
pub(crate) fn common(evidence: &Evidence<'_>, samples: &[usize]) -> Option<Function> {
    struct Seen {
        count: u32,
        depth: u64,
        place: String,
        stack: StackId,
    }
    let mut seen: HashMap<&str, Seen> = HashMap::new();
    for &row in samples {
        let stack = evidence.samples.user_stack[row];
        let mut counted: Vec<&str> = Vec::new();
        for (depth, frame) in evidence.stacks.stack(stack).enumerate() {
            let (Some(function), Some(module)) = (frame.function, frame.module) else { continue };
            // A recursive function counts once.
            if !names_a_program(module) || counted.contains(&function) {
                continue;
            }
            counted.push(function);
            let place = if frame.source.is_empty() { module } else { frame.source };
            let entry = seen.entry(function).or_insert_with(|| Seen {
                count: 0,
                depth: 0,
                place: place.to_owned(),
                stack,
            });
            entry.count += 1;
            entry.depth += depth as u64;
        }
    }
    let needed = (samples.len() as f64 * MOST).ceil() as u32;
    let (name, best) = seen
        .iter()
        .filter(|(_, seen)| seen.count >= needed.max(1))
        .min_by(|(a, x), (b, y)| {
            let depth = |seen: &Seen| seen.depth as f64 / f64::from(seen.count);
            depth(x).total_cmp(&depth(y)).then(a.cmp(b))
        })?;
    Some(Function { name: (*name).to_owned(), place: best.place.clone(), stack: best.stack })
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
    const KERNEL_YIELD: [&str; 4] =
        ["__x64_sys_sched_yield", "__arm64_sys_sched_yield", "do_sched_yield", "__do_sys_sched_yield"];
    let yielding = samples
        .iter()
        .filter(|&&row| {
            let innermost = evidence.stacks.stack(evidence.samples.user_stack[row]).next();
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
        stack => evidence.stacks.stack(stack).map(|frame| frame.to_string()).collect(),
    }
}
