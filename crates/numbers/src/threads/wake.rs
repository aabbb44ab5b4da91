//! From the wake-up of a thread until it runs, on an idle CPU and on a busy one.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::common::{STEPS, now_ns, one_by_one, other_cpu, spin_for, work};
use super::crew::beside;
use super::futex::Word;
use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// To a CPU that has nothing to do.
pub(super) const IDLE: Method = Method {
    id: "wake.idle",
    section: Section::Threads,
    figures: &[Kind::ns("wake.idle", "wake a thread on an idle CPU")],
    how: "a thread that slept on a futex on another core's idle CPU for 0.5 to 1.5 ms, so that the \
        CPU sleeps too: from just before FUTEX_WAKE until the thread's next instruction",
    source: "cyclictest and schbench measure the same of timers and of groups of threads",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| visit(place, meter, Load::Idle, "wake.idle"),
};

/// To a CPU that has.
pub(super) const LOADED: Method = Method {
    id: "wake.loaded",
    section: Section::Threads,
    figures: &[Kind::ns("wake.loaded", "wake a thread on a busy CPU")],
    how: "as wake.idle, with another thread of this process and of the same priority that never \
        sleeps on that CPU: the scheduler decides whether the woken one runs at once or waits for a \
        tick, or several",
    source: "cyclictest beside a load, with normal priority",
    weight: 2,
    run: |place: &Place, meter: &mut Meter| visit(place, meter, Load::Busy, "wake.loaded"),
};

/// What the sleeper's CPU does while it sleeps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    Idle,
    Busy,
}

fn visit(
    place: &Place,
    meter: &mut Meter,
    load: Load,
    figure: &'static str,
) -> Result<(), Untried> {
    sleep_and_wake(place.here, other_cpu(place)?, load, |wake| {
        let mut pauses = pauses();
        one_by_one(meter, |meter| {
            let woken = wake(pauses.next().unwrap_or_default())?;
            debug_assert_eq!(Some(woken.cpu), place.there);
            if woken.slept && woken.busy == (load == Load::Busy) {
                meter.push(figure, woken.after);
            }
            Ok(())
        })
    })
}

/// Evenly spread from 0.5 to 1.5 ms, so that wakes keep no step with the tick.
fn pauses() -> impl Iterator<Item = Duration> {
    // The golden section spreads any number of points evenly.
    (0u64..).map(|n| Duration::from_micros(500 + n * 618 % 1000))
}

/// One wake-up.
#[derive(Debug)]
struct Woken {
    /// From the call until the thread ran, ns.
    after: f64,
    /// Whether it slept.
    slept: bool,
    /// Whether another thread ran on its CPU meanwhile.
    busy: bool,
    /// Where it ran.
    cpu: usize,
}

/// What sleeper and waker share.
#[derive(Default)]
struct Bed {
    word: Word,
    /// When the sleeper ran, ns; 0 until it did.
    ran: AtomicU64,
    /// And where.
    cpu: AtomicUsize,
    /// Grows while the CPU is kept busy.
    burnt: AtomicU64,
    over: AtomicBool,
}

/// Starts a sleeper on CPU `there`, and what keeps that busy, and calls `user` on CPU `here` with a
/// function that wakes the sleeper once, after a pause. Both are gone when this returns.
fn sleep_and_wake<T>(
    here: usize,
    there: usize,
    load: Load,
    user: impl FnOnce(&mut dyn FnMut(Duration) -> Result<Woken, Untried>) -> Result<T, Untried>,
) -> Result<T, Untried> {
    let _pinned = cpu::pin(here)?;
    let bed = Bed::default();
    let body = |number| {
        let pinned = cpu::stay_on(&[there]);
        let result = pinned.and_then(|()| match number {
            0 => sleep(&bed),
            _ => burn(&bed),
        });
        // The waker may wait for the sleeper.
        bed.over.store(true, Ordering::Release);
        result
    };
    let threads = match load {
        Load::Idle => 1,
        Load::Busy => 2,
    };
    beside(
        threads,
        &body,
        || user(&mut |pause| wake(&bed, pause)),
        || {
            bed.over.store(true, Ordering::Release);
            // A word that can be waited for can be given.
            let _ = bed.word.give();
        },
    )
}

fn wake(bed: &Bed, pause: Duration) -> Result<Woken, Untried> {
    let burnt = bed.burnt.load(Ordering::Relaxed);
    spin_for(pause);
    let busy = bed.burnt.load(Ordering::Relaxed) > burnt;
    bed.ran.store(0, Ordering::Relaxed);
    let called = now_ns();
    let slept = bed.word.give()?;
    let ran = loop {
        match bed.ran.load(Ordering::Acquire) {
            0 if bed.over.load(Ordering::Acquire) => {
                return Err(Untried("the thread to wake stopped".into()));
            }
            0 => spin_loop(),
            ran => break ran,
        }
    };
    Ok(Woken {
        after: ran as f64 - called as f64,
        slept,
        busy,
        cpu: bed.cpu.load(Ordering::Relaxed),
    })
}

fn sleep(bed: &Bed) -> Result<(), Untried> {
    loop {
        bed.word.take()?;
        let ran = now_ns();
        if bed.over.load(Ordering::Acquire) {
            return Ok(());
        }
        bed.cpu.store(cpu::current(), Ordering::Relaxed);
        bed.ran.store(ran, Ordering::Release);
    }
}

fn burn(bed: &Bed) -> Result<(), Untried> {
    while !bed.over.load(Ordering::Relaxed) {
        work(STEPS / 10);
        bed.burnt.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::common::{other_or_not_run, place_here};
    use super::*;

    const WAKES: usize = 100;

    fn wakes(load: Load) -> Option<(usize, Vec<Woken>)> {
        let place = place_here();
        let there = other_or_not_run(&place)?;
        let before = cpu::allowed().unwrap();
        let woken = sleep_and_wake(place.here, there, load, |wake| {
            assert_eq!(cpu::current(), place.here);
            pauses().take(WAKES).map(wake).collect()
        });
        assert_eq!(cpu::allowed().unwrap(), before, "affinity is restored");
        Some((there, woken.unwrap()))
    }

    fn check(load: Load) {
        // Whatever else runs may keep the sleeper or the burner from its CPU: then once more.
        const ATTEMPTS: usize = 20;
        const MOST: usize = WAKES * 3 / 4;
        let mut seen = Vec::new();
        for _ in 0..ATTEMPTS {
            let Some((there, woken)) = wakes(load) else {
                return;
            };
            assert!(woken.iter().all(|woken| woken.cpu == there), "{woken:?}");
            assert!(woken.iter().all(|woken| woken.after > 0.0), "{woken:?}");
            let slept = woken.iter().filter(|woken| woken.slept).count();
            let busy = woken.iter().filter(|woken| woken.busy).count();
            if load == Load::Idle {
                assert_eq!(busy, 0);
            }
            seen.push((slept, busy));
            if slept > MOST && (busy > MOST) == (load == Load::Busy) {
                return;
            }
        }
        panic!("of {WAKES} so many slept, on a busy CPU so many: {seen:?}");
    }

    /// The woken one slept, and ran on the other CPU, where this process did nothing else.
    #[test]
    fn a_sleeper_is_woken_on_the_other_cpu() {
        check(Load::Idle);
    }

    /// The woken one slept, while another thread ran on its CPU.
    #[test]
    fn a_sleeper_is_woken_on_a_busy_cpu() {
        check(Load::Busy);
    }

    /// Pauses are spread over the whole of 0.5 to 1.5 ms: each tenth has its part.
    #[test]
    fn pauses_are_spread() {
        let mut tenths = [0; 10];
        for pause in pauses().take(200) {
            tenths[(pause.as_micros() - 500) as usize / 100] += 1;
        }
        assert!(
            tenths.iter().all(|&tenth| (15..=25).contains(&tenth)),
            "{tenths:?}"
        );
    }
}
