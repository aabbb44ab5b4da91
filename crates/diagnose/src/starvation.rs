//! Who had the CPU that a thread wanted.

use hangdog_graph::Evidence;
use hangdog_timeline::{Cause, State};
use hangdog_trace::ids::{IDLE, KERNEL_PROCESS, NO_CPU, Upid, Utid};
use std::collections::HashMap;
use std::ops::Range;

/// Why a thread had no CPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Starvation {
    /// Its group had used up its quota.
    Quota,
    /// One thread had its CPU for most of the time.
    Hog {
        thread: Utid,
        cpu: u16,
        /// The hog's kernel priority is the stronger one.
        outranks: bool,
        /// It was given a lower priority so that others like the hog come first.
        gives_way: bool,
        share: f64,
    },
    /// Many shared it.
    Crowd {
        /// Of the program that had most of what it wanted, if one had much of it, the busiest
        /// thread.
        most: Option<Utid>,
        /// So many processes of that program's name had it together, and each of them less.
        processes: usize,
        /// Those of a stronger kernel priority had it for most of the time.
        outranks: bool,
        /// The thread itself ran about as long as each of them, between the times at which it had no CPU.
        in_turn: bool,
    },
    /// Nobody had the CPU that it wanted, or only threads that it goes before: a limit kept it from it.
    Withheld {
        /// By which limit.
        by: Limit,
        /// The share of the time for which nobody had it who goes before.
        share: f64,
    },
}

/// What limits a thread's use of the CPUs, as far as its rank tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The runtime that it asked for in each period (SCHED_DEADLINE).
    Deadline,
    /// That of real-time threads, of its control group or of all.
    Realtime,
    /// Of its control group, or it may use other CPUs only.
    Group,
    /// One of these: its rank is not known.
    Any,
    /// None that shows: it was runnable many times, each time for hardly longer than a CPU that sleeps takes to wake.
    Wakeup {
        /// For how long on average, ns.
        each: u64,
    },
}

/// The kernel's priority of a thread at niceness 0, and of the first that is not real-time.
const NICE_0: i16 = 120;
const FIRST_NORMAL: i16 = 100;
/// That of threads of SCHED_DEADLINE, which go before all others.
const DEADLINE: i16 = -1;

/// A priority as it is stored, in eight bits, as a number of which a lower one goes first.
fn rank(priority: u8) -> i16 {
    i16::from(priority.wrapping_add(1)) - 1
}

/// More than this share of the time is most of it.
const MOST: f64 = 0.5;

/// Where there are more windows than this, an evenly spaced sample of so many shows who had the CPU.
pub(crate) const MOST_WINDOWS: usize = 20_000;

/// A CPU that others had for less than this share was to be had.
const HARDLY: f64 = 0.2;

/// What was kept from it for less than this may have been slow to come.
const LEAST_WITHHELD_NS: u64 = 20_000_000;

/// A CPU that sleeps, that of a virtual machine most of all, takes up to so long to wake. A limit lasts longer.
const WAKES_WITHIN_NS: u64 = 300_000;

/// One of many that runs less than the busiest of them by so many times does not have its turn.
const LESS: u64 = 4;

/// One of several programs that had so much of it is named.
const MUCH: f64 = 0.2;

/// Why `thread` had no CPU in `windows`, of which `throttled` ns are known to be its quota's.
pub(crate) fn explain(
    evidence: &Evidence<'_>,
    thread: Utid,
    windows: &[Range<u64>],
    throttled: u64,
) -> Starvation {
    let total: u64 = windows.iter().map(|window| window.end - window.start).sum();
    if throttled as f64 > MOST * total as f64 {
        return Starvation::Quota;
    }
    let stride = windows.len().div_ceil(MOST_WINDOWS).max(1);
    let looked_at = || windows.iter().step_by(stride);
    let total: u64 = looked_at().map(|window| window.end - window.start).sum();
    // The same on each CPU that it might have had.
    let mut wanted = 0_u64;
    let mut had: HashMap<(Utid, u16), u64> = HashMap::new();
    let mut hog_priority: HashMap<Utid, i16> = HashMap::new();
    for window in looked_at() {
        // Of one that ran neither before nor after it is not known which CPU it was to have.
        let cpus = match wanted_cpu(evidence, thread, window) {
            Some(cpu) => cpu..cpu + 1,
            None => 0..evidence.timeline.cpu_count() as u16,
        };
        let length = window.end - window.start;
        wanted = wanted.saturating_add(length.saturating_mul(cpus.len() as u64));
        for cpu in cpus {
            let occupancy = evidence.timeline.cpu(evidence.switches, cpu);
            for occupant in occupancy.between(window.start, window.end) {
                let time = occupant.end.min(window.end) - occupant.start.max(window.start);
                let had = had.entry((occupant.thread, cpu)).or_default();
                *had = had.saturating_add(time);
                if let Some(row) = occupant.row {
                    let priority = rank(evidence.switches.next_priority[row as usize]);
                    hog_priority.insert(occupant.thread, priority);
                }
            }
        }
    }
    let own = priority(evidence, thread, windows);
    let each = total / looked_at().count().max(1) as u64;
    let withheld = withheld(thread, own, &had, &hog_priority, total, each);
    // What the recorder takes is nobody's doing, and over with the recording.
    let is_recorder = |other| evidence.is_recorders(evidence.threads.thread(other).upid);
    had.retain(|&(other, _), _| other != IDLE && other != thread && !is_recorder(other));
    if had.is_empty() && is_instant(evidence) {
        let moment = windows.first().map_or(0, |window| window.start);
        let most = most_seen_running(evidence, thread, moment);
        if most.is_none() && has_waited_long(evidence, thread, moment) {
            return Starvation::Withheld {
                by: Limit::Any,
                share: 1.0,
            };
        }
        return Starvation::Crowd {
            most,
            processes: 1,
            outranks: false,
            in_turn: true,
        };
    }
    if let Some(withheld) = withheld {
        return withheld;
    }
    let most = (had.iter()).max_by_key(|((other, cpu), time)| (**time, *other, *cpu));
    if let Some((&(hog, cpu), &time)) = most
        && time as f64 > MOST * total as f64
    {
        let both = own.zip(hog_priority.get(&hog).copied());
        let outranks = both.is_some_and(|(own, hogs)| hogs < own);
        return Starvation::Hog {
            thread: hog,
            cpu,
            outranks,
            gives_way: outranks
                && both.is_some_and(|(own, hogs)| own > NICE_0 && hogs >= FIRST_NORMAL),
            share: time as f64 / total as f64,
        };
    }
    // The threads of one program had it together, or several processes of one name.
    let mut programs: HashMap<Upid, u64> = HashMap::new();
    for (&(other, _), time) in &had {
        let program = evidence.threads.thread(other).upid;
        let program = programs.entry(program).or_default();
        *program = program.saturating_add(*time);
    }
    let mut most = (programs.iter())
        .max_by_key(|(program, time)| (**time, **program))
        .filter(|&(_, &time)| time as f64 > MUCH * total as f64)
        .map(|(&program, _)| program);
    let alike = most_of_one_name(evidence, &programs);
    if let Some(alike) = &alike
        && alike.time as f64 > MOST * wanted as f64
    {
        most = Some(alike.busiest);
    }
    let processes = match alike {
        Some(alike) if most == Some(alike.busiest) => alike.processes,
        _ => 1,
    };
    let busiest = |program: Upid| {
        let threads = had.iter();
        let of_it =
            threads.filter(|((other, _), _)| evidence.threads.thread(*other).upid == program);
        let most = of_it.max_by_key(|((other, cpu), time)| (**time, *other, *cpu));
        most.map(|(&(other, _), _)| other)
    };
    let is_above = |other: Utid| {
        own.zip(hog_priority.get(&other))
            .is_some_and(|(own, other)| *other < own)
    };
    let above = (had.iter().filter(|((other, _), _)| is_above(*other)))
        .fold(0_u64, |sum, (_, &time)| sum.saturating_add(time));
    Starvation::Crowd {
        most: most.and_then(busiest),
        processes,
        outranks: above as f64 > MOST * wanted as f64,
        in_turn: ran(evidence, thread, windows).saturating_mul(LESS)
            >= had
                .values()
                .max()
                .copied()
                .unwrap_or(0)
                .saturating_mul(stride as u64),
    }
}

/// Whether a thread of priority `own` was kept from CPUs that it could have had: of `total` ns none was in use
/// for much by threads that the kernel does not let it go before. The kernel gives a CPU that is idle to whoever
/// is runnable on it, but for a limit: of real-time threads in all (sched_rt_runtime_us) or in a control group; or the
/// CPU has to wake first, which takes its time of each of many short waits, of `each` ns.
fn withheld(
    thread: Utid,
    own: Option<i16>,
    had: &HashMap<(Utid, u16), u64>,
    priorities: &HashMap<Utid, i16>,
    total: u64,
    each: u64,
) -> Option<Starvation> {
    let by = match own {
        Some(DEADLINE) => Limit::Deadline,
        Some(own) if own < FIRST_NORMAL => Limit::Realtime,
        _ if each <= WAKES_WITHIN_NS => Limit::Wakeup { each },
        Some(_) => Limit::Group,
        None => Limit::Any,
    };
    let is_ranked = matches!(by, Limit::Deadline | Limit::Realtime);
    let mut busy: HashMap<u16, u64> = HashMap::new();
    for (&(other, cpu), &time) in had {
        let goes_after = is_ranked && (priorities.get(&other)).is_some_and(|&it| Some(it) > own);
        if other != IDLE && other != thread && !goes_after {
            let busy = busy.entry(cpu).or_default();
            *busy = busy.saturating_add(time);
        }
    }
    let busiest = busy.into_values().max().unwrap_or(0) as f64 / total.max(1) as f64;
    // A CPU that sleeps may take a while to wake, that of a virtual machine most of all.
    (!had.is_empty() && busiest < HARDLY && total >= LEAST_WITHHELD_NS).then_some(
        Starvation::Withheld {
            by,
            share: 1.0 - busiest,
        },
    )
}

/// Processes of one name.
struct Alike {
    processes: usize,
    /// How long they had the CPUs together, ns.
    time: u64,
    busiest: Upid,
}

/// Of the names that several processes have the one whose processes had the CPUs for longest together.
fn most_of_one_name(evidence: &Evidence<'_>, programs: &HashMap<Upid, u64>) -> Option<Alike> {
    let mut names: HashMap<&str, Alike> = HashMap::new();
    for (&program, &time) in programs
        .iter()
        .filter(|(program, _)| **program != KERNEL_PROCESS)
    {
        let alike = names
            .entry(&evidence.threads.process(program).name)
            .or_insert(Alike {
                processes: 0,
                time: 0,
                busiest: program,
            });
        alike.processes += 1;
        alike.time = alike.time.saturating_add(time);
        if (time, program) > (programs[&alike.busiest], alike.busiest) {
            alike.busiest = program;
        }
    }
    let several = names.into_values().filter(|alike| alike.processes > 1);
    several.max_by_key(|alike| (alike.time, alike.busiest))
}

/// How long a thread ran between the first of some windows and the last, ns.
fn ran(evidence: &Evidence<'_>, thread: Utid, windows: &[Range<u64>]) -> u64 {
    let start = windows.iter().map(|window| window.start).min();
    let end = windows.iter().map(|window| window.end).max();
    let Some((start, end)) = start.zip(end) else {
        return 0;
    };
    (evidence.timeline.between(thread, start, end))
        .filter(|part| part.state == State::Running)
        .fold(0, |sum, part| sum.saturating_add(part.duration()))
}

/// Whether a trace is of one moment: who ran in it is known, and on which CPU is not.
pub(crate) fn is_instant(evidence: &Evidence<'_>) -> bool {
    evidence.switches.cpu.iter().all(|&cpu| cpu == NO_CPU)
}

/// Whether a thread was runnable for so long before a moment that it would have had its turn.
fn has_waited_long(evidence: &Evidence<'_>, thread: Utid, moment: u64) -> bool {
    const LONG_NS: i64 = 200_000_000;
    let since = evidence.away_since(thread);
    since.is_some_and(|since| moment.cast_signed().saturating_sub(since) >= LONG_NS)
}

/// Of the other threads that ran at a moment the one that most samples show.
fn most_seen_running(evidence: &Evidence<'_>, thread: Utid, moment: u64) -> Option<Utid> {
    let runs = |&other: &Utid| {
        let intervals = evidence.timeline.intervals(other);
        let at = intervals.index_at(moment).and_then(|at| intervals.get(at));
        at.is_some_and(|interval| interval.state == State::Running)
    };
    let samples = |other: Utid| {
        let all = evidence.samples.thread.iter();
        all.filter(|&&sampled| sampled == other).count()
    };
    evidence
        .timeline
        .threads()
        .filter(|&other| other != thread && runs(&other))
        .filter(|&other| !evidence.is_recorders(evidence.threads.thread(other).upid))
        .max_by_key(|&other| (samples(other), std::cmp::Reverse(other)))
}

/// Whether many of its rank had the CPU that `thread` wanted in a window, and it had its share, too: each waits
/// for its turn.
pub(crate) fn by_crowd(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> bool {
    let why = explain(evidence, thread, &runnable(evidence, thread, window), 0);
    matches!(
        why,
        Starvation::Crowd {
            outranks: false,
            in_turn: true,
            ..
        }
    )
}

/// A CPU that was idle for nearly all of the time in which a thread was runnable, with the share: the thread may
/// not use it.
pub(crate) fn idle_meanwhile(
    evidence: &Evidence<'_>,
    thread: Utid,
    window: &Range<u64>,
) -> Option<(u16, f64)> {
    const NEARLY_ALL: f64 = 0.8;
    const LEAST_NS: u64 = 100_000_000;
    let windows = runnable(evidence, thread, window);
    let stride = windows.len().div_ceil(MOST_WINDOWS).max(1);
    let looked_at = || windows.iter().step_by(stride);
    let total = looked_at().fold(0_u64, |sum, it| sum.saturating_add(it.end - it.start));
    if total < LEAST_NS {
        return None;
    }
    let idle = |cpu: u16| {
        let occupancy = evidence.timeline.cpu(evidence.switches, cpu);
        let occupants = looked_at().flat_map(|it| {
            let occupants = occupancy.between(it.start, it.end);
            occupants.map(|by| (by.thread, by.end.min(it.end) - by.start.max(it.start)))
        });
        let idle = occupants.filter(|&(thread, _)| thread == IDLE);
        idle.fold(0_u64, |sum, (_, time)| sum.saturating_add(time)) as f64 / total as f64
    };
    let cpus = (0..evidence.timeline.cpu_count() as u16).map(|cpu| (cpu, idle(cpu)));
    cpus.filter(|&(_, share)| share >= NEARLY_ALL)
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Whether others than a crowd of its rank kept a thread from a CPU for nearly all of a window.
pub(crate) fn is_starved(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> bool {
    const NEARLY_ALL: f64 = 0.9;
    let runnable = runnable(evidence, thread, window);
    let wanted: u64 = runnable.iter().map(|part| part.end - part.start).sum();
    wanted as f64 >= NEARLY_ALL * (window.end - window.start) as f64
        && !by_crowd(evidence, thread, window)
}

/// Whether a thread ran at a lower priority than usual in a window: somebody chose that it may take its time.
pub(crate) fn is_nice(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> bool {
    let mut windows = runnable(evidence, thread, window);
    if windows.is_empty() {
        windows.push(window.clone());
    }
    priority(evidence, thread, &windows).is_some_and(|own| own > NICE_0)
}

/// When a thread was runnable without a CPU, in a window.
fn runnable(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> Vec<Range<u64>> {
    let parts = evidence.timeline.between(thread, window.start, window.end);
    parts
        .filter(|part| matches!(part.state, State::Runnable | State::Preempted))
        .map(|part| part.start..part.end)
        .collect()
}

/// Who had the CPU that `thread` wanted in `window`, each interval with its length, ns; the idle
/// thread and itself left out.
pub(crate) fn occupants(
    evidence: &Evidence<'_>,
    thread: Utid,
    window: &Range<u64>,
) -> impl Iterator<Item = (Utid, u64)> {
    let cpu = wanted_cpu(evidence, thread, window);
    cpu.into_iter()
        .map(|cpu| evidence.timeline.cpu(evidence.switches, cpu))
        .flat_map(|occupancy| occupancy.between(window.start, window.end))
        .filter(move |occupant| occupant.thread != IDLE && occupant.thread != thread)
        .map(|occupant| {
            let time = occupant.end.saturating_sub(occupant.start);
            (occupant.thread, time)
        })
}

/// The CPU that the thread was waiting for: the one that it then got, or was taken from.
fn wanted_cpu(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> Option<u16> {
    let intervals = evidence.timeline.intervals(thread);
    let at = intervals.index_at(window.start)?;
    let row = |at: usize| match intervals.get(at)?.cause {
        Cause::Switch(row) => Some(evidence.switches.cpu[row as usize]),
        _ => None,
    };
    let next_on_cpu = (at..intervals.len().min(at + 4)).find(|&next| {
        intervals
            .get(next)
            .is_some_and(|i| i.state == State::Running)
    });
    let cpu = next_on_cpu.and_then(row).or_else(|| row(at));
    cpu.filter(|&cpu| cpu != NO_CPU)
}

/// The thread's own priority when it next ran, after the longest window.
fn priority(evidence: &Evidence<'_>, thread: Utid, windows: &[Range<u64>]) -> Option<i16> {
    let intervals = evidence.timeline.intervals(thread);
    let longest = windows
        .iter()
        .max_by_key(|window| window.end - window.start)?;
    let at = intervals.index_at(longest.start)?;
    (at..intervals.len().min(at + 8))
        .chain((0..at).rev().take(8))
        .find_map(|at| {
            let interval = intervals.get(at)?;
            match (interval.state, interval.cause) {
                (State::Running, Cause::Switch(row)) => {
                    Some(rank(evidence.switches.next_priority[row as usize]))
                }
                _ => None,
            }
        })
}
