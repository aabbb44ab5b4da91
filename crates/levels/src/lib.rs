//! Levels of detail: what fits the pixels.
//!
//! A track is one thread's states, or what one CPU ran: intervals in order without gap. Far out
//! there are millions of them, and a screen has some thousand columns. So a view is cut into bins
//! of 2^k ns, and each [`Bin`] says exactly how much of it each state took, so that what is drawn
//! has the area of the time that it stands for. Close up, where a bin holds few intervals, the
//! intervals themselves are shown.
//!
//! The exact shares come of prefix sums: [`Sums`] keeps, for every [`BLOCK`] intervals, the time
//! in each state before them. The time before any moment is then a look-up and at most a block's
//! worth of additions, and a bin is the difference of two such moments. That takes less than a
//! byte for each interval, and is made when a track is first shown.
//!
//! - [`source`]: what a track is, and the tracks that a timeline has.
//! - [`sums`]: the sums, and bins made of them.

pub mod source;
pub mod sums;

pub use source::Source;
pub use sums::{BLOCK, Bin, Sums};
