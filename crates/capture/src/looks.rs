//! Several looks at all threads, of which the most typical stands for the moment.
//!
//! A thread that is runnable nine tenths of the time, or that reads from a slow disk in many short pieces, runs at one
//! look in ten. So there are several looks, and for each thread the looks with the same activity are counted. The look
//! in which the threads that matter do what they do most often is shown as a whole: what threads wait for at one instant
//! is consistent, and what each of them does most of the time need not be. A client and a server that take turns would
//! wait for each other.

use std::collections::{HashMap, HashSet};

use hangdog_trace::words::Left;

use crate::event::{Event, Happening};
use crate::population::Population;
use crate::records::{Definition, What};
use crate::waiting::{Found, Running};

/// The first look is closest to when files and limits were looked at. A later one is taken only if its score is greater by
/// this much. A thread of the process that is asked about adds 1 to a look's score if it always does what it does there.
const CLEARLY: f64 = 0.2;
/// With each process between it and the one that is asked about, a process counts so much less.
const WITH_DISTANCE: f64 = 0.7;
/// A thread is mostly runnable if it is found without a CPU this many times as often as with one. Otherwise it takes
/// turns with others, and counts as running.
const MOSTLY: u32 = 2;

/// What one look has found.
pub(crate) struct Look {
    /// What processes have open.
    pub open: Vec<Definition>,
    pub found: Found,
}

/// What a thread does at a look.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Activity {
    Running,
    Runnable,
    /// How it left its CPU, in which system call, and for which object. Uninterruptible waits are all one: a disk is waited
    /// for in many calls and for many files.
    Waiting(u8, i16, u64),
}

/// How many looks found a thread, and how many of them in which activity.
#[derive(Default)]
struct Counts {
    total: u32,
    of: HashMap<Activity, u32>,
}

impl Counts {
    fn of(&self, activity: Activity) -> u32 {
        self.of.get(&activity).copied().unwrap_or_default()
    }

    fn is_mostly_runnable(&self) -> bool {
        self.of(Activity::Runnable) >= MOSTLY * self.of(Activity::Running).max(1)
    }

    /// The share of looks with that activity, 0 to 1.
    fn share(&self, activity: Activity) -> f64 {
        let count = match activity {
            Activity::Running | Activity::Runnable if !self.is_mostly_runnable() => {
                self.of(Activity::Running) + self.of(Activity::Runnable)
            }
            activity => self.of(activity),
        };
        f64::from(count) / f64::from(self.total.max(1))
    }
}

/// The moment that is shown.
pub(crate) struct Moment {
    pub events: Vec<Event>,
    pub definitions: Vec<Definition>,
    /// The threads that run. A thread that does not have a CPU has an event among `events`, too.
    pub running: Vec<Running>,
}

/// The most typical of the `looks`, of which there is one at least. `steps` has the processes that count, with how many
/// steps they are away from the one that is asked about; if it is empty, all count alike. The look is moved in time to the
/// first one. Threads that are not of the `population` are left out.
pub(crate) fn most_typical(
    mut looks: Vec<Look>,
    population: &Population,
    steps: &HashMap<u32, u32>,
) -> Moment {
    let activities: Vec<HashMap<u32, Activity>> =
        looks.iter().map(|look| activities(&look.found)).collect();
    let mut counts: HashMap<u32, Counts> = HashMap::new();
    for (&tid, &activity) in activities.iter().flatten() {
        let counts = counts.entry(tid).or_default();
        counts.total += 1;
        *counts.of.entry(activity).or_default() += 1;
    }
    let best = best_of(&activities, &counts, |tid| {
        weight(population.threads.get(&tid)?.pid, steps)
    });

    let begin = |look: &Look| look.found.events.iter().map(|event| event.ts).min();
    let shift = begin(&looks[best])
        .unwrap_or_default()
        .saturating_sub(begin(&looks[0]).unwrap_or_default());
    let mut definitions = std::mem::take(&mut looks[best].open);
    let mut events = std::mem::take(&mut looks[best].found.events);
    let mut running = std::mem::take(&mut looks[best].found.running);
    events.retain(|event| population.threads.contains_key(&event.tid));
    for event in &mut events {
        move_back(event, shift);
    }
    running.retain(|thread| {
        let has_turns = !counts
            .get(&thread.tid)
            .is_some_and(Counts::is_mostly_runnable);
        population.threads.contains_key(&thread.tid) && (thread.on_cpu || has_turns)
    });
    for look in looks {
        definitions.extend(look.found.definitions);
    }
    retain_stacks_of(&events, &mut definitions);
    Moment {
        events,
        definitions,
        running,
    }
}

/// How much a thread of a process counts; none if it does not.
fn weight(pid: u32, steps: &HashMap<u32, u32>) -> Option<f64> {
    if steps.is_empty() {
        return Some(1.0);
    }
    let steps = i32::try_from(*steps.get(&pid)?).ok()?;
    Some(WITH_DISTANCE.powi(steps))
}

/// Which look has the highest score: the first, unless another has clearly more. A look's score is the sum over its
/// threads of the share of looks with the same activity.
fn best_of(
    activities: &[HashMap<u32, Activity>],
    counts: &HashMap<u32, Counts>,
    weight: impl Fn(u32) -> Option<f64>,
) -> usize {
    let score = |look: &HashMap<u32, Activity>| -> f64 {
        let of_thread = |(&tid, &activity): (&u32, &Activity)| {
            Some(weight(tid)? * counts.get(&tid)?.share(activity))
        };
        look.iter().filter_map(of_thread).sum()
    };
    let scores: Vec<f64> = activities.iter().map(score).collect();
    (0..scores.len())
        .max_by(|&a, &b| scores[a].total_cmp(&scores[b]))
        .filter(|&best| scores[best] > scores[0] + CLEARLY)
        .unwrap_or_default()
}

/// What each thread does, but for those of whoever looks.
fn activities(found: &Found) -> HashMap<u32, Activity> {
    let waits = found.events.iter().filter_map(|event| match &event.what {
        Happening::Waiting { switch, .. } => Some((
            event.tid,
            match Left::from(switch.left) {
                Left::Uninterruptible => Activity::Waiting(switch.left, 0, 0),
                _ => Activity::Waiting(switch.left, switch.call, switch.object),
            },
        )),
        _ => None,
    });
    let runs = found.running.iter().map(|thread| match thread.on_cpu {
        true => (thread.tid, Activity::Running),
        false => (thread.tid, Activity::Runnable),
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

/// Keeps the stacks that `events` refer to, and none of other looks.
fn retain_stacks_of(events: &[Event], definitions: &mut Vec<Definition>) {
    let used: HashSet<u32> = (events.iter())
        .filter_map(|event| match &event.what {
            Happening::Waiting { switch, .. } => Some([switch.user_stack, switch.kernel_stack]),
            _ => None,
        })
        .flatten()
        .collect();
    definitions.retain(|definition| match &definition.what {
        What::StackCopy(copy) => used.contains(&copy.id),
        What::Stack { id, .. } => used.contains(id),
        _ => true,
    });
}

/// Has the event `by` ns earlier, and the wait begin so much earlier, though not before the thread was born.
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
    /// a thread has waited stays. A thread that was born between the looks is left out.
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
