//! Who runs at a moment, and in which function: for a look without a recording.
//!
//! A pass over all threads tells who is on a CPU, but a running thread's registers are not to be had
//! without stopping it. The sampling clock has them: it runs while the look goes on, and its last
//! samples of a thread stand for what that did in the moment. A thread that was sampled and does not
//! wait runs, also if it had to leave its CPU to another right then; but not if it was runnable for long
//! before it got one.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use hangdog_trace::ids::NO_CPU;
use hangdog_trace::words::Left;

use crate::event::{Event, Happening, Switch};
use crate::records::{Definition, What};
use crate::waiting::Running;

/// So many samples of a thread are kept.
const MOST: usize = 8;
/// A thread that gets no CPU for this long after the look counts as runnable, not running, ns. Threads that share a
/// CPU take turns sooner.
const KEPT_OUT_NS: u64 = 50_000_000;
/// No system call.
const CALL_NONE: i16 = -1;

/// When the parts of a look were over, ns.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    /// All threads had been looked at.
    pub looked: u64,
    /// The kernel side knew the interpreters of the processes that there are: samples tell their functions since.
    pub adopted: u64,
}

/// Has the threads of `running` run from `start` on in `events`, where they were `sampled` or on a CPU,
/// with their samples spread over the `length` of the moment: those that tell an interpreter's functions, if there
/// are any. Copies of stacks of which nobody tells
/// any more are taken out of the `definitions`, all of which are of the moment. Returns whose stack is
/// whose, by its id.
pub(crate) fn settle(
    (start, length): (u64, Duration),
    times: Times,
    running: &[Running],
    sampled: &[Event],
    events: &mut Vec<Event>,
    definitions: &mut Vec<Definition>,
) -> HashMap<u32, Running> {
    let mut kept: HashMap<u32, Running> = HashMap::new();
    let mut runs: HashSet<u32> = HashSet::new();
    let mut new = Vec::new();
    for &thread in running
        .iter()
        .filter(|thread| thread.pid != std::process::id())
    {
        let own: Vec<(&Event, u32)> = sampled
            .iter()
            .filter(|event| event.tid == thread.tid)
            .filter_map(|event| match event.what {
                Happening::Sample { user_stack, .. } => Some((event, user_stack)),
                _ => None,
            })
            .collect();
        let on_turn = own.iter().map(|(event, _)| event.ts).min();
        let is_kept_out = on_turn.is_none_or(|ts| ts >= times.looked.saturating_add(KEPT_OUT_NS));
        if is_kept_out && !thread.on_cpu {
            continue;
        }
        runs.insert(thread.tid);
        new.push(begins(thread.tid, start));
        let told = own.partition_point(|(event, _)| event.ts < times.adopted);
        let own = if told < own.len() { &own[told..] } else { &own };
        let last = &own[own.len().saturating_sub(MOST)..];
        for (at, &(event, user_stack)) in last.iter().enumerate() {
            let share = length.as_nanos() as u64 * (2 * at as u64 + 1) / (2 * last.len() as u64);
            new.push(Event {
                ts: start + share,
                ..event.clone()
            });
            kept.insert(user_stack, thread);
        }
    }
    events.retain(|event| !runs.contains(&event.tid));
    events.append(&mut new);
    let is_dropped = |event: &Event| match event.what {
        Happening::Sample { user_stack, .. } => {
            (!kept.contains_key(&user_stack)).then_some(user_stack)
        }
        _ => None,
    };
    let dropped: HashSet<u32> = sampled.iter().filter_map(is_dropped).collect();
    definitions.retain_mut(|definition| {
        definition.ts = start;
        !matches!(&definition.what, What::StackCopy(copy) if dropped.contains(&copy.id))
    });
    kept
}

/// Whether the clock has seen each of these threads run since a moment.
pub(crate) fn are_seen(running: &[Running], sampled: &[Event], since: u64) -> bool {
    let own = std::process::id();
    let is_seen = |tid: u32| {
        let mut samples = (sampled.iter()).filter(|event| event.tid == tid && event.ts >= since);
        samples.any(|event| matches!(event.what, Happening::Sample { .. }))
    };
    let mut others = running.iter().filter(|thread| thread.pid != own);
    others.all(|thread| is_seen(thread.tid))
}

/// A thread comes on a CPU, it is not told which.
fn begins(tid: u32, start: u64) -> Event {
    Event {
        ts: start,
        tid: 0,
        cpu: NO_CPU,
        what: Happening::Switch(Switch {
            next: tid,
            left: Left::Idle.into(),
            next_priority: 0,
            call: CALL_NONE,
            object: 0,
            arg: 0,
            user_stack: 0,
            kernel_stack: 0,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::StackCopy;

    const LOOKED: u64 = 4000;
    const MOMENT: (u64, Duration) = (1000, Duration::from_nanos(800));

    fn thread(tid: u32, on_cpu: bool) -> Running {
        Running {
            tid,
            pid: tid,
            on_cpu,
            ..Running::default()
        }
    }

    fn sample(tid: u32, user_stack: u32) -> Event {
        Event {
            ts: 5000,
            tid,
            cpu: 0,
            what: Happening::Sample {
                user_stack,
                kernel_stack: 0,
            },
        }
    }

    fn copy(id: u32) -> Definition {
        Definition {
            ts: 5000,
            what: What::StackCopy(StackCopy {
                id,
                ..StackCopy::default()
            }),
        }
    }

    /// A runnable thread counts as running if it was sampled soon after the look. If it was sampled late or never,
    /// it stays runnable. A blocked thread stays blocked, also if it was sampled later.
    #[test]
    fn who_was_sampled_and_does_not_wait_runs() {
        let waiting = |tid| Event {
            tid,
            ..begins(tid, 1000)
        };
        let mut events = vec![waiting(1), waiting(2), waiting(3), waiting(5)];
        let mut definitions = vec![copy(10), copy(11), copy(30), copy(50)];
        let wanting = [1, 2, 5].map(|tid| thread(tid, false));
        let running = [&wanting[..], &[thread(4, true)]].concat();
        let late = Event {
            ts: LOOKED + KEPT_OUT_NS,
            ..sample(5, 50)
        };
        let sampled = [sample(1, 10), sample(1, 11), sample(3, 30), late];
        let times = Times {
            looked: LOOKED,
            adopted: LOOKED,
        };
        let kept = settle(
            MOMENT,
            times,
            &running,
            &sampled,
            &mut events,
            &mut definitions,
        );
        let told: Vec<(u64, u32)> = events.iter().map(|event| (event.ts, event.tid)).collect();
        // 2, 3 and 5 are as they were; 1 and 4 come on a CPU; 1 has two samples.
        assert_eq!(
            told,
            [
                (1000, 2),
                (1000, 3),
                (1000, 5),
                (1000, 0),
                (1200, 1),
                (1600, 1),
                (1000, 0)
            ]
        );
        let mut stacks: Vec<_> = kept.into_keys().collect();
        stacks.sort_unstable();
        assert_eq!(stacks, [10, 11]);
        assert_eq!(definitions.len(), 2, "nobody tells of stacks 30 and 50");
        assert!(definitions.iter().all(|definition| definition.ts == 1000));
    }

    /// Samples from before the interpreters were known tell less than those since; without any of those they are
    /// all there is.
    #[test]
    fn samples_that_tell_functions_count() {
        let kept = |adopted: u64| {
            let late = Event {
                ts: 6000,
                ..sample(1, 11)
            };
            let mut stacks: Vec<u32> = settle(
                MOMENT,
                Times {
                    looked: LOOKED,
                    adopted,
                },
                &[thread(1, true)],
                &[sample(1, 10), late],
                &mut Vec::new(),
                &mut vec![copy(10), copy(11)],
            )
            .into_keys()
            .collect();
            stacks.sort_unstable();
            stacks
        };
        assert_eq!(kept(5500), [11]);
        assert_eq!(kept(7000), [10, 11]);
        let sampled = [sample(1, 10)];
        let is_seen = |since| are_seen(&[thread(1, true)], &sampled, since);
        assert!(is_seen(5000) && !is_seen(5001));
    }
}
