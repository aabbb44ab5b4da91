//! Which flag in memory does a thread wait for that spins, yields or naps until it changes?
//!
//! Nobody needs to say: the loop tells. The thread is single-stepped for a few rounds
//! ([`step`]); the branches that went the same way in each round are those that may end it; and
//! what decides such a branch leads back, instruction by instruction, to the loads that its flags
//! were made of ([`flow`]). Those that another thread can change are the candidates
//! ([`candidates`]). Which of them is written when the loop ends, only breakpoints tell: that is
//! the recorder's.
//!
//! x86-64 only.

pub mod candidates;
pub mod flow;
pub mod step;

pub use candidates::{Candidate, Found, NotFound, find};
pub use step::run_if_asked;
