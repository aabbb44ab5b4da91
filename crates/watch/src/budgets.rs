//! Regions that take longer than they may.
//!
//! Programs mark where their work begins and ends (docs/MARKS.md), and the user says how long work of a
//! name may take. A region over that is a hang; it is reported once: when it ends, or when it has gone on
//! for so long that waiting for its end would lose its beginning. What has no end because its process has
//! ended, or because marks were missed, is none.

use std::collections::HashMap;
use std::str::FromStr;

use crate::processes::{self, Process};
use crate::standing::{Limits, Stretch};

/// A mark, as far as regions need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// CLOCK_MONOTONIC, ns.
    pub ts: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Which budget it is about, by its place.
    pub budget: usize,
    /// Whether a region begins; otherwise one ends.
    pub begins: bool,
    /// What a begin and an end of one region have in common beside process and name: its thread or an
    /// argument, as the program chose.
    pub common: (u8, i64),
}

/// A region that took too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// Its name.
    pub region: String,
    /// The process, if it is still there.
    pub process: Option<Process>,
    /// The thread that began it.
    pub tid: u32,
    /// When.
    pub stretch: Stretch,
}

/// A region that has begun.
struct Open {
    since: u64,
    tid: u32,
    told: bool,
}

/// What regions have in common that nest.
type Key = (u32, usize, (u8, i64));

/// How long regions may take, by name.
#[derive(Default)]
pub struct Budgets {
    budgets: Vec<(String, Limits)>,
    open: HashMap<Key, Vec<Open>>,
    /// At most so many are open: none was closed since that was counted.
    opened: usize,
    /// Of those that have ended, and were not told.
    ended: Vec<(usize, u32, u32, Stretch)>,
}

/// So many regions that have not ended are kept; a program that begins more never ends them.
const MOST_OPEN: usize = 100_000;
/// So many that were too long are told in one look.
const MOST_ENDED: usize = 1_000;

impl Budgets {
    /// Of regions by name.
    pub fn new(budgets: Vec<(String, Limits)>) -> Budgets {
        Budgets {
            budgets,
            ..Budgets::default()
        }
    }

    /// From now on a region's end is waited for no longer than this, ns.
    pub fn wait_at_most(&mut self, most_ns: u64) {
        for (_, limits) in &mut self.budgets {
            limits.most_ns = most_ns;
        }
    }

    /// A begin or an end was marked. Marks come in the order of time.
    pub fn heed(&mut self, mark: Mark) {
        let Some((_, limits)) = self.budgets.get(mark.budget) else {
            return;
        };
        let key = (mark.pid, mark.budget, mark.common);
        if mark.begins {
            if self.opened >= MOST_OPEN {
                self.opened = self.open.values().map(Vec::len).sum();
            }
            if self.opened >= MOST_OPEN {
                self.open.clear();
                self.opened = 0;
            }
            self.opened += 1;
            self.open.entry(key).or_default().push(Open {
                since: mark.ts,
                tid: mark.tid,
                told: false,
            });
            return;
        }
        let Some(nested) = self.open.get_mut(&key) else {
            return;
        };
        let region = nested.pop();
        if nested.is_empty() {
            self.open.remove(&key);
        }
        let Some(region) = region else {
            return;
        };
        let is_over = mark.ts.saturating_sub(region.since) >= limits.limit_ns;
        if is_over && !region.told && self.ended.len() < MOST_ENDED {
            let stretch = Stretch {
                window: region.since..mark.ts,
                goes_on: false,
            };
            self.ended
                .push((mark.budget, mark.pid, region.tid, stretch));
        }
    }

    /// Marks of a process were missed: what it has begun may have ended.
    pub fn miss(&mut self, pid: u32) {
        self.open.retain(|(of, ..), _| *of != pid);
    }

    /// Gives the regions that are to be told at `now`.
    pub fn look(&mut self, now: u64) -> Vec<Overrun> {
        let mut found = std::mem::take(&mut self.ended);
        let budgets = &self.budgets;
        self.open.retain(|&(pid, budget, _), nested| {
            let limits = budgets[budget].1;
            let due = limits.most_ns.max(limits.limit_ns);
            let over = |region: &Open| !region.told && now.saturating_sub(region.since) >= due;
            if !nested.iter().any(over) {
                return true;
            }
            if processes::name(pid).is_none() {
                return false;
            }
            for region in nested.iter_mut().filter(|region| over(region)) {
                region.told = true;
                let stretch = Stretch {
                    window: region.since..now,
                    goes_on: true,
                };
                found.push((budget, pid, region.tid, stretch));
            }
            true
        });
        let overrun = |(budget, pid, tid, stretch): (usize, u32, u32, Stretch)| Overrun {
            region: budgets[budget].0.clone(),
            process: processes::name(pid).map(|name| Process { pid, name }),
            tid,
            stretch,
        };
        found.into_iter().map(overrun).collect()
    }
}

/// A region's name as people type it, with what may not be in one refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionName(pub String);

impl FromStr for RegionName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<RegionName, Self::Err> {
        match text.is_empty() {
            true => Err("a name is missing: give REGION:DURATION, as frame:50ms"),
            false => Ok(RegionName(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets() -> Budgets {
        let limits = Limits {
            limit_ns: 50,
            most_ns: 1_000,
        };
        Budgets::new(vec![("frame".to_owned(), limits)])
    }

    fn mark(ts: u64, begins: bool, common: i64) -> Mark {
        Mark {
            ts,
            pid: std::process::id(),
            tid: 7,
            budget: 0,
            begins,
            common: (0, common),
        }
    }

    fn windows(budgets: &mut Budgets, now: u64) -> Vec<(std::ops::Range<u64>, bool)> {
        let found = budgets.look(now);
        assert!(found.iter().all(|it| it.region == "frame" && it.tid == 7));
        assert!(found.iter().all(|it| it.process.is_some()));
        let stretch = |it: Overrun| (it.stretch.window, it.stretch.goes_on);
        found.into_iter().map(stretch).collect()
    }

    /// A region within its budget is not reported; one over it is reported once, when it has ended.
    #[test]
    fn told_when_it_ends() {
        let mut budgets = budgets();
        budgets.heed(mark(0, true, 1));
        budgets.heed(mark(40, false, 1));
        budgets.heed(mark(100, true, 1));
        assert_eq!(windows(&mut budgets, 190), []);
        budgets.heed(mark(200, false, 1));
        assert_eq!(windows(&mut budgets, 210), [(100..200, false)]);
        assert_eq!(windows(&mut budgets, 5_000), []);
    }

    /// One that does not end is reported once while it goes on, and not again when it ends.
    #[test]
    fn told_while_it_goes_on() {
        let mut budgets = budgets();
        budgets.heed(mark(100, true, 1));
        assert_eq!(windows(&mut budgets, 1_099), []);
        assert_eq!(windows(&mut budgets, 1_100), [(100..1_100, true)]);
        assert_eq!(windows(&mut budgets, 9_000), []);
        budgets.heed(mark(9_500, false, 1));
        assert_eq!(windows(&mut budgets, 9_600), []);
    }

    /// Regions overlap by what they have in common, and nest where that is the same.
    #[test]
    fn regions_overlap_and_nest() {
        let mut budgets = budgets();
        budgets.heed(mark(0, true, 1));
        budgets.heed(mark(10, true, 2));
        budgets.heed(mark(20, true, 2));
        budgets.heed(mark(45, false, 2));
        budgets.heed(mark(100, false, 2));
        budgets.heed(mark(130, false, 1));
        assert_eq!(
            windows(&mut budgets, 200),
            [(10..100, false), (0..130, false)]
        );
    }

    /// Regions of which marks were missed, or whose process has ended, are not reported.
    #[test]
    fn what_has_no_end() {
        let mut budgets = budgets();
        budgets.heed(mark(0, true, 1));
        budgets.miss(std::process::id());
        assert_eq!(windows(&mut budgets, 5_000), []);
        let gone = Mark {
            pid: u32::MAX,
            ..mark(0, true, 1)
        };
        budgets.heed(gone);
        assert_eq!(windows(&mut budgets, 5_000), []);
    }
}
