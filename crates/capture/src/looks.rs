//! Several looks at all threads, of which the most typical stands for the moment.
//!
//! One look meets a thread that wants a CPU nine tenths of the time, or that reads from a slow disk in many short
//! pieces, as it runs in one case of ten. So there are several, and of each thread it is counted in how many of them
//! it does the same. The look in which those that matter do what they do most of the time is taken as a whole:
//! what threads wait for at one instant fits together, and what each of them does most of the time need not. Two that
//! take turns would wait for each other.

use std::collections::{HashMap, HashSet};

use hangdog_trace::words::Left;

use crate::event::{Event, Happening};
use crate::population::Population;
use crate::records::{Definition, What};
use crate::waiting::{Found, Running};

/// A later look is taken instead of the first only if it is more typical by this much, where 1 is a thread of
/// the process that is asked about that does all the time what it does in that look, and never what it does in the first: that
/// is closest to when files and limits were looked at.
const CLEARLY: f64 = 0.2;
/// How much less a process counts with each other that is between it and the one that is asked about.
const WITH_DISTANCE: f64 = 0.7;
/// A thread wants a CPU if it is met so many times as often without one as with one. Below that it takes turns
/// with another, and runs.
const WANTING: u32 = 2;

/// What one look has found.
pub(crate) struct Look {
    /// What processes have open.
    pub open: Vec<Definition>,
    pub found: Found,
}

/// What a thread does at a look.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Doing {
    Running,
    Wanting,
    /// How it left its CPU, in which system call, and for which object. Uninterruptible waits are all one: a disk is waited
    /// for in many calls and for many files.
    Waiting(u8, i16, u64),
}

/// In how many looks a thread was met, and doing what.
#[derive(Default)]
struct Met {
    total: u32,
    times: HashMap<Doing, u32>,
}

impl Met {
    fn times(&self, doing: Doing) -> u32 {
        self.times.get(&doing).copied().unwrap_or_default()
    }

    fn wants(&self) -> bool {
        self.times(Doing::Wanting) >= WANTING * self.times(Doing::Running).max(1)
    }

    /// The share of looks in which it did that, 0 to 1.
    fn share(&self, doing: Doing) -> f64 {
        let times = match doing {
            Doing::Running | Doing::Wanting if !self.wants() => {
                self.times(Doing::Running) + self.times(Doing::Wanting)
            }
            doing => self.times(doing),
        };
        f64::from(times) / f64::from(self.total.max(1))
    }
}

/// The moment that is shown.
pub(crate) struct Moment {
    pub events: Vec<Event>,
    pub definitions: Vec<Definition>,
    /// Who runs; of `events` some are theirs.
    pub running: Vec<Running>,
}

/// The most typical of the `looks`, of which there is one at least, for the processes of which `steps` tells how far they are
/// from the one that is asked about; without any all count. Its events are moved to when the first look
/// was. Threads that are not of the `population` are left out.
pub(crate) fn most_typical(
    mut looks: Vec<Look>,
    population: &Population,
    steps: &HashMap<u32, u32>,
) -> Moment {
    let weight = |tid: u32| {
        let pid = population.threads.get(&tid)?.pid;
        match steps.is_empty() {
            true => Some(1.0),
            false => Some(WITH_DISTANCE.powi(i32::try_from(*steps.get(&pid)?).ok()?)),
        }
    };
    let doings: Vec<HashMap<u32, Doing>> = looks.iter().map(|look| doings(&look.found)).collect();
    let mut met: HashMap<u32, Met> = HashMap::new();
    for (&tid, &doing) in doings.iter().flatten() {
        let met = met.entry(tid).or_default();
        met.total += 1;
        *met.times.entry(doing).or_default() += 1;
    }
    let typical = |doings: &HashMap<u32, Doing>| -> f64 {
        let share =
            |(tid, &doing): (&u32, &Doing)| Some(weight(*tid)? * met.get(tid)?.share(doing));
        doings.iter().filter_map(share).sum()
    };
    let scores: Vec<f64> = doings.iter().map(typical).collect();
    let best = (0..looks.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(b.cmp(&a)));
    let best = best.filter(|&best| scores[best] > scores[0] + CLEARLY);
    let best = best.unwrap_or_default();

    let begin = |look: &Look| look.found.events.iter().map(|event| event.ts).min();
    let shift = begin(&looks[best])
        .unwrap_or_default()
        .saturating_sub(begin(&looks[0]).unwrap_or_default());
    let mut definitions = std::mem::take(&mut looks[best].open);
    let mut events = std::mem::take(&mut looks[best].found.events);
    let running = std::mem::take(&mut looks[best].found.running);
    events.retain(|event| population.threads.contains_key(&event.tid));
    for event in &mut events {
        move_back(event, shift);
    }
    let used: HashSet<u32> = (events.iter())
        .filter_map(|event| match &event.what {
            Happening::Waiting { switch, .. } => Some([switch.user_stack, switch.kernel_stack]),
            _ => None,
        })
        .flatten()
        .collect();
    for look in looks {
        definitions.extend(look.found.definitions);
    }
    definitions.retain(|definition| match &definition.what {
        What::StackCopy(copy) => used.contains(&copy.id),
        What::Stack { id, .. } => used.contains(id),
        _ => true,
    });
    let is_running = |thread: &Running| {
        let wants = met.get(&thread.tid).is_some_and(Met::wants);
        population.threads.contains_key(&thread.tid) && (thread.on_cpu || !wants)
    };
    Moment {
        events,
        definitions,
        running: running.into_iter().filter(is_running).collect(),
    }
}

/// What each thread does, but for those of whoever looks.
fn doings(found: &Found) -> HashMap<u32, Doing> {
    let waits = found.events.iter().filter_map(|event| match &event.what {
        Happening::Waiting { switch, .. } => Some((
            event.tid,
            match Left::from(switch.left) {
                Left::Uninterruptible => Doing::Waiting(switch.left, 0, 0),
                _ => Doing::Waiting(switch.left, switch.call, switch.object),
            },
        )),
        _ => None,
    });
    let runs = found.running.iter().map(|thread| match thread.on_cpu {
        true => (thread.tid, Doing::Running),
        false => (thread.tid, Doing::Wanting),
    });
    let own: HashSet<u32> = (found.running.iter())
        .filter(|thread| thread.pid == std::process::id())
        .map(|thread| thread.tid)
        .collect();
    waits
        .chain(runs)
        .filter(|(tid, _)| !own.contains(tid))
        .collect()
}

/// The event as if it had been seen `by` ns before, but that no thread waits since before it was born.
fn move_back(event: &mut Event, by: u64) {
    event.ts = event.ts.saturating_sub(by);
    if let Happening::Waiting { born, since, .. } = &mut event.what {
        *since = since.saturating_sub(by).max(*born).min(event.ts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Switch;
    use crate::population::Member;
    use hangdog_trace::ids::NO_CPU;

    const POLL: i16 = 7;

    fn waits(ts: u64, tid: u32, left: Left, object: u64) -> Event {
        Event {
            ts,
            tid,
            cpu: NO_CPU,
            what: Happening::Waiting {
                is_chosen: false,
                born: 10,
                since: ts - 5,
                switch: Switch {
                    next: 0,
                    left: left.into(),
                    next_priority: 0,
                    call: POLL,
                    object,
                    arg: 0,
                    user_stack: tid,
                    kernel_stack: 0,
                },
            },
        }
    }

    fn ready(tid: u32, on_cpu: bool) -> Running {
        Running {
            tid,
            pid: tid,
            on_cpu,
            ..Running::default()
        }
    }

    fn look(events: Vec<Event>, running: Vec<Running>) -> Look {
        let mut found = Found::default();
        found.events = events;
        found.running = running;
        Look {
            open: Vec::new(),
            found,
        }
    }

    fn moment(looks: Vec<Look>) -> Moment {
        let mut population = Population::default();
        for tid in [1, 2, 3] {
            let member = Member {
                pid: tid,
                name: String::new(),
                parent: 0,
                is_kernel: false,
            };
            population.add(tid, member);
        }
        let steps = HashMap::from([(1, 0), (2, 1)]);
        most_typical(looks, &population, &steps)
    }

    fn runs(moment: &Moment) -> Vec<u32> {
        moment.running.iter().map(|thread| thread.tid).collect()
    }

    /// A thread that wants a CPU most times wants it in the moment, at which somebody else runs, though it ran at the
    /// first look. Of two that share a CPU evenly both run.
    #[test]
    fn what_a_thread_does_most_of_the_time_is_shown() {
        let turn = |ts, one_runs: bool| {
            let other = match one_runs {
                true => 1,
                false => 2,
            };
            look(
                vec![waits(ts, other, Left::Preempted, 0)],
                vec![ready(1, !one_runs), ready(2, one_runs)],
            )
        };
        let mostly = moment((0..6).map(|at| turn(100 + at * 20, at > 0)).collect());
        assert_eq!(runs(&mostly), [2]);
        let evenly = moment((0..6).map(|at| turn(100 + at * 20, at % 2 > 0)).collect());
        assert_eq!(runs(&evenly), [1, 2]);
        assert_eq!(evenly.events[0].ts, 100, "the first look is as typical");
    }

    /// Reads of several files are all waits for the disk. The look is moved to when the first was, and how long
    /// a thread has waited stays, but for what is before its birth. Who came later is left out.
    #[test]
    fn a_later_look_is_moved_to_the_first() {
        let reads = |ts, file| {
            let events = vec![
                waits(ts, 1, Left::Uninterruptible, file),
                waits(ts, 2, Left::Sleeping, 8),
                waits(ts, 99, Left::Sleeping, 0),
            ];
            look(events, Vec::new())
        };
        let first = look(vec![waits(20, 2, Left::Sleeping, 8)], vec![ready(1, true)]);
        let shown = moment(vec![first, reads(40, 5), reads(60, 6), reads(80, 7)]);
        let told: Vec<(u32, u64, u64)> = (shown.events.iter())
            .filter_map(|event| match event.what {
                Happening::Waiting { since, .. } => Some((event.tid, event.ts, since)),
                _ => None,
            })
            .collect();
        assert_eq!(told, [(1, 20, 15), (2, 20, 15)]);
        assert!(shown.running.is_empty());
    }

    /// A client and a server that take turns wait half of the time each: never both at once.
    #[test]
    fn what_never_is_at_one_time_is_not_shown() {
        let turn = |ts, client_waits: bool| {
            let (waiting, running) = match client_waits {
                true => (1, 2),
                false => (2, 1),
            };
            let events = vec![waits(ts, waiting, Left::Sleeping, u64::from(waiting))];
            look(events, vec![ready(running, true)])
        };
        for first in [true, false] {
            let looks = (0..6).map(|at| turn(100 + at * 20, (at % 2 == 0) == first));
            let shown = moment(looks.collect());
            assert_eq!(shown.events.len(), 1);
            assert_ne!(runs(&shown), [shown.events[0].tid]);
        }
    }

    /// Copies of stacks that the moment does not show are not walked.
    #[test]
    fn stacks_of_other_looks_are_dropped() {
        let copy = |id| Definition {
            ts: 0,
            what: What::StackCopy(crate::records::StackCopy {
                id,
                ..Default::default()
            }),
        };
        let mut first = look(vec![waits(20, 1, Left::Sleeping, 8)], Vec::new());
        first.found.definitions = vec![copy(1), copy(77)];
        let shown = moment(vec![first]);
        assert_eq!(shown.definitions.len(), 1);
    }
}
