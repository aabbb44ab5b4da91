//! Where a thread was seen while it ran, from the samples of it.

use hangdog_trace::Trace;
use hangdog_trace::ids::{NO_STACK, Utid};
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::Samples;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The samples of one thread: time and the stack whose innermost frame ran, ascending by time.
pub struct ThreadSamples(Vec<(u64, u32)>);

/// How often a thread was seen in a function.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// The function, or its place where it has no name.
    pub function: String,
    /// How often.
    pub samples: u64,
}

impl ThreadSamples {
    /// Reads a thread's samples from a trace.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn load(trace: &Trace, thread: Utid) -> hangdog_trace::Result<ThreadSamples> {
        Ok(ThreadSamples::of(&trace.read()?, thread))
    }

    /// A thread's samples of all.
    pub fn of(samples: &Samples, thread: Utid) -> ThreadSamples {
        let stack = |i: usize| match samples.kernel_stack[i] {
            NO_STACK => samples.user_stack[i],
            kernel => kernel,
        };
        ThreadSamples(
            (0..samples.len())
                .filter(|&i| samples.thread[i] == thread)
                .map(|i| (samples.ts[i], stack(i)))
                .collect(),
        )
    }

    /// The functions that it was seen in within `[from, to)`, most often first; by name where
    /// that is equal. Samples without a stack are left out.
    pub fn between(&self, stacks: &StackTable, from: u64, to: u64) -> Vec<Sampled> {
        let first = self.0.partition_point(|&(ts, _)| ts < from);
        let mut counts: HashMap<String, u64> = HashMap::new();
        for &(_, stack) in self.0[first..].iter().take_while(|&&(ts, _)| ts < to) {
            if let Some(frame) = stacks.stack(stack).next() {
                *counts.entry(frame.to_string()).or_default() += 1;
            }
        }
        let mut sampled: Vec<Sampled> = counts
            .into_iter()
            .map(|(function, samples)| Sampled { function, samples })
            .collect();
        sampled.sort_by(|a, b| {
            (Reverse(a.samples), &a.function).cmp(&(Reverse(b.samples), &b.function))
        });
        sampled
    }
}

/// The functions seen most often, in a line; none where nothing was seen.
pub fn line(sampled: &[Sampled]) -> Option<String> {
    const SHOWN: usize = 3;
    let total: u64 = sampled.iter().map(|s| s.samples).sum();
    let shown: Vec<String> = sampled
        .iter()
        .take(SHOWN)
        .map(|s| format!("{} ({} of {total} samples)", s.function, s.samples))
        .collect();
    (!shown.is_empty()).then(|| format!("in {}", shown.join(", ")))
}
