//! What was there before the programs were attached: a look at all threads and all open files, and the
//! interpreters' functions that threads at rest are in. It stops nobody.

use std::collections::HashMap;
use std::io::Read;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hangdog_symbols::interpreter::Interpreter;
use hangdog_symbols::script::Language;
use hangdog_trace::meta::Hook;
use libbpf_rs::skel::Skel;
use libbpf_rs::{Iter, ProgramMut};

use super::Session;
use super::programs::{DESCRIPTORS_PASS, WAITING_PASS};
use super::skeleton::types::python_layout;
use crate::chain::Numbers;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::language::Runtime;
use crate::limits::Limit;
use crate::looks::Look;
use crate::records::{Definition, What};
use crate::system::monotonic_ns;
use crate::unwind::Unwinder;
use crate::waiting::{
    Found, Running, Stacks, Still, parse_descriptors, read_functions_of_running,
    read_functions_of_waiting,
};
use crate::{limits, perl, php, python, ruby, tasks};

/// The first version of Python whose frames can be read, as `bpf/python.h` has it: 3.11.
const PYTHON_OLDEST: u64 = 11;
/// A sleep that ends with the thread's coming to its CPU.
const COMING: Duration = Duration::from_micros(50);

impl Session {
    /// What cannot be seen begin: the threads that are off their CPUs now, for
    /// [`take_in`](Session::take_in). What processes have open comes with the next definitions. Stops
    /// nobody. What this kernel does not offer is listed among the hooks.
    pub(crate) fn look_around(&mut self) -> Found {
        let Look { open, found } = self.look(None);
        self.define(open);
        self.look_at_limits();
        found
    }

    /// One of several looks, after the one `before`.
    pub(crate) fn look(&mut self, before: Option<&Found>) -> Look {
        let open = parse_descriptors(&self.pass(DESCRIPTORS_PASS));
        // Who looks must just have come to its CPU: `waiting.rs` compares two clocks by that.
        std::thread::sleep(COMING);
        let bytes = self.pass(WAITING_PASS);
        let stacks = self.stacks.then(|| StackNumbers::of(self));
        let found = Found::parse(&bytes, &open, stacks, before);
        Look { open, found }
    }

    /// Reads the interpreters' functions that threads are in which a look has found, if they have waited since.
    pub(crate) fn read_functions(&mut self, found: &mut Found) {
        if self.stacks {
            found.read_functions(StackNumbers::of(self));
        }
    }

    /// The threads that were found, as events. What these refer to comes with the next definitions. Who
    /// is alive must have been adopted: until then it is not known where interpreters keep their frames.
    pub(crate) fn take_in(&mut self, mut found: Found) -> Vec<Event> {
        self.read_functions(&mut found);
        self.define(found.definitions);
        found.events
    }

    /// The goroutines and tasks of asyncio that wait now in all processes whose code is known, as events; their stacks come with the
    /// next definitions. Who is alive must have been adopted, as for [`take_in`](Session::take_in).
    pub(crate) fn look_at_tasks(&mut self) -> Vec<Event> {
        let pids = self.unwinder.as_ref().map(Unwinder::processes);
        let mut found = tasks::Found::default();
        let ts = monotonic_ns();
        for pid in pids.into_iter().flatten() {
            self.add_tasks(&mut found, pid, ts);
        }
        self.define(found.stacks);
        found.events
    }

    /// Adds those of a process, as events at `ts`.
    pub(crate) fn add_tasks(&mut self, found: &mut tasks::Found, pid: u32, ts: u64) {
        found.add(&mut StackNumbers::of(self), pid, ts);
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

    /// What control groups allow their processes now, and who has no file left that it may open.
    pub(crate) fn look_at_limits(&mut self) {
        let mut all = limits::all();
        all.extend(self.open_files.look());
        self.define_limits(all);
    }

    /// Who has no file left that it may open, and who is in a group with limits, if it is time to look again.
    pub(crate) fn look_at_limits_if_due(&mut self) {
        let mut all = self.open_files.look_if_due();
        all.extend(self.groups.look_if_due());
        if !all.is_empty() {
            self.define_limits(all);
        }
    }

    fn define_limits(&self, all: Vec<Limit>) {
        let ts = monotonic_ns();
        let definition = |limit| Definition {
            ts,
            what: What::Limit(limit),
        };
        self.define(all.into_iter().map(definition).collect());
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

    /// The functions of an interpreter that threads are in whose stacks were copied, since the kernel side
    /// did not know their processes yet: a script may wait as soon as it has begun.
    pub(super) fn read_functions_of_copied(
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

    fn goroutines(&self, pid: u32) -> Option<u64> {
        match self.unwinder?.interpreter(pid)? {
            (Interpreter::Go(go), base) => Some(base.wrapping_add(go.list)),
            _ => None,
        }
    }
}
