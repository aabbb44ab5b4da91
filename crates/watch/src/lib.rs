//! Detects hangs from outside while they last, and stores those that were caught.
//!
//! Three signs are looked for a few times a second, none of which asks the program anything:
//!
//! - A window that does not answer: what the display sent it stays unread ([`windows`]), or where
//!   a thread of its own reads that, the main thread does not take it (`relays`).
//! - A thread that stalls: it made no voluntary context switch ([`stalls`]).
//! - A region that a program marks takes longer than it may ([`budgets`]).
//!
//! [`Watcher`] looks for all and reports each hang once. [`archive::Archive`] keeps what was
//! found out about them within a limit on disk. Nothing here records or explains.

pub mod archive;
pub mod budgets;
#[cfg(fuzzing)]
pub mod fuzz;
pub mod netlink;
pub mod processes;
mod relays;
pub mod stalls;
pub mod standing;
mod watcher;
pub mod windows;

pub use watcher::{Hang, Sign, Watcher};
