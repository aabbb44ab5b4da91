//! What a method of measuring is, and the list of all.

use serde::{Deserialize, Serialize};

use crate::meter::{Meter, Untried};
use crate::run::Place;
use crate::{files, kernel, memory, threads};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds for one operation.
    Ns,
    /// Bytes a second.
    BytesPerSecond,
    /// A share of 1.
    Share,
}

/// What a figure was measured for, where it is a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// The size of the memory or file, bytes.
    Bytes,
    /// How many times as much work.
    Times,
}

/// One figure that a method gives.
#[derive(Debug)]
pub struct Kind {
    /// Its name in JSON; does not change between versions: `thread.create`.
    pub id: &'static str,
    /// Its name for people: `create a thread`.
    pub title: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// What it is a curve over; none if it is a single figure.
    pub over: Option<Axis>,
}

impl Kind {
    /// A single figure in nanoseconds.
    pub const fn ns(id: &'static str, title: &'static str) -> Kind {
        Kind {
            id,
            title,
            unit: Unit::Ns,
            over: None,
        }
    }

    /// The same as a curve.
    pub const fn over(self, axis: Axis) -> Kind {
        Kind {
            over: Some(axis),
            ..self
        }
    }

    /// The same in another unit.
    pub const fn unit(self, unit: Unit) -> Kind {
        Kind { unit, ..self }
    }
}

/// The parts of the table, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Loads, stores, bandwidth.
    Memory,
    /// Threads, processes, handing over.
    Threads,
    /// System calls, faults, timers.
    Kernel,
    /// Files in the directory given.
    Files,
}

/// One way of measuring. It is visited once in each pass, and makes anew each time what it needs.
#[derive(Debug)]
pub struct Method {
    /// Its name: `thread.life`.
    pub id: &'static str,
    /// Which part of the table its figures are in.
    pub section: Section,
    /// What it gives.
    pub figures: &'static [Kind],
    /// How it measures, in a sentence or two.
    pub how: &'static str,
    /// Where the method comes from.
    pub source: &'static str,
    /// Its part of a pass's time; a method with one figure has 1.
    pub weight: u32,
    /// Measures until the meter's time is used, roughly.
    pub run: fn(&Place, &mut Meter) -> Result<(), Untried>,
}

/// Every method, in the table's order.
pub fn methods() -> impl Iterator<Item = &'static Method> + Clone {
    [
        memory::METHODS,
        threads::METHODS,
        kernel::METHODS,
        files::METHODS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// The kind of a figure by its id.
pub fn kind(id: &str) -> Option<&'static Kind> {
    methods()
        .flat_map(|method| method.figures)
        .find(|kind| kind.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// An id names one figure, belongs to its section's words, and every method says how and whence.
    #[test]
    fn ids_are_unique_and_methods_are_documented() {
        let mut seen = HashSet::new();
        for method in methods() {
            assert!(method.weight > 0, "{}", method.id);
            assert!(
                method.how.len() > 20 && !method.source.is_empty(),
                "{}",
                method.id
            );
            for figure in method.figures {
                assert!(seen.insert(figure.id), "{} twice", figure.id);
                assert!(figure.id.contains('.'), "{}", figure.id);
            }
        }
    }
}
