//! Why the same work is now fast and now slow: occurrences of it in two groups, and which factor the
//! difference between the groups consists of.
//!
//! An [`Occurrence`] is an interval of a thread's time: a turn of its loop, a request, anything that
//! begins and ends. Each is cut into [`Factor`]s, what the thread did or waited for, whose times
//! add up to its duration ([`vector`]). So the mean of each factor in the slow group less that in the fast one is its
//! part of the difference in duration, and the parts add up to the whole: no model is fitted, nothing is
//! counted twice.
//!
//! The groups are those that the durations show by themselves ([`split`]); where they show none, there is
//! no difference to explain, and that is the answer. How sure a factor is comes from drawing the occurrences
//! again, many times ([`resample`]).

mod detail;
mod hardware;
mod occurrence;
mod resample;
mod sentence;
mod split;
mod vector;

pub use hardware::Hardware;
pub use occurrence::{Home, Occurrence, calls, home, requests, turns};
pub use split::{ENOUGH, Groups, Spread};
pub use vector::{Factor, FactorKind};

use hangdog_graph::Evidence;
use hangdog_trace::tables::{Counters, Interrupts};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::setting::Setting;
use resample::Resampled;
use vector::Vector;

/// More occurrences of a trace are not looked at; of more, so many are taken evenly.
const MOST: usize = 20_000;
/// A factor that explains less than this share of the difference is not the cause by itself.
const LEAST_SHARE: f64 = 0.3;
/// Nor one that is first in fewer of the draws.
const LEAST_SURE: f64 = 0.8;

/// A trace with the occurrences in it.
pub struct Side<'a, 'e> {
    /// What the trace shows.
    pub evidence: &'a Evidence<'e>,
    /// Its interrupts.
    pub interrupts: &'a Interrupts,
    /// What the hardware counted, where it did.
    pub counters: &'a Counters,
    /// What diagnoses go by.
    pub setting: Setting<'a>,
    /// The occurrences that are compared.
    pub occurrences: Vec<Occurrence>,
}

/// What of one trace is compared with what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Split {
    /// The two groups that the durations show by themselves, if they do.
    Apart,
    /// The slowest of all, this share, with those that are no slower than the median.
    Slowest(f64),
}

/// The comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// How many occurrences there are.
    pub occurrences: usize,
    /// How many of them were looked at, taken evenly.
    pub compared: usize,
    /// How long they took.
    pub durations: Spread,
    /// How far the two groups are apart, in their own spreads; none where they were given.
    pub separation: Option<f64>,
    /// What the difference consists of; none if there is none.
    pub difference: Option<Difference>,
    /// The answer.
    pub sentence: String,
}

/// What the difference between two groups consists of.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// The fast ones.
    pub fast: Spread,
    /// The slow ones.
    pub slow: Spread,
    /// The factors, by their part of the difference, largest first; the parts add up to it.
    pub factors: Vec<FactorRow>,
    /// Whether the first factor explains enough, and surely enough, to be called the cause.
    pub explained: bool,
    /// How often fast and slow ones take turns in the order of time, and how often they would by chance; none
    /// between two traces.
    pub runs: Option<Runs>,
    /// What else differs, which takes no time of its own.
    pub others: Vec<Other>,
    /// What the hardware counted; none where it did not.
    pub hardware: Option<Hardware>,
    /// What it is not, and how much it takes.
    pub ruled_out: Vec<String>,
    /// What to do next, where the trace cannot tell more.
    pub next: Option<String>,
}

/// A factor in both groups.
#[derive(Clone, Debug, Serialize)]
pub struct FactorRow {
    /// What it is.
    pub factor: String,
    /// running, interrupt, cpu, quota, migration, wait, unknown.
    pub kind: &'static str,
    /// How long it takes in a fast occurrence, on average, ns.
    pub fast_ns: f64,
    /// How long in a slow one.
    pub slow_ns: f64,
    /// The difference, ns.
    pub difference_ns: f64,
    /// Which share of the difference in duration that is.
    pub share: f64,
    /// Between which shares it is in nine of ten draws.
    pub share_low: f64,
    /// The upper end.
    pub share_high: f64,
    /// In which share of the draws it is the first.
    pub sure: f64,
    /// What it consists of, largest difference first.
    pub details: Vec<Detail>,
}

/// A part of a factor, from samples or from what others did meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detail {
    /// What it is: a function, who had the CPU, what a wait led to.
    pub what: String,
    /// How long in a fast occurrence, on average, ns.
    pub fast_ns: f64,
    /// How long in a slow one.
    pub slow_ns: f64,
}

impl Detail {
    fn difference(&self) -> f64 {
        self.slow_ns - self.fast_ns
    }
}

/// A figure that differs between the groups.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Other {
    /// What it is.
    pub what: String,
    /// Of a fast occurrence, on average.
    pub fast: f64,
    /// Of a slow one.
    pub slow: f64,
}

/// Runs of fast or of slow occurrences, one after the other in time (Wald and Wolfowitz).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Runs {
    /// How many there are.
    pub count: usize,
    /// How many there would be if it were chance which are slow.
    pub by_chance: f64,
    /// There are far fewer: the slow ones come in a row, and when they came explains more than what they did.
    pub in_a_row: bool,
}

impl Runs {
    fn of(items: &[Item], two: &Two) -> Runs {
        // So many deviations fewer than by chance.
        const FAR: f64 = 5.0;
        let of = |group: &[usize], is_slow| {
            let from = |&i: &usize| (items[i].occurrence.from, is_slow);
            group.iter().map(from).collect::<Vec<(u64, bool)>>()
        };
        let mut order = of(&two.fast, false);
        order.extend(of(&two.slow, true));
        order.sort_unstable();
        let count = 1 + order
            .windows(2)
            .filter(|pair| pair[0].1 != pair[1].1)
            .count();
        let (fast, slow) = (two.fast.len() as f64, two.slow.len() as f64);
        let (all, both) = (fast + slow, 2.0 * fast * slow);
        let by_chance = 1.0 + both / all;
        let variance = both * (both - all) / (all * all * (all - 1.0)).max(1.0);
        Runs {
            count,
            by_chance,
            in_a_row: (by_chance - count as f64) >= FAR * variance.max(0.0).sqrt()
                && variance > 0.0,
        }
    }
}

/// An occurrence with what it consists of.
struct Item {
    side: usize,
    occurrence: Occurrence,
    vector: Vector,
}

/// The two groups, by their places among the items.
struct Two {
    fast: Vec<usize>,
    slow: Vec<usize>,
}

/// Compares the occurrences of one trace: `what` they are, in the plural, for the sentence.
///
/// # Errors
/// In a sentence, if there are too few.
pub fn within(side: &Side<'_, '_>, what: &str, split: Split) -> Result<Comparison, String> {
    let sides = std::slice::from_ref(side);
    let items = items(sides);
    if items.len() < ENOUGH {
        return Err(format!(
            "there are {} {what}; comparing needs at least {ENOUGH}",
            items.len()
        ));
    }
    let ns: Vec<u64> = items.iter().map(|item| item.occurrence.ns()).collect();
    let (groups, separation) = match split {
        Split::Apart => match split::apart(&ns) {
            (Some(groups), separation) => (groups, Some(separation)),
            (None, separation) => {
                let durations = Spread::of(ns.clone());
                return Ok(Comparison {
                    occurrences: side.occurrences.len(),
                    compared: items.len(),
                    sentence: sentence::alike(what, items.len(), &durations),
                    durations,
                    separation: Some(separation),
                    difference: None,
                });
            }
        },
        Split::Slowest(share) => (split::slowest(&ns, share), None),
    };
    let two = Two {
        fast: groups.fast,
        slow: groups.slow,
    };
    let difference = explain(sides, &items, &two);
    Ok(Comparison {
        occurrences: side.occurrences.len(),
        compared: items.len(),
        sentence: sentence::within(what, items.len(), &difference),
        durations: Spread::of(ns),
        separation,
        difference: Some(difference),
    })
}

/// Compares all occurrences of one trace with all of another.
///
/// # Errors
/// In a sentence, if there are too few in one of them.
pub fn between(sides: &[Side<'_, '_>; 2], what: &str) -> Result<Comparison, String> {
    let items = items(sides);
    let of = |side: usize| -> Vec<usize> {
        let places = 0..items.len();
        places.filter(|&i| items[i].side == side).collect()
    };
    let groups = [of(0), of(1)];
    for (group, which) in groups.iter().zip(["first", "second"]) {
        if group.len() < ENOUGH {
            return Err(format!(
                "the {which} trace has {} {what}; comparing needs at least {ENOUGH}",
                group.len()
            ));
        }
    }
    let ns: Vec<u64> = items.iter().map(|item| item.occurrence.ns()).collect();
    let mean = |group: &[usize]| resample::mean(group.iter().map(|&i| ns[i] as f64));
    let second_is_slow = mean(&groups[1]) >= mean(&groups[0]);
    let chance = resample::chance(&ns, &groups[0], &groups[1]);
    let [first, second] = groups;
    let two = match second_is_slow {
        true => Two {
            fast: first,
            slow: second,
        },
        false => Two {
            fast: second,
            slow: first,
        },
    };
    let durations = Spread::of(ns.clone());
    let occurrences = sides.iter().map(|side| side.occurrences.len()).sum();
    let compared = items.len();
    let (fast, slow) = (mean(&two.fast), mean(&two.slow));
    if chance > split::CHANCE || slow < fast * split::LEAST_RATIO {
        return Ok(Comparison {
            occurrences,
            compared,
            durations,
            separation: None,
            difference: None,
            sentence: sentence::same(what, fast, slow, chance),
        });
    }
    let difference = explain(sides, &items, &two);
    Ok(Comparison {
        occurrences,
        compared,
        durations,
        separation: None,
        sentence: sentence::between(what, second_is_slow, &difference),
        difference: Some(difference),
    })
}

/// The occurrences that are looked at, with what they consist of.
fn items(sides: &[Side<'_, '_>]) -> Vec<Item> {
    let mut items = Vec::new();
    for (at, side) in sides.iter().enumerate() {
        let all = &side.occurrences;
        let count = all.len().min(MOST);
        for i in 0..count {
            let occurrence = all[i * all.len() / count];
            let vector = Vector::of(side.evidence, side.interrupts, &occurrence);
            items.push(Item {
                side: at,
                occurrence,
                vector,
            });
        }
    }
    items
}

fn explain(sides: &[Side<'_, '_>], items: &[Item], two: &Two) -> Difference {
    let mut columns: BTreeMap<&Factor, usize> = BTreeMap::new();
    for item in items {
        for factor in item.vector.factors.keys() {
            let next = columns.len();
            columns.entry(factor).or_insert(next);
        }
    }
    let row = |&i: &usize| {
        let mut row = vec![0.0; columns.len()];
        for (factor, &ns) in &items[i].vector.factors {
            row[columns[factor]] = ns as f64;
        }
        row
    };
    let fast: Vec<Vec<f64>> = two.fast.iter().map(row).collect();
    let slow: Vec<Vec<f64>> = two.slow.iter().map(row).collect();
    let resampled = Resampled::of(&fast, &slow);
    let mut details = detail::of(sides, items, two);
    let mut factors: Vec<FactorRow> = (columns.iter())
        .map(|(&factor, &column)| {
            let of = &resampled.columns[column];
            FactorRow {
                factor: factor.to_string(),
                kind: factor.kind().text(),
                fast_ns: of.fast,
                slow_ns: of.slow,
                difference_ns: of.slow - of.fast,
                share: of.share,
                share_low: of.low,
                share_high: of.high,
                sure: of.first,
                details: details.remove(factor).unwrap_or_default(),
            }
        })
        .collect();
    factors.sort_by(|a, b| b.difference_ns.total_cmp(&a.difference_ns));
    let explained = (factors.first())
        .is_some_and(|first| first.share >= LEAST_SHARE && first.sure >= LEAST_SURE);
    let hardware = Hardware::of(sides, items, two);
    let durations = |group: &[usize]| {
        let ns = group.iter().map(|&i| items[i].occurrence.ns());
        Spread::of(ns.collect())
    };
    let ran = (factors.first()).is_some_and(|first| first.kind == FactorKind::Running.text());
    Difference {
        fast: durations(&two.fast),
        slow: durations(&two.slow),
        explained,
        runs: (sides.len() == 1).then(|| Runs::of(items, two)),
        others: detail::others(sides, items, two),
        ruled_out: sentence::ruled_out(&factors),
        next: sentence::next(&factors, explained, ran && hardware.is_none()),
        hardware,
        factors,
    }
}
