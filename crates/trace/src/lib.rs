//! The vocabulary of hangdog, and the file that holds it.
//!
//! A trace is a directory of Parquet tables and a `meta.json` (docs/TRACE.md). This crate knows
//! what an event, a thread, a stack is and how each is kept; it knows nothing of the kernel that
//! produced them nor of what they mean together.
//!
//! - [`ids`]: the small numbers that tables refer to each other by.
//! - [`words`]: the closed sets of values (how a thread left a CPU, what a wake ran in, ...).
//! - [`tables`]: each table as a struct of columns, declared once.
//! - [`object`]: the identity of what a thread waits on.

pub mod ids;
pub mod object;
pub mod tables;
pub mod words;
