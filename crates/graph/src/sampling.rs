//! Whether samples agree that a thread ran when its switches say so.
//!
//! Where the switch that took a thread off its CPU is missing, the thread seems to run on until
//! something else is heard of it. If the recording sampled its CPUs, a thread that really ran for
//! long was met by samples; one that was not did not run.

use hangdog_trace::ids::Utid;
use hangdog_trace::tables::Samples;

/// When samples were taken.
pub(crate) struct Sampling {
    /// The time between two samples of a CPU that is busy, ns; none where there is no sampling.
    gap: Option<u64>,
    /// When the first sample of all was taken: sampling begins a little after the recording.
    first: u64,
}

/// So many samples should have met a thread before their absence says anything.
const ENOUGH: u64 = 20;
/// A thread that ran was met by more than this part of them.
const MET: u64 = 10;
/// So many gaps tell what is usual.
const LOOKED_AT: usize = 10_000;

impl Sampling {
    pub(crate) fn new(samples: &Samples) -> Sampling {
        let mut last: Vec<(u16, u64)> = Vec::new();
        let mut gaps: Vec<u64> = Vec::new();
        for row in 0..samples.len().min(LOOKED_AT) {
            let (cpu, ts) = (samples.cpu[row], samples.ts[row]);
            match last.iter_mut().find(|(other, _)| *other == cpu) {
                Some((_, before)) => gaps.push(ts.saturating_sub(std::mem::replace(before, ts))),
                None => last.push((cpu, ts)),
            }
        }
        gaps.sort_unstable();
        // An idle CPU is not sampled: the shorter gaps are those of a busy one.
        Sampling {
            gap: gaps.get(gaps.len() / 4).copied().filter(|&gap| gap > 0),
            first: samples.ts.first().copied().unwrap_or(0),
        }
    }

    /// Whether samples deny that `thread` ran in `[from, to)`.
    pub(crate) fn deny(&self, samples: &Samples, thread: Utid, from: u64, to: u64) -> bool {
        let Some(gap) = self.gap else {
            return false;
        };
        let from = from.max(self.first);
        let expected = to.saturating_sub(from) / gap;
        if expected < ENOUGH {
            return false;
        }
        let first = samples.ts.partition_point(|&ts| ts < from);
        let met = (first..samples.len())
            .take_while(|&row| samples.ts[row] < to)
            .filter(|&row| samples.thread[row] == thread)
            .take((expected / MET + 1) as usize)
            .count();
        (met as u64) < expected / MET
    }
}
