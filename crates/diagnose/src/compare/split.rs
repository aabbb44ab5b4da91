//! Which occurrences are fast and which slow: two groups, if the durations show two.
//!
//! Durations are looked at by their logarithm, since what makes them longer does so by factors. Every cut
//! between two of them, in order, makes two groups. They count as apart where
//!
//! - the distance of their middles is [`APART`] times their spreads (Ashman's D), both by means and standard
//!   deviations, which a long tail widens, and by medians and median absolute deviations, which a few
//!   outliers do not; and
//! - there is a valley between them: in the middle third between the medians lie few, by the smaller group.
//!
//! Of such cuts the one with the largest distance is taken, and moved to the widest gap near it. One group that is
//! cut anywhere gives a distance of 2 to 4, whether it is normal, even or has a long tail.
//!
//! The fast ones may be of several kinds, with a long tail besides, so that nothing is far from them by their spread:
//! a server's turns. Then those count as apart that a gap keeps from the next, [`FAR`] times as long, and wider than
//! chance gives. In a tail that falls off like a power the gaps between the logarithms of ordered values, each times
//! the number of values above it, are alike (Rényi 1953); one that is [`WIDE`] times as wide as those below it, on
//! average, is none of them.

use serde::Serialize;

/// So many occurrences are needed.
pub const ENOUGH: usize = 20;
/// Two groups are so far apart, at least; with fewer than [`MANY`] occurrences, chance gives more.
const APART: f64 = 4.0;
const APART_OF_FEW: f64 = 5.0;
const MANY: usize = 100;
/// In the valley between two groups lie at most so many, by the smaller group.
const VALLEY: f64 = 0.3;
/// Where a gap makes the groups, the shortest slow one takes so many times as long as the longest fast one.
const FAR: f64 = 3.0;
/// And the gap is so many times as wide as those below it; of 100,000 gaps chance makes none so wide.
const WIDE: f64 = 20.0;
/// So many gaps are looked at below, at least and at most.
const GAPS: std::ops::RangeInclusive<usize> = 10..=40;
/// And the slow one takes so many times as long.
pub(super) const LEAST_RATIO: f64 = 1.2;
/// A group has at least so many, and this part of all.
const LEAST: usize = 8;
const LEAST_PART: usize = 200;
/// The spread of a group counts as at least this part of its durations: clocks and caches alone give as much.
const LEAST_SPREAD: f64 = 0.03;
/// A difference that chance alone gives more often than this is none.
pub(super) const CHANCE: f64 = 0.01;

/// What durations are like, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// How many.
    pub count: usize,
    /// The average.
    pub mean_ns: f64,
    /// The shortest.
    pub min_ns: u64,
    /// Half are no longer.
    pub median_ns: u64,
    /// 95 % are no longer.
    pub p95_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Spread {
    /// Of durations in any order; all 0 where there are none.
    pub(super) fn of(mut ns: Vec<u64>) -> Spread {
        ns.sort_unstable();
        let at = |part: f64| {
            let last = ns.len().saturating_sub(1);
            ns.get((last as f64 * part) as usize).copied().unwrap_or(0)
        };
        let sum: f64 = ns.iter().map(|&ns| ns as f64).sum();
        Spread {
            count: ns.len(),
            mean_ns: sum / ns.len().max(1) as f64,
            min_ns: at(0.0),
            median_ns: at(0.5),
            p95_ns: at(0.95),
            max_ns: at(1.0),
        }
    }
}

/// The two groups, by their places among the durations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The fast ones.
    pub fast: Vec<usize>,
    /// The slow ones.
    pub slow: Vec<usize>,
}

/// The groups that the durations show, if they do, and how far the best are apart.
pub(super) fn apart(ns: &[u64]) -> (Option<Groups>, f64) {
    let order = order(ns);
    let log: Vec<f64> = order.iter().map(|&i| (ns[i].max(1) as f64).ln()).collect();
    let least = LEAST.max(log.len() / LEAST_PART);
    let sums = Sums::of(&log);
    let cuts = || least..=log.len().saturating_sub(least);
    let best = cuts()
        .filter(|&cut| has_valley(&log, cut))
        .map(|cut| (separation(&log, &sums, cut), cut))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let (separation, cut) = best.unwrap_or((0.0, least));
    let apart = match log.len() < MANY {
        true => APART_OF_FEW,
        false => APART,
    };
    let ratio = |cut: usize| (median(&log[cut..]) - median(&log[..cut])).exp();
    let cut = match separation >= apart && ratio(cut) >= LEAST_RATIO {
        true => Some(widest_gap(&log, cut)),
        false => cuts()
            .filter(|&cut| is_wide(&log, cut))
            .max_by(|&a, &b| gap(&log, a).total_cmp(&gap(&log, b))),
    };
    let groups = cut.map(|cut| Groups {
        fast: order[..cut].to_vec(),
        slow: order[cut..].to_vec(),
    });
    (groups, separation)
}

/// The slowest `share` of all, at least one, and those that are no slower than the median.
pub(super) fn slowest(ns: &[u64], share: f64) -> Groups {
    let order = order(ns);
    let count = (order.len() as f64 * share).round() as usize;
    let half = order.len().div_ceil(2);
    let count = count.clamp(1, order.len() - half);
    Groups {
        fast: order[..half].to_vec(),
        slow: order[order.len() - count..].to_vec(),
    }
}

fn order(ns: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ns.len()).collect();
    order.sort_by_key(|&i| ns[i]);
    order
}

/// Sums of the first values and of their squares, so that any part's mean and deviation are at hand.
struct Sums(Vec<(f64, f64)>);

impl Sums {
    fn of(values: &[f64]) -> Sums {
        let mut sums = vec![(0.0, 0.0)];
        let (mut sum, mut squares) = (0.0, 0.0);
        for value in values {
            sum += value;
            squares += value * value;
            sums.push((sum, squares));
        }
        Sums(sums)
    }

    /// Mean and standard deviation of the values from one place up to another.
    fn spread(&self, from: usize, to: usize) -> (f64, f64) {
        let (begin, end) = (self.0[from], self.0[to]);
        let count = (to - from).max(1) as f64;
        let mean = (end.0 - begin.0) / count;
        let variance = (end.1 - begin.1) / count - mean * mean;
        (mean, variance.max(0.0).sqrt())
    }
}

/// Whether few of the ascending values lie halfway between the groups that a cut makes.
fn has_valley(values: &[f64], cut: usize) -> bool {
    let (low, high) = (median(&values[..cut]), median(&values[cut..]));
    let third = (high - low) / 3.0;
    let below = |limit: f64| values.partition_point(|&value| value < limit);
    let between = below(high - third) - below(low + third);
    let smaller = cut.min(values.len() - cut);
    between as f64 <= VALLEY * smaller as f64
}

/// The cut between the middles of the two groups that lies in the widest gap: those at the edges belong to the
/// nearer group.
fn widest_gap(values: &[f64], cut: usize) -> usize {
    let (low, high) = ((cut - 1) / 2 + 1, cut + (values.len() - cut) / 2);
    let cuts = low..=high.min(values.len() - 1);
    cuts.max_by(|&a, &b| gap(values, a).total_cmp(&gap(values, b)))
        .unwrap_or(cut)
}

/// Whether the gap at a cut is wider than a tail has it.
fn is_wide(ascending: &[f64], cut: usize) -> bool {
    let above = ascending.len() - cut;
    let below = (cut - 1).min(*GAPS.end());
    if gap(ascending, cut) < FAR.ln() || below < *GAPS.start() {
        return false;
    }
    let sum: f64 = (1..=below)
        .map(|i| (above + i) as f64 * gap(ascending, cut - i))
        .sum();
    let usual = (sum / below as f64).max(LEAST_SPREAD);
    above as f64 * gap(ascending, cut) >= WIDE * usual
}

/// What lies between the two values at a cut.
fn gap(ascending: &[f64], cut: usize) -> f64 {
    ascending[cut] - ascending[cut - 1]
}

/// How far the two groups are apart that a cut makes of ascending values, in their spreads.
fn separation(values: &[f64], sums: &Sums, cut: usize) -> f64 {
    let (low, high) = values.split_at(cut);
    let distance = |between: f64, one: f64, other: f64| {
        let (one, other) = (one.max(LEAST_SPREAD), other.max(LEAST_SPREAD));
        between * 2.0_f64.sqrt() / (one * one + other * other).sqrt()
    };
    let by_median = distance(median(high) - median(low), deviation(low), deviation(high));
    let (one, other) = (sums.spread(0, cut), sums.spread(cut, values.len()));
    by_median.min(distance(other.0 - one.0, one.1, other.1))
}

fn median(ascending: &[f64]) -> f64 {
    match ascending.len() {
        0 => 0.0,
        count => (ascending[(count - 1) / 2] + ascending[count / 2]) / 2.0,
    }
}

/// The standard deviation of a normal distribution that has the median absolute deviation of these.
fn deviation(ascending: &[f64]) -> f64 {
    const NORMAL: f64 = 1.4826;
    let middle = median(ascending);
    // The nearest half of all lies around the median, as many values in a row: the farther that begins, the
    // nearer is its first and the farther its last.
    let half = ascending.len().div_ceil(2);
    let Some(last_begin) = ascending.len().checked_sub(half).filter(|_| half > 0) else {
        return 0.0;
    };
    let first = |begin: usize| middle - ascending[begin];
    let last = |begin: usize| ascending[begin + half - 1] - middle;
    let (mut low, mut high) = (0, last_begin);
    while low < high {
        let begin = (low + high) / 2;
        match first(begin) > last(begin) {
            true => low = begin + 1,
            false => high = begin,
        }
    }
    let radius = |begin: usize| first(begin).max(last(begin));
    let before = low.checked_sub(1).map_or(f64::INFINITY, radius);
    NORMAL * radius(low).min(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random and are the same each time, evenly from 0 to 1.
    fn random(count: usize, seed: u64) -> impl Iterator<Item = f64> {
        let mut state = super::super::resample::Random::new(seed);
        (0..count).map(move |_| state.next_part())
    }

    /// About normal, of deviation 1.
    fn normal(count: usize, seed: u64) -> Vec<f64> {
        let all: Vec<f64> = random(12 * count, seed).collect();
        all.chunks(12)
            .map(|c| c.iter().sum::<f64>() - 6.0)
            .collect()
    }

    fn ns(log: impl IntoIterator<Item = f64>) -> Vec<u64> {
        log.into_iter()
            .map(|log| (1e6 * log.exp()) as u64)
            .collect()
    }

    /// One group is hardly ever taken for two, whatever its shape: normal, even, or with a long tail.
    #[test]
    fn one_group_is_one() {
        let mut taken = 0;
        for seed in 0..40 {
            for count in [40, 160, 1000] {
                let shapes = [
                    ns(normal(count, seed).into_iter().map(|x| x * 0.3)),
                    ns(random(count, seed)),
                    ns(random(count, seed).map(|x| -(1.0 - x).ln() * 0.4)),
                ];
                taken += shapes
                    .iter()
                    .filter(|shape| apart(shape).0.is_some())
                    .count();
            }
        }
        assert!(taken <= 4, "{taken} of 360");
    }

    /// Two that are apart are found, one in two or one in a hundred, and all but a few are where they belong.
    #[test]
    fn two_groups_are_two() {
        for (count, slow) in [(40, 20), (200, 40), (1000, 10)] {
            let mut log: Vec<f64> = normal(count, 7).into_iter().map(|x| x * 0.1).collect();
            for slow in &mut log[count - slow..] {
                *slow += 1.1;
            }
            let (groups, separation) = apart(&ns(log));
            let groups = groups.unwrap_or_else(|| panic!("{count}: {separation}"));
            let mut found = groups.slow;
            found.sort_unstable();
            assert_eq!(found, (count - slow..count).collect::<Vec<_>>());
        }
    }

    /// Slow ones that take a hundred times as long are found beside fast ones of two kinds, some of which something
    /// held up; in a tail as long as theirs nothing is.
    #[test]
    fn far_ones_are_found_beside_two_kinds() {
        let mut log: Vec<f64> = normal(1500, 7).into_iter().map(|x| x * 0.45).collect();
        for fast in &mut log[..600] {
            *fast -= 1.6;
        }
        for (held_up, at) in log[1460..1485].iter_mut().zip(0..) {
            *held_up = 1.6 + 0.03 * f64::from(at);
        }
        for slow in &mut log[1485..] {
            *slow = 4.8 + *slow * 0.1;
        }
        let (groups, separation) = apart(&ns(log));
        let groups = groups.unwrap_or_else(|| panic!("{separation}"));
        assert_eq!(groups.slow.len(), 15);
        for (count, seed) in (0..60).flat_map(|seed| [(60, seed), (1500, seed)]) {
            let pareto = ns(random(count, seed).map(|x| -(1.0 - x).ln() * 2.0));
            assert_eq!(apart(&pareto).0, None, "{count} {seed}");
        }
    }

    /// The slowest tenth stands against the faster half.
    #[test]
    fn the_slowest_are_taken() {
        let ns: Vec<u64> = (0..40).rev().collect();
        let groups = slowest(&ns, 0.1);
        assert_eq!(groups.fast, (20..40).rev().collect::<Vec<_>>());
        assert_eq!(groups.slow, [3, 2, 1, 0]);
    }

    /// The deviation is that of the nearest half: 1, 2, 3 around 3 and one far outlier.
    #[test]
    fn outliers_do_not_widen_a_group() {
        assert_eq!(deviation(&[1.0, 2.0, 3.0, 4.0, 100.0]), 1.4826);
        assert_eq!(deviation(&[]), 0.0);
    }
}
