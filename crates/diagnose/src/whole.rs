//! A recorded command as a whole: where the time went from its exec to its exit.
//!
//! Who records a command asks that first. The run is explained like a problem of its first thread:
//! the walk ([`walk`](crate::walk)) goes backwards along the critical path, through all processes
//! that the command waited for, so that each nanosecond is attributed to one thread and kind. Here
//! these are summed up by what a person can act on: which program it was, and what it did or
//! lacked. Time that a program ran is distinguished by samples (importing modules; starting and
//! ending processes; all else); time that it was runnable is put down to whoever had the CPU.
//!
//! Nothing is left out: the entries' times add up to the run's. A process goes by its last name, so
//! that what it did between its fork and its exec counts for the program that it then was.

use hangdog_graph::Evidence;
use hangdog_trace::ids::{StackId, Upid, Utid};
use hangdog_trace::words::Left;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use crate::blame::{Blame, Piece};
use crate::function::{self, Function};
use crate::kind::BlameKind;
use crate::problem::{Problem, ProblemKind, Severity};
use crate::profile::Profile;
use crate::sentence::duration;
use crate::setting::{EVENTS_LOST, Setting};
use crate::starvation;
use crate::verdict::{Entry, Whole};

/// A problem that took less than this share of the run does not stand out of it.
const STANDS_OUT: f64 = 0.2;
/// Who had this share of the time that a program was runnable had it alone.
const ALONE: f64 = 0.9;
/// Interrupts are distinguished where they took this share of a program's time on CPUs.
const MANY_INTERRUPTS: f64 = 0.2;
/// The sentence tells of so many entries.
const TOLD: usize = 3;
/// The sentence leaves out what has less than this share.
const LEAST_TOLD: f64 = 0.01;

/// The run of the command whose first thread has this tid, from its exec to its exit or the
/// trace's end; none if the trace has no such thread.
pub fn run_of(evidence: &Evidence<'_>, command_tid: u32) -> Option<Problem> {
    let first = evidence.threads.iter().find(|t| t.tid == command_tid)?;
    let life = evidence.timeline.life(first.utid);
    let start = first.executed.unwrap_or(life.start).max(life.start);
    (start < life.end).then(|| Problem::picked(first.utid, start..life.end))
}

/// Whether one of the problems stands out of the run: it explains more than the whole does. Of a
/// program that serves somebody, and waits to be asked in between, each severe one does.
pub fn stands_out(problems: &[Problem], run: &Problem) -> bool {
    use ProblemKind::{Input, Request, Turn};
    let least = run.duration() as f64 * STANDS_OUT;
    problems.iter().any(|problem| {
        let serves = matches!(problem.kind, Input | Request | Turn);
        problem.duration() as f64 >= least || serves && problem.severity() == Severity::High
    })
}

/// What a program did or lacked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum What {
    /// What the kind of blame says, and no more is known.
    AsKind,
    /// It ran what a module needs to be there: finding, reading, compiling, and its outermost code.
    Importing,
    /// It ran the kernel or the loader for processes to begin and to end.
    Starting,
    /// It was runnable, and its control group had used up its quota.
    Quota,
}

impl What {
    /// In words that follow a program's name.
    fn text(self, kind: BlameKind) -> &'static str {
        match (self, kind) {
            (What::Importing, _) => "importing modules",
            (What::Starting, _) => "starting and ending processes",
            (What::Quota, _) => "held back by the CPU quota of its control group",
            (What::AsKind, BlameKind::Run) => "running",
            (What::AsKind, BlameKind::Runnable) => "waiting for a CPU",
            (What::AsKind, BlameKind::Interrupt) => "interrupted",
            (What::AsKind, BlameKind::Lock) => "waiting for a lock",
            (What::AsKind, BlameKind::Message) => "waiting for a message from outside the trace",
            (What::AsKind, BlameKind::Disk) => "waiting for the disk",
            (What::AsKind, BlameKind::Network) => "waiting for the network",
            (What::AsKind, BlameKind::Timer) => "sleeping, or waiting for a timeout",
            (What::AsKind, BlameKind::Paging) => "waiting for page-ins",
            (What::AsKind, BlameKind::Stopped) => "stopped",
            (What::AsKind, BlameKind::Gone) => "exited while others waited for it",
            (What::AsKind, BlameKind::Kernel) => "waiting inside the kernel",
            (What::AsKind, BlameKind::Unknown) => "with no data in the trace",
        }
    }

    /// What the stacks of a sample show a thread to run.
    fn of_stacks(evidence: &Evidence<'_>, user: StackId, kernel: StackId) -> What {
        // The kernel's part of fork, exec and exit.
        const STARTING: [&str; 5] = [
            "kernel_clone",
            "do_execveat_common",
            "bprm_execve",
            "do_exit",
            "do_group_exit",
        ];
        // The loader's part of exec, which comes before the program's first instruction.
        const LOADING: [&str; 3] = ["_dl_start", "_dl_sysdep_start", "dl_main"];
        // Python's, in the interpreter and in its own library.
        const IMPORTING: [&str; 2] = ["PyImport_ImportModuleLevelObject", "_find_and_load"];
        let shows = |stack: StackId, names: &[&str]| {
            let mut named = evidence.stacks.stack(stack).filter_map(|f| f.function);
            named.any(|function| names.contains(&function))
        };
        if shows(kernel, &STARTING) || shows(user, &LOADING) {
            What::Starting
        } else if shows(user, &IMPORTING) {
            What::Importing
        } else {
            What::AsKind
        }
    }
}

/// Whose time, and how it was spent.
type Key<'e> = (&'e str, BlameKind, What);

/// Who had a CPU that a program wanted.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Holder<'e> {
    name: &'e str,
    /// It is the process itself: its other threads.
    is_itself: bool,
}

/// What an entry is made of.
#[derive(Default)]
struct Sum<'e, 'b> {
    ns: u64,
    processes: BTreeSet<Upid>,
    /// Of what was runnable, for how long it was had by which programs, ns.
    had_by: BTreeMap<Holder<'e>, u64>,
    /// Of what ran, rows of the table of samples.
    samples: Vec<usize>,
    /// Of what waited, the longest wait.
    longest: Option<&'b Piece>,
}

impl Whole {
    /// Sums up the blame of a run.
    pub(crate) fn of(
        evidence: &Evidence<'_>,
        run: &Problem,
        blame: &Blame,
        setting: Setting<'_>,
    ) -> Whole {
        let wall = run.duration().max(1) as f64;
        let mut entries: Vec<Entry> = sums(evidence, blame)
            .into_iter()
            .map(|((process, kind, what), sum)| {
                let function = sum.function(evidence);
                Entry {
                    process: process.to_owned(),
                    processes: sum.processes.len(),
                    kind: kind.text(),
                    what: format!("{}{}", what.text(kind), sum.whose_cpu(process)),
                    ns: sum.ns,
                    share: sum.ns as f64 / wall,
                    function: function.as_ref().map(|function| function.name.clone()),
                    place: function.map(|function| function.place),
                }
            })
            .collect();
        // Sums come in the order of their keys, which this keeps among equals.
        entries.sort_by_key(|entry| Reverse(entry.ns));
        let is_unknown = |piece: &&Piece| piece.kind == BlameKind::Unknown;
        let unknown: u64 = blame.pieces.iter().filter(is_unknown).map(|p| p.ns()).sum();
        Whole {
            entries,
            unknown: unknown as f64 / wall,
            confidence: likelihood(blame) / wall * if setting.lost { EVENTS_LOST } else { 1.0 },
        }
    }

    /// "pip took 2.2 s: 0.9 s importing modules, 0.6 s waiting for the network".
    pub(crate) fn sentence(&self, evidence: &Evidence<'_>, run: &Problem) -> String {
        let program = &evidence.threads.process_of(run.thread).name;
        let is_told = |entry: &&Entry| entry.share >= LEAST_TOLD;
        let told = self.entries.iter().take(TOLD).filter(is_told);
        let mut parts: Vec<String> = told
            .clone()
            .map(|entry| match &entry.process == program {
                true => format!("{} {}", duration(entry.ns), entry.what),
                false => format!("{} of {} {}", duration(entry.ns), entry.process, entry.what),
            })
            .collect();
        let rest = run.duration() - told.map(|entry| entry.ns).sum::<u64>();
        if rest as f64 >= LEAST_TOLD * run.duration() as f64 {
            parts.push(format!("{} for the rest", duration(rest)));
        }
        format!(
            "{program} took {}: {}.",
            duration(run.duration()),
            parts.join(", ")
        )
    }
}

/// The known time, ns, each part weighted by how likely the way to it is.
fn likelihood(blame: &Blame) -> f64 {
    // A step comes behind the one above it.
    let mut ways: Vec<f64> = Vec::with_capacity(blame.steps.len());
    for step in &blame.steps {
        ways.push(step.above.map_or(1.0, |above| ways[above]) * step.likelihood());
    }
    let known = (blame.pieces.iter()).filter(|piece| piece.kind != BlameKind::Unknown);
    known
        .map(|piece| piece.ns() as f64 * ways[piece.step])
        .sum()
}

fn sums<'e, 'b>(evidence: &'e Evidence<'_>, blame: &'b Blame) -> BTreeMap<Key<'e>, Sum<'e, 'b>> {
    let mut sums: BTreeMap<Key<'e>, Sum<'e, 'b>> = BTreeMap::new();
    for piece in &blame.pieces {
        let process = evidence.threads.process_of(piece.thread);
        let what = match piece.left {
            Some(Left::Throttled) => What::Quota,
            _ => What::AsKind,
        };
        let sum = sums.entry((&process.name, piece.kind, what)).or_default();
        sum.ns += piece.ns();
        sum.processes.insert(process.upid);
        if piece.wait.is_some() && sum.longest.is_none_or(|longest| longest.ns() < piece.ns()) {
            sum.longest = Some(piece);
        }
        if piece.kind == BlameKind::Runnable && what == What::AsKind {
            let stride = piece.parts.len().div_ceil(starvation::MOST_WINDOWS).max(1);
            let looked_at = piece.parts.iter().step_by(stride);
            let had_by =
                looked_at.flat_map(|part| starvation::occupants(evidence, piece.thread, part));
            let times = stride as f64 * piece.parts.stands_for();
            for (other, ns) in had_by {
                let other = evidence.threads.process_of(other);
                let holder = Holder {
                    name: &other.name,
                    is_itself: other.upid == process.upid,
                };
                let had = sum.had_by.entry(holder).or_default();
                *had = had.saturating_add((ns as f64 * times) as u64);
            }
        }
    }
    add_interrupts(&mut sums);
    for (process, samples) in samples(evidence, blame) {
        split(&mut sums, process, samples);
    }
    sums
}

/// Counts interrupts as running, as the kernel's own accounts do, where they are few: most are the
/// clock that takes the samples, and nobody can act on them.
fn add_interrupts(sums: &mut BTreeMap<Key<'_>, Sum<'_, '_>>) {
    let interrupted: Vec<(&str, u64)> = sums
        .iter()
        .filter(|((_, kind, _), _)| *kind == BlameKind::Interrupt)
        .map(|((process, _, _), sum)| (*process, sum.ns))
        .collect();
    for (process, ns) in interrupted {
        if let Some(ran) = sums.get_mut(&(process, BlameKind::Run, What::AsKind))
            && (ns as f64) < MANY_INTERRUPTS * (ran.ns + ns) as f64
        {
            ran.ns += ns;
            sums.remove(&(process, BlameKind::Interrupt, What::AsKind));
        }
    }
}

/// Samples, rows of their table, by what they show.
type Shown = BTreeMap<What, Vec<usize>>;

/// The samples of what ran, by program.
fn samples<'e>(evidence: &'e Evidence<'_>, blame: &Blame) -> BTreeMap<&'e str, Shown> {
    // A sample is taken by an interrupt, so the time of interrupts belongs to it.
    let is_on_cpu = |piece: &&Piece| matches!(piece.kind, BlameKind::Run | BlameKind::Interrupt);
    let on_cpu = blame.pieces.iter().filter(is_on_cpu);
    // At each moment only one thread is blamed, so that parts do not overlap.
    let mut on_cpu: Vec<(&Range<u64>, Utid)> = on_cpu
        .flat_map(|piece| piece.parts.iter().map(|part| (part, piece.thread)))
        .collect();
    on_cpu.sort_by_key(|(part, _)| part.start);
    let blamed = |ts: u64| -> Option<Utid> {
        let behind = on_cpu.partition_point(|(part, _)| part.start <= ts);
        let (part, thread) = on_cpu[..behind].last()?;
        (ts < part.end).then_some(*thread)
    };
    let samples = evidence.samples;
    let mut known: HashMap<(StackId, StackId), What> = HashMap::new();
    let mut by_process: BTreeMap<&str, Shown> = BTreeMap::new();
    for row in 0..samples.len() {
        let thread = samples.thread[row];
        if blamed(samples.ts[row]) != Some(thread) {
            continue;
        }
        let stacks = (samples.user_stack[row], samples.kernel_stack[row]);
        let what =
            *(known.entry(stacks)).or_insert_with(|| What::of_stacks(evidence, stacks.0, stacks.1));
        let process = &evidence.threads.process_of(thread).name;
        let shown = by_process.entry(process).or_default();
        shown.entry(what).or_default().push(row);
    }
    by_process
}

/// Tells the time that a program ran apart, in proportion to its samples.
fn split<'e>(sums: &mut BTreeMap<Key<'e>, Sum<'e, '_>>, process: &'e str, shown: Shown) {
    let key = |what| (process, BlameKind::Run, what);
    let Some(ran) = sums.get_mut(&key(What::AsKind)) else {
        return;
    };
    let (all, processes) = (ran.ns, ran.processes.clone());
    let count: usize = shown.values().map(Vec::len).sum();
    for (what, samples) in shown {
        let part = u128::from(all) * samples.len() as u128 / count as u128;
        // No part is more than all.
        let part = if what == What::AsKind { 0 } else { part as u64 };
        if let Some(ran) = sums.get_mut(&key(What::AsKind)) {
            ran.ns -= part;
        }
        let sum = sums.entry(key(what)).or_default();
        sum.ns += part;
        sum.samples = samples;
        sum.processes.clone_from(&processes);
    }
    sums.retain(|_, sum| sum.ns > 0);
}

impl Sum<'_, '_> {
    /// Who had the CPU that `process` wanted, in words; empty where that is not known of most.
    fn whose_cpu(&self, process: &str) -> String {
        let Some((holder, &most)) = self.had_by.iter().max_by_key(|&(_, ns)| ns) else {
            return String::new();
        };
        let known = self
            .had_by
            .values()
            .fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        if known < self.ns / 2 {
            return String::new();
        }
        let who = match holder.name {
            _ if holder.is_itself => "its own threads".to_owned(),
            name if name == process => format!("another {name}"),
            name => name.to_owned(),
        };
        let others = if (most as f64) < ALONE * self.ns as f64 {
            " and others"
        } else {
            ""
        };
        format!(" held by {who}{others}")
    }

    fn function(&self, evidence: &Evidence<'_>) -> Option<Function> {
        match self.longest.and_then(|piece| piece.wait.as_ref()) {
            Some((waiting, _)) => function::own(evidence, waiting.wait.user_stack(evidence)),
            None => Profile::new(evidence, &self.samples).function(),
        }
    }
}
