//! The trace format: its vocabulary, its files, and how they are read and written.
//!
//! A trace is a directory of Parquet tables and a `meta.json` (docs/TRACE.md). This crate knows
//! what an event, a thread, a stack is and how each is kept; it knows nothing of the kernel that
//! produced them nor of what they mean together.
//!
//! - [`ids`]: the small numbers that tables refer to each other by.
//! - [`words`]: the closed sets of values (how a thread left a CPU, what a wake ran in, ...).
//! - [`tables`]: each table as a struct of columns, declared once; [`Tables`] has one of each.
//! - [`object`]: the identity of what a thread waits on.
//! - [`Trace`] reads a trace, [`TraceWriter`] writes one, [`Meta`] is its `meta.json`.
//! - [`regular`]: opens files that somebody else may have put there.
//! - [`Threads`]: who the threads and processes are.
//! - [`StackTable`]: what the stacks say; [`Calls`]: what system calls are named and do.
//! - [`text`]: small traces as text, for tests.
//!
//! ```
//! use hangdog_trace::{Meta, Threads, Trace, TraceWriter, tables::*, text};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("slow.hang");
//! let mut writer = TraceWriter::create(&path, Meta::default())?;
//! writer.tables = text::parse(
//!     "process app 100
//!      thread main app 100
//!      1ms cpu0 switch main -> idle sleeping read",
//! )?.tables;
//! writer.finish(Meta { duration_ns: 2_000_000, ..Meta::default() })?;
//!
//! let trace = Trace::open(&path)?;
//! let switches: Switches = trace.read()?;
//! let threads = Threads::new(&trace.read()?);
//! assert_eq!(threads.thread(switches.prev[0]).name(), "main");
//! # Ok(())
//! # }
//! ```

mod all;
mod budget;
pub mod calls;
mod cell;
#[cfg(fuzzing)]
mod chosen;
mod command_line;
mod encoding;
mod entry;
mod error;
mod folder;
mod format;
#[cfg(fuzzing)]
pub mod fuzz;
mod guard;
pub mod ids;
mod listing;
pub mod meta;
pub mod object;
mod part;
#[cfg(test)]
mod properties;
mod reader;
pub mod regular;
pub mod residence;
mod rows;
pub mod sockets;
pub mod stacks;
pub mod tables;
pub mod text;
pub mod threads;
mod times;
pub mod words;
mod writer;
pub mod yardstick;

pub use all::{Tables, Visitor};
pub use calls::{Call, Calls, FutexOp};
pub use error::{Error, Result};
pub use folder::Owner;
pub use meta::Meta;
pub use reader::{TableInfo, Trace, Verified};
pub use sockets::SocketTable;
pub use stacks::{ResolvedFrame, StackTable};
pub use tables::Table;
pub use threads::{Process, Thread, Threads};
pub use writer::{TraceWriter, put};
pub use yardstick::Yardstick;
