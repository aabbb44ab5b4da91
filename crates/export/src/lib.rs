//! A trace for other tools: weighted stacks, flame graphs, and the files of other tools.
//!
//! - [`fold`]: where the time went, as weighted stacks: on the CPU, off it, and by who ended the
//!   wait. [`top`], [`flame`] and [`folded`] show them.
//! - [`perfetto`]: a trace that Perfetto opens.
//! - [`firefox`]: a profile that the Firefox Profiler opens.
//!
//! It does no diagnosis: problems come as plain [`Span`]s.

pub mod firefox;
pub mod flame;
pub mod fold;
pub mod folded;
pub mod perfetto;
mod select;
mod source;
pub mod stack;
pub mod top;
mod words;

pub use fold::{Fold, View};
pub use select::Selection;
pub use source::{Source, Span};
