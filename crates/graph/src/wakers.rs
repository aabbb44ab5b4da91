//! Which wakes each thread made: rows of `wakes` in CSR form by waker.

use hangdog_trace::ids::{IDLE, Utid};
use hangdog_trace::tables::Wakes;
use rayon::prelude::*;

/// The wakes that threads made from their own context, by waker, in order of time.
pub(crate) struct Wakers {
    offsets: Vec<u32>,
    rows: Vec<u32>,
}

impl Wakers {
    /// `is_own` tells of a row whether it is the waker's own doing.
    pub(crate) fn new(wakes: &Wakes, is_own: impl Fn(usize) -> bool + Sync) -> Wakers {
        let all = wakes.len().min(u32::MAX as usize) as u32;
        let own: Vec<u32> = (0..all)
            .into_par_iter()
            .filter(|&row| wakes.waker[row as usize] != IDLE && is_own(row as usize))
            .collect();
        let own = || own.iter().map(|&row| row as usize);
        // An id beyond the number of wakes can only come from a damaged trace.
        let threads = own()
            .map(|row| wakes.waker[row] as usize)
            .filter(|&waker| waker <= 2 * wakes.len() + MOST_THREADS)
            .max()
            .map_or(0, |highest| highest + 1);
        let mut offsets = vec![0_u32; threads + 1];
        for row in own() {
            if let Some(count) = offsets.get_mut(wakes.waker[row] as usize + 1) {
                *count += 1;
            }
        }
        for at in 1..offsets.len() {
            offsets[at] += offsets[at - 1];
        }
        let mut next = offsets.clone();
        let mut rows = vec![0; offsets.last().map_or(0, |&last| last as usize)];
        for row in own() {
            let waker = wakes.waker[row] as usize;
            if waker < threads {
                rows[next[waker] as usize] = row as u32;
                next[waker] += 1;
            }
        }
        Wakers { offsets, rows }
    }

    pub(crate) fn rows(&self, waker: Utid) -> &[u32] {
        let at = waker as usize;
        match self.offsets.get(at..at + 2) {
            Some(&[from, to]) => &self.rows[from as usize..to as usize],
            _ => &[],
        }
    }
}

/// A machine has no more threads than this when a recording begins.
const MOST_THREADS: usize = 1 << 22;
