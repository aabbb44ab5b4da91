//! Gives the kernel side what it needs to walk user stacks: which code each process has, and the
//! unwind rules of that code.
//!
//! ```text
//! definitions ──→ layouts ──→ code_of_process, code_ranges ┐
//!                    │                                      ├─ bpf/unwind.h
//!                    └→ library ──→ unwind_rows ────────────┘
//! ```
//!
//! Processes' [`layouts`](layout) follow the definitions, in the order of time; the [`library`]
//! builds the table of a file once, on a thread of its own, and both write through mappings of the
//! kernel's [`arrays`]. What runs before its rules are loaded sends a copy of its stack instead:
//! here it is walked with the same rules as soon as they are there, and becomes a stack like any
//! other.

mod arrays;
mod layout;
mod library;
#[cfg(test)]
mod proof;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hangdog_symbols::interpreter::Interpreter;
use hangdog_symbols::memory::{Memory, ProcessMemory};
use hangdog_symbols::script::Language;
use hangdog_symbols::time_left;
use hangdog_trace::meta::Unwinding;
use hangdog_trace::words::StackEnd;
use hangdog_unwind::{End, Registers, Rule};

use crate::chain::Weaver;
use crate::error::Result;
use crate::machine::{Frames, Machines};
use crate::population::Population;
use crate::records::{Definition, StackCopy, What};
use crate::waiting::Still;
use arrays::{CodeRange, ProcessCode, Shared};
use layout::{Code, Layouts, Range};
use library::{Library, Rules};

pub(crate) use arrays::MOST_RANGES;

/// A definition may become visible this much later than its time says.
const LATENESS_NS: u64 = 1_000_000;
/// So long the end of a recording waits for tables that stack copies need.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// So long a copy holds everything back that comes after it: the tables of a compiler's libraries take
/// seconds on a machine that is busy compiling, and a file may lie on a disk that hangs.
const PATIENCE_NS: u64 = 5_000_000_000;
/// Deepest walk, as `bpf/records.h` has it.
const MOST_FRAMES: usize = 127;
/// What `bpf/unwind.h` calls the interpreters.
const PYTHON: u64 = 0;
const HOTSPOT: u64 = 1;
const V8: u64 = 2;
const RUBY: u64 = 3;
const PHP: u64 = 4;
const PERL: u64 = 5;
/// What a hung program of an interpreter was doing can only be read at the start of a recording, by way of its
/// interpreter's file: on a busy machine that takes a second.
const INTERPRETER_PATIENCE: u32 = 4;

/// A copy whose rules are being made, with the code that its process had.
struct Waiting {
    ts: u64,
    copy: StackCopy,
    code: Vec<Range>,
    /// It was looked whether its thread is still there, to read what functions of an interpreter it is in.
    looked: bool,
}

/// Keeps the kernel side's picture of all processes' code.
pub(crate) struct Unwinder {
    processes: Shared<ProcessCode>,
    layouts: Layouts,
    library: Library,
    machines: Machines,
    /// Processes that have ended, whose stacks are still to be named.
    ended: Vec<u32>,
    /// The last epoch given out, which both sides count on.
    last_epoch: *mut u32,
    /// The last number of a function, on which they count too.
    last_function: *mut u32,
    /// Not old enough to be sure that nothing comes before it.
    young: Vec<Definition>,
    waiting: Vec<Waiting>,
    copies: u64,
}

// SAFETY: `last_epoch` and `last_function` point into the loaded object's memory, which is never
// unmapped; they are accessed by atomic operations alone.
unsafe impl Send for Unwinder {}

/// The kernel's arrays, and its counters, which must stay mapped for good.
pub(crate) struct Arrays<'a> {
    pub processes: BorrowedFd<'a>,
    pub ranges: BorrowedFd<'a>,
    pub rows: BorrowedFd<'a>,
    pub row_count: usize,
    pub last_epoch: *mut u32,
    pub last_function: *mut u32,
}

impl Unwinder {
    /// With `lazy`, tables are built as copies of stacks need them: the kernel side walks none.
    pub(crate) fn new(arrays: &Arrays<'_>, lazy: bool) -> Result<Unwinder> {
        Ok(Unwinder {
            processes: Shared::map(arrays.processes, arrays::PROCESS_SLOTS)?,
            layouts: Layouts::new(Shared::map(arrays.ranges, MOST_RANGES)?),
            library: Library::new(Shared::map(arrays.rows, arrays.row_count)?, lazy),
            machines: Machines::default(),
            ended: Vec::new(),
            last_epoch: arrays.last_epoch,
            last_function: arrays.last_function,
            young: Vec::new(),
            waiting: Vec::new(),
            copies: 0,
        })
    }

    /// Takes over who is alive at the start, and waits for their tables as long as `patience`, for
    /// interpreters [`INTERPRETER_PATIENCE`] times as long.
    pub(crate) fn adopt(&mut self, population: &Population, patience: Duration) {
        let mut threads: HashMap<u32, usize> = HashMap::new();
        for member in population.threads.values() {
            *threads.entry(member.pid).or_default() += 1;
        }
        for (&pid, company) in &population.processes {
            let threads = threads.get(&pid).copied().unwrap_or(1);
            self.layouts.begin(pid, threads, 0);
            for mapping in &company.mappings {
                let code = self.library.code(mapping, pid);
                self.layouts.map(pid, mapping, code);
            }
        }
        self.library.begin();
        self.publish();
        let start = Instant::now();
        while self.library.is_busy() {
            let patience = match self.library.awaits_interpreter() {
                true => patience * INTERPRETER_PATIENCE,
                false => patience,
            };
            let left = (start + patience).saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.load_tables(left);
        }
    }

    /// The interpreter of a process, and where offset 0 of its file would be mapped with the code.
    pub(crate) fn interpreter(&self, pid: u32) -> Option<(Interpreter, u64)> {
        let known = |code| self.library.interpreter(code);
        self.layouts.interpreter(pid, known)
    }

    /// The processes whose code is known.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.layouts.processes()
    }

    /// What the kernel side is told of a process's interpreter.
    fn told_interpreter(&mut self, pid: u32) -> Option<CodeRange> {
        let (start, end, kind) = match self.interpreter(pid)? {
            (Interpreter::Known(known), base) => {
                (base.wrapping_add(known.state), known.version, PYTHON)
            }
            (Interpreter::Script(script), base) => {
                let kind = match script.language {
                    Language::Ruby => RUBY,
                    Language::Php => PHP,
                    Language::Perl => PERL,
                };
                (base.wrapping_add(script.state), script.detail, kind)
            }
            (Interpreter::Unknown | Interpreter::Go(_), _) => return None,
            (machine, base) => {
                match machine {
                    Interpreter::Java(variables) => self.machines.meet_java(pid, variables, base),
                    Interpreter::V8(layout) => self.machines.meet_v8(pid, layout),
                    _ => {}
                }
                match self.machines.frames(pid)? {
                    Frames::HotSpot(start, end) => (start, end, HOTSPOT),
                    Frames::V8(shared) => (shared, 0, V8),
                }
            }
        };
        Some(CodeRange {
            start,
            end,
            file_offset: kind,
            ..CodeRange::default()
        })
    }

    /// What was built, and what it took.
    pub(crate) fn figures(&self) -> Unwinding {
        Unwinding {
            copied_stacks: self.copies,
            ..self.library.figures()
        }
    }

    /// Follows `definitions`, all that has come until `now`, and takes the stack copies out of them. `last`
    /// says that nothing comes any more. [`settle`](Unwinder::settle) comes next.
    pub(crate) fn follow(&mut self, definitions: &mut Vec<Definition>, now: u64, last: bool) {
        let copies = definitions.extract_if(.., |d| matches!(d.what, What::StackCopy(_)));
        self.young.extend(copies);
        self.young.extend(
            definitions
                .iter()
                .filter(|d| d.what.changes_code())
                .cloned(),
        );
        self.young.sort_by_key(|definition| definition.ts);
        let cutoff = if last {
            u64::MAX
        } else {
            now.saturating_sub(LATENESS_NS)
        };
        let old = self.young.partition_point(|d| d.ts < cutoff);
        let old: Vec<_> = self.young.drain(..old).collect();
        for Definition { ts, what } in old {
            match what {
                What::StackCopy(copy) => {
                    self.copies += 1;
                    let code = self.layouts.code(copy.pid).to_vec();
                    let looked = !copy.chain.is_empty();
                    self.waiting.push(Waiting {
                        ts,
                        copy,
                        code,
                        looked,
                    });
                }
                what => self.observe(&what),
            }
        }
        self.publish();
        self.load_tables(Duration::ZERO);
    }

    /// The copies of stacks whose processes are known to have an interpreter since the last time, each with
    /// its place for [`put_functions`](Unwinder::put_functions).
    pub(crate) fn copies_to_read(&mut self) -> Vec<(usize, Still)> {
        let (library, layouts) = (&self.library, &self.layouts);
        let known = |pid| layouts.interpreter(pid, |code| library.interpreter(code));
        let mut found = Vec::new();
        for (at, waiting) in self.waiting.iter_mut().enumerate() {
            if !waiting.looked && known(waiting.copy.pid).is_some() {
                waiting.looked = true;
                let still = Still {
                    ts: waiting.ts,
                    pid: waiting.copy.pid,
                    tid: waiting.copy.tid,
                    thread_pointer: waiting.copy.thread_pointer,
                    sp: waiting.copy.top,
                };
                found.push((at, still));
            }
        }
        found
    }

    /// The functions that a thread was in, whose stack was copied.
    pub(crate) fn put_functions(&mut self, at: usize, chain: Vec<u64>) {
        if let Some(waiting) = self.waiting.get_mut(at) {
            waiting.copy.chain = chain;
        }
    }

    /// Puts the stacks among the `definitions` that the copies have become.
    pub(crate) fn settle(&mut self, definitions: &mut Vec<Definition>, now: u64, last: bool) {
        // Of what is left where the recording was asked to stop, names need their share.
        let end = Instant::now() + LAST_PATIENCE.min(time_left() / 2);
        loop {
            self.walk_copies(definitions, now.saturating_sub(PATIENCE_NS));
            let left = end.saturating_duration_since(Instant::now());
            if !last || self.waiting.is_empty() || left.is_zero() {
                break;
            }
            self.load_tables(left);
        }
        if last {
            self.walk_copies(definitions, u64::MAX);
        }
        // SAFETY: a word of the loaded object's memory, aligned, shared by atomic operations alone.
        let last_function = unsafe { AtomicU32::from_ptr(self.last_function) };
        let next = || {
            last_function
                .fetch_add(1, Ordering::Relaxed)
                .wrapping_add(1)
        };
        self.machines.name(definitions, next);
        for pid in self.ended.drain(..) {
            self.machines.forget(pid);
        }
    }

    /// The oldest moment whose stacks are not all known yet.
    pub(crate) fn unsettled_since(&self) -> Option<u64> {
        self.waiting.iter().map(|waiting| waiting.ts).min()
    }

    fn observe(&mut self, what: &What) {
        match what {
            What::Fork {
                tid,
                pid,
                parent_pid,
                epoch,
                ..
            } => {
                if tid == pid {
                    self.layouts.fork(*parent_pid, *pid, *epoch);
                } else {
                    self.layouts.add_thread(*pid);
                }
            }
            What::Exec {
                pid, vdso, epoch, ..
            } => {
                self.layouts.renew(*pid, *epoch);
                self.machines.forget(*pid);
                if let Some((mapping, code)) = self.library.vdso(*vdso) {
                    self.layouts.map(*pid, &mapping, code);
                }
            }
            What::Exit { pid, .. } if self.layouts.remove_thread(*pid) => {
                self.release(*pid);
                self.ended.push(*pid);
            }
            What::ClearMappings { pid } => self.layouts.clear(*pid),
            What::Map { pid, mapping } => {
                let code = self.library.code(mapping, *pid);
                self.layouts.map(*pid, mapping, code);
            }
            _ => {}
        }
    }

    /// Tells the kernel side of every layout that has changed.
    fn publish(&mut self) {
        for pid in self.layouts.take_changed() {
            let Some(before) = self.layouts.epoch(pid) else {
                continue;
            };
            let interpreter = self.told_interpreter(pid);
            let library = &self.library;
            let rows = |code| library.rows_word(code);
            let Some(block) = self.layouts.write(pid, rows, interpreter) else {
                continue;
            };
            let slot = pid as usize % arrays::PROCESS_SLOTS;
            let there = self.processes.get(slot).identity;
            let expected = if there as u32 == pid {
                u64::from(pid) | u64::from(before) << 32
            } else {
                there
            };
            let epoch = arrays::next(self.last_epoch);
            // The kernel side may have gone on to another program since: it has the last word, and
            // its definition is on the way.
            if arrays::replace(&self.processes, slot, expected, pid, epoch) {
                arrays::point(&self.processes, slot, block, epoch);
                self.layouts.set_epoch(pid, epoch);
            }
        }
        self.layouts.tick();
    }

    /// Frees the slot of a process that has ended.
    fn release(&mut self, pid: u32) {
        let slot = pid as usize % arrays::PROCESS_SLOTS;
        let there = self.processes.get(slot).identity;
        if there as u32 == pid {
            arrays::replace(&self.processes, slot, there, 0, 0);
        }
    }

    /// Takes the tables that were built, waiting for the first of them as long as `patience`.
    fn load_tables(&mut self, patience: Duration) {
        let changed: HashSet<_> = self.library.take_built(patience, &self.layouts);
        if !changed.is_empty() {
            let library = &self.library;
            self.layouts
                .rewrite(&changed, |code| library.rows_word(code));
            let has_interpreter = |code: &Code| library.interpreter(*code).is_some();
            let interpreters = changed.iter().copied().filter(has_interpreter).collect();
            if self.layouts.write_anew(&interpreters) {
                self.publish();
            }
        }
        let ready = self.machines.look();
        for &pid in &ready {
            self.layouts.write_process_anew(pid);
        }
        if !ready.is_empty() {
            self.publish();
        }
    }

    /// Walks the copies whose rules are there, and as far as it goes those from before `cutoff`.
    fn walk_copies(&mut self, into: &mut Vec<Definition>, cutoff: u64) {
        let mut still = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            match self.walk(&waiting, waiting.ts < cutoff) {
                Ok(what) => into.push(Definition {
                    ts: waiting.ts,
                    what,
                }),
                Err(code) => {
                    self.library.want(code);
                    still.push(waiting);
                }
            }
        }
        self.waiting = still;
    }

    /// The code whose rules are needed and still being made is an error, unless `force` says that it
    /// goes without.
    fn walk(&self, waiting: &Waiting, force: bool) -> std::result::Result<What, Code> {
        let copy = &waiting.copy;
        let (mut missing, mut absent, mut hoped) = (None, false, false);
        let in_task = Cell::new(false);
        let mut rule = |address| match layout::find(&waiting.code, address) {
            None => Rule::NONE,
            Some((code, offset)) => match self.library.rule(code, offset) {
                Rules::Absent => {
                    absent = true;
                    Rule::NONE
                }
                // Assembly and code that a program brought along may keep frame pointers.
                Rules::Rule(rule) => {
                    hoped = rule == Rule::NONE;
                    in_task.set(in_task.get() || rule == Rule::TASK);
                    if hoped { Rule::FRAME_POINTER } else { rule }
                }
                Rules::Building => {
                    missing = Some(code);
                    Rule::NONE
                }
            },
        };
        let word = |address: u64| {
            let at = usize::try_from(address.checked_sub(copy.sp)?).ok()?;
            let word = copy.bytes.get(at..at.checked_add(8)?)?;
            Some(u64::from_ne_bytes(word.try_into().ok()?))
        };
        // A task that the thread has parked, and its stack, lie elsewhere. They are as they were while the thread
        // still waits; another thread may have gone on with the task, and then the frames are newer ones of it.
        let mut memory = |address: u64| {
            let elsewhere = || {
                in_task
                    .get()
                    .then(|| ProcessMemory(copy.pid).word(address))?
            };
            word(address).or_else(elsewhere)
        };
        let mut frames = copy.frames.clone();
        let ip = frames.pop().unwrap_or_default();
        let mut registers = Registers {
            ip: if copy.exact { ip } else { ip.wrapping_sub(1) },
            sp: copy.sp,
            fp: copy.fp,
        };
        let most = MOST_FRAMES - frames.len();
        let mut at = frames.len();
        let mut weaver = Weaver::new(&copy.chain);
        let machine = self.machines.frames(copy.pid);
        let has_rules = |address: u64| {
            let found = layout::find(&waiting.code, address.wrapping_sub(1));
            found.is_some_and(|(code, offset)| {
                code != Code::Anonymous
                    && !matches!(self.library.rule(code, offset), Rules::Rule(Rule::NONE))
            })
        };
        let mut left = |from, to, rule: Rule, frames: &mut Vec<u64>| {
            if let Some(functions) = weaver.leave(from, to, rule.is_loop()) {
                frames.pop();
                frames.extend_from_slice(functions);
            } else if let Some(machine) = machine
                && let Some(last) = frames.last_mut()
                && let Some(function) = machine.function_left(copy.pid, *last, to, word, has_rules)
            {
                *last = function;
            }
        };
        let mut end = hangdog_unwind::walk_with(
            registers,
            &mut rule,
            &mut memory,
            most,
            &mut frames,
            &mut left,
        );
        // Unless a function has taken its place.
        if let Some(first) = frames.get_mut(at)
            && *first == registers.ip
        {
            *first = ip;
        }
        if end == End::Unsupported && frames.len() == at + 1 && copy.exact && copy.link != 0 {
            at += 1;
            registers.ip = copy.link - 1;
            end = hangdog_unwind::walk(registers, &mut rule, &mut memory, most - 1, &mut frames);
            frames[at] = copy.link;
        }
        if let (Some(code), false) = (missing, force) {
            return Err(code);
        }
        // Further out than the copy or the rules reach are the functions that have no place yet.
        if matches!(end, End::Unreadable | End::NoRule) {
            let room = MOST_FRAMES.saturating_sub(frames.len());
            frames.extend(weaver.rest().take(room));
        }
        // What was only hoped to be a frame must lead to code.
        let is_code = |address: u64| layout::find(&waiting.code, address.wrapping_sub(1)).is_some();
        if hoped && frames.len() > at + 1 && !frames.last().is_some_and(|&last| is_code(last)) {
            frames.pop();
        }
        Ok(What::Stack {
            id: copy.id,
            pid: copy.pid,
            frames,
            end: match end {
                _ if missing.is_some() || absent => StackEnd::NotLoaded,
                End::Root => StackEnd::Root,
                End::Depth => StackEnd::Depth,
                End::NoRule => StackEnd::NoRule,
                End::Unsupported => StackEnd::Unsupported,
                End::Unreadable if hoped => StackEnd::NoRule,
                End::Unreadable => StackEnd::Unreadable,
            },
        })
    }
}
