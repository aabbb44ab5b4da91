//! The uses of flags, told while they happen.
//!
//! Nothing but the breakpoints is attached. What they report goes the same way as in a recording
//! (ring, world, rows), and each row is reported once its stack is known and named.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use hangdog_symbols::{Namer, helper};
use hangdog_trace::Threads;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::Frames;
use hangdog_trace::words::Access;

use crate::error::{Error, Result};
use crate::flag::Flag;
use crate::privileges::{self, Recorder};
use crate::procfs;
use crate::session::{Options, Session};
use crate::system::{monotonic_ns, stop_asked, stop_on_signals};
use crate::world::{Pending, World};

/// One use of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// When, ns since watching began.
    pub ns: u64,
    /// Which flag, by the order in which they were given.
    pub flag: usize,
    /// What was done. Paused and resumed are no thread's doing, and `value` says of which uses: it is a
    /// number of [`Access`].
    pub access: Access,
    /// What the flag held right behind the access.
    pub value: u64,
    /// The thread, by the kernel's number.
    pub tid: u32,
    /// Its name.
    pub thread: String,
    /// The address of the instruction behind the one that did it.
    pub instruction: u64,
    /// The functions on its stack, innermost first; those without a name as their place.
    pub stack: Vec<String>,
}

/// How often what has happened is reported.
const PERIOD: Duration = Duration::from_millis(100);
/// How often in that time it is looked whether a flag is used too often.
const LOOKS: u32 = 5;
/// A record may be this late.
const LATENESS_NS: u64 = 2_000_000;
/// How long unwind tables are waited for.
const TABLES_PATIENCE: Duration = Duration::from_millis(500);

/// Watches the flags of `options` and tells every use, in the order of time, until `see` breaks, a
/// signal asks to stop, `duration` is over, or the processes are gone. `see` is called some ten times a
/// second with the time, ns since watching began, and what has happened since. Returns how many events
/// were lost.
///
/// # Errors
/// If the kernel does not let us watch them.
pub fn watch(
    options: &Options,
    duration: Option<Duration>,
    mut see: impl FnMut(u64, &[Use]) -> ControlFlow<()>,
) -> Result<u64> {
    stop_on_signals().map_err(|cause| Error::system("handle signals", cause))?;
    privileges::check_namespace()?;
    // Without it names are missing.
    let _ = helper::start();
    let mut session = Session::for_flags(options)?;
    privileges::give_up(Recorder::Flight)?;
    let start = session.begun;
    let population = procfs::population();
    session.adopt(&population, TABLES_PATIENCE);
    let mut world = World::new(start, &population);
    world.watch(&options.flags, start);
    let mut pending = Pending::default();
    let mut cursor = session.rings.oldest();
    let mut namer = Namer::default();
    let mut named = 0;
    let mut lost = 0;
    let began = Instant::now();
    let lives = |flag: &Flag| std::path::Path::new(&format!("/proc/{}", flag.pid)).exists();
    loop {
        // A flag that is used too often must rest soon.
        for _ in 0..LOOKS {
            std::thread::sleep(PERIOD / LOOKS);
            session.rest_flags(&mut pending.events);
        }
        let is_last = stop_asked()
            || duration.is_some_and(|duration| began.elapsed() >= duration)
            || !options.flags.iter().any(lives);
        if is_last {
            session.detach();
        }
        let now = monotonic_ns();
        lost += (session.rings.read(&mut cursor, &mut pending.events).iter()).sum::<u64>();
        session.drain_definitions(&mut pending.definitions, is_last)?;
        let cutoff = match is_last {
            true => u64::MAX,
            false => (now - LATENESS_NS).min(session.unsettled_since()),
        };
        world.advance(&mut pending, cutoff);
        let new = rows_from(&world.code.frames, named);
        named += new.len();
        world.name(&mut namer, &new, |_, _| ());
        let uses = take(&mut world);
        if see(now - start, &uses).is_break() || is_last {
            return Ok(lost);
        }
    }
}

fn rows_from(frames: &Frames, first: usize) -> Frames {
    (first..frames.len()).map(|row| frames.row(row)).collect()
}

/// What has happened since the last time.
fn take(world: &mut World) -> Vec<Use> {
    let tables = &mut world.tables;
    let rows = std::mem::take(&mut tables.flag_accesses);
    if rows.is_empty() {
        return Vec::new();
    }
    let threads = Threads::new(&tables.lifecycle);
    let stacks = StackTable::new(
        tables.stacks.clone(),
        tables.frames.clone(),
        tables.modules.clone(),
        tables.symbols.clone(),
    );
    let flags = tables.flags.len();
    (0..rows.len())
        .map(|row| rows.row(row))
        .filter(|row| (row.flag as usize) < flags)
        .map(|row| {
            let thread = threads.thread(row.thread);
            Use {
                ns: row.ts,
                flag: row.flag as usize,
                access: Access::from(row.access),
                value: row.value,
                tid: thread.tid,
                thread: thread.name().to_owned(),
                instruction: row.instruction,
                stack: (stacks.stack(row.user_stack))
                    .map(|frame| frame.to_string())
                    .collect(),
            }
        })
        .collect()
}
