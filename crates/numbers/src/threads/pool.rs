//! A pool of more threads than CPUs: what the system's switching between them costs.

use std::sync::atomic::{AtomicU32, Ordering};

use super::common::{STEPS, now_ns, one_by_one, work};
use super::crew::beside;
use super::wakeup::Sem;
use crate::kind::{Axis, Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Threads in the pool, as in the seed.
const THREADS: usize = 16;
/// How many times as much work.
const TIMES: [u32; 5] = [1, 2, 4, 8, 16];

/// All are woken, each works, all are waited for.
pub(super) const POOL: Method = Method {
    id: "pool",
    section: Section::Threads,
    figures: &[
        Kind::ns("pool.time", "16 threads, each with a task").over(Axis::Times),
        Kind::ns("pool.ideal", "the same without any loss").over(Axis::Times),
    ],
    how: "16 threads, each with a semaphore; the main thread posts all, each works some 20 µs (and \
        2, 4, 8, 16 times that) and posts the main thread's, which is waited for 16 times. time: \
        from the first post to the last answer, on all CPUs that may be used, nobody pinned. ideal: \
        16 times the work, as long as it takes alone just before, by the number of CPUs, 16 at most",
    source: "D. Kurkin, AppsConf 2018, losses by the system's context switches: a pool of 16",
    weight: 3,
    run: |place: &Place, meter: &mut Meter| {
        let cpus = place.cpus.len().min(THREADS) as f64;
        let procedure = |_, times| work(times * STEPS);
        with_pool(&procedure, |round| {
            one_by_one(meter, |meter| {
                for times in TIMES {
                    let start = now_ns();
                    procedure(0, times);
                    let alone = (now_ns() - start) as f64;
                    let at = u64::from(times);
                    meter.push_at("pool.ideal", at, THREADS as f64 * alone / cpus);
                    meter.push_at("pool.time", at, round(times)?);
                }
                Ok(())
            })
        })
    },
};

/// What the threads and their master share.
struct Pool {
    wakes: Vec<Sem>,
    answers: Sem,
    /// How many times the work is to be done; 0 to leave.
    times: AtomicU32,
}

/// Starts the threads, and calls `user` with a function that has each of them do the procedure once
/// (with its number and the times, it must not panic) and says how long that took, ns. They are gone
/// when this returns.
fn with_pool<T>(
    procedure: &(dyn Fn(usize, u32) + Sync),
    user: impl FnOnce(&mut dyn FnMut(u32) -> Result<f64, Untried>) -> Result<T, Untried>,
) -> Result<T, Untried> {
    let pool = Pool {
        wakes: (0..THREADS).map(|_| Sem::new()).collect::<Result<_, _>>()?,
        answers: Sem::new()?,
        times: AtomicU32::new(0),
    };
    beside(
        THREADS,
        &|number| pool.serve(number, procedure),
        || user(&mut |times| pool.round(times)),
        || {
            pool.times.store(0, Ordering::Relaxed);
            for wake in &pool.wakes {
                // A semaphore that is initialized and at 0 can be posted.
                let _ = wake.post();
            }
        },
    )
}

impl Pool {
    fn round(&self, times: u32) -> Result<f64, Untried> {
        self.times.store(times, Ordering::Relaxed);
        let start = now_ns();
        for wake in &self.wakes {
            wake.post()?;
        }
        for _ in 0..THREADS {
            self.answers.wait()?;
        }
        Ok((now_ns() - start) as f64)
    }

    fn serve(&self, number: usize, procedure: &(dyn Fn(usize, u32) + Sync)) -> Result<(), Untried> {
        loop {
            self.wakes[number].wait()?;
            match self.times.load(Ordering::Relaxed) {
                0 => return Ok(()),
                times => procedure(number, times),
            }
            self.answers.post()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::common::spin_for;
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::time::Duration;

    fn tid() -> i32 {
        // SAFETY: takes nothing and only reads.
        unsafe { libc::gettid() }
    }

    /// In each round each of 16 threads does its work once, with the times asked for.
    #[test]
    fn each_thread_works_once_a_round() {
        let done = Mutex::new(Vec::new());
        let rounds = [1, 16, 2];
        with_pool(
            &|number, times| {
                let mut done = done.lock().unwrap();
                done.push((number, times, tid()));
            },
            |round| {
                for times in rounds {
                    let before = done.lock().unwrap().len();
                    assert!(round(times)? > 0.0);
                    assert_eq!(done.lock().unwrap().len(), before + THREADS);
                }
                Ok(())
            },
        )
        .unwrap();
        let done = done.into_inner().unwrap();
        for (times, round) in rounds.iter().zip(done.chunks(THREADS)) {
            let mut numbers: Vec<usize> = round.iter().map(|(number, ..)| *number).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..THREADS).collect::<Vec<_>>());
            assert!(round.iter().all(|(_, with, _)| with == times));
        }
        let threads: HashSet<_> = done.iter().map(|(.., thread)| *thread).collect();
        assert_eq!(threads.len(), THREADS);
        assert!(!threads.contains(&tid()));
    }

    /// The answers are waited for: no round is shorter than one thread's work.
    #[test]
    fn a_round_takes_its_work() {
        let work = |_, times| spin_for(Duration::from_millis(u64::from(times)));
        let took = with_pool(&work, |round| round(5)).unwrap();
        assert!(took >= 5e6, "{took} ns");
    }
}
