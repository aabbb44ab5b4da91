//! A mutex that nobody else wants, and one that another thread waits for.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::common::{checked, now_ns, one_by_one, other_cpu, spin_for, spin_until, times_blocked};
use super::crew::beside;
use super::wakeup::Sem;
use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Lock and unlock.
pub(super) const UNCONTENDED: Method = Method {
    id: "lock.uncontended",
    section: Section::Threads,
    figures: &[Kind::ns("lock.uncontended", "lock and unlock a mutex")],
    how: "pthread_mutex_lock and unlock of a default mutex that no other thread wants; the mean of \
        a batch. Another thread is there and sleeps, because some C libraries lock without atomic \
        instructions while there is none",
    source: "POSIX threads; a pair of calls in a loop",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let _pinned = cpu::pin(place.here)?;
        let end = Sem::new()?;
        let mutex = Mutex::new();
        let lock_and_unlock = || {
            mutex.lock()?;
            mutex.unlock()
        };
        beside(
            1,
            &|_| Ok(end.wait()?),
            || meter.repeat("lock.uncontended", lock_and_unlock),
            || {
                // A semaphore that is initialized and at 0 can be posted.
                let _ = end.post();
            },
        )
    },
};

/// From one thread to the other.
pub(super) const CONTENDED: Method = Method {
    id: "lock.contended",
    section: Section::Threads,
    figures: &[Kind::ns("lock.contended", "handoff of a contended mutex")],
    how: "a thread holds a default pthread mutex for 20 µs after another, on another core, began \
        to lock it; from just before the unlock until the other one has it. Only samples in which \
        the other one slept for it",
    source: "the handoff latency that a waiter sees; throughput of a mutex that several hammer on, as \
        sysbench mutex has it, is another thing",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        contend(place.here, other_cpu(place)?, |hand_over| {
            one_by_one(meter, |meter| {
                let seen = hand_over()?;
                if seen.slept {
                    meter.push("lock.contended", seen.took);
                }
                Ok(())
            })
        })
    },
};

/// How long a waiter is let wait: until it sleeps surely.
const HELD: Duration = Duration::from_micros(20);

/// A pthread mutex with default attributes. Boxed, so that it stays where it is.
struct Mutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: it is made to be used by several threads at once.
unsafe impl Sync for Mutex {}

impl Mutex {
    fn new() -> Mutex {
        Mutex(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }

    fn lock(&self) -> Result<(), Untried> {
        // SAFETY: initialized by `new`.
        checked("pthread_mutex_lock", unsafe {
            libc::pthread_mutex_lock(self.0.get())
        })
    }

    fn unlock(&self) -> Result<(), Untried> {
        // SAFETY: initialized by `new`; callers hold it.
        checked("pthread_mutex_unlock", unsafe {
            libc::pthread_mutex_unlock(self.0.get())
        })
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: initialized by `new`, and nobody else has it any more.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// One context switch.
#[derive(Debug)]
struct Seen {
    /// From the unlock until the other had it, ns.
    took: f64,
    /// Whether the other slept for it.
    slept: bool,
}

/// What the two threads share besides the mutex.
#[derive(Default)]
struct Round {
    /// The holder: has it, the other may want it.
    held: AtomicBool,
    /// The waiter: about to lock.
    wants: AtomicBool,
    /// The waiter: had it and let it go.
    done: AtomicBool,
    /// When the waiter had it, ns.
    had_it: AtomicU64,
    slept: AtomicBool,
    /// No more rounds.
    over: AtomicBool,
}

/// Starts the waiter on CPU `there`, and calls `user` on CPU `here` with a function that hands over
/// once. The waiter is gone when this returns.
fn contend<T>(
    here: usize,
    there: usize,
    user: impl FnOnce(&mut dyn FnMut() -> Result<Seen, Untried>) -> Result<T, Untried>,
) -> Result<T, Untried> {
    let _pinned = cpu::pin(here)?;
    let (mutex, round) = (Mutex::new(), Round::default());
    let waiter = |_| {
        let pinned = cpu::stay_on(&[there]);
        let result = pinned.and_then(|()| wait_for(&mutex, &round));
        // The holder may wait for either.
        round.over.store(true, Ordering::Release);
        round.wants.store(true, Ordering::Release);
        round.done.store(true, Ordering::Release);
        result
    };
    beside(
        1,
        &waiter,
        || user(&mut || hold(&mutex, &round)),
        || {
            round.over.store(true, Ordering::Release);
            round.held.store(true, Ordering::Release);
        },
    )
}

/// One round of the holder's.
fn hold(mutex: &Mutex, round: &Round) -> Result<Seen, Untried> {
    mutex.lock()?;
    round.held.store(true, Ordering::Release);
    spin_until(&round.wants);
    spin_for(HELD);
    let unlocked = now_ns();
    mutex.unlock()?;
    spin_until(&round.done);
    if round.over.load(Ordering::Acquire) {
        return Err(Untried("the thread that waits stopped".into()));
    }
    round.wants.store(false, Ordering::Relaxed);
    round.done.store(false, Ordering::Relaxed);
    Ok(Seen {
        took: round.had_it.load(Ordering::Relaxed) as f64 - unlocked as f64,
        slept: round.slept.load(Ordering::Relaxed),
    })
}

/// The waiter's rounds, until it is over.
fn wait_for(mutex: &Mutex, round: &Round) -> Result<(), Untried> {
    loop {
        spin_until(&round.held);
        if round.over.load(Ordering::Acquire) {
            return Ok(());
        }
        round.held.store(false, Ordering::Relaxed);
        let before = times_blocked();
        round.wants.store(true, Ordering::Release);
        mutex.lock()?;
        let had_it = now_ns();
        mutex.unlock()?;
        round.had_it.store(had_it, Ordering::Relaxed);
        round
            .slept
            .store(times_blocked() > before, Ordering::Relaxed);
        round.done.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::common::{other_or_not_run, place_here};
    use super::*;
    use std::thread;

    fn try_once(mutex: &Mutex) -> libc::c_int {
        // SAFETY: initialized by `new`.
        unsafe { libc::pthread_mutex_trylock(mutex.0.get()) }
    }

    /// While it is held nobody else gets it, and afterwards anybody does.
    #[test]
    fn the_mutex_locks() {
        let mutex = Mutex::new();
        let try_lock = || match thread::scope(|scope| {
            let other = scope.spawn(|| {
                let error = try_once(&mutex);
                if error == 0 {
                    mutex.unlock().unwrap();
                }
                error
            });
            other.join().unwrap()
        }) {
            0 => true,
            error => {
                assert_eq!(error, libc::EBUSY);
                false
            }
        };
        assert!(try_lock());
        mutex.lock().unwrap();
        assert!(!try_lock());
        mutex.unlock().unwrap();
        assert!(try_lock());
    }

    /// The lock is really contended: the waiter sleeps for it, and has it after the unlock.
    #[test]
    fn the_waiter_sleeps_and_has_it_after_the_unlock() {
        let place = place_here();
        let Some(there) = other_or_not_run(&place) else {
            return;
        };
        let rounds: Vec<Seen> = contend(place.here, there, |hand_over| {
            assert_eq!(cpu::current(), place.here);
            (0..200).map(|_| hand_over()).collect()
        })
        .unwrap();
        let slept = rounds.iter().filter(|seen| seen.slept).count();
        assert!(slept >= 180, "{slept} of 200");
        assert!(rounds.iter().all(|seen| seen.took > 0.0), "{rounds:?}");
    }

    /// A waiter that fails ends it with its reason.
    #[test]
    fn a_waiter_that_fails_ends_it() {
        let nowhere = libc::CPU_SETSIZE as usize - 1;
        let here = place_here().here;
        let error = contend(here, nowhere, |hand_over| hand_over()).unwrap_err();
        assert!(error.0.contains("staying on CPU"), "{error}");
    }
}
