//! How sure a difference is: by drawing the occurrences of both groups again, with replacement (the
//! bootstrap), and by mixing the groups (a permutation test). Random numbers are the same in each run.

/// So often the occurrences are drawn.
const DRAWS: usize = 400;
/// The ends of the interval that has nine of ten draws.
const LOW: f64 = 0.05;
const HIGH: f64 = 0.95;

/// SplitMix64: numbers that look random, the same for the same seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to 1.
    #[cfg(test)]
    pub(super) fn next_part(&mut self) -> f64 {
        self.next() as f64 / u64::MAX as f64
    }

    /// A number below `count`, which is not 0.
    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }
}

/// The average; 0 of none.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u64);
    for value in values {
        sum += value;
        count += 1;
    }
    sum / count.max(1) as f64
}

/// A column of both groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Column {
    /// Its mean in the fast group.
    pub fast: f64,
    /// Its mean in the slow one.
    pub slow: f64,
    /// Its share of the difference of all columns.
    pub share: f64,
    /// Between which the share is in nine of ten draws.
    pub low: f64,
    pub high: f64,
    /// In which share of the draws it is the largest part of the difference.
    pub first: f64,
}

/// The columns, in their order.
pub(super) struct Resampled {
    pub columns: Vec<Column>,
}

impl Resampled {
    /// Of rows of equal length.
    pub(super) fn of(fast: &[Vec<f64>], slow: &[Vec<f64>]) -> Resampled {
        let width = fast.first().or(slow.first()).map_or(0, Vec::len);
        let all = |rows: &[Vec<f64>]| means(rows, 0..rows.len(), width);
        let (of_fast, of_slow) = (all(fast), all(slow));
        let mut columns: Vec<Column> = (of_fast.iter().zip(&of_slow))
            .map(|(&fast, &slow)| Column {
                fast,
                slow,
                ..Column::default()
            })
            .collect();
        let shares = shares(&of_fast, &of_slow);
        let mut random = Random::new(fast.len() as u64);
        let mut draws: Vec<Vec<f64>> = vec![Vec::with_capacity(DRAWS); width];
        for _ in 0..DRAWS {
            let mut draw = |rows: &[Vec<f64>]| {
                let picks = (0..rows.len()).map(|_| random.below(rows.len()));
                means(rows, picks, width)
            };
            let drawn = self::shares(&draw(fast), &draw(slow));
            let first = (0..width).max_by(|&a, &b| drawn[a].total_cmp(&drawn[b]));
            if let Some(first) = first {
                columns[first].first += 1.0 / DRAWS as f64;
            }
            for (column, share) in drawn.into_iter().enumerate() {
                draws[column].push(share);
            }
        }
        for ((column, share), mut drawn) in columns.iter_mut().zip(shares).zip(draws) {
            drawn.sort_by(f64::total_cmp);
            let at = |part: f64| drawn[((DRAWS - 1) as f64 * part) as usize];
            column.share = share;
            column.low = at(LOW);
            column.high = at(HIGH);
            // Sums of many small parts do not come out even.
            column.first = column.first.min(1.0);
        }
        Resampled { columns }
    }
}

fn means(rows: &[Vec<f64>], picks: impl Iterator<Item = usize>, width: usize) -> Vec<f64> {
    let mut sums = vec![0.0; width];
    let mut count = 0_u64;
    for pick in picks {
        count += 1;
        for (sum, value) in sums.iter_mut().zip(&rows[pick]) {
            *sum += value;
        }
    }
    let count = count.max(1) as f64;
    sums.into_iter().map(|sum| sum / count).collect()
}

/// The share of each column in the difference of the sums; all 0 where there is none.
fn shares(fast: &[f64], slow: &[f64]) -> Vec<f64> {
    let differences: Vec<f64> = slow
        .iter()
        .zip(fast)
        .map(|(slow, fast)| slow - fast)
        .collect();
    let whole: f64 = differences.iter().sum();
    let share = |difference: f64| match whole == 0.0 {
        true => 0.0,
        false => difference / whole,
    };
    differences.into_iter().map(share).collect()
}

/// How often chance alone would set the means of two groups so far apart: in which share of the ways to
/// mix them that were tried, the given one among them.
pub(super) fn chance(ns: &[u64], one: &[usize], other: &[usize]) -> f64 {
    const TRIES: usize = 999;
    let mut mixed: Vec<f64> = one.iter().chain(other).map(|&i| ns[i] as f64).collect();
    let distance = |values: &[f64]| {
        let (one, other) = values.split_at(one.len());
        (mean(one.iter().copied()) - mean(other.iter().copied())).abs()
    };
    let given = distance(&mixed);
    let mut random = Random::new(ns.len() as u64);
    let mut as_far = 1;
    for _ in 0..TRIES {
        for last in (1..mixed.len()).rev() {
            mixed.swap(last, random.below(last + 1));
        }
        as_far += usize::from(distance(&mixed) >= given);
    }
    as_far as f64 / (TRIES + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the times, the parts of the difference add up to the whole of it.
        #[test]
        fn shares_add_up(
            fast in proptest::collection::vec(proptest::collection::vec(0..1_000_000_u32, 4), 1..20),
            slow in proptest::collection::vec(proptest::collection::vec(0..1_000_000_u32, 4), 1..20),
        ) {
            let rows = |rows: Vec<Vec<u32>>| -> Vec<Vec<f64>> {
                rows.into_iter().map(|row| row.into_iter().map(f64::from).collect()).collect()
            };
            let resampled = Resampled::of(&rows(fast), &rows(slow));
            let sum = |part: fn(&Column) -> f64| resampled.columns.iter().map(part).sum::<f64>();
            let whole = sum(|column| column.slow) - sum(|column| column.fast);
            if whole.abs() > 1.0 {
                prop_assert!((sum(|column| column.share) - 1.0).abs() < 1e-6);
                for column in &resampled.columns {
                    let part = column.share * whole;
                    prop_assert!((part - (column.slow - column.fast)).abs() < 1e-3);
                }
            }
            prop_assert!((sum(|column| column.first) - 1.0).abs() < 1e-6);
        }
    }

    /// A column that makes all of the difference is first in each draw; one that is the same everywhere
    /// has no share.
    #[test]
    fn a_sure_factor_is_sure() {
        let fast = vec![vec![10.0, 5.0]; 10];
        let slow = vec![vec![90.0, 5.0]; 10];
        let resampled = Resampled::of(&fast, &slow);
        let [first, second] = &resampled.columns[..] else {
            panic!("two columns");
        };
        assert_eq!((first.fast, first.slow, first.share), (10.0, 90.0, 1.0));
        assert_eq!((first.low, first.high), (1.0, 1.0));
        assert!((first.first - 1.0).abs() < 1e-9);
        assert_eq!((second.share, second.first), (0.0, 0.0));
    }

    /// Two groups of one kind are not apart; two that do not overlap are, as far as so few ways can tell.
    #[test]
    fn chance_tells_groups_apart() {
        let ns: Vec<u64> = (0..40).collect();
        let even: Vec<usize> = (0..40).step_by(2).collect();
        let odd: Vec<usize> = (1..40).step_by(2).collect();
        assert!(chance(&ns, &even, &odd) > 0.5);
        let (low, high): (Vec<usize>, Vec<usize>) = ((0..20).collect(), (20..40).collect());
        assert_eq!(chance(&ns, &low, &high), 0.001);
    }
}
