//! What one thread gave another to do, or had done to it later: work items, signals, timers.
//!
//! A work item cuts the life of the worker that takes it up. A signal reaches its receiver where
//! that takes it, also while it runs. A timer that a thread armed reaches whom it wakes when it
//! fires. Requests of io_uring are left out: who waits for them is who submitted them.

use std::collections::HashMap;

use hangdog_trace::ids::Utid;
use hangdog_trace::tables::{Handoffs, Wakes};
use hangdog_trace::words::{Context, HandoffKind, HandoffStep};

use crate::edge::EdgeKind;
use crate::groups::Groups;

/// Async work that a thread took up, or that reached it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TakenUp {
    /// As which edge.
    pub(crate) kind: EdgeKind,
    /// Row of `handoffs`: who handed over, and when.
    pub(crate) row: u32,
    /// Who took it up.
    pub(crate) to: Utid,
    /// When.
    pub(crate) taken: u64,
}

/// All of them, by who took them up, in order of time.
#[derive(Debug, Default)]
pub(crate) struct AsyncWork {
    all: Vec<TakenUp>,
    by_taker: Groups,
}

impl AsyncWork {
    /// Ties the steps of each item together; `threads` is the number of threads.
    pub(crate) fn new(handoffs: &Handoffs, wakes: &Wakes, threads: usize) -> AsyncWork {
        let mut all = Vec::new();
        // By kind and key, the row at which it was handed over.
        let mut given: HashMap<(u8, u64), u32> = HashMap::new();
        // By CPU, the row at which the timer fired whose callback runs there.
        let mut firing: HashMap<u16, u32> = HashMap::new();
        for row in 0..handoffs.len().min(u32::MAX as usize) {
            let item = (handoffs.kind[row], handoffs.key[row]);
            let (cpu, thread, ts) = (handoffs.cpu[row], handoffs.thread[row], handoffs.ts[row]);
            let kind = HandoffKind::from(item.0);
            let is_own = Context::from(handoffs.context[row]) == Context::Task;
            let taken_up = |kind, from: &u32, to, taken| TakenUp {
                kind,
                row: *from,
                to,
                taken,
            };
            match HandoffStep::from(handoffs.step[row]) {
                HandoffStep::Submitted if is_own => drop(given.insert(item, row as u32)),
                HandoffStep::Submitted | HandoffStep::Cancelled => drop(given.remove(&item)),
                HandoffStep::Begun if kind == HandoffKind::Timer => {
                    firing.insert(cpu, row as u32);
                }
                HandoffStep::Begun if is_own => {
                    let kind = match kind {
                        HandoffKind::Work => EdgeKind::Work,
                        HandoffKind::Signal => EdgeKind::Kill,
                        _ => continue,
                    };
                    let from = given.remove(&item);
                    all.extend(from.map(|from| taken_up(kind, &from, thread, ts)));
                }
                HandoffStep::Done if kind == HandoffKind::Timer => {
                    // A timer may fire again and again, as it was armed once.
                    let (Some(began), Some(from)) = (firing.remove(&cpu), given.get(&item)) else {
                        continue;
                    };
                    let began = handoffs.ts[began as usize];
                    let first = wakes.ts.partition_point(|&at| at < began);
                    all.extend(
                        (first..wakes.len())
                            .take_while(|&wake| wakes.ts[wake] <= ts)
                            .filter(|&wake| wakes.cpu[wake] == cpu)
                            .filter(|&wake| Context::from(wakes.context[wake]) == Context::Hrtimer)
                            .map(|wake| {
                                let (to, taken) = (wakes.wakee[wake], wakes.ts[wake]);
                                taken_up(EdgeKind::Timer, from, to, taken)
                            }),
                    );
                }
                _ => {}
            }
        }
        // Only a damaged trace has things taken up before they were given.
        all.retain(|taken_up| handoffs.ts[taken_up.row as usize] <= taken_up.taken);
        all.sort_by_key(|taken_up| taken_up.taken);
        let by_taker = Groups::new(threads, || {
            let takers = all.iter().map(|taken_up| taken_up.to);
            takers.zip(0..)
        });
        AsyncWork { all, by_taker }
    }

    /// What a thread took up, in order of time.
    pub(crate) fn taken_by(&self, thread: Utid) -> impl Iterator<Item = TakenUp> + '_ {
        let rows = self.by_taker.get(thread as usize).iter();
        rows.map(|&at| self.all[at as usize])
    }
}
