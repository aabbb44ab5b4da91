//! What a figure is called, what it counts, and where it stands in the table.

use serde::{Deserialize, Serialize};

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
