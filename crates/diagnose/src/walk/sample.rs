//! What a sample of a thread's time stands for ([`crate::thinned`]): what was found in it counts as often as that
//! is longer, and the sums stay exact.

use std::ops::Range;

use super::Walk;
use crate::blame::Piece;
use crate::thinned::Look;

/// What was found in a sample of a thread's time.
#[derive(Default)]
pub(super) struct Thin {
    /// Pieces, ns, and how many waits or yields.
    pub(super) pieces: Vec<(usize, u64, usize)>,
    /// Steps, and how many waits led to them.
    pub(super) steps: Vec<(usize, usize)>,
}

impl Walk<'_, '_> {
    /// Notes what goes into piece number `at`, where a sample is looked at.
    pub(super) fn note(&mut self, at: usize, piece: &Piece) {
        if let Some(thin) = &mut self.thin {
            thin.pieces.push((at, piece.ns(), piece.count));
        }
    }

    /// Counts what was found in a sample of a thread's time for all that this stands for. The sums stay exact.
    pub(super) fn stand_for_all(&mut self, look: Look) {
        let Some(thin) = self.thin.take() else { return };
        let length = |window: &Range<u64>| u128::from(window.end - window.start);
        let (looked, whole) = (length(&look.looked), length(&look.whole));
        let more = |found: u64| (u128::from(found) * (whole - looked) / looked.max(1)) as u64;
        let mut left = (whole - looked) as u64;
        for &(at, ns, count) in &thin.pieces {
            let piece = &mut self.blame.pieces[at];
            let more_ns = more(ns).min(left);
            left -= more_ns;
            piece.parts.count_also(more_ns);
            piece.count += more(count as u64) as usize;
        }
        if let Some(&(at, _, _)) = thin.pieces.iter().max_by_key(|(_, ns, _)| ns) {
            self.blame.pieces[at].parts.count_also(left);
        }
        for &(at, times) in &thin.steps {
            self.blame.steps[at].times += more(times as u64) as usize;
        }
        self.blame.thinned.push(look);
    }
}
