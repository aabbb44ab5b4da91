//! Why threads waited and who ended each wait: the timeline as a graph of causes.
//!
//! Vertices are the stretches in which a thread goes on without a blocking wait; the edges are
//! what ended the waits between them. An edge has a kind, a strength and a reason that a person
//! can read. Nothing is built ahead: a trace has millions of waits and a diagnosis asks for few
//! of them, so an edge is made when it is asked for, from the rows of the trace.
//!
//! - [`evidence`]: the tables that everything is read from.
//! - [`wait`]: what a blocked thread waits for.
//! - [`edge`]: what ended a wait, or who could have ended it.
//! - [`belief`]: what else it may have been, and how likely each is.
//! - [`history`]: how such waits ended before.
//! - [`role`]: what a thread is for.
//! - [`marks`]: what stacks show, by the [`names`] of functions of the C library and of the kernel.

pub mod belief;
pub mod edge;
pub mod evidence;
pub mod history;
pub mod marks;
pub mod names;
pub mod role;
pub mod wait;
mod wakers;

pub use belief::{Belief, InVain, beliefs};
pub use edge::{Edge, EdgeKind, Source, Strength};
pub use evidence::{Evidence, Tables};
pub use marks::Mark;
pub use wait::{Wait, WaitKind};
