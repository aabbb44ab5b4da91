//! Recording: loads the programs of `bpf/`, reads what they write, names what they saw,
//! and writes a trace.
//!
//! ```text
//! bpf/ ─ events ──────→ ring ──┐
//!      ─ definitions ─┐        ├→ world ─→ rows ─→ save ─→ trace
//! perf ─ mappings ────┴────────┘    ↑
//! /proc ─ population ───────────────┘
//! ```
//!
//! [`record`](record::record) makes a trace of everything from start to end;
//! [`fly`](flight::fly) keeps the last seconds in memory and [`snap`](flight::snap) has them
//! saved; [`look`](live::look) makes one of a single moment; [`watch`](uses::watch) tells the uses of
//! flags while they happen. [`doctor`] checks what this machine
//! supports.

mod bounded;
mod call_log;
mod chain;
pub mod clock;
mod code;
mod command;
mod counters;
pub mod doctor;
pub mod error;
mod event;
pub mod flag;
pub mod flight;
mod function;
#[cfg(fuzzing)]
pub mod fuzz;
mod goroutines;
mod groups;
mod language;
mod limits;
pub mod live;
mod looks;
mod machine;
mod marker;
mod marks;
mod memory;
mod open_files;
mod owner;
mod pace;
mod perf;
mod perl;
mod php;
mod polled;
mod population;
pub mod prefetch;
mod privileges;
pub mod probe;
mod procfs;
mod python;
pub mod record;
mod records;
pub mod residence;
mod ring;
mod ruby;
mod running;
mod save;
mod session;
mod snapshots;
mod sockets;
pub mod system;
mod sysv;
mod tasks;
mod unwind;
pub mod uses;
mod waiting;
mod world;

pub use call_log::CallsOf;
pub use marks::{Followed, Step};
pub use session::Options;
