//! Symbolises frames by module and offset, so that the process may have exited.
//!
//! Who knows a name depends on the module: an ELF file, or the debug information that was split
//! off it ([`files`], [`elf`], [`go`]), the kernel ([`kernel`]), the just-in-time compiler of a process
//! ([`jit`]). Of a function that nobody names, its place tells it from others ([`stripped`]). What
//! nobody knows for certain stays without a name: module and offset remain.

mod answer;
pub mod boot;
mod copy;
mod deadline;
mod debuginfod;
mod elf;
mod files;
pub mod functions;
#[cfg(fuzzing)]
pub mod fuzz;
pub mod go;
pub mod helper;
pub mod hotspot;
mod image;
pub mod interpreter;
mod jit;
mod jitdump;
mod kernel;
pub mod linkage;
pub mod maps;
pub mod memory;
mod mounts;
mod name;
mod perf_map;
pub mod place;
mod process;
mod reader;
mod request;
pub mod script;
mod spans;
mod stripped;
mod symbol_table;
pub mod tables;
pub mod text;
mod unread;
pub mod v8;
pub mod variables;
mod wire;

use std::collections::HashMap;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use hangdog_trace::ids::{FrameId, ModuleId, Upid};
use hangdog_trace::tables::{Frames, Modules, Symbol, Symbols};
use hangdog_trace::words::ModuleKind;

pub use deadline::{end_by, time_left};
use debuginfod::Debuginfod;
use files::{Found, Layout, Wanted};
use kernel::Kernel;
use name::Names;
use place::Terms;
pub use process::Process;
use reader::PATIENCE;
pub use reader::Reader;
use request::{Places, Request, Response};
pub use unread::{Reason, Unread, unread};

/// Where frames come from.
pub struct Origin<'a> {
    /// Whether this is the machine that was recorded, not started anew since: kernel addresses,
    /// process ids and files without a build-id mean nothing elsewhere.
    pub same_boot: bool,
    /// The process that an upid stands for, if it is known.
    pub process: &'a dyn Fn(Upid) -> Option<Process>,
    /// Offset in a module's file from which its code was mapped, the lowest if it was in pieces.
    /// With it the debug information of a file that is gone can be used.
    pub mapped_from: &'a dyn Fn(ModuleId) -> Option<u64>,
}

/// Names frames; keeps what it found in files, so that a flight recorder's next snapshot does not
/// search again.
#[derive(Default)]
pub struct Namer {
    /// By path and build-id: the names by offset.
    known: HashMap<(String, String), HashMap<u64, Names>>,
}

/// How many frames' names are kept: some 20 MB.
const KEPT_FRAMES: usize = 100_000;
/// So many places of one module are named at a time: large enough to be worth opening the file,
/// small enough that all CPUs have work.
const BATCH: usize = 20_000;

/// So many places of several modules one thread takes at a time.
const SMALL: usize = 500;

/// Places whose names are sought.
struct Job<'a> {
    whose: Whose<'a>,
    rows: Vec<usize>,
    /// Offsets in a file, or addresses of a process.
    offsets: Vec<u64>,
}

impl<'a> Job<'a> {
    fn file(&self) -> Option<&Wanted<'a>> {
        match &self.whose {
            Whose::File(wanted) => Some(wanted),
            Whose::Process(_) => None,
        }
    }
}

/// What places lie in.
enum Whose<'a> {
    File(Wanted<'a>),
    /// Code that compilers of a process made.
    Process(Process),
}

impl Namer {
    /// Adds the names of all frames that can be named on this machine to `symbols`, except those
    /// of scripts, which the recorder named as it met them.
    ///
    /// A file whose build-id has changed since names nothing, nor does one that has none and was
    /// recorded elsewhere or before a reboot. `progress` is told how many frames of how many are
    /// done.
    pub fn name(
        &mut self,
        modules: &Modules,
        frames: &Frames,
        origin: &Origin<'_>,
        symbols: &mut Symbols,
        mut progress: impl FnMut(usize, usize),
    ) {
        let mut by_module: HashMap<ModuleId, Vec<usize>> = HashMap::new();
        for row in 0..frames.len() {
            by_module.entry(frames.module[row]).or_default().push(row);
        }
        let mut done = 0;
        let mut add = |symbols: &mut Symbols, rows: &[usize], names: &[Names]| {
            for (&row, names) in rows.iter().zip(names) {
                push(symbols, frames.frame[row], names);
            }
            done += rows.len();
            progress(done, frames.len());
        };
        let dumps: Vec<&Path> = modules
            .path
            .iter()
            .map(Path::new)
            .filter(|path| jit::is_dump(path))
            .collect();
        let mut compiled: HashMap<Upid, (Vec<usize>, Vec<u64>)> = HashMap::new();
        let mut jobs = Vec::new();
        for at in 0..modules.len() {
            let Some(rows) = by_module.remove(&modules.module[at]) else {
                continue;
            };
            let offsets: Vec<u64> = rows.iter().map(|&row| frames.offset[row]).collect();
            match modules.kind[at].into() {
                ModuleKind::Kernel if origin.same_boot => {
                    let kernel = Kernel::read();
                    let names: Vec<Names> = offsets.iter().map(|&a| kernel.name(a)).collect();
                    add(symbols, &rows, &names);
                }
                ModuleKind::Vdso if origin.same_boot => {
                    add(symbols, &rows, &elf::name_in_vdso(&offsets));
                }
                ModuleKind::Anonymous if origin.same_boot => {
                    let (own_rows, addresses) = compiled.entry(modules.process[at]).or_default();
                    own_rows.extend(rows);
                    addresses.extend(offsets);
                }
                ModuleKind::File => {
                    let key = (modules.path[at].as_str(), modules.build_id[at].as_str());
                    let (rows, offsets) = self.recall(key, rows, offsets, |row, names| {
                        add(symbols, &[row], std::slice::from_ref(names));
                    });
                    for (rows, offsets) in rows.chunks(BATCH).zip(offsets.chunks(BATCH)) {
                        jobs.push(Job {
                            whose: Whose::File(Wanted {
                                path: Path::new(key.0),
                                build_id: key.1,
                                same_boot: origin.same_boot,
                                mapped_from: (origin.mapped_from)(modules.module[at]),
                            }),
                            rows: rows.to_vec(),
                            offsets: offsets.to_vec(),
                        });
                    }
                }
                _ => {}
            }
        }
        for (upid, (rows, offsets)) in compiled {
            if let Some(process) = (origin.process)(upid) {
                jobs.push(Job {
                    whose: Whose::Process(process),
                    rows,
                    offsets,
                });
            }
        }
        let mut found = Vec::new();
        work(&dumps, jobs, |job, names| {
            add(symbols, &job.rows, &names);
            found.push((job, names));
        });
        for (job, names) in found {
            self.keep(&job, names);
        }
    }

    /// Tells what is known already, and gives back the rows and offsets that are not.
    fn recall(
        &self,
        (path, build_id): (&str, &str),
        rows: Vec<usize>,
        offsets: Vec<u64>,
        mut tell: impl FnMut(usize, &Names),
    ) -> (Vec<usize>, Vec<u64>) {
        let Some(known) = self.known.get(&(path.to_owned(), build_id.to_owned())) else {
            return (rows, offsets);
        };
        let places = rows.into_iter().zip(offsets);
        places
            .filter(|(row, offset)| match known.get(offset) {
                Some(names) => {
                    tell(*row, names);
                    false
                }
                None => true,
            })
            .unzip()
    }

    /// Keeps what was found. Without a build-id another file may have the path the next time.
    fn keep(&mut self, job: &Job<'_>, names: Vec<Names>) {
        let Whose::File(Wanted { path, build_id, .. }) = job.whose else {
            return;
        };
        let path = path.to_string_lossy().into_owned();
        // What could not be read may be readable the next time.
        if build_id.is_empty() || names.iter().all(Names::is_empty) {
            return;
        }
        let kept: usize = self.known.values().map(HashMap::len).sum();
        if kept + names.len() > KEPT_FRAMES {
            self.known.clear();
        }
        self.known
            .entry((path, build_id.to_owned()))
            .or_default()
            .extend(job.offsets.iter().copied().zip(names));
    }
}

/// Does the jobs on all CPUs, the largest first; `done` is told of each on the calling thread.
fn work<'a>(dumps: &[&Path], mut jobs: Vec<Job<'a>>, mut done: impl FnMut(Job<'a>, Vec<Names>)) {
    jobs.sort_by_key(|job| job.offsets.len());
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let workers = workers.min(jobs.len());
    let debuginfod = &Debuginfod::from_environment();
    let jobs = Mutex::new(jobs);
    let (results, incoming) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers {
            let (jobs, results) = (&jobs, results.clone());
            scope.spawn(move || {
                run_with_others();
                let mut reader = Reader::default();
                loop {
                    let taken = some(&mut jobs.lock().unwrap_or_else(PoisonError::into_inner));
                    if taken.is_empty() {
                        break;
                    }
                    // Files are found for several modules at once.
                    let wanted: Vec<&Wanted<'_>> = taken.iter().filter_map(Job::file).collect();
                    let mut found = files::find(&wanted, &mut reader, debuginfod).into_iter();
                    for job in taken {
                        let names = match &job.whose {
                            Whose::File(wanted) => {
                                let found = found.next().flatten();
                                name_in_file(wanted, found, &job.offsets, &mut reader)
                            }
                            Whose::Process(process) => {
                                jit::name(&mut reader, process, dumps, &job.offsets)
                            }
                        };
                        // Nobody listens only if the calling thread has panicked.
                        let _ = results.send((job, names));
                    }
                }
            });
        }
        drop(results);
        incoming.iter().for_each(|(job, names)| done(job, names));
    });
}

/// The next jobs of one thread: the largest that is left, or some of the small ones.
fn some<'a>(jobs: &mut Vec<Job<'a>>) -> Vec<Job<'a>> {
    let mut taken = Vec::new();
    let mut places = 0;
    while let Some(job) = jobs.pop_if(|job| taken.is_empty() || places + job.offsets.len() <= SMALL)
    {
        places += job.offsets.len();
        taken.push(job);
    }
    taken
}

fn name_in_file(
    wanted: &Wanted<'_>,
    found: Option<Found>,
    offsets: &[u64],
    reader: &mut Reader,
) -> Vec<Names> {
    let none = || vec![Names::new(); offsets.len()];
    let Some(found) = found else {
        return none();
    };
    let mut files = vec![(found.names.place.clone(), Terms::elf())];
    let mut module = None;
    if let Layout::Of(located) = &found.layout {
        files.push((located.place.clone(), Terms::elf()));
        let name = wanted.path.file_name().and_then(|name| name.to_str());
        module = name.map(|name| (name.to_owned(), offsets.to_vec()));
    }
    let request = Request::Name(Places {
        build_id: found.names.image.build_id.clone(),
        addresses: offsets
            .iter()
            .map(|&offset| found.address(offset))
            .collect(),
        module,
    });
    match reader.ask(&wanted.path.to_string_lossy(), &files, &request, PATIENCE) {
        Response::Names { names, .. } if names.len() == offsets.len() => names,
        _ => none(),
    }
}

/// Reading the rings may not wait, naming may: a thread of the recorder that does not inherit its
/// urgency leaves the machine to what is recorded.
fn run_with_others() {
    // SAFETY: setpriority takes plain numbers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 0) };
}

fn push(symbols: &mut Symbols, frame: FrameId, names: &Names) {
    for (inline_depth, name) in (0..).zip(names) {
        symbols.push(Symbol {
            frame,
            inline_depth,
            function: name.function.clone(),
            function_offset: name.offset,
            source: name.source.clone(),
            kernel_module: name.kernel_module.clone(),
        });
    }
}
