//! A trace opened, and its answers as values that serialise.
//!
//! [`Case`] holds what was read of a trace; every answer is made of it: the list of problems and
//! the verdicts ([`answers`]), a thread's story ([`story`]), where each thread's time went
//! ([`threads`]), its system calls ([`calls`]), weighted stacks ([`folds`]). Some bring their text form along. The command
//! prints them, the server sends them.
//!
//! It knows no terminal and no HTTP, and links nothing that records.

pub mod aligned;
pub mod answers;
pub mod answers_file;
pub mod calls;
pub mod case;
pub mod compare;
pub mod describe;
pub mod folds;
pub mod format;
pub mod instant;
pub mod interrupts;
pub mod load;
pub mod loss;
pub mod paging;
pub mod range;
pub mod rank;
pub mod regions;
pub mod repeats;
pub mod rivals;
pub mod samples;
pub mod select;
pub mod spans;
pub mod story;
pub mod threads;
pub mod units;
pub mod views;
pub mod wait;
pub mod which;

pub use case::{Case, Loading, Recording};
pub use loss::Loss;
