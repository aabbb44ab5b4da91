//! The chains of waits at one moment, without a recording.
//!
//! A look is two passes that tell who is off its CPU and what is open (`bpf/waiting.h`,
//! `bpf/descriptors.h`). There are several within a quarter of a second, while the sampling clock tells
//! what runs ([`running`]); nothing else is attached, and nobody is stopped. The most typical look
//! ([`looks`]) becomes a trace like any other. Much of the time goes into the unwind tables of files:
//! those of the process that is asked about come first, then those of whoever it has to do with, the
//! nearest first, as long as there is time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use hangdog_symbols::{Namer, helper};
use hangdog_trace::meta::{Meta, Mode, RecordingState};
use hangdog_trace::{Threads, TraceWriter};

use crate::error::Result;
use crate::looks::{self, Moment};
use crate::owner::asked_by;
use crate::pace;
use crate::population::Population;
use crate::privileges;
use crate::procfs;
use crate::record::{describe, unread_files};
use crate::records::{Definition, StackCopy, What};
use crate::running;
use crate::save::finish;
use crate::session::{Options, Session};
use crate::system::monotonic_ns;
use crate::tasks;
use crate::world::{Pending, World};

/// How long a moment lasts in its trace: diagnosis weighs time, of which a moment has none.
const NOMINAL: Duration = Duration::from_secs(1);
/// So long it is waited for what tells interpreters' functions, and so long stacks of others than the
/// process that is asked about are walked.
const PATIENCE: Duration = Duration::from_millis(300);
/// For this long further looks are taken, and the sampling clock sees what runs.
const LOOKING: Duration = Duration::from_millis(250);
/// The least time between two looks, and how much longer it may be.
const PAUSE: Duration = Duration::from_millis(8);
const LONGER: Duration = Duration::from_millis(18);
/// How many times as long as the last look took is waited before the next.
const REST: u32 = 4;

/// Writes who waits for what now as the trace `output`, which must not exist. The stacks of
/// `process` (pid or name) come first, and without a name those of all.
///
/// # Errors
/// If the kernel does not let us look, or the trace cannot be written.
pub fn look(options: &Options, process: &str, output: &Path) -> Result<()> {
    let begin = Meta {
        state: RecordingState::Recording,
        ..Meta::default()
    };
    privileges::check_namespace()?;
    pace::before_others();
    // Without it names are missing, and the trace says so.
    let _ = helper::start();
    let writer = TraceWriter::create_for(output, begin, asked_by())?;
    let mut session = Session::for_a_look(options)?;
    let mut cursor = session.rings.oldest();
    let start = monotonic_ns();
    let mut looks = vec![session.look(None)];
    session.look_at_limits();
    let population = procfs::population();
    session.adopt(&population, PATIENCE);
    session.read_functions(&mut looks[0].found);
    let adopted = monotonic_ns();
    let mut sampled = Vec::new();
    let end = Instant::now() + LOOKING;
    loop {
        let begun = Instant::now();
        let mut look = session.look(looks.last().map(|look| &look.found));
        session.read_functions(&mut look.found);
        looks.push(look);
        session.rings.read(&mut cursor, &mut sampled);
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(pause(looks.len()).max(begun.elapsed() * REST).min(left));
    }
    session.detach();
    let mut pending = Pending::default();
    session.collect_definitions(&mut pending.definitions)?;
    let mut world = World::new(start, &population);
    let threads = Threads::new(&world.tables.lifecycle);
    let asked = threads.find_processes(process);
    let asked = asked.iter().map(|&upid| threads.process(upid).pid);
    let known = pending.definitions.iter().chain(&looks[0].open);
    let order = Acquaintance::new(&population, known).order(asked);
    let steps = order.iter().copied().collect();
    let Moment {
        events,
        mut definitions,
        running,
    } = looks::most_typical(looks, &population, &steps);
    pending.events = events;
    pending.definitions.append(&mut definitions);
    let stacks = running::settle(
        (start, NOMINAL),
        adopted,
        &running,
        &sampled,
        &mut pending.events,
        &mut pending.definitions,
    );
    session.read_functions_of_running(&mut pending.definitions, &stacks);
    walk(&mut session, &mut pending, (&order, start));
    world.advance(&mut pending, u64::MAX);
    let tables = world.into_named(&mut Namer::default(), |_, _| ());
    let meta = Meta {
        state: RecordingState::Complete,
        duration_ns: NOMINAL.as_nanos() as u64,
        unwinding: session.unwinding(),
        unread: unread_files(),
        ..describe(&session, options, start, Mode::Instant)
    };
    finish(writer, tables, meta)
}

/// How long to wait after so many looks. The multiples of the golden ratio, without their whole parts, are spread as evenly as
/// can be and never repeat. With even pauses, looks at threads that take turns could find the same thread each time.
fn pause(looks: usize) -> Duration {
    let golden = (5_f64.sqrt() - 1.0) / 2.0;
    PAUSE + LONGER.mul_f64((looks as f64 * golden).fract())
}

/// Walks the copies of stacks among the definitions and names the functions of virtual machines in all of them, process
/// by process in this `order`, which may be any if it is empty; of copies for which there is no time nothing is left.
/// The tasks of these processes are read on the way, as events at `start`.
fn walk(session: &mut Session, pending: &mut Pending, (order, start): (&[(u32, u32)], u64)) {
    let mut stacks: BTreeMap<u32, Vec<Definition>> = BTreeMap::new();
    let mut others = Vec::new();
    for definition in pending.definitions.drain(..) {
        match &definition.what {
            What::StackCopy(StackCopy { pid, .. }) | What::Stack { pid, .. } => {
                stacks.entry(*pid).or_default().push(definition);
            }
            _ => others.push(definition),
        }
    }
    pending.definitions = others;
    let (pids, end): (Vec<u32>, _) = match order {
        [] => (stacks.keys().copied().collect(), None),
        order => (
            order.iter().map(|&(pid, _)| pid).collect(),
            Some(Instant::now() + PATIENCE),
        ),
    };
    let mut tasks = tasks::Found::default();
    for pid in pids {
        let mut own = stacks.remove(&pid).unwrap_or_default();
        session.unwind(&mut own, monotonic_ns(), true);
        pending.definitions.append(&mut own);
        // Whether its language has tasks is known since a walk wanted the tables of its code.
        session.add_tasks(&mut tasks, pid, start);
        session.unwind(&mut tasks.stacks, monotonic_ns(), true);
        pending.definitions.append(&mut tasks.stacks);
        if end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
    }
    pending.events.append(&mut tasks.events);
    let walked = stacks.into_values().flatten();
    let walked = walked.filter(|other| !matches!(other.what, What::StackCopy(_)));
    pending.definitions.extend(walked);
}

/// Which processes have to do with each other: they have a pipe or a connection in common, or one
/// made the other.
struct Acquaintance(HashMap<u32, HashSet<u32>>);

impl Acquaintance {
    fn new<'a>(
        population: &Population,
        definitions: impl Iterator<Item = &'a Definition> + Clone,
    ) -> Acquaintance {
        let mut known: HashMap<u32, HashSet<u32>> = HashMap::new();
        let mut meet = |a: u32, b: u32| {
            known.entry(a).or_default().insert(b);
            known.entry(b).or_default().insert(a);
        };
        for (&tid, member) in &population.threads {
            if tid == member.pid && !member.is_kernel {
                meet(member.pid, member.parent);
            }
        }
        // Both ends of a connection are known by one of them.
        let mut ends: HashMap<u64, u64> = HashMap::new();
        let mut by_addresses: HashMap<[&str; 2], u64> = HashMap::new();
        for definition in definitions.clone() {
            if let What::Socket(socket) = &definition.what {
                let mut addresses = [socket.local.as_str(), socket.remote.as_str()];
                addresses.sort_unstable();
                let end = match socket.peer {
                    0 if socket.remote.is_empty() => socket.object,
                    0 => *by_addresses.entry(addresses).or_insert(socket.object),
                    peer => socket.object.min(peer),
                };
                ends.insert(socket.object, end);
            }
        }
        let mut owners: HashMap<u64, u32> = HashMap::new();
        for definition in definitions {
            if let What::Open(open) = &definition.what {
                let object = ends.get(&open.object).copied().unwrap_or(open.object);
                meet(open.pid, *owners.entry(object).or_insert(open.pid));
            }
        }
        Acquaintance(known)
    }

    /// All processes that have to do with the `first`, directly or by others, the nearest first, each with how many
    /// steps away it is.
    fn order(&self, first: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
        let mut seen = HashSet::new();
        let first = first.filter(|&pid| seen.insert(pid));
        let mut order: Vec<(u32, u32)> = first.map(|pid| (pid, 0)).collect();
        let mut at = 0;
        while let Some(&(pid, steps)) = order.get(at) {
            at += 1;
            let mut near: Vec<u32> = self.0.get(&pid).into_iter().flatten().copied().collect();
            near.sort_unstable();
            near.retain(|&pid| seen.insert(pid));
            order.extend(near.into_iter().map(|pid| (pid, steps + 1)));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nine threads take turns of 2 to 7 ms: not even in the worst phase do half of the looks find the same one. All would
    /// with even pauses, where nine turns take as long as one.
    #[test]
    fn looks_do_not_find_the_same_of_many_that_take_turns() {
        let worst_us = |pause_us: &dyn Fn(usize) -> u64| {
            let found = |turn: u64, phase: u64| {
                let mut found = [0; 9];
                let mut now = phase;
                for looks in 1..=14 {
                    now += pause_us(looks) + 1_500;
                    found[(now / turn) as usize % 9] += 1;
                }
                found.into_iter().max().unwrap_or(0)
            };
            let turns = (2_000..7_000).step_by(50);
            let all = turns.flat_map(|turn| (0..36_000).step_by(500).map(move |it| (turn, it)));
            all.map(|(turn, phase)| found(turn, phase)).max()
        };
        assert!(worst_us(&|looks| pause(looks).as_micros() as u64) < Some(7));
        assert_eq!(worst_us(&|_| 17_300), Some(14));
    }
}
