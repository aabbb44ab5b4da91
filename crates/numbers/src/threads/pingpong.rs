//! Two threads that wake each other in turn: what one context switch costs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::common::other_cpu;
use super::crew::beside;
use super::wakeup::Wakeup;
use crate::cpu;
use crate::kind::Section;
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Both sides on one CPU.
pub(super) const fn same<H: Wakeup>() -> Method {
    Method {
        id: H::SAME.id,
        section: Section::Threads,
        figures: const { &[H::SAME] },
        how: H::HOW,
        source: H::SOURCE,
        weight: 1,
        run: |place, meter| visit::<H>(meter, place.here, place.here, H::SAME.id),
    }
}

/// The sides on two cores.
pub(super) const fn across<H: Wakeup>() -> Method {
    Method {
        id: H::ACROSS.id,
        section: Section::Threads,
        figures: const { &[H::ACROSS] },
        how: H::HOW,
        source: H::SOURCE,
        weight: 1,
        run: |place: &Place, meter| visit::<H>(meter, place.here, other_cpu(place)?, H::ACROSS.id),
    }
}

fn visit<H: Wakeup>(
    meter: &mut Meter,
    here: usize,
    there: usize,
    figure: &'static str,
) -> Result<(), Untried> {
    let ball = H::new()?;
    let time = meter.time_left();
    play(&ball, here, there, |round_trips| {
        // A round trip is two context switches.
        meter.batches(figure, None, time, |count| Ok(round_trips(count)? / 2))
    })
}

/// Starts side 1 on CPU `there`, and calls `user` on CPU `here` with a function that plays so many
/// round trips and says how long they took. Side 1 is gone when this returns.
fn play<H: Wakeup, T>(
    ball: &H,
    here: usize,
    there: usize,
    user: impl FnOnce(&mut dyn FnMut(u64) -> Result<Duration, Untried>) -> Result<T, Untried>,
) -> Result<T, Untried> {
    let _pinned = cpu::pin(here)?;
    let over = AtomicBool::new(false);
    let other_side = |_| {
        let result = answer(ball, there, &over);
        // Side 0 may wait for an answer: it is to find that there will be none.
        over.store(true, Ordering::Release);
        ball.give(0)?;
        result
    };
    let play_so_many = &mut |round_trips| {
        let start = Instant::now();
        for _ in 0..round_trips {
            ball.give(1)?;
            ball.take(0)?;
            if over.load(Ordering::Relaxed) {
                return Err(Untried("the other side stopped".into()));
            }
        }
        Ok(start.elapsed())
    };
    beside(
        1,
        &other_side,
        || user(play_so_many),
        || {
            over.store(true, Ordering::Release);
            // Nothing that can be taken can fail to be given.
            let _ = ball.give(1);
        },
    )
}

/// Side 1: gives back what it takes, until it is over.
fn answer<H: Wakeup>(ball: &H, there: usize, over: &AtomicBool) -> Result<(), Untried> {
    cpu::stay_on(&[there])?;
    loop {
        ball.take(1)?;
        if over.load(Ordering::Acquire) {
            return Ok(());
        }
        ball.give(0)?;
    }
}

#[cfg(test)]
mod tests {
    use super::super::common::{other_or_not_run, place_here};
    use super::super::wakeup::{Condition, Event, Futex, Pipe, Semaphore, UnixSocket};
    use super::*;
    use crate::kind::Kind;
    use std::io;
    use std::sync::Mutex;

    /// What one side did.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Side {
        given_to: u64,
        taken: u64,
        /// How often it had left its CPU, at its first and at its last turn.
        left: Option<(u64, u64)>,
        cpus: Vec<usize>,
    }

    /// How often the calling thread left its CPU, of itself or not.
    fn times_switched() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let switches = status
            .lines()
            .filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        switches
            .map(|(_, times)| times.trim().parse::<u64>().unwrap())
            .sum()
    }

    /// A context switch that writes down who did what where.
    struct Watched<H> {
        inner: H,
        sides: Mutex<[Side; 2]>,
    }

    impl<H: Wakeup + Send> Wakeup for Watched<H> {
        const SAME: Kind = H::SAME;
        const ACROSS: Kind = H::ACROSS;
        const HOW: &str = H::HOW;
        const SOURCE: &str = H::SOURCE;

        fn new() -> io::Result<Self> {
            Ok(Watched {
                inner: H::new()?,
                sides: Mutex::default(),
            })
        }

        fn give(&self, to: usize) -> io::Result<()> {
            self.sides.lock().unwrap()[to].given_to += 1;
            self.inner.give(to)
        }

        fn take(&self, side: usize) -> io::Result<()> {
            let result = self.inner.take(side);
            let mut sides = self.sides.lock().unwrap();
            let side = &mut sides[side];
            side.taken += 1;
            let left = times_switched();
            side.left = Some((side.left.map_or(left, |(first, _)| first), left));
            if side.cpus.last() != Some(&cpu::current()) {
                side.cpus.push(cpu::current());
            }
            result
        }
    }

    const ROUND_TRIPS: u64 = 500;

    fn watched<H: Wakeup + Send>(here: usize, there: usize) -> [Side; 2] {
        let ball = Watched::<H>::new().unwrap();
        let before = cpu::allowed().unwrap();
        let took = play(&ball, here, there, |round_trips| round_trips(ROUND_TRIPS)).unwrap();
        assert!(took > Duration::ZERO);
        assert_eq!(cpu::allowed().unwrap(), before, "affinity is restored");
        ball.sides.into_inner().unwrap()
    }

    fn check<H: Wakeup + Send>(here: usize, there: usize) {
        let [zero, one] = watched::<H>(here, there);
        // The last turn of side 1 tells it that the game is over, and it says so to side 0.
        assert_eq!((zero.taken, zero.given_to), (ROUND_TRIPS, ROUND_TRIPS + 1));
        assert_eq!(
            (one.taken, one.given_to),
            (ROUND_TRIPS + 1, ROUND_TRIPS + 1)
        );
        assert_eq!(
            (zero.cpus, one.cpus),
            (vec![here], vec![there]),
            "{}",
            H::SAME.id
        );
        // On one CPU nobody has a turn but by the other's leaving that CPU: by blocking, or because
        // the woken one goes first.
        if here == there {
            for (first, last) in [zero.left, one.left].into_iter().flatten() {
                assert!(last - first >= ROUND_TRIPS - 1, "{first} {last}");
            }
        }
    }

    fn check_all(here: usize, there: usize) {
        check::<Semaphore>(here, there);
        check::<Futex>(here, there);
        check::<Condition>(here, there);
        check::<Event>(here, there);
        check::<Pipe>(here, there);
        check::<UnixSocket>(here, there);
    }

    /// On one CPU: each side takes as often as it was given, on that CPU, and blocks for it.
    #[test]
    fn both_sides_hand_over_on_one_cpu() {
        let place = place_here();
        check_all(place.here, place.here);
    }

    /// On two CPUs: each side takes as often as it was given, on its own CPU all the time.
    #[test]
    fn the_sides_hand_over_across_cpus() {
        let place = place_here();
        if let Some(there) = other_or_not_run(&place) {
            check_all(place.here, there);
        }
    }

    /// A side that fails ends the game with its reason; nobody waits forever.
    #[test]
    fn a_side_that_fails_ends_the_game() {
        let place = place_here();
        let ball = Semaphore::new().unwrap();
        let nowhere = libc::CPU_SETSIZE as usize - 1;
        let played = play(&ball, place.here, nowhere, |round_trips| round_trips(10));
        let reason = played.unwrap_err().0;
        assert!(reason.contains("staying on CPU"), "{reason}");
        let failed: Result<(), _> = play(&ball, place.here, place.here, |_| {
            Err(Untried("no more".into()))
        });
        assert_eq!(failed.unwrap_err().0, "no more");
    }
}
