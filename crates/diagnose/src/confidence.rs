//! How sure a verdict may be, by what its way to the root rests on.
//!
//! The numbers are how often verdicts with such evidence were right over the recordings of real
//! programs whose freezes were made on purpose (`lab/real`, `lab/calibration.py`), rounded. An
//! object that names who is waited for says much; that somebody was asked, or usually comes, says
//! little; where it is not known what a wait ended by, the root is as good as not known.

use hangdog_graph::{EdgeKind, Source, WaitKind};

use crate::blame::{Piece, of_edge};
use crate::kind::BlameKind;
use crate::problem::Problem;
use crate::starvation::Starvation;
use crate::suspect::Suspect;
use crate::verdict::Class;

/// What the product of the evidence on a way comes to, and how many verdicts of that were right in all:
/// of 529, of which 357 are on the 176 freezes of `lab/real` recorded in their middle and 172 on 48 freezes of
/// blind trials, judged as they were played, where what was right in part counts as wrong. Tenths with too few
/// verdicts are put together with the next, so that more evidence is never less sure. Each doubt on the way is
/// taken to be another's, so that the product alone is too low.
const OBSERVED: [(f64, f64); 9] = [
    (0.0, 0.2),
    (0.1, 0.5),
    (0.2, 0.72),
    (0.3, 0.78),
    (0.4, 0.87),
    (0.5, 0.91),
    (0.6, 0.94),
    (0.8, 0.95),
    (1.0, 0.95),
];

/// How likely a verdict with so much evidence is to be right.
pub(crate) fn observed(evidence: f64) -> f64 {
    let after = OBSERVED.partition_point(|&(known, _)| known < evidence);
    match after
        .checked_sub(1)
        .map(|before| (OBSERVED[before], OBSERVED.get(after)))
    {
        None => OBSERVED[0].1,
        Some(((_, last), None)) => last,
        Some(((low, at_low), Some(&(high, at_high)))) => {
            at_low + (at_high - at_low) * (evidence - low) / (high - low)
        }
    }
}

/// No class that is not known is held to be more likely than this.
const UNKNOWN: f64 = 0.1;
/// A server that does not answer and has nothing to do is at least the one that was asked.
pub(crate) const IDLE_SERVER: f64 = 0.3;
/// A problem that is less sure to have been felt by anybody than this makes the answer less sure.
const FELT: f64 = 0.3;

/// How likely it is that what the way ends with is the cause; `is_own` says that it is the
/// problem's own thread, which nothing led to.
pub(crate) fn of_end(suspect: &Suspect, pieces: &[&Piece], is_own: bool) -> f64 {
    match (suspect.class, &suspect.starvation) {
        (Class::Unknown, _) => return UNKNOWN,
        (Class::Circular, _) => return 0.9,
        (_, Some(Starvation::Quota)) => return 0.9,
        (_, Some(Starvation::Hog { .. } | Starvation::Withheld { .. })) => return 0.8,
        (_, Some(Starvation::Crowd { .. })) => return 0.6,
        // What it looks for, and who should have brought that, no wait tells.
        (Class::RepeatedYield, _) if suspect.kind == BlameKind::Timer => return 0.4,
        (Class::RepeatedYield, _) => return 0.8,
        _ => {}
    }
    let of_piece = |piece: &Piece| match (piece.kind, &piece.wait) {
        (BlameKind::Run | BlameKind::Runnable | BlameKind::Interrupt, _) => match is_own {
            true => 0.75,
            false => 0.9,
        },
        (BlameKind::Unknown, _) => UNKNOWN,
        // Somebody on the way wanted it to go on; of the first nobody is known who did.
        (BlameKind::Timer, Some((waiting, _))) if is_own => match waiting.wait.kind {
            WaitKind::Sleep => 0.5,
            _ => 0.3,
        },
        // A time limit is no cause: somebody should have come before.
        (BlameKind::Timer, Some((waiting, edge)))
            if waiting.wait.kind == WaitKind::Condition && edge.source == Source::Nobody =>
        {
            0.5
        }
        (BlameKind::Timer, _) => 0.85,
        (BlameKind::Disk | BlameKind::Paging, _) => 0.8,
        // Who should have sent is not on this machine.
        (BlameKind::Network, _) => 0.6,
        // It is known to have ended, and not that it was still to come.
        (BlameKind::Gone, _) => 0.8,
        (BlameKind::Stopped, _) if is_own => 0.9,
        (BlameKind::Stopped, _) => 1.0,
        (_, Some((_, edge))) if edge.kind == EdgeKind::Input => 1.0,
        // No worker is left.
        (_, Some((_, edge))) if edge.kind == EdgeKind::Awaited && edge.source == Source::Nobody => {
            0.9
        }
        (_, Some((_, edge))) => of_edge(edge).min(0.6),
        (_, None) => 0.5,
    };
    let total: f64 = pieces.iter().map(|piece| piece.ns() as f64).sum();
    let sure: f64 = pieces
        .iter()
        .map(|piece| piece.ns() as f64 * piece.probability * of_piece(piece))
        .sum();
    if total > 0.0 { sure / total } else { UNKNOWN }
}

/// How likely it is that the problem is one: what comes first of all that was found mostly is, however
/// little is known to have been owed.
pub(crate) fn of_problem(problem: &Problem) -> f64 {
    const LEAST: f64 = 0.7;
    const IDLE: f64 = 0.3;
    if problem.may_be_idle() {
        return IDLE;
    }
    LEAST + (1.0 - LEAST) * (problem.felt / FELT).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More evidence is never less sure, nothing is certain, and what was observed is met.
    #[test]
    fn more_evidence_is_surer() {
        let all: Vec<f64> = (-1..=11)
            .map(|tenth| observed(f64::from(tenth) / 10.0))
            .collect();
        assert!(all.is_sorted(), "{all:?}");
        assert!(all.iter().all(|sure| (0.0..1.0).contains(sure)), "{all:?}");
        assert_eq!(
            (observed(0.5), observed(1.0), observed(2.0)),
            (0.91, 0.95, 0.95)
        );
        assert!((observed(0.45) - 0.89).abs() < 1e-9);
    }
}
