//! Who had the CPUs that a thread wanted, and what would have helped it.
//!
//! Each time that a thread is runnable or preempted, it waits for the CPU that it comes on next; whoever has that
//! meanwhile is in its way. What would have helped is read off the same timeline: how much of the waiting would be
//! gone had some of them not run then. More than that cannot be gained, since whoever gives way runs later.

use crate::case::Recording;
use crate::select::{Who, Window};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::ids::{IDLE, NO_CPU, Utid};
use hangdog_trace::words::Left;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What some threads waited for CPUs, and who had them.
#[derive(Debug, PartialEq, Serialize)]
pub struct Rivals<'a> {
    /// How long they were runnable or preempted, all together, ns.
    pub wanted_ns: u64,
    /// How often.
    pub waits: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// Who had the CPU meanwhile, most first.
    pub rivals: Vec<Rival<'a>>,
    /// How long the CPU was idle though it was wanted: it was being woken, ns.
    pub idle_ns: u64,
    /// How long it is not known which CPU was wanted, or who had it, ns.
    pub unknown_ns: u64,
    /// What would have helped, most first.
    pub helps: Vec<Help>,
}

/// Who had a CPU that others wanted.
#[derive(Debug, PartialEq, Serialize)]
pub struct Rival<'a> {
    /// The thread.
    #[serde(flatten)]
    pub who: Who<'a>,
    /// Its kernel priority when it came on the CPU, as it was most of the time: 0-98 realtime, 100-139 nice -20 to 19.
    pub priority: Option<u8>,
    /// How long, ns.
    pub ns: u64,
}

/// What would have helped.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Help {
    /// What, as a phrase.
    pub what: &'static str,
    /// By how much less they would have waited at most, ns.
    pub ns: u64,
}

#[derive(Default)]
struct Sums {
    wanted: u64,
    waits: u64,
    longest: u64,
    idle: u64,
    unknown: u64,
    /// By thread and priority.
    had: BTreeMap<(Utid, Option<u8>), u64>,
    /// Had by threads of the normal classes, and by real-time ones.
    normal: u64,
    realtime: u64,
    throttled: u64,
    elsewhere: u64,
}

/// What `threads` waited for CPUs in a window.
pub fn rivals<'a>(recording: &'a Recording, threads: &[Utid], window: Window) -> Rivals<'a> {
    let mut sums = Sums::default();
    for &thread in threads {
        sums.add_thread(recording, thread, window);
    }
    let mut by_thread: BTreeMap<Utid, (u64, u64, Option<u8>)> = BTreeMap::new();
    for (&(thread, priority), &ns) in &sums.had {
        let (sum, most, usual) = by_thread.entry(thread).or_default();
        *sum += ns;
        if ns > *most {
            (*most, *usual) = (ns, priority);
        }
    }
    let mut rivals: Vec<Rival<'a>> = (by_thread.into_iter())
        .map(|(thread, (ns, _, priority))| Rival {
            who: Who::new(&recording.threads, thread),
            priority,
            ns,
        })
        .collect();
    rivals.sort_by_key(|rival| Reverse((rival.ns, rival.who.utid)));
    let had: u64 = sums.had.values().sum();
    let mut helps = vec![
        Help {
            what: "precedence over threads of normal priority (a lower nice value)",
            ns: sums.normal,
        },
        Help {
            what: "a real-time priority above that of real-time threads",
            ns: sums.realtime,
        },
        Help {
            what: "a CPU that nobody else may run on (cpuset)",
            ns: had,
        },
        Help {
            what: "another CPU that was idle meanwhile (affinity)",
            ns: sums.elsewhere,
        },
        Help {
            what: "no CPU quota of its control group",
            ns: sums.throttled,
        },
    ];
    helps.retain(|help| help.ns > 0);
    helps.sort_by_key(|help| Reverse(help.ns));
    Rivals {
        wanted_ns: sums.wanted,
        waits: sums.waits,
        longest_ns: sums.longest,
        rivals,
        idle_ns: sums.idle,
        unknown_ns: sums.unknown,
        helps,
    }
}

impl Sums {
    fn add_thread(&mut self, recording: &Recording, thread: Utid, window: Window) {
        let intervals = recording.timeline.intervals(thread);
        let mut waits: Vec<Interval> = Vec::new();
        for at in intervals.indexes(window.from, window.to) {
            let Some(interval) = intervals.get(at) else {
                break;
            };
            if interval.state.wants_cpu() {
                waits.push(interval);
                continue;
            }
            // The CPU that it came on is the one that it wanted.
            let cpu = match interval.cause {
                Cause::Switch(row) if interval.state == State::Running => {
                    recording.switches.cpu[row as usize]
                }
                _ => NO_CPU,
            };
            for wait in waits.drain(..) {
                self.add_wait(recording, wait, cpu, window);
            }
        }
        for wait in waits {
            self.add_wait(recording, wait, NO_CPU, window);
        }
    }

    fn add_wait(&mut self, recording: &Recording, wait: Interval, cpu: u16, window: Window) {
        let (from, to) = (wait.start.max(window.from), wait.end.min(window.to));
        let ns = to.saturating_sub(from);
        self.wanted += ns;
        self.waits += 1;
        self.longest = self.longest.max(ns);
        let switches = &recording.switches;
        let left = match wait.cause {
            Cause::Switch(row) => Some(Left::from(switches.left[row as usize])),
            _ => None,
        };
        if left == Some(Left::Throttled) {
            self.throttled += ns;
            return;
        }
        if cpu == NO_CPU {
            self.unknown += ns;
            return;
        }
        let mut known = 0;
        for occupant in recording.timeline.cpu(switches, cpu).between(from, to) {
            let part = occupant
                .end
                .min(to)
                .saturating_sub(occupant.start.max(from));
            known += part;
            if occupant.thread == IDLE {
                self.idle += part;
                continue;
            }
            let priority = occupant.row.map(|row| switches.next_priority[row as usize]);
            *self.had.entry((occupant.thread, priority)).or_default() += part;
            match priority {
                Some(100..=139) => self.normal += part,
                Some(_) => self.realtime += part,
                None => {}
            }
        }
        self.unknown += ns.saturating_sub(known);
        self.elsewhere += idle_elsewhere(recording, cpu, from, to);
    }
}

/// For how long at least one other CPU was idle.
fn idle_elsewhere(recording: &Recording, cpu: u16, from: u64, to: u64) -> u64 {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for other in (0..recording.timeline.cpu_count() as u16).filter(|&other| other != cpu) {
        let occupancy = recording.timeline.cpu(&recording.switches, other);
        let idle = (occupancy.between(from, to)).filter(|occupant| occupant.thread == IDLE);
        spans.extend(idle.map(|it| (it.start.max(from), it.end.min(to))));
    }
    spans.sort_unstable();
    let (mut sum, mut until) = (0, from);
    for (start, end) in spans {
        sum += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    sum
}
