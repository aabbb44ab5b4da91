//! The chains of waits at one moment, without a recording.
//!
//! Nothing is attached: two passes tell who is off its CPU and what is open (`bpf/waiting.h`,
//! `bpf/descriptors.h`), and stop nobody. What they find becomes a trace like any other.

use std::path::Path;
use std::time::Duration;

use hangdog_trace::TraceWriter;
use hangdog_trace::meta::{Meta, Mode, RecordingState};

use crate::error::{Error, Result};
use crate::owner::hand_over;
use crate::procfs;
use crate::record::describe;
use crate::save::finish;
use crate::session::{Options, Session};
use crate::symbols::Namer;
use crate::system::monotonic_ns;
use crate::world::{Pending, World};

/// How long a moment lasts in its trace: diagnosis weighs time, of which a moment has none.
const NOMINAL: Duration = Duration::from_secs(1);

/// Writes who waits for what now as the trace `output`, which must not exist.
///
/// # Errors
/// If the kernel does not let us look, or the trace cannot be written.
pub fn look(options: &Options, output: &Path) -> Result<()> {
    let begin = Meta {
        state: RecordingState::Recording,
        ..Meta::default()
    };
    let writer = TraceWriter::create(output, begin)?;
    let mut session = Session::for_a_look(options)?;
    let start = monotonic_ns();
    let mut pending = Pending {
        events: session.look_around(),
        ..Pending::default()
    };
    // Behind the look: it names all that were found and still live.
    let population = procfs::population();
    session.adopt(&population, Duration::ZERO);
    session.drain_definitions(&mut pending.definitions, true)?;
    let mut world = World::new(start, &population);
    world.advance(&mut pending, u64::MAX);
    let tables = world.into_named(&mut Namer::default(), |_, _| ());
    let meta = Meta {
        state: RecordingState::Complete,
        duration_ns: NOMINAL.as_nanos() as u64,
        unwinding: session.unwinding(),
        ..describe(&session, options, start, Mode::Instant)
    };
    finish(writer, tables, meta)?;
    hand_over(output).map_err(|source| Error::system("give the trace to its user", source))
}
