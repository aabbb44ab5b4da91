//! The recorder on the real kernel, held against what programs and the kernel say themselves.
//!
//! These tests need what `hangdog doctor` asks for, and a C compiler. Where recording is not
//! allowed each says `NOT RUN` on standard error: such a test has not passed.

mod calls;
mod commands;
mod diverge;
mod facts;
mod failures;
mod flight;
mod goroutines;
mod handoffs;
mod marks;
mod names;
mod names_machines;
mod names_python;
mod names_scripts;
mod names_sources;
mod now;
mod owner;
mod paging;
mod probes;
mod safety;
mod support;
mod tasks;
mod terminal;
mod watch;
mod yardstick;
