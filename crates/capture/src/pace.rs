//! The priority of the threads that read what was recorded and write it to disk.
//!
//! They run as any other thread does. Where many threads want the CPU they would come too late, and the
//! rings be overwritten. So each of them sets a deadline for its next round. A guard thread of the highest
//! priority checks the deadlines and gives a thread that missed its own the highest priority too, until
//! that has completed a round.
//!
//! Not under SCHED_IDLE: there each wake of another thread preempts them, more than a thousand times a
//! second on a busy machine, and the scheduler takes a CPU that runs them for an idle one. Both costs
//! the others more than the work itself (docs/PERFORMANCE.md).
//!
//! Where sessions have scheduling groups of their own (autogroup), both hold among the threads of the
//! session only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::system::monotonic_ns;

/// How often the guard looks.
const PERIOD: Duration = Duration::from_millis(20);
const NEVER: u64 = u64::MAX;

struct Worker {
    tid: libc::pid_t,
    /// The deadline of its round, ns of CLOCK_MONOTONIC.
    due: AtomicU64,
    hurries: AtomicBool,
}

#[derive(Default)]
struct Shared {
    workers: Mutex<Vec<Arc<Worker>>>,
    over: AtomicBool,
}

impl Shared {
    fn workers(&self) -> Vec<Arc<Worker>> {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.clone()
    }
}

/// Looks after the threads that work at their own pace.
pub(crate) struct Guard {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    /// Starts it. Without CAP_SYS_NICE nobody could be hurried: then all run as others do, and what
    /// is lost is counted.
    pub(crate) fn start() -> Guard {
        let shared = Arc::new(Shared::default());
        let (ready, is_ready) = sync_channel(1);
        let looks_at = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let may = nice(0, -20);
            let _ = ready.send(may);
            while may && !looks_at.over.load(Ordering::Acquire) {
                let now = monotonic_ns();
                for worker in looks_at.workers() {
                    let is_late = worker.due.load(Ordering::Acquire) < now;
                    if is_late && !worker.hurries.swap(true, Ordering::AcqRel) {
                        hurry(worker.tid);
                    }
                }
                std::thread::sleep(PERIOD);
            }
        });
        let may = is_ready.recv().unwrap_or(false);
        shared.over.store(!may, Ordering::Release);
        Guard {
            shared,
            thread: Some(thread),
        }
    }

    /// Lets threads join in, from wherever they are.
    pub(crate) fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// From now on all run as others do.
    pub(crate) fn end(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        let was_over = self.shared.over.swap(true, Ordering::AcqRel);
        let Some(thread) = self.thread.take() else {
            return;
        };
        let _ = thread.join();
        if !was_over {
            for worker in self.shared.workers() {
                normal(worker.tid);
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Where threads join in.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Shared>);

impl Handle {
    /// The calling thread works at its own pace from now on, and completes its first round within
    /// `time`.
    pub(crate) fn join(&self, time: Duration) -> Pace {
        // SAFETY: gettid has no preconditions.
        let tid = unsafe { libc::gettid() };
        let worker = Arc::new(Worker {
            tid,
            due: within(time).into(),
            hurries: false.into(),
        });
        let shared = Arc::clone(&self.0);
        {
            let workers = shared.workers.lock();
            let mut workers = workers.unwrap_or_else(PoisonError::into_inner);
            workers.push(Arc::clone(&worker));
        }
        let pace = Pace { worker, shared };
        pace.relax();
        pace
    }
}

/// The pace of the calling thread.
pub(crate) struct Pace {
    worker: Arc<Worker>,
    shared: Arc<Shared>,
}

impl Pace {
    /// It has completed a round; the next one is due within `time`. One that waits for work beyond
    /// that begins with it at once.
    pub(crate) fn again_within(&self, time: Duration) {
        self.worker.due.store(within(time), Ordering::Release);
        if self.worker.hurries.swap(false, Ordering::AcqRel) {
            self.relax();
        }
    }

    /// The same, and until then it runs before all others: what it has to take away fills its room soon.
    pub(crate) fn again_first_within(&self, time: Duration) {
        self.worker.due.store(within(time), Ordering::Release);
        let is_over = self.shared.over.load(Ordering::Acquire);
        if !is_over && !self.worker.hurries.swap(true, Ordering::AcqRel) {
            hurry(self.worker.tid);
        }
    }

    fn relax(&self) {
        normal(self.worker.tid);
        // The guard may have found it late right before.
        let is_over = self.shared.over.load(Ordering::Acquire);
        if !is_over && self.worker.hurries.load(Ordering::Acquire) {
            hurry(self.worker.tid);
        }
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.worker.due.store(NEVER, Ordering::Release);
        let workers = self.shared.workers.lock();
        let mut workers = workers.unwrap_or_else(PoisonError::into_inner);
        workers.retain(|worker| !Arc::ptr_eq(worker, &self.worker));
        drop(workers);
        if !self.shared.over.load(Ordering::Acquire) {
            normal(self.worker.tid);
        }
    }
}

/// A deadline, ns of CLOCK_MONOTONIC.
fn within(time: Duration) -> u64 {
    monotonic_ns().saturating_add(time.as_nanos() as u64)
}

fn hurry(tid: libc::pid_t) {
    nice(tid, -20);
}

/// Has this thread run like any other: one that was started by a thread at a high priority inherits that.
pub(crate) fn like_any_other() {
    // SAFETY: gettid has no preconditions.
    normal(unsafe { libc::gettid() });
}

/// Has this thread, and those that it starts, go before others on a busy machine: for what somebody waits
/// for, and what is soon done.
pub(crate) fn before_others() {
    const SOMEWHAT: libc::c_int = -10;
    nice(0, SOMEWHAT);
}

fn normal(tid: libc::pid_t) {
    nice(tid, 0);
}

/// Whether a thread (0: the calling one) has that nice value now.
fn nice(tid: libc::pid_t, value: libc::c_int) -> bool {
    // SAFETY: setpriority takes plain numbers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, tid as libc::id_t, value) == 0 }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn nice_of_this_thread() -> libc::c_int {
        // SAFETY: a plain call; 0 is the calling thread.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    }

    fn wait_until_hurried() {
        let begin = Instant::now();
        while nice_of_this_thread() != -20 {
            assert!(begin.elapsed() < Duration::from_secs(60), "never hurried");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    const LONG: Duration = Duration::from_secs(3600);

    /// The first round has a deadline too.
    #[test]
    fn who_never_begins_is_hurried() {
        let guard = Guard::start();
        if guard.shared.over.load(Ordering::Acquire) {
            eprintln!("NOT RUN: pace: no right to run first (CAP_SYS_NICE)");
            return;
        }
        let _pace = guard.handle().join(Duration::from_millis(1));
        wait_until_hurried();
    }

    /// A thread has the highest priority when it missed its deadline or has to be first, and the usual one
    /// before, after its round, and at the end.
    #[test]
    fn who_is_late_is_hurried() {
        let guard = Guard::start();
        if guard.shared.over.load(Ordering::Acquire) {
            eprintln!("NOT RUN: pace: no right to run first (CAP_SYS_NICE)");
            return;
        }
        let pace = guard.handle().join(LONG);
        assert_eq!(nice_of_this_thread(), 0);
        pace.again_within(Duration::from_millis(1));
        wait_until_hurried();
        pace.again_within(LONG);
        assert_eq!(nice_of_this_thread(), 0);
        pace.again_first_within(Duration::from_secs(60));
        assert_eq!(nice_of_this_thread(), -20);
        pace.again_within(Duration::from_secs(60));
        assert_eq!(nice_of_this_thread(), 0);
        pace.again_first_within(Duration::from_secs(60));
        guard.end();
        assert_eq!(nice_of_this_thread(), 0);
        pace.again_within(Duration::ZERO);
        assert_eq!(nice_of_this_thread(), 0);
    }
}
