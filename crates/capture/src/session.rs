//! The loaded programs: which hooks there are, what they write to, and how they are taken away.

use std::collections::HashMap;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hangdog_trace::Yardstick;
use hangdog_trace::meta::{Hook, Unwinding};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, Typedef};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Iter, Link, MapCore, OpenObject, ProgramMut, RingBuffer, RingBufferBuilder};

use crate::bounded::BoundedHooks;
use crate::call_log::{Bits, CallsOf};
use crate::chain::{Numbers, Runtime};
use crate::counters::{self, Counters, KINDS};
use crate::error::{Error, Result};
use crate::event::{Event, FlagUse, Happening};
use crate::flag::{Flag, MOST_FLAGS, Watch};
use crate::limits;
use crate::marks::{Finder, Found, Ticks};
use crate::perf::{MAPPINGS, MappingEvents, page_faults, sampling_clock};
use crate::perl;
use crate::php;
use crate::population::Population;
use crate::python;
use crate::records::{CpuState, Definition, What};
use crate::ring::{Block, Rings};
use crate::ruby;
use crate::system::monotonic_ns;
use crate::unwind::{Arrays, Unwinder};
use crate::waiting::{
    Found as Waiting, Running, Stacks, Still, parse_descriptors, read_functions_of_running,
    read_functions_of_waiting,
};
use hangdog_symbols::interpreter::Interpreter;
use hangdog_symbols::script::Language;

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

use skeleton::types::python_layout;
use skeleton::{HangdogSkel, HangdogSkelBuilder};

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

/// The tracepoints without which there is nothing to record.
const REQUIRED: [&str; 2] = ["sched_switch", "sched_waking"];
/// Those that cost something on every system call.
const CALL_ENTRY_HOOK: &str = "sys_enter";
const CALL_EXIT_HOOK: &str = "sys_exit";
const MOST_CPUS: usize = 512;
/// Logarithm of the rule cache's entries for each CPU, as `bpf/unwind.h` has it.
const RULE_CACHE_SHIFT: u32 = 12;
/// Logarithm of the remembered walks for each CPU, as `bpf/user_stack.h` has it.
const MEMO_SHIFT: u32 = 11;
/// Logarithm of the stacks whose ids each CPU has at hand, as `bpf/stack.h` has it.
const STACK_CACHE_SHIFT: u32 = 10;
/// Of the definitions ring, bytes a CPU; a power of two.
const DEFINITIONS: u32 = 8 << 20;
/// The most and the least of it for all CPUs.
const DEFINITIONS_MOST: u32 = 64 << 20;
const DEFINITIONS_LEAST: u32 = 8 << 20;
/// What a copied stack takes of it at most (`bpf/records.h`).
const COPY_SIZE: u32 = 5184;
const SECTION: &str = "tp_btf/";
/// The first version of Python whose frames can be read, as `bpf/python.h` has it: 3.11.
const PYTHON_OLDEST: u64 = 11;
/// The pass over all threads, which is run when it is asked for.
const WAITING_PASS: &str = "iter.s/task";
/// A sleep that ends with the thread's coming to its CPU.
const COMING: Duration = Duration::from_micros(50);
/// What it reads other threads' memory by, since Linux 5.18.
const WAITING_PASS_NEEDS: &str = "bpf_copy_from_user_task";
/// The same over all open files.
const DESCRIPTORS_PASS: &str = "iter/task_file";
/// By which the kernel has it, since Linux 5.8.
const DESCRIPTORS_PASS_NEEDS: &str = "bpf_iter_task_file";
/// What all passes have.
const PASS: &str = "iter";
/// So many reads of a flag are recorded between two looks; where there are more they rest.
const READS_AT_ONCE: u64 = 1000;
/// The programs of flags that are watched begin like this.
const FLAG_PROGRAMS: &str = "on_flag_";
/// What perf events report to: the sampling clock, and the kernel's counts of faults.
const SAMPLE_PROGRAM: &str = "on_sample";
const MAJOR_PROGRAM: &str = "on_major_fault";
const MINOR_PROGRAM: &str = "on_minor_fault";
/// The tracepoints of the page cache that only `--faults` asks for.
const CACHE_HOOKS: [&str; 4] = [
    "mm_filemap_add_to_page_cache",
    "mm_filemap_delete_from_page_cache",
    "mm_filemap_map_pages",
    "mm_filemap_get_pages",
];
const FAULTS_NOT_REQUESTED: &str = "not requested (--faults)";

/// What a program's perf events are called among the hooks.
fn perf_hook(program: &str) -> &'static str {
    match program {
        MAJOR_PROGRAM => "major-faults",
        MINOR_PROGRAM => "minor-faults",
        _ => "cpu-clock",
    }
}

/// Whether the running kernel has the tracepoint with type information.
fn has_tracepoint(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}"))
        .is_some()
}

/// Every tracepoint that the programs want, and whether this kernel has it; without loading them.
pub(crate) fn tracepoints() -> Result<Vec<(String, bool)>> {
    let btf = kernel_types()?;
    let mut storage = MaybeUninit::uninit();
    let open = open(&mut storage)?;
    Ok(open
        .open_object()
        .progs()
        .filter_map(|program| {
            let name = program
                .section()
                .to_str()?
                .strip_prefix(SECTION)?
                .to_owned();
            let there = has_tracepoint(&btf, &name);
            Some((name, there))
        })
        .collect())
}

fn has_function(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<Func<'_>>(name).is_some()
}

fn kernel_types() -> Result<Btf<'static>> {
    Btf::from_vmlinux().map_err(|cause| Error::Bpf {
        doing: "read the kernel's types",
        cause,
    })
}

fn open(storage: &mut MaybeUninit<OpenObject>) -> Result<skeleton::OpenHangdogSkel<'_>> {
    // Its hint at the memory limit misleads: what is missing is a privilege, and our errors say so.
    libbpf_rs::set_print(None);
    HangdogSkelBuilder::default()
        .open(storage)
        .map_err(|cause| Error::Bpf {
            doing: "open the BPF programs",
            cause,
        })
}

/// CPUs that records can come from.
pub(crate) fn cpu_count() -> Result<usize> {
    let cpus = libbpf_rs::num_possible_cpus().map_err(|cause| Error::Bpf {
        doing: "count the CPUs",
        cause,
    })?;
    if cpus > MOST_CPUS {
        return Err(Error::TooManyCpus {
            cpus,
            most: MOST_CPUS,
        });
    }
    Ok(cpus)
}

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
        rodata.counters = counters.mask();
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
        let unwinds = options.stacks && cfg!(target_arch = "x86_64");
        let rows = if unwinds {
            options.unwind_memory / 8
        } else {
            1
        };
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

        let btf = kernel_types()?;
        let mut hooks = Vec::new();
        for mut program in open.open_object_mut().progs_mut() {
            let section = program.section().to_string_lossy().into_owned();
            let is_of_flags =
                (program.name().to_str()).is_some_and(|name| name.starts_with(FLAG_PROGRAMS));
            if is_of_flags || programs == Programs::Flags {
                program.set_autoload(is_of_flags && !options.flags.is_empty());
                continue;
            }
            let Some(name) = section.strip_prefix(SECTION) else {
                let name = program.name().to_string_lossy().into_owned();
                let all = programs == Programs::All;
                program.set_autoload(match section.as_str() {
                    WAITING_PASS => has_function(&btf, WAITING_PASS_NEEDS),
                    DESCRIPTORS_PASS => has_function(&btf, DESCRIPTORS_PASS_NEEDS),
                    _ => match name.as_str() {
                        MAJOR_PROGRAM => all,
                        MINOR_PROGRAM => all && options.faults,
                        _ => options.sample_hz > 0,
                    },
                });
                if all && (name == MAJOR_PROGRAM || name == MINOR_PROGRAM) {
                    let reason = match program.autoload() {
                        true => "",
                        false => FAULTS_NOT_REQUESTED,
                    };
                    hooks.push(Hook {
                        name: perf_hook(&name).into(),
                        attached: reason.is_empty(),
                        reason: reason.into(),
                    });
                }
                continue;
            };
            if programs == Programs::Passes {
                program.set_autoload(false);
                continue;
            }
            let reason = if name == CALL_EXIT_HOOK && !options.transfers && !options.calls.any() {
                "not requested (--transfers, --calls, --calls-of)"
            } else if name == CALL_ENTRY_HOOK && !options.calls.any() {
                "not requested (--calls, --calls-of)"
            } else if CACHE_HOOKS.contains(&name) && !options.faults {
                FAULTS_NOT_REQUESTED
            } else if !has_tracepoint(&btf, name) {
                "this kernel does not have it"
            } else {
                ""
            };
            if let Some(hook) = REQUIRED
                .into_iter()
                .find(|&hook| hook == name && !reason.is_empty())
            {
                return Err(Error::MissingHook { hook });
            }
            program.set_autoload(reason.is_empty());
            hooks.push(Hook {
                name: name.into(),
                attached: reason.is_empty(),
                reason: reason.into(),
            });
        }

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
            watch: Watch::default(),
            stacks: options.stacks,
            unwinder,
            links: Vec::new(),
            skeleton,
        };
        session.allow_more();
        session.attach(options)?;
        session.watch(&options.flags)?;
        Ok(session)
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

    fn attach(&mut self, options: &Options) -> Result<()> {
        let mut links = Vec::new();
        let mut absent = Vec::new();
        for program in self.skeleton.object_mut().progs_mut() {
            let doing = "attach the BPF programs";
            let section = program.section().to_string_lossy().into_owned();
            let is_of_flags =
                (program.name().to_str()).is_some_and(|name| name.starts_with(FLAG_PROGRAMS));
            if !program.autoload() || section.starts_with(PASS) || is_of_flags {
                continue;
            }
            if let Some(name) = section.strip_prefix(SECTION) {
                match program.attach_trace() {
                    Ok(link) if self.transfers.has(name) => self.transfers.add(link),
                    Ok(link) if self.handoffs.has(name) => self.handoffs.add(link),
                    Ok(link) => links.push(link),
                    Err(cause) if REQUIRED.contains(&name) => {
                        return Err(Error::Bpf { doing, cause });
                    }
                    Err(cause) => absent.push((name.to_owned(), cause.to_string())),
                }
                continue;
            }
            let name = program.name().to_string_lossy().into_owned();
            for cpu in (0..self.cpus).filter(|&cpu| is_online(cpu)) {
                let event = match name.as_str() {
                    SAMPLE_PROGRAM => sampling_clock(cpu, options.sample_hz),
                    name => page_faults(cpu, name == MAJOR_PROGRAM),
                };
                let event = match event {
                    Ok(event) => event,
                    Err(why) => {
                        absent.push((perf_hook(&name).to_owned(), why.to_string()));
                        break;
                    }
                };
                let link = program
                    .attach_perf_event(event.as_raw_fd())
                    .map_err(|cause| Error::Bpf { doing, cause })?;
                // The link owns the descriptor from here on, and closes it.
                let _ = event.into_raw_fd();
                links.push(link);
            }
        }
        for (name, reason) in absent {
            self.hooks.retain(|hook| hook.name != name);
            self.hooks.push(Hook {
                name,
                attached: false,
                reason,
            });
        }
        self.links = links;
        Ok(())
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

    /// What cannot be seen begin: the threads that are off their CPUs now, for
    /// [`take_in`](Session::take_in). What processes have open comes with the next definitions. Stops
    /// nobody. What this kernel does not offer is listed among the hooks.
    pub(crate) fn look_around(&mut self) -> Waiting {
        let open = parse_descriptors(&self.pass(DESCRIPTORS_PASS));
        // Who looks must just have come to its CPU: `waiting.rs` compares two clocks by that.
        std::thread::sleep(COMING);
        let bytes = self.pass(WAITING_PASS);
        let found = Waiting::parse(&bytes, &open, self.stacks.then(|| StackNumbers::of(self)));
        self.define(open);
        self.look_at_limits();
        found
    }

    /// The threads that were found, as events. What these refer to comes with the next definitions. Who
    /// is alive must have been adopted: until then it is not known where interpreters keep their frames.
    pub(crate) fn take_in(&mut self, mut found: Waiting) -> Vec<Event> {
        if self.stacks {
            found.read_functions(StackNumbers::of(self));
        }
        self.define(found.definitions);
        found.events
    }

    /// Reads the functions of running threads, for the last copies of their stacks among the
    /// `definitions` (`waiting.rs`).
    pub(crate) fn read_functions_of_running(
        &mut self,
        definitions: &mut Vec<Definition>,
        running_by_stack: &HashMap<u32, Running>,
    ) {
        let mut stacks = StackNumbers::of(self);
        let mut numbers: HashMap<u32, Numbers> = HashMap::new();
        let mut functions = Vec::new();
        for definition in definitions.iter_mut() {
            let ts = definition.ts;
            if let What::StackCopy(copy) = &mut definition.what
                && let Some(&running) = running_by_stack.get(&copy.id)
            {
                let numbers = numbers.entry(running.pid).or_default();
                let copy = (ts, copy);
                functions.extend(read_functions_of_running(
                    &mut stacks,
                    running,
                    copy,
                    numbers,
                ));
            }
        }
        definitions.append(&mut functions);
    }

    /// What lies in the pipes and sockets that processes have open now: it comes with the next
    /// definitions.
    pub(crate) fn look_at_descriptors(&mut self) {
        let bytes = self.pass(DESCRIPTORS_PASS);
        self.define(parse_descriptors(&bytes));
        self.look_at_limits();
    }

    /// What control groups allow their processes now.
    fn look_at_limits(&self) {
        let ts = monotonic_ns();
        let definition = |limit| Definition {
            ts,
            what: What::Limit(limit),
        };
        self.define(limits::all().into_iter().map(definition).collect());
    }

    fn define(&self, definitions: Vec<Definition>) {
        let mut defined = self.defined.lock().unwrap_or_else(PoisonError::into_inner);
        defined.extend(definitions);
    }

    /// What a pass over all threads or files writes; nothing where there is none.
    fn pass(&mut self, section: &str) -> Vec<u8> {
        let reason = match self.run_pass(section) {
            Ok(Some(bytes)) => return bytes,
            Ok(None) => "this kernel does not have it".to_owned(),
            Err(why) => why.to_string(),
        };
        if !self.hooks.iter().any(|hook| hook.name == section) {
            self.hooks.push(Hook {
                name: section.to_owned(),
                attached: false,
                reason,
            });
        }
        Vec::new()
    }

    fn run_pass(&mut self, section: &str) -> Result<Option<Vec<u8>>> {
        let doing = "look at all threads and files";
        let failed = |cause| Error::Bpf { doing, cause };
        let mut programs = self.skeleton.object_mut().progs_mut();
        let is_pass = |program: &ProgramMut<'_>| program.autoload() && program.section() == section;
        let Some(pass) = programs.find(is_pass) else {
            return Ok(None);
        };
        let link = pass.attach().map_err(failed)?;
        let mut bytes = Vec::new();
        Iter::new(&link)
            .map_err(failed)?
            .read_to_end(&mut bytes)
            .map_err(|cause| Error::system(doing, cause))?;
        Ok(Some(bytes))
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

    /// The functions of an interpreter that threads are in whose stacks were copied, since the kernel side
    /// did not know their processes yet: a script may wait as soon as it has begun.
    fn read_functions_of_copied(
        &mut self,
        copied: Vec<(usize, Still)>,
        definitions: &mut Vec<Definition>,
    ) -> Vec<(usize, Vec<u64>)> {
        if copied.is_empty() {
            return Vec::new();
        }
        let mut stacks = StackNumbers::of(self);
        let mut numbers: HashMap<u32, Numbers> = HashMap::new();
        let mut chains = Vec::new();
        for (at, still) in copied {
            let numbers = numbers.entry(still.pid).or_default();
            if let Some((chain, functions)) = read_functions_of_waiting(&mut stacks, still, numbers)
            {
                definitions.extend(functions);
                chains.push((at, chain));
            }
        }
        chains
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

    /// Takes the bounded hooks away where they are called too often, and back after a while.
    fn rest(&mut self) {
        let transfers = self.rings.refused_transfers().sum();
        let handoffs = self.rings.refused_handoffs().sum();
        for (hooks, refused) in [
            (&mut self.transfers, transfers),
            (&mut self.handoffs, handoffs),
        ] {
            if !hooks.should_return(refused) {
                continue;
            }
            for program in self.skeleton.object_mut().progs_mut() {
                let section = program.section().to_string_lossy().into_owned();
                let is_one = section
                    .strip_prefix(SECTION)
                    .is_some_and(|name| program.autoload() && hooks.has(name));
                if is_one && let Ok(link) = program.attach_trace() {
                    hooks.add(link);
                }
            }
        }
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

fn is_online(cpu: usize) -> bool {
    // The boot CPU has no such file on many machines.
    std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/online"))
        .map_or(true, |text| text.trim() != "0")
}

/// A CPU that is online.
pub(crate) fn first_cpu() -> usize {
    (0..MOST_CPUS).find(|&cpu| is_online(cpu)).unwrap_or(0)
}

/// Bytes of the definitions ring, a power of two.
fn definitions_size(cpus: usize) -> u32 {
    let wanted = DEFINITIONS.saturating_mul(cpus as u32);
    wanted
        .clamp(DEFINITIONS_LEAST, DEFINITIONS_MOST)
        .next_power_of_two()
}

/// How many stacks each CPU may copy until the next time: half of the ring is for them.
fn copies_allowed(cpus: usize) -> u32 {
    definitions_size(cpus) / 2 / COPY_SIZE / cpus as u32
}

/// The largest ring whose CPUs together stay within `memory`, at least 4 blocks.
fn blocks_shift(memory: u64, cpus: usize) -> u32 {
    let blocks = memory / size_of::<Block>() as u64 / cpus as u64;
    // 2^18 blocks a CPU are 1 GB; the array's index is 32 bits wide over all CPUs.
    blocks.max(1).ilog2().clamp(2, 18)
}

/// Gives numbers to stacks beside the kernel side, which counts on.
struct StackNumbers<'a> {
    last_stack: &'a AtomicU32,
    last_function: &'a AtomicU32,
    unwinder: Option<&'a Unwinder>,
    layouts: Vec<python_layout>,
}

impl<'a> StackNumbers<'a> {
    fn of(session: &'a mut Session) -> StackNumbers<'a> {
        let maps = &mut session.skeleton.maps;
        let state = maps.bss_data.as_deref_mut();
        let state = state.expect("the programs have state");
        let constants = maps.rodata_data;
        let constants = constants.expect("the programs have constants");
        // SAFETY: both counters lie in the loaded object's memory, aligned, and the kernel side uses
        // them by atomic operations, as is done here; the object is mapped as long as the session
        // lives, which is borrowed.
        let counters = unsafe {
            [
                AtomicU32::from_ptr(&raw mut state.last_stack),
                AtomicU32::from_ptr(&raw mut state.last_function),
            ]
        };
        StackNumbers {
            last_stack: counters[0],
            last_function: counters[1],
            unwinder: session.unwinder.as_ref(),
            layouts: constants.python_layouts.to_vec(),
        }
    }
}

impl Stacks for StackNumbers<'_> {
    fn next_stack(&mut self) -> u32 {
        self.last_stack.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn next_function(&mut self) -> u32 {
        self.last_function.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn interpreter(&self, pid: u32) -> Option<Runtime> {
        Some(match self.unwinder?.interpreter(pid)? {
            (Interpreter::Known(known), base) => {
                let at = known.version.checked_sub(PYTHON_OLDEST)?;
                Runtime::Python(python::frames::Runtime {
                    state: base.wrapping_add(known.state),
                    layout: *self.layouts.get(usize::try_from(at).ok()?)?,
                })
            }
            (Interpreter::Script(script), base) => match script.language {
                Language::Ruby => Runtime::Ruby(ruby::Runtime {
                    library: base.wrapping_add(script.state),
                    context: script.detail,
                }),
                Language::Perl => Runtime::Perl(perl::Runtime(base.wrapping_add(script.state))),
                Language::Php => Runtime::Php(php::Runtime(base.wrapping_add(script.state))),
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rings never take more than they were given, and use more than half of it.
    #[test]
    fn rings_fill_their_memory() {
        for cpus in [1, 2, 7, 64] {
            for memory in [32u64 << 20, 128 << 20, 100_000_000] {
                let used = (cpus as u64 * 4096) << blocks_shift(memory, cpus);
                assert!(
                    used <= memory && used * 2 > memory,
                    "{cpus} CPUs, {memory}: {used}"
                );
            }
        }
    }
}
