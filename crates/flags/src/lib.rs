//! What decides how a program goes on: which flag in memory a thread waits for, and where two runs of
//! a function part.
//!
//! Nobody needs to say which flag: the loop tells. The thread is single-stepped for a few rounds
//! ([`step`]); the branches that went the same way in each round are those that may end it; and
//! what decides such a branch leads back, instruction by instruction, to the loads that its flags
//! were made of ([`flow`]). Those that another thread can change are the candidates
//! ([`candidates`]). Which of them is written when the loop ends, only breakpoints tell: that is
//! the recorder's.
//!
//! Of a function that goes well at one time and badly at another a call of each is stepped ([`call`]),
//! and the two are laid side by side up to the first branch that differs; what decided it is found in
//! the same way ([`diverge`]).
//!
//! ```text
//! stepper ─ traced ─┬→ step ─→ flow ────→ candidates
//!                   └→ call ─→ diverge
//!                       executed, slice: what an instruction used, what a branch was decided by
//! ```
//!
//! x86-64 only.

mod address_space;
mod breakpoint;
pub mod call;
pub mod call_file;
pub mod candidates;
pub mod diverge;
mod executed;
pub mod flow;
pub mod registers;
mod slice;
pub mod step;
mod stepper;
mod traced;

pub use address_space::Map;
pub use candidates::{Candidate, Found, NotFound, find};

use stepper::Task;

/// To be called first in `main`: as the process that steps, it does not return.
pub fn run_if_asked() {
    match stepper::asked() {
        Some((Task::Thread, numbers)) => stepper::finish(step::answer(&numbers)),
        Some((Task::Call, numbers)) => stepper::finish(call::answer(&numbers)),
        None => {}
    }
}
