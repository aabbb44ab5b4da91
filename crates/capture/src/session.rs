//! The loaded programs: which hooks there are, what they write to, and how they are taken away.

mod attach;
mod load;
mod passes;
mod programs;
mod room;

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hangdog_trace::Yardstick;
use hangdog_trace::meta::{Hook, Unwinding};
use libbpf_rs::skel::Skel;
use libbpf_rs::{Link, RingBuffer};

use self::room::copies_allowed;
use self::skeleton::HangdogSkel;
use crate::bounded::BoundedHooks;
use crate::call_log::{Bits, CallsOf};
use crate::counters::{self, KINDS};
use crate::error::{Error, Result};
use crate::event::{Event, FlagUse, Happening};
use crate::flag::{Flag, MOST_FLAGS, Watch};
use crate::groups::Groups;
use crate::marks::{Finder, Found, Ticks};
use crate::open_files::OpenFiles;
use crate::perf::MAPPINGS;
use crate::population::Population;
use crate::probe::Probe;
use crate::records::{Definition, What};
use crate::ring::Rings;
use crate::system::monotonic_ns;
use crate::unwind::Unwinder;

pub(crate) use self::programs::tracepoints;
pub(crate) use self::room::first_cpu;

/// What libbpf-cargo generates from `bpf/`.
#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    dead_code
)]
pub(crate) mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/hangdog.skel.rs"));
}

/// What to record.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Memory for the event rings of all CPUs together, bytes.
    pub memory: u64,
    /// Take stacks of threads that block and of those that wake.
    pub stacks: bool,
    /// Memory for the unwind tables of all code, bytes; they are shared by all processes.
    pub unwind_memory: u64,
    /// Samples a second on each CPU; 0 for none, and for no hardware counters either.
    pub sample_hz: u32,
    /// Record bytes through pipes and eventfds too, which hooks every system call, and do not stop
    /// where there are very many.
    pub transfers: bool,
    /// Whose system calls to record, which hooks those of all.
    pub calls: CallsOf,
    /// Record minor page faults too, and the page cache.
    pub faults: bool,
    /// What operations cost on this machine, to be kept with the trace.
    pub yardstick: Option<Yardstick>,
    /// Flags in memory to watch, in processes that are there; at most [`MOST_FLAGS`].
    pub flags: Vec<Flag>,
    /// Functions and static probes of programs to be recorded as marks; at most
    /// [`MOST_PROBES`](crate::probe::MOST_PROBES).
    pub probes: Vec<Probe>,
}

/// What only tests want otherwise.
pub(crate) struct Trial {
    /// Send what walks begin at, for the test that holds our unwinder against another.
    pub prove: bool,
    /// What the counters count.
    pub counted: [counters::Kind; KINDS],
}

impl Default for Trial {
    fn default() -> Trial {
        Trial {
            prove: false,
            counted: counters::HARDWARE,
        }
    }
}

/// Which programs are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programs {
    /// All that there are.
    All,
    /// Those that look at what is there, and attach to nothing.
    Passes,
    /// Those of flags that are watched.
    Flags,
}

/// So many reads of a flag are recorded between two looks; where there are more they rest.
const READS_AT_ONCE: u64 = 1000;

/// Programs that are attached and write.
pub(crate) struct Session {
    /// When it began to see, on the monotonic clock, ns.
    pub begun: u64,
    pub rings: Rings,
    pub hooks: Vec<Hook>,
    pub cpus: usize,
    /// Mapping the ring takes a millisecond: it stays mapped. What is read from it goes to `defined`.
    definitions: RingBuffer<'static>,
    defined: Arc<Mutex<Vec<Definition>>>,
    mappings: Finder,
    lost_mappings: u64,
    ticks: Ticks,
    transfers: BoundedHooks,
    handoffs: BoundedHooks,
    open_files: OpenFiles,
    groups: Groups,
    /// The breakpoints on flags.
    watch: Watch,
    /// Whether stacks are taken.
    stacks: bool,
    /// Where stacks are taken and need rules.
    unwinder: Option<Unwinder>,
    /// Programs are attached as long as these live.
    links: Vec<Link>,
    skeleton: HangdogSkel<'static>,
}

impl Session {
    /// Loads and attaches.
    pub(crate) fn start(options: &Options) -> Result<Session> {
        Session::load(options, Programs::All, &Trial::default())
    }

    /// Loads what looks around, and attaches to nothing.
    pub(crate) fn for_a_look(options: &Options) -> Result<Session> {
        Session::load(options, Programs::Passes, &Trial::default())
    }

    /// Watches flags, and nothing else.
    pub(crate) fn for_flags(options: &Options) -> Result<Session> {
        Session::load(options, Programs::Flags, &Trial::default())
    }

    /// Sets the breakpoints of flags.
    fn watch(&mut self, flags: &[Flag]) -> Result<()> {
        if flags.is_empty() {
            return Ok(());
        }
        for (place, flag) in self.state().watched_flags.iter_mut().zip(flags) {
            place.address = flag.address;
            place.pid = flag.pid;
            place.size = flag.size.into();
            place.reads_left = READS_AT_ONCE;
        }
        let programs = &self.skeleton.progs;
        self.watch = Watch::set(flags, [&programs.on_flag_write, &programs.on_flag_use])?;
        Ok(())
    }

    /// Has the uses of flags rest where they come too often. What becomes of that comes as events.
    pub(crate) fn rest_flags(&mut self, into: &mut Vec<Event>) {
        let flags = self.state().watched_flags.iter();
        let counts: [[u64; 2]; MOST_FLAGS] =
            std::array::from_fn(|at| match flags.clone().nth(at) {
                Some(flag) => [flag.reads, flag.writes],
                None => [0, 0],
            });
        for flag in &mut self.state().watched_flags {
            flag.reads_left = READS_AT_ONCE;
        }
        let changes = self.watch.look(&counts);
        let ts = monotonic_ns();
        into.extend(changes.into_iter().map(|(flag, kind, change)| Event {
            ts,
            tid: 0,
            cpu: 0,
            what: Happening::Flag(FlagUse {
                flag: flag as u8,
                access: change.into(),
                value: u8::from(kind).into(),
                ..FlagUse::default()
            }),
        }));
    }

    /// Detaches everything: what the rings hold then is all there will be.
    pub(crate) fn detach(&mut self) {
        self.links.clear();
        self.transfers.detach();
        self.handoffs.detach();
        self.watch.end();
    }

    /// Takes over who is alive: what they run can be unwound from then on. Waits up to `patience`
    /// for the tables.
    pub(crate) fn adopt(&mut self, population: &Population, patience: Duration) {
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.adopt(population, patience);
        }
    }

    /// Takes the definitions that have come since the last time. With `last`, what still waits for
    /// unwind tables is waited for. Returns which share of the room for them they took, about.
    pub(crate) fn drain_definitions(
        &mut self,
        into: &mut Vec<Definition>,
        last: bool,
    ) -> Result<f64> {
        let now = monotonic_ns();
        let from = into.len();
        self.collect_definitions(into)?;
        let filled = self.filled_by(&into[from..]);
        self.rest();
        self.allow_more();
        let mut new = into.split_off(from);
        self.unwind(&mut new, now, last);
        into.append(&mut new);
        Ok(filled)
    }

    /// Of what comes in numbers, and has to be taken away in time, how much of the room it took.
    fn filled_by(&self, definitions: &[Definition]) -> f64 {
        let (mut copies, mut mappings) = (0, 0);
        for definition in definitions {
            match definition.what {
                What::StackCopy(_) => copies += 1,
                What::Map { .. } => mappings += 1,
                _ => {}
            }
        }
        let share = |count: u32, room: u32| f64::from(count) / f64::from(room);
        let cpus = self.cpus as u32;
        share(copies, copies_allowed(self.cpus) * cpus).max(share(mappings, MAPPINGS * cpus))
    }

    /// Takes the definitions that have come since the last time, copies of stacks as they are.
    pub(crate) fn collect_definitions(&mut self, into: &mut Vec<Definition>) -> Result<()> {
        self.ticks.measure();
        self.mappings
            .take(into, &mut self.lost_mappings, &self.ticks);
        self.definitions.consume().map_err(|cause| Error::Bpf {
            doing: "read the definitions ring",
            cause,
        })?;
        into.append(&mut self.defined.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// Opens the memory of programs that mark as soon as they say so, on a thread that begins here.
    ///
    /// # Errors
    /// If there can be no such thread.
    pub(crate) fn find_markers(&self) -> Result<()> {
        let begun = self.mappings.listen();
        begun.map_err(|cause| Error::system("start a thread", cause))
    }

    /// The memory of programs that mark, as far as it was found since the last time; and how many of them
    /// were gone before.
    pub(crate) fn take_markers(&self) -> (Vec<Found>, u64) {
        self.mappings.take_found()
    }

    /// Walks the copies of stacks in `definitions`, all that has come until `now`: they become
    /// stacks. With `last`, what still waits for unwind tables is waited for.
    pub(crate) fn unwind(&mut self, definitions: &mut Vec<Definition>, now: u64, last: bool) {
        let Some(unwinder) = &mut self.unwinder else {
            return;
        };
        unwinder.follow(definitions, now, last);
        let to_read = unwinder.copies_to_read();
        let read = self.read_functions_of_copied(to_read, definitions);
        if let Some(unwinder) = &mut self.unwinder {
            for (at, chain) in read {
                unwinder.put_functions(at, chain);
            }
            unwinder.settle(definitions, now, last);
        }
    }

    /// The oldest moment of which stacks may still come.
    pub(crate) fn unsettled_since(&self) -> u64 {
        let unsettled = self.unwinder.as_ref().and_then(Unwinder::unsettled_since);
        unsettled.unwrap_or(u64::MAX)
    }

    /// What unwinding took so far; nothing where no stacks are taken.
    pub(crate) fn unwinding(&self) -> Option<Unwinding> {
        self.unwinder.as_ref().map(Unwinder::figures)
    }

    /// The kernel side may copy stacks again, and record so much of what is bounded.
    fn allow_more(&mut self) {
        let copies = copies_allowed(self.cpus);
        let (cpus, transfers) = (self.cpus, self.transfers.allowed());
        let handoffs = self.handoffs.allowed();
        let state = self.state();
        (state.transfers_allowed, state.handoffs_allowed) = (transfers, handoffs);
        for cpu in &mut state.cpus[..cpus] {
            cpu.copies_left = copies.into();
            cpu.copies_kept = u64::from(copies) / 4 * 3;
        }
    }

    /// Has every stack and socket sent again when it is next met.
    pub(crate) fn forget(&mut self) {
        let state = self.state();
        state.socket_generation = state.socket_generation.wrapping_add(1);
        state.known_sockets.fill(0);
        state.stack_generation = state.stack_generation.wrapping_add(1);
        state.area_generation = state.area_generation.wrapping_add(1);
    }

    /// Which threads' calls are logged.
    pub(crate) fn logged(&mut self) -> Bits<'_> {
        let words = &raw mut self.state().logged_tids;
        let count = self.state().logged_tids.len();
        // SAFETY: the words lie in the loaded object's memory, aligned; the kernel side uses them by
        // atomic operations, as is done here, and the session, whose object is mapped as long as it
        // lives, is borrowed.
        Bits(unsafe { std::slice::from_raw_parts(words.cast::<AtomicU64>(), count) })
    }

    /// The programs' variables.
    fn state(&mut self) -> &mut skeleton::types::bss {
        let state = self.skeleton.maps.bss_data.as_deref_mut();
        state.expect("the programs have state")
    }

    /// Mapping events that the kernel dropped, since the start.
    pub(crate) fn lost_mappings(&self) -> u64 {
        self.lost_mappings
    }

    /// Runs that the kernel skipped because the program was running already on that CPU.
    pub(crate) fn skipped_runs(&self) -> u64 {
        self.skeleton
            .object()
            .progs()
            .filter(|program| program.autoload())
            .filter_map(|program| {
                let mut info = libbpf_rs::libbpf_sys::bpf_prog_info::default();
                let mut length = size_of_val(&info) as u32;
                // SAFETY: the kernel fills at most `length` bytes of a struct of plain integers
                // whose pointers are null, which asks for no further data.
                let failed = unsafe {
                    libbpf_rs::libbpf_sys::bpf_obj_get_info_by_fd(
                        program.as_fd().as_raw_fd(),
                        (&raw mut info).cast(),
                        &mut length,
                    )
                };
                (failed == 0).then_some(info.recursion_misses)
            })
            .sum()
    }
}
