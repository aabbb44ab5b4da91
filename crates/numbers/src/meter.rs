//! Takes the samples of one visit to a method.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::kind::Kind;

/// A batch is at least so long that reading the clock (some 25 ns) is nothing beside it...
const SHORTEST_BATCH: Duration = Duration::from_micros(100);
/// ...and, where time allows, at most so long that an interrupt spoils few of them.
const LONGEST_BATCH: Duration = Duration::from_millis(2);
/// Batches in a visit, at least: fewer say nothing of the spread.
const FEWEST_BATCHES: u32 = 5;

/// Why a method gave no figure here: a sentence without full stop, for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Untried(pub String);

impl Untried {
    /// What a system call refused.
    pub fn call(what: &str, error: std::io::Error) -> Untried {
        Untried(format!("{what}: {error}"))
    }

    /// The same with `errno` as it is now.
    pub fn last(what: &str) -> Untried {
        Untried::call(what, std::io::Error::last_os_error())
    }
}

impl From<std::io::Error> for Untried {
    fn from(error: std::io::Error) -> Untried {
        Untried(error.to_string())
    }
}

/// Samples by figure and place on its curve. They are kept close together: a process that has more
/// memory takes longer to fork, which is one of the figures.
pub(crate) type Samples = BTreeMap<(&'static str, Option<u64>), Vec<f64>>;

/// Collects samples, and keeps the time of the visit.
#[derive(Debug)]
pub struct Meter {
    /// The method's name, and what it may give.
    method: &'static str,
    figures: &'static [Kind],
    visit: u32,
    end: Instant,
    /// Of the whole visit.
    budget: Duration,
    pub(crate) samples: Samples,
}

impl Meter {
    /// For the visit number `visit` to a method, which gives `figures`, that should take `budget`.
    pub(crate) fn new(
        method: &'static str,
        figures: &'static [Kind],
        visit: u32,
        budget: Duration,
    ) -> Meter {
        Meter {
            method,
            figures,
            visit,
            end: Instant::now() + budget,
            budget,
            samples: Samples::new(),
        }
    }

    /// Which visit it is, from 0.
    pub fn visit(&self) -> u32 {
        self.visit
    }

    /// How long the visit should take as a whole.
    pub fn budget(&self) -> Duration {
        self.budget
    }

    /// What is left of it.
    pub fn time_left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Takes a sample of a single figure, in its unit.
    pub fn push(&mut self, figure: &'static str, value: f64) {
        self.push_at(figure, None, value);
    }

    /// Takes a sample of a curve at a place.
    pub fn push_at(&mut self, figure: &'static str, at: impl Into<Option<u64>>, value: f64) {
        debug_assert!(
            self.figures.iter().any(|kind| kind.id == figure),
            "{} does not list {figure}",
            self.method
        );
        self.samples
            .entry((figure, at.into()))
            .or_default()
            .push(value);
    }

    /// Measures an operation in batches for `time`: `batch` does it so many times and says how long
    /// that took. The number is found by trying, so that the clock and its reading do not count;
    /// each batch gives a sample, ns an operation.
    pub fn batches(
        &mut self,
        figure: &'static str,
        at: impl Into<Option<u64>>,
        time: Duration,
        mut batch: impl FnMut(u64) -> Result<Duration, Untried>,
    ) -> Result<(), Untried> {
        let at = at.into();
        let end = Instant::now() + time;
        let goal = (time / (3 * FEWEST_BATCHES)).clamp(SHORTEST_BATCH, LONGEST_BATCH);
        let mut count = 1;
        loop {
            let took = batch(count)?;
            if took * 2 >= goal {
                break;
            }
            let times = goal.as_secs_f64() / took.as_secs_f64().max(1e-9);
            // Never more than tenfold: the first tries are cold, and say little.
            count = (count as f64 * times.clamp(1.5, 10.0)) as u64 + 1;
        }
        for taken in 0.. {
            if taken >= FEWEST_BATCHES && Instant::now() >= end {
                break;
            }
            let took = batch(count)?;
            self.push_at(figure, at, took.as_nanos() as f64 / count as f64);
        }
        Ok(())
    }

    /// [`Meter::batches`] of an operation that is simply called, for the rest of the visit.
    pub fn repeat(
        &mut self,
        figure: &'static str,
        mut operation: impl FnMut() -> Result<(), Untried>,
    ) -> Result<(), Untried> {
        let time = self.time_left();
        self.batches(figure, None, time, |count| {
            let start = Instant::now();
            for _ in 0..count {
                operation()?;
            }
            Ok(start.elapsed())
        })
    }
}
