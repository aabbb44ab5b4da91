//! Axes, in powers: an axis of sizes counts powers of two, one of times or rates powers of ten.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::{Cartesian2d, ChartContext, SVGBackend};

use super::text;

/// What curves are drawn on.
pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// What an axis shows. Its numbers are exponents.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// From one end to the other; never empty.
    pub range: Range<f64>,
    /// Ticks with a label, ascending, within the range.
    pub ticks: Vec<f64>,
    /// Thin lines without.
    pub lines: Vec<f64>,
    /// Where the size 0 is, of which there is no logarithm: left of all others.
    zero: Option<f64>,
    /// How a tick is written.
    write: fn(&Axis, f64) -> String,
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let part = (value - self.range.start) / (self.range.end - self.range.start);
        from + (part.clamp(0.0, 1.0) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            self.lines.clone()
        } else {
            self.ticks.clone()
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        (self.write)(self, *value)
    }
}

impl Axis {
    /// For these sizes, with at most so many labels.
    pub fn of_sizes(sizes: impl Iterator<Item = u64>, most: usize) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut has_zero = false;
        for size in sizes {
            if size == 0 {
                has_zero = true;
                continue;
            }
            low = low.min((size as f64).log2());
            high = high.max((size as f64).log2());
        }
        if low > high {
            // Nothing but 0.
            (low, high) = (0.0, 0.0);
        }
        if high - low < 2.0 {
            (low, high) = (low - 1.0, high + 1.0);
        }
        let fits = |step: &f64| (high - low) / step + 1.0 + f64::from(has_zero) <= most as f64;
        let step = [1.0, 2.0, 4.0, 5.0, 10.0, 20.0]
            .into_iter()
            .find(fits)
            .unwrap_or(20.0);
        let zero = has_zero.then(|| low.floor() - step);
        let mut ticks = multiples(step, low, high);
        ticks.splice(0..0, zero);
        let start = zero.unwrap_or(low);
        let air = (high - start) * 0.02;
        Axis {
            range: start - air..high + air,
            ticks,
            lines: Vec::new(),
            zero,
            write: |axis, exponent| match axis.zero {
                Some(zero) if exponent <= zero => "0".to_owned(),
                _ => text::size(2f64.powf(exponent)),
            },
        }
    }

    /// For these values, all above 0 and finite;
    /// `write` says how a tick's exponent is written. None if there is no value.
    pub fn of_values(
        values: impl Iterator<Item = f64>,
        most: usize,
        write: fn(&Axis, f64) -> String,
    ) -> Option<Axis> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            low = low.min(value.log10());
            high = high.max(value.log10());
        }
        if low > high {
            return None;
        }
        // 1, 2, 5, 10 where they have room; else whole powers, and at last every so many of them.
        let fine = |exponent: f64| [0.0, 2f64.log10(), 5f64.log10()].map(|part| exponent + part);
        let (first, last) = ((low - 1e-6).floor(), (high + 1e-6).ceil());
        let mut all: Vec<f64> = multiples(1.0, first, last)
            .into_iter()
            .flat_map(fine)
            .collect();
        let mut step = 0.0;
        if (high - low) * 3.0 + 2.0 > most as f64 {
            let fits = |step: &f64| (last - first) / step + 1.0 <= most as f64;
            step = [1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0]
                .into_iter()
                .find(fits)
                .unwrap_or(200.0);
            let start = (first / step).floor() * step;
            all = multiples(step, start, last + step);
        }
        let air = (high - low) * 0.03;
        let mut range = low - air..high + air;
        if all.iter().filter(|tick| range.contains(tick)).count() < 2 {
            // So narrow that it has no ticks of its own: it ends at the next ones.
            let below = all.iter().rposition(|tick| *tick < low - 1e-9);
            let above = all.iter().position(|tick| *tick > high + 1e-9);
            range = all[below.unwrap_or(0)]..all[above.unwrap_or(all.len() - 1)];
        }
        let (start, end) = (range.start, range.end);
        let inside = |exponent: &f64| (start..=end).contains(exponent);
        let ticks = all.into_iter().filter(inside).collect();
        let lines = match step {
            1.0 => multiples(1.0, first, last)
                .into_iter()
                .flat_map(|exponent| (2..10).map(move |part| exponent + f64::from(part).log10()))
                .filter(inside)
                .collect(),
            _ => Vec::new(),
        };
        Some(Axis {
            range,
            ticks,
            lines,
            zero: None,
            write,
        })
    }

    /// Where a size is, of an axis of sizes.
    pub fn place(&self, size: u64) -> f64 {
        match (size, self.zero) {
            (0, Some(zero)) => zero,
            (size, _) => (size as f64).max(1.0).log2(),
        }
    }
}

/// Multiples of a step from `low` to `high`, both included.
fn multiples(step: f64, low: f64, high: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|times| times as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(_: &Axis, exponent: f64) -> String {
        format!("10^{exponent}")
    }

    /// 4 KiB to 1 GiB are 18 octaves: with ten labels every second has one.
    #[test]
    fn sizes_have_ticks_at_powers_of_two() {
        let axis = Axis::of_sizes([4096, 1 << 30].into_iter(), 10);
        let every_second: Vec<f64> = (6..=15).map(|half| f64::from(2 * half)).collect();
        assert_eq!(axis.ticks, every_second);
        assert_eq!(axis.zero, None);
    }

    /// 0 has a place left of the smallest, and a tick.
    #[test]
    fn zero_is_left_of_the_smallest() {
        let axis = Axis::of_sizes([0, 1024, 16 << 20].into_iter(), 9);
        assert_eq!(
            axis.ticks,
            [8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0]
        );
        assert_eq!(axis.place(0), 8.0);
        assert!(axis.range.contains(&8.0));
    }

    /// Two decades are divided at 1, 2, 5.
    #[test]
    fn few_decades_are_divided() {
        let axis = Axis::of_values([0.99, 101.0].into_iter(), 10, write).unwrap();
        let labels: Vec<f64> = axis
            .ticks
            .iter()
            .map(|tick| 10f64.powf(*tick).round())
            .collect();
        assert_eq!(labels, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
    }

    /// Six decades have a label each, and thin lines between.
    #[test]
    fn many_decades_are_not() {
        let axis = Axis::of_values([1e3, 1e9].into_iter(), 9, write).unwrap();
        assert_eq!(axis.ticks, [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        let within = axis.lines.iter().filter(|line| (3.0..9.0).contains(*line));
        assert_eq!(within.count(), 6 * 8);
    }

    proptest! {
        /// Whatever is shown lies within its axis, labels are few, and there are at least two.
        #[test]
        fn everything_lies_within(
            sizes in prop::collection::vec(any::<u64>(), 1..9),
            values in prop::collection::vec(f64::MIN_POSITIVE..f64::MAX, 1..9),
            exponents in prop::collection::vec(-300..300i32, 1..9),
        ) {
            let axis = Axis::of_sizes(sizes.iter().copied(), 9);
            prop_assert!(sizes.iter().all(|&size| axis.range.contains(&axis.place(size))));
            prop_assert!((2..=9).contains(&axis.ticks.len()));
            let values: Vec<f64> =
                values.into_iter().chain(exponents.into_iter().map(|power| 10f64.powi(power))).collect();
            let axis = Axis::of_values(values.iter().copied(), 9, write).unwrap();
            let (start, end) = (axis.range.start - 1e-6, axis.range.end + 1e-6);
            prop_assert!(values.iter().all(|value| (start..=end).contains(&value.log10())));
            prop_assert!((2..=11).contains(&axis.ticks.len()), "{:?}", axis.ticks);
            prop_assert!(axis.range.start < axis.range.end);
        }
    }
}
