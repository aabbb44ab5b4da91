//! Samples of one figure, and what is reported of them: never a mean alone.

use serde::{Deserialize, Serialize};

use crate::kind::Unit;

/// How samples are spread. The unit is the figure's.
///
/// What is told as the spread are the 10th and the 90th percentile of all samples, over all visits:
/// a rare disturbance does not widen it, a machine that is slower every other second does. Both are
/// moved apart by as much as the CPU's clock wandered during the run ([`Spread::widened`]): a method
/// is visited a few times, and another run meets another frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The best sample: the shortest time, the greatest rate.
    pub best: f64,
    /// 10th percentile, widened.
    pub low: f64,
    /// The figure.
    pub median: f64,
    /// 90th percentile, widened.
    pub high: f64,
    /// How many samples there were.
    pub samples: u32,
}

impl Spread {
    /// Of samples in any order; none if there is no sample, or one that is no number.
    pub fn of(samples: &[f64], unit: Unit) -> Option<Spread> {
        if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Spread {
            best: match unit {
                Unit::Ns | Unit::Share => sorted[0],
                Unit::BytesPerSecond => sorted[sorted.len() - 1],
            },
            low: percentile(&sorted, 0.1),
            median: percentile(&sorted, 0.5),
            high: percentile(&sorted, 0.9),
            samples: sorted.len() as u32,
        })
    }

    /// The same with its ends moved apart: the lower one by the first factor, which is at most 1, the
    /// upper one by the second, which is at least 1.
    pub(crate) fn widened(self, (down, up): (f64, f64)) -> Spread {
        Spread {
            low: self.low * down.min(1.0),
            high: self.high * up.max(1.0),
            ..self
        }
    }

    /// Whether two runs say the same: the median of one lies within the other's spread.
    pub fn agrees_with(&self, other: &Spread) -> bool {
        let within = |of: &Spread, value: f64| of.low <= value && value <= of.high;
        within(self, other.median) || within(other, self.median)
    }
}

/// Between the neighbours, linearly. `sorted` is not empty.
pub(crate) fn percentile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One slow sample in twenty moves neither median nor spread, and is not the minimum.
    #[test]
    fn a_rare_disturbance_does_not_widen_the_spread() {
        let mut samples = vec![10.0; 19];
        samples.push(1000.0);
        let spread = Spread::of(&samples, Unit::Ns).unwrap();
        assert_eq!(
            (spread.best, spread.low, spread.median, spread.high),
            (10.0, 10.0, 10.0, 10.0)
        );
        assert_eq!(spread.samples, 20);
    }

    /// Eleven samples 0 to 10: percentiles are the samples themselves.
    #[test]
    fn percentiles_of_eleven_steps() {
        let samples: Vec<f64> = (0..=10).rev().map(f64::from).collect();
        let spread = Spread::of(&samples, Unit::Ns).unwrap();
        assert_eq!(
            (spread.best, spread.low, spread.median, spread.high),
            (0.0, 1.0, 5.0, 9.0)
        );
    }

    /// Both ends move apart, whichever way they are told to, and nothing else does.
    #[test]
    fn a_spread_widens_and_never_narrows() {
        let spread = Spread::of(&[10.0, 20.0, 30.0], Unit::Ns).unwrap();
        let widened = spread.widened((0.5, 2.0));
        assert_eq!(
            (widened.low, widened.high),
            (spread.low / 2.0, spread.high * 2.0)
        );
        assert_eq!((widened.best, widened.median), (spread.best, spread.median));
        assert_eq!(spread.widened((1.5, 0.5)), spread);
    }

    /// The best rate is the greatest.
    #[test]
    fn the_best_of_a_rate_is_its_greatest() {
        let samples = [3.0, 1.0, 2.0];
        assert_eq!(
            Spread::of(&samples, Unit::BytesPerSecond).unwrap().best,
            3.0
        );
        assert_eq!(Spread::of(&samples, Unit::Ns).unwrap().best, 1.0);
    }

    /// Nothing measured, or not a number: no figure instead of a wrong one.
    #[test]
    fn no_samples_make_no_figure() {
        assert_eq!(Spread::of(&[], Unit::Ns), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN], Unit::Ns), None);
    }

    proptest! {
        /// The parts of a spread are in order, whatever was measured.
        #[test]
        fn parts_are_in_order(samples in prop::collection::vec(0.0..1e12f64, 1..200)) {
            let spread = Spread::of(&samples, Unit::Ns).unwrap();
            prop_assert!(spread.best <= spread.low);
            prop_assert!(spread.low <= spread.median);
            prop_assert!(spread.median <= spread.high);
            prop_assert!(spread.agrees_with(&spread));
        }
    }
}
