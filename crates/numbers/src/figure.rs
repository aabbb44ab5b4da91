//! One measured figure.

use serde::{Deserialize, Serialize};

use crate::kind::Unit;
use crate::spread::Spread;

/// One figure with its spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The kind's name: `thread.create`.
    pub id: String,
    /// The place on the curve (bytes, or times the work); none for a single figure.
    pub at: Option<u64>,
    /// What it counts.
    pub unit: Unit,
    /// Best, median and spread.
    #[serde(flatten)]
    pub spread: Spread,
    /// What disturbed it: the most, of all CPUs' time, and in how many visits.
    pub disturbed: Option<String>,
}

impl Figure {
    /// Its id, with the place on the curve.
    pub fn name(&self) -> String {
        match self.at {
            Some(at) => format!("{} at {at}", self.id),
            None => self.id.clone(),
        }
    }

    /// What a file from elsewhere may get wrong.
    pub(crate) fn is_sound(&self) -> bool {
        let Spread {
            best,
            low,
            median,
            high,
            ..
        } = self.spread;
        [low, median, high].is_sorted() && [best, low, high].iter().all(|value| value.is_finite())
    }
}
