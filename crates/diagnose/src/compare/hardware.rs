//! What the hardware counted in fast and slow occurrences: whether there was more code, or whether the same
//! code waited for memory.

use hangdog_trace::ids::Utid;
use hangdog_trace::tables::Counters;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

use super::{Item, Side, Two};

/// So many times the instructions are more code.
const MORE_CODE: f64 = 1.2;
/// So many times the misses are more.
const MORE_MISSES: f64 = 1.5;

/// Counts of an occurrence, on average, over the readings that lie in occurrences. A count that is not known in
/// both groups is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hardware {
    /// Instructions retired.
    pub instructions: Option<Counted>,
    /// Cycles.
    pub cycles: Option<Counted>,
    /// Misses of the last cache.
    pub cache_misses: Option<Counted>,
    /// Reads that missed the data TLB.
    pub tlb_misses: Option<Counted>,
    /// What that says of time that the slow ones ran longer.
    pub conclusion: String,
}

/// A count in both groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Counted {
    /// Of a fast occurrence, on average.
    pub fast: f64,
    /// Of a slow one.
    pub slow: f64,
}

impl Counted {
    fn ratio(self) -> f64 {
        self.slow / self.fast.max(1.0)
    }
}

impl Hardware {
    pub(super) fn of(sides: &[Side<'_, '_>], items: &[Item], two: &Two) -> Option<Hardware> {
        let readings: Vec<HashMap<Utid, Vec<usize>>> = (sides.iter().enumerate())
            .map(|(at, side)| readings(side.counters, items, at))
            .collect();
        if readings.iter().all(HashMap::is_empty) {
            return None;
        }
        let count = |value: &dyn Fn(&Counters, usize) -> Option<u64>| {
            let of = |group: &[usize]| {
                let sums = group.iter().map(|&i| {
                    let item = &items[i];
                    let counters = sides[item.side].counters;
                    let rows = readings[item.side].get(&item.occurrence.thread)?;
                    let first =
                        rows.partition_point(|&row| counters.ts[row] <= item.occurrence.from);
                    (rows[first..].iter())
                        .take_while(|&&row| counters.ts[row] <= item.occurrence.to)
                        .map(|&row| value(counters, row))
                        .sum::<Option<u64>>()
                });
                let known: Vec<f64> = sums.flatten().map(|sum| sum as f64).collect();
                let mean = super::resample::mean(known.iter().copied());
                (!known.is_empty()).then_some(mean)
            };
            let (fast, slow) = (of(&two.fast)?, of(&two.slow)?);
            (fast > 0.0 || slow > 0.0).then_some(Counted { fast, slow })
        };
        let long = |value: u64| (value != u64::MAX).then_some(value);
        let short = |value: u32| (value != u32::MAX).then_some(u64::from(value));
        let mut hardware = Hardware {
            instructions: count(&|counters, row| long(counters.instructions[row])),
            cycles: count(&|counters, row| long(counters.cycles[row])),
            cache_misses: count(&|counters, row| short(counters.cache_misses[row])),
            tlb_misses: count(&|counters, row| short(counters.tlb_misses[row])),
            conclusion: String::new(),
        };
        hardware.conclusion = hardware.conclude()?;
        Some(hardware)
    }

    fn conclude(&self) -> Option<String> {
        let instructions = self.instructions?.ratio();
        if instructions >= MORE_CODE {
            return Some(format!(
                "{instructions:.1} times the instructions: more code, or more often"
            ));
        }
        let more = |count: Option<Counted>, what: &str| {
            let ratio = count?.ratio();
            (ratio >= MORE_MISSES).then(|| format!("{ratio:.1} times the {what}"))
        };
        let misses: Vec<String> = [
            more(self.cache_misses, "cache misses"),
            more(self.tlb_misses, "TLB misses"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let slower = self
            .cycles
            .is_some_and(|cycles| cycles.ratio() >= MORE_CODE);
        Some(match (misses.is_empty(), slower) {
            (false, _) => format!(
                "at the same instruction count, with {}: memory, not code",
                misses.join(" and ")
            ),
            (true, true) => {
                "at the same instruction count and cache and TLB misses, in more cycles: what shares \
                 the core, or branches"
                    .to_owned()
            }
            (true, false) => {
                "at the same instruction count and cycles: the CPU's clock was slower, or the host took \
                 it"
                .to_owned()
            }
        })
    }
}

/// The readings of the threads of a side's occurrences, by thread, ascending by time.
fn readings(counters: &Counters, items: &[Item], side: usize) -> HashMap<Utid, Vec<usize>> {
    let of_side = items.iter().filter(|item| item.side == side);
    let threads: HashSet<Utid> = of_side.map(|item| item.occurrence.thread).collect();
    let mut readings: HashMap<Utid, Vec<usize>> = HashMap::new();
    for row in 0..counters.len() {
        if threads.contains(&counters.thread[row]) {
            readings.entry(counters.thread[row]).or_default().push(row);
        }
    }
    readings
}
