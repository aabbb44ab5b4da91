//! Who runs at a moment, and in which function: for a look without a recording.
//!
//! A pass over all threads tells who is on a CPU, but a running thread's registers are not to be had
//! without stopping it. The sampling clock has them: it runs while the looks go on, and its last
//! samples of a thread stand for what that did in the moment. Which threads count as running, [`looks`](crate::looks) tells.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use hangdog_trace::ids::NO_CPU;
use hangdog_trace::words::Left;

use crate::event::{Event, Happening, Switch};
use crate::records::{Definition, What};
use crate::waiting::Running;

/// So many samples of a thread are kept.
const MOST: usize = 64;
/// No system call.
const CALL_NONE: i16 = -1;

/// Has the threads of `running` run from `start` on in `events`, with their samples of those `sampled` spread over the
/// `length` of the moment: those since the kernel side had `adopted` the processes that there are, and so tells their
/// interpreters' functions, if there are any. Copies of stacks of which nobody tells
/// any more are taken out of the `definitions`, all of which are of the moment. Returns whose stack is
/// whose, by its id.
pub(crate) fn settle(
    (start, length): (u64, Duration),
    adopted: u64,
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
        runs.insert(thread.tid);
        new.push(begins(thread.tid, start));
        let told = own.partition_point(|(event, _)| event.ts < adopted);
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

    const MOMENT: (u64, Duration) = (1000, Duration::from_nanos(800));

    fn thread(tid: u32) -> Running {
        Running {
            tid,
            pid: tid,
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

    /// The threads that run have their samples spread over the moment; those that wait are as they were, also if
    /// they were sampled.
    #[test]
    fn samples_are_spread_over_the_moment() {
        let waiting = |tid| Event {
            tid,
            ..begins(tid, 1000)
        };
        let mut events = vec![waiting(1), waiting(3)];
        let mut definitions = vec![copy(10), copy(11), copy(30)];
        let sampled = [sample(1, 10), sample(1, 11), sample(3, 30)];
        let running = [thread(1), thread(4)];
        let kept = settle(
            MOMENT,
            4000,
            &running,
            &sampled,
            &mut events,
            &mut definitions,
        );
        let told: Vec<(u64, u32)> = events.iter().map(|event| (event.ts, event.tid)).collect();
        // 3 is as it was; 1 and 4 come on a CPU; 1 has two samples.
        assert_eq!(
            told,
            [(1000, 3), (1000, 0), (1200, 1), (1600, 1), (1000, 0)]
        );
        let mut stacks: Vec<_> = kept.into_keys().collect();
        stacks.sort_unstable();
        assert_eq!(stacks, [10, 11]);
        assert_eq!(definitions.len(), 2, "nobody tells of stack 30");
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
                adopted,
                &[thread(1)],
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
    }
}
