//! Why threads waited and who ended each wait: the timeline as a graph of causes.
//!
//! Vertices are the intervals in which a thread goes on without a blocking wait; the edges are
//! what ended the waits between them. An edge has a kind, a strength and a reason that a person
//! can read. There are two ways to them. A diagnosis asks for few of the millions of waits, and gets
//! each edge made from the rows of the trace, with its reason ([`edge`]). The whole, as columns
//! without words, is built by [`graph`].
//!
//! - [`evidence`]: the tables that everything is read from.
//! - [`wait`]: what a blocked thread waits for.
//! - [`edge`]: what ended a wait, or who could have ended it; [`ended`]: which that is; [`wake`]: what a wake tells.
//! - [`flags`]: waits for flags in memory that were watched.
//! - [`belief`]: what else it may have been, and how likely each is.
//! - [`history`]: how such waits ended before.
//! - [`role`]: what a thread is for; [`fore`]: which stands for its program.
//! - [`vertex`]: all lives cut into vertices; [`message`]: sends matched to receives;
//!   [`graph`]: both, and the edges between them.
//! - [`part`]: what of it a person looks at; [`dot`]: that part as a drawing.
//! - [`marks`]: what stacks show, by the [`names`] of functions of the C library and of the kernel.

mod async_work;
pub mod asyncio;
pub mod belief;
mod classify;
mod descriptors;
pub mod dot;
pub mod edge;
pub mod ended;
pub mod evidence;
mod file_locks;
pub mod flags;
pub mod fore;
mod goroutines;
pub mod graph;
mod groups;
pub mod history;
pub mod marks;
mod memo;
pub mod message;
pub mod names;
pub mod owed;
pub mod part;
mod peers;
pub mod role;
mod sampling;
mod stop;
mod tables;
mod upkeep;
pub mod vertex;
pub mod wait;
pub mod wake;
mod wakers;

pub use belief::{Belief, InVain, beliefs};
pub use descriptors::descriptors_used_up;
pub use edge::{Edge, EdgeKind, Source, Strength};
pub use evidence::Evidence;
pub use flags::FlagWait;
pub use graph::{Arrow, Graph, Origin, Sources};
pub use marks::{Mark, hands_out_work, waits_for_anything};
pub use memo::Site;
pub use message::Messages;
pub use tables::Tables;
pub use vertex::{Begin, VertexId, Vertices};
pub use wait::{Gate, Wait, WaitKind};
