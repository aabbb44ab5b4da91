//! What memory costs: to load from, by how much is in use and in which order; to stream through; to
//! store to what another core holds.

mod bandwidth;
mod chain;
mod latency;
mod line;
mod order;
mod pages;

use crate::method::Method;

/// In the table's order.
pub(crate) const METHODS: &[&Method] = &[
    &latency::SMALL_PAGES,
    &latency::HUGE_PAGES,
    &latency::SEQUENTIAL,
    &line::LINE,
    &bandwidth::ONE,
    &bandwidth::ALL,
];

/// What CPUs move between memory and caches, bytes. Some have lines of 128: then two neighbours
/// come at once, which the random order makes rare.
const LINE: usize = 64;
