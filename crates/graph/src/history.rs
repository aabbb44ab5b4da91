//! How waits at one place of a thread ended before.
//!
//! A place is a system call and a user stack; where a thread never waited at just this one, the
//! same object or the same innermost functions will do. Who usually ends the waits there is what
//! to ask for when nobody did, or when the one who did had done so spuriously. A thread that never
//! waited there before is known by its like: the other threads of its process that have its role.

use hangdog_timeline::timeline::Intervals;
use hangdog_timeline::{Cause, State};
use hangdog_trace::ids::{IDLE, Utid};
use hangdog_trace::words::Context;
use std::sync::{Arc, PoisonError};

use crate::evidence::Evidence;
use crate::marks::Mark;
pub use crate::memo::{Ended, History};
use crate::role::role;
use crate::wait::Wait;
use crate::wake::makes_room;

/// How many intervals back it is looked.
const MEMORY: usize = 4096;
/// A look at whether something has come takes no longer than this, with what delays it.
const LOOK_NS: u64 = 1_000_000;
/// So many ends by a timer are no chance.
const OFTEN: usize = 3;
/// At so many threads of one role.
const MOST_ALIKE: usize = 16;
/// Of a thread with this many intervals before, waits at one place that are close to each other
/// share a history: it ends where such a group of intervals begins.
const SHARED_FROM: usize = 2 * MEMORY;
const GROUP: usize = MEMORY;

impl History {
    /// Of the waits of the same thread before `wait` at its place; where there is none, of the
    /// threads that have its role. In a long life the last few waits before it may be left out.
    pub fn of(evidence: &Evidence<'_>, wait: &Wait) -> Arc<History> {
        let Some(row) = wait.row else {
            return Arc::new(History {
                waiter: wait.thread,
                ..History::default()
            });
        };
        let (row, before) = shared(evidence, wait.thread, row, wait.start);
        let key = (wait.thread, evidence.site(row));
        let known = || evidence.memo.histories.lock();
        if let Some((of, history)) = known().unwrap_or_else(PoisonError::into_inner).get(&key)
            && *of == row
        {
            return history.clone();
        }
        let history = Arc::new(History::before(evidence, wait.thread, row, before));
        known()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, (row, history.clone()));
        history
    }

    /// Of the waits of `thread` before `before` where it left its CPU by `row`.
    fn before(evidence: &Evidence<'_>, thread: Utid, row: usize, before: u64) -> History {
        let mut history = History {
            waiter: thread,
            ..History::default()
        };
        let is_here = |other: usize| evidence.site(other) == evidence.site(row);
        history.add(evidence, thread, before, is_here);
        // Where a thread always went on by a timer it sleeps, whatever its language sleeps by.
        let sleeps = history.by_timer >= OFTEN && history.by_threads() == 0;
        if !history.tells() && !sleeps {
            // A lock is another than one that is waited for by the same functions of the language.
            let (stack, object) = (&evidence.switches.user_stack, &evidence.switches.object);
            let is_lock = evidence.shows(stack[row], Mark::LanguageLock)
                && !evidence.shows(stack[row], Mark::LanguageCondition);
            // Nor is the result of a task what a thread waits for that has none, though it may do so by the same object.
            let awaits_result = |row: usize| evidence.shows(stack[row], Mark::AwaitsResult);
            let is_near = |other: usize| {
                !is_here(other)
                    && evidence.are_near(other, row)
                    && awaits_result(other) == awaits_result(row)
                    && !(is_lock && object[other] != object[row])
            };
            history.add(evidence, thread, before, is_near);
        }
        if !history.tells() && !sleeps {
            let own = evidence.threads.thread(thread);
            let process = evidence.threads.process(own.upid);
            let own_role = role(own.name());
            process
                .threads
                .iter()
                .filter(|&&other| other != thread)
                .filter(|&&other| role(evidence.threads.thread(other).name()) == own_role)
                .take(MOST_ALIKE)
                .for_each(|&other| history.add(evidence, other, before, is_here));
        }
        history.lengths.sort_unstable();
        history
    }

    /// Whether any wait was ended by a thread that brought what it was for.
    pub(crate) fn tells(&self) -> bool {
        self.by_thread.values().any(|ended| ended.brought_on > 0)
    }

    /// Whether there was no such wait.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// How many such waits there were.
    pub fn total(&self) -> usize {
        self.by_threads() + self.by_timer + self.by_others
    }

    /// How many of them a thread ended.
    pub fn by_threads(&self) -> usize {
        self.by_thread.values().map(|ended| ended.times).sum()
    }

    fn add(
        &mut self,
        evidence: &Evidence<'_>,
        thread: Utid,
        before: u64,
        is_here: impl Fn(usize) -> bool,
    ) {
        let intervals = evidence.timeline.intervals(thread);
        let here = intervals.indexes(0, before).end;
        let mut own = OwnWakes::until(evidence, thread, before);
        // Whether the thread's next wait is at this place too, and when it begins.
        let mut again = (thread == self.waiter).then_some(before);
        for at in (here.saturating_sub(MEMORY)..here).rev() {
            let Some(blocked) = intervals.get(at) else {
                continue;
            };
            if blocked.state != State::Blocked || blocked.end > before {
                continue;
            }
            let next = again.take();
            let Cause::Switch(row) = blocked.cause else {
                continue;
            };
            if !is_here(row as usize) {
                continue;
            }
            again = Some(blocked.start);
            let Some(Cause::Wake(wake)) = intervals.get(at + 1).map(|next| next.cause) else {
                self.by_others += 1;
                continue;
            };
            let wake = wake as usize;
            let waker = evidence.wakes.waker[wake];
            let context = Context::from(evidence.wakes.context[wake]);
            // After a look it waits on: that was no end. A semaphore that another gave is had, and so is some room.
            let row = row as usize;
            let has_it = context == Context::Task
                && evidence.shows(evidence.switches.user_stack[row], Mark::Semaphore)
                || makes_room(evidence, row, wake);
            let looked = !has_it
                && next.is_some_and(|next| next.saturating_sub(blocked.end) <= LOOK_NS)
                && !went_on(evidence, &mut own, intervals, at + 1);
            match (looked, self.lengths.last_mut()) {
                (true, Some(length)) => *length += blocked.duration(),
                _ => self.lengths.push(blocked.duration()),
            }
            if evidence.is_own(wake) && waker != IDLE && waker != thread {
                let ended = self.by_thread.entry(waker).or_default();
                ended.times += 1;
                ended.brought_on += usize::from(!looked);
                self.last.get_or_insert(waker);
            } else if looked {
                continue;
            } else if context.is_timer() {
                self.by_timer += 1;
            } else {
                self.by_others += 1;
            }
        }
    }
}

/// The wait whose history stands for that of a wait which began at `start` by `row` of `switches`:
/// itself, or in a long life the first at the same place of its group of intervals. It does not
/// depend on what was asked before.
fn shared(evidence: &Evidence<'_>, thread: Utid, row: usize, start: u64) -> (usize, u64) {
    let intervals = evidence.timeline.intervals(thread);
    let here = intervals.indexes(0, start).end;
    if here < SHARED_FROM {
        return (row, start);
    }
    let site = evidence.site(row);
    (here - here % GROUP..here)
        .filter_map(|at| intervals.get(at))
        .filter(|interval| interval.state == State::Blocked)
        .find_map(|interval| match interval.cause {
            Cause::Switch(other) if evidence.site(other as usize) == site => {
                Some((other as usize, interval.start))
            }
            _ => None,
        })
        .unwrap_or((row, start))
}

/// A thread's own wakes, gone through backwards beside its intervals.
struct OwnWakes<'e> {
    evidence: &'e Evidence<'e>,
    rows: &'e [u32],
}

impl<'e> OwnWakes<'e> {
    fn until(evidence: &'e Evidence<'e>, thread: Utid, before: u64) -> OwnWakes<'e> {
        let rows = evidence.own_wakes(thread);
        let ts = |row: u32| evidence.wakes.ts[row as usize];
        let rows = &rows[..rows.partition_point(|&row| ts(row) < before)];
        OwnWakes { evidence, rows }
    }

    /// Those in `[from, to)`, of which each call asks for an earlier part than the one before.
    fn between(&mut self, from: u64, to: u64) -> impl Iterator<Item = usize> + use<'e> {
        let wakes = self.evidence.wakes;
        while let Some((&last, rest)) = self.rows.split_last()
            && wakes.ts[last as usize] >= to
        {
            self.rows = rest;
        }
        let rows = self.rows.iter().rev().map(|&row| row as usize);
        rows.take_while(move |&row| wakes.ts[row] >= from)
    }
}

/// Whether a thread, woken into its interval `at`, did more than look: it ran for long, or woke
/// somebody by more than giving back a lock.
fn went_on(
    evidence: &Evidence<'_>,
    own: &mut OwnWakes<'_>,
    intervals: Intervals<'_>,
    at: usize,
) -> bool {
    const LONG_NS: u64 = 300_000;
    let Some(first) = intervals.get(at) else {
        return false;
    };
    let mut end = first.end;
    let mut ran = 0;
    for next in (at..intervals.len()).map_while(|at| intervals.get(at)) {
        if next.state == State::Blocked {
            break;
        }
        ran += if next.state == State::Running {
            next.duration()
        } else {
            0
        };
        end = next.end;
    }
    ran > LONG_NS
        || own
            .between(first.start, end)
            .any(|row| !evidence.shows(evidence.wakes.user_stack[row], Mark::Unlock))
}
