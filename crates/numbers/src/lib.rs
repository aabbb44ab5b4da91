//! What basic operations cost on the machine at hand: memory, threads, the kernel, files.
//!
//! A [`Method`] measures one thing and gives one or more figures; [`METHODS`] lists them all.
//! [`measure`] goes through the list several times ([`run`]): a machine's frequency drift changes
//! in seconds, so samples of a figure are taken far apart, in fresh memory each time, and their
//! spread tells what to expect of another run. Around each visit it looks at what else the machine
//! did ([`quiet`]), and a figure that was disturbed carries a note that says so.
//!
//! A [`Report`] is the result; [`compare`] tells two of them apart, [`plot`] draws one.

mod catalogue;
pub mod compare;
mod cpu;
mod figure;
mod files;
mod kernel;
mod kind;
mod machine;
mod memory;
mod meter;
mod method;
mod place;
pub mod plot;
mod quiet;
mod reference;
mod report;
mod run;
mod spread;
mod steps;
mod threads;

pub use catalogue::{kind, methods};
pub use figure::Figure;
pub use kind::{Axis, Kind, Section, Unit};
pub use machine::{Cache, FileSystem, Machine};
pub use method::Method;
pub use reference::{REFERENCES, Reference};
pub use report::{Noise, Report, Used};
pub use run::{Failure, Progress, Setting, measure};
pub use spread::Spread;
pub use steps::Step;
