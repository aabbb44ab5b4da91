//! Loading the programs: their constants, the sizes of what they write to, and what reads it.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::skel::OpenSkel;
use libbpf_rs::{MapCore, OpenObject, RingBuffer, RingBufferBuilder};

use super::programs::{choose, open};
use super::room::{blocks_shift, cpu_count, definitions_size, first_cpu, is_online};
use super::skeleton::OpenHangdogSkel;
use super::{Options, Programs, Session, Trial};
use crate::bounded::BoundedHooks;
use crate::counters::{Counters, KINDS};
use crate::error::{Error, Result};
use crate::flag::Watch;
use crate::groups::Groups;
use crate::marks::{Finder, Ticks};
use crate::open_files::OpenFiles;
use crate::perf::MappingEvents;
use crate::probe::Place;
use crate::records::{CpuState, Definition, What};
use crate::ring::{Block, Rings};
use crate::system::{kernel_version, monotonic_ns};
use crate::unwind::{Arrays, Unwinder};

/// Logarithm of the rule cache's entries for each CPU, as `bpf/unwind.h` has it.
const RULE_CACHE_SHIFT: u32 = 12;
/// Logarithm of the remembered walks for each CPU, as `bpf/user_stack.h` has it.
const MEMO_SHIFT: u32 = 11;
/// Logarithm of the stacks whose ids each CPU has at hand, as `bpf/stack.h` has it.
const STACK_CACHE_SHIFT: u32 = 10;

/// Since this version a reader that gives a semaphore back is no longer named as its owner, where the kernel looks
/// for hung tasks.
const READERS_LEAVE: (u32, u32) = (6, 17);

impl Session {
    /// The same as a test wants it.
    pub(crate) fn load(options: &Options, programs: Programs, trial: &Trial) -> Result<Session> {
        let cpus = cpu_count()?;
        let online = || (0..cpus).filter(|&cpu| is_online(cpu));
        let mut counters = match options.sample_hz {
            1.. => Counters::probe(trial.counted, first_cpu()),
            0 => Counters::none(trial.counted, "not requested (--sample)"),
        };
        // The object must outlive everything that borrows from it; one per process, for its life.
        let storage: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = open(storage)?;
        let shift = blocks_shift(options.memory, cpus);
        let rodata = open
            .maps
            .rodata_data
            .as_deref_mut()
            .expect("the programs have constants");
        rodata.blocks_shift = shift;
        rodata.take_stacks = options.stacks;
        rodata.prove = trial.prove;
        rodata.all_transfers = options.transfers;
        rodata.log_calls = options.calls.any();
        rodata.follow_cache = options.faults;
        rodata.readers_leave = kernel_version() >= READERS_LEAVE;
        for probe in &options.probes {
            if let Place::Marker { device, inode } = probe.place {
                (rodata.marker_device, rodata.marker_inode) = (device, inode);
            }
        }
        rodata.counters = counters.mask();
        let unwinds = options.stacks && cfg!(target_arch = "x86_64");
        let rows = if unwinds {
            options.unwind_memory / 8
        } else {
            1
        };
        set_sizes(&mut open, cpus, shift, rows)?;
        let mut hooks = choose(&mut open, options, programs)?;
        let mut skeleton = open.load().map_err(|cause| Error::Bpf {
            doing: "load the BPF programs",
            cause,
        })?;
        // To load takes half a second, in which nothing is seen.
        let begun = monotonic_ns();
        counters.open(&skeleton.maps.counter_events, online())?;
        hooks.extend(counters.hooks());
        let states: *const CpuState = skeleton
            .maps
            .bss_data
            .as_deref()
            .expect("the programs have state")
            .cpus
            .as_ptr()
            .cast();
        assert_eq!(
            skeleton.maps.events.value_size() as usize,
            size_of::<Block>()
        );
        let rings = Rings::map(
            skeleton.maps.events.as_fd().as_raw_fd(),
            cpus,
            shift,
            states,
        )?;
        let mappings = match programs {
            Programs::All | Programs::Flags => {
                online().map(MappingEvents::open).collect::<Result<_>>()?
            }
            Programs::Passes => Vec::new(),
        };
        let mappings = Finder::new(mappings);
        let state = skeleton.maps.bss_data.as_deref_mut();
        let state = state.expect("the programs have state");
        let (last_epoch, last_function) = (&raw mut state.last_epoch, &raw mut state.last_function);
        let unwinder = unwinds
            .then(|| {
                let arrays = Arrays {
                    processes: skeleton.maps.code_of_process.as_fd(),
                    ranges: skeleton.maps.code_ranges.as_fd(),
                    rows: skeleton.maps.unwind_rows.as_fd(),
                    row_count: rows as usize,
                    last_epoch,
                    last_function,
                };
                Unwinder::new(&arrays, programs == Programs::Passes)
            })
            .transpose()?;
        let defined = Arc::new(Mutex::new(Vec::new()));
        let definitions = open_definitions(&skeleton.maps.definitions, defined.clone())?;
        let mut session = Session {
            begun,
            definitions,
            defined,
            rings,
            hooks,
            cpus,
            mappings,
            lost_mappings: 0,
            ticks: Ticks::new(),
            transfers: BoundedHooks::transfers(options.transfers),
            handoffs: BoundedHooks::handoffs(),
            open_files: OpenFiles::new(),
            groups: Groups::new(),
            watch: Watch::default(),
            stacks: options.stacks,
            unwinder,
            links: Vec::new(),
            skeleton,
        };
        session.allow_more();
        session.attach(options)?;
        session.watch(&options.flags)?;
        if programs == Programs::All {
            session.attach_probes(&options.probes)?;
        }
        Ok(session)
    }
}

/// Sets the sizes of the maps, which are fixed once the programs are loaded: a ring of `1 << shift` blocks for
/// each CPU, and `rows` of unwind rules.
fn set_sizes(open: &mut OpenHangdogSkel<'_>, cpus: usize, shift: u32, rows: u64) -> Result<()> {
    open.maps
        .events
        .set_max_entries((cpus as u32) << shift)
        .map_err(|cause| Error::Bpf {
            doing: "size the event rings",
            cause,
        })?;
    open.maps
        .definitions
        .set_max_entries(definitions_size(cpus))
        .map_err(|cause| Error::Bpf {
            doing: "size the definitions ring",
            cause,
        })?;
    for (map, entries) in [
        (
            &mut open.maps.unwind_rows,
            rows.clamp(1, u32::MAX.into()) as u32,
        ),
        (&mut open.maps.rule_cache, (cpus as u32) << RULE_CACHE_SHIFT),
        (&mut open.maps.counter_events, (cpus * KINDS) as u32),
        (&mut open.maps.memos, (cpus as u32) << MEMO_SHIFT),
        (
            &mut open.maps.stack_cache,
            (cpus as u32) << STACK_CACHE_SHIFT,
        ),
    ] {
        map.set_max_entries(entries).map_err(|cause| Error::Bpf {
            doing: "size the tables",
            cause,
        })?;
    }
    Ok(())
}

/// The definitions ring, whose content goes to `into` whenever it is consumed.
fn open_definitions(
    map: &impl MapCore,
    into: Arc<Mutex<Vec<Definition>>>,
) -> Result<RingBuffer<'static>> {
    let failed = |cause| Error::Bpf {
        doing: "open the definitions ring",
        cause,
    };
    let mut builder = RingBufferBuilder::new();
    let take = move |bytes: &[u8]| {
        into.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(Definition::parse(bytes).map(with_command_line));
        0
    };
    builder.add(map, take).map_err(failed)?;
    builder.build().map_err(failed)
}

/// The kernel knows the file that is executed; /proc has the whole command line while it lives.
fn with_command_line(mut definition: Definition) -> Definition {
    if let What::Exec { pid, command, .. } = &mut definition.what
        && let Some(line) = crate::procfs::command_line(*pid)
    {
        *command = line;
    }
    definition
}
