//! The levels of memory, as the latency curve shows them.

use serde::{Deserialize, Serialize};

use crate::machine::Cache;
use crate::report::Figure;
use crate::spread::Spread;

/// A level of the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// L1, L2, L3 or RAM.
    pub name: String,
    /// Where the curve leaves it, bytes; none for the last.
    pub bytes: Option<u64>,
    /// What the system says of the cache, bytes.
    pub said_bytes: Option<u64>,
    /// A load from it.
    pub latency: Spread,
}

/// From the curve of `memory.latency.huge`, or `memory.latency` where there is none.
pub(crate) fn of(_figures: &[Figure], _caches: &[Cache]) -> Vec<Step> {
    Vec::new()
}
