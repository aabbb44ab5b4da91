//! What each thread did when: the events of a trace as states that cover every thread's life.
//!
//! A [`Timeline`] holds, for every thread, [`Interval`]s that follow each other without gap or
//! overlap from the thread's start to its end, each with its [`State`] and the event that caused
//! it. Everything above asks it instead of the events. It knows nothing of why a thread waits.
//!
//! - [`state`]: the states, and the event that began an interval.
//! - [`timeline`]: the intervals of all threads, and their building.
//! - [`occupancy`]: the other view: which thread each CPU ran when.
//! - [`summary`]: times and shares by thread.
//! - [`counters`]: what the hardware's counters say of each thread.
//! - [`regions`]: what programs marked, begins and ends paired.
//!
//! The rules by which one thread's events become states are in `lane`.

pub mod counters;
mod events;
mod lane;
pub mod occupancy;
pub mod regions;
pub mod state;
pub mod summary;
pub mod timeline;

pub use occupancy::{Occupancy, Occupant};
pub use regions::{Region, Regions};
pub use state::{Cause, Interval, State};
pub use summary::Summary;
pub use timeline::{Intervals, Timeline};
