//! Graph → problems, blame, verdict.
//!
//! [`problem::find`] says which intervals of which threads took too long; [`diagnose`] says why
//! one did: it attributes every nanosecond of it to a thread and a kind ([`blame`]), and names the
//! one to whom most of it goes.
//!
//! What ends a wait comes from `hangdog-graph`; nothing here reads events.

pub mod answers;
mod baseline;
mod begun;
mod beside;
pub mod blame;
mod circle;
pub mod compare;
mod confidence;
pub mod explain;
mod function;
pub mod judge;
mod kind;
mod last_link;
mod limit;
mod origin;
mod owed;
pub mod problem;
mod profile;
mod question;
mod relay;
mod replay;
mod sentence;
mod setting;
pub mod shape;
mod signature;
mod slice;
mod spin;
mod starters;
mod starvation;
mod stretch;
mod suspect;
mod tasks;
mod thinned;
mod turns;
pub mod verdict;
mod walk;
pub mod whole;

pub use answers::Answers;
pub use judge::{diagnose, diagnose_run};
pub use kind::BlameKind;
pub use origin::nearest;
pub use problem::Problem;
pub use setting::Setting;
pub use signature::signature;
pub use verdict::{Class, Hint, PathStep, Verdict};
