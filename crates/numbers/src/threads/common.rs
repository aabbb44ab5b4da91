//! What the methods of this section share: a clock that two threads can compare, work of a fixed
//! length, and the other CPU.

use std::hint::{black_box, spin_loop};
use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::meter::{Meter, Untried};
use crate::place::Place;

/// CLOCK_MONOTONIC, ns: the same on all CPUs, so that one thread can say when another was to start.
pub(super) fn now_ns() -> u64 {
    // SAFETY: a timespec is plain numbers that the call fills; this clock is always there.
    let time = unsafe {
        let mut time: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Keeps the CPU busy for so long.
pub(super) fn spin_for(time: Duration) {
    let end = now_ns() + time.as_nanos() as u64;
    while now_ns() < end {}
}

/// Keeps the CPU busy until another thread, on another CPU, sets the flag.
pub(super) fn spin_until(flag: &AtomicBool) {
    while !flag.load(Ordering::Acquire) {
        spin_loop();
    }
}

/// Steps of [`work`] that take some 20 µs at some 3 GHz, as the seed's procedure.
pub(super) const STEPS: u32 = 10_000;

/// Work that touches no memory: so many steps of an xorshift generator, each of which needs the one
/// before and is six operations. No compiler knows a shorter way to the last.
#[inline(never)]
pub(super) fn work(steps: u32) {
    let mut word = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..steps {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
    }
    black_box(word);
}

/// The CPU of another core; the reason why not where there is one CPU only.
pub(super) fn other_cpu(place: &Place) -> Result<usize, Untried> {
    place
        .there
        .ok_or_else(|| Untried("needs a second CPU".into()))
}

/// What a call of the pthread family returned: an error number, not errno.
pub(super) fn checked(what: &str, error: libc::c_int) -> Result<(), Untried> {
    match error {
        0 => Ok(()),
        number => Err(Untried::call(what, io::Error::from_raw_os_error(number))),
    }
}

/// How often the calling thread gave up its CPU of itself, that is, blocked.
pub(super) fn times_blocked() -> u64 {
    // SAFETY: a rusage is plain numbers that the call fills; the calling thread is always there.
    unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nvcsw as u64
    }
}

/// In a visit, at most: more tell nothing new, and their memory would make a fork slower.
const MOST: u32 = 1000;

/// Takes samples one by one for the rest of the visit, a thousand at most. The first is thrown away:
/// caches are cold, the C library makes what it keeps.
pub(super) fn one_by_one(
    meter: &mut Meter,
    mut sample: impl FnMut(&mut Meter) -> Result<(), Untried>,
) -> Result<(), Untried> {
    sample(meter)?;
    meter.samples.clear();
    for _ in 0..MOST {
        sample(meter)?;
        if meter.time_left().is_zero() {
            break;
        }
    }
    Ok(())
}

/// A place as [`crate::measure`] makes it, for tests.
#[cfg(test)]
pub(super) fn place_here() -> Place {
    let cpus = crate::cpu::allowed().unwrap();
    let (here, there) = crate::cpu::pair(&cpus);
    Place {
        dir: std::env::temp_dir(),
        here,
        there,
        largest: 1 << 20,
        quick: true,
        cpus,
    }
}

/// The other CPU of `place`; None, and said so, where there is none to test with.
#[cfg(test)]
pub(super) fn other_or_not_run(place: &Place) -> Option<usize> {
    if place.there.is_none() {
        println!("NOT RUN: needs a second CPU");
    }
    place.there
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixteen times the steps take about sixteen times as long: none is left out.
    #[test]
    fn work_grows_with_its_steps() {
        let fastest = |steps| {
            let run = || {
                let start = now_ns();
                work(steps);
                now_ns() - start
            };
            (0..50).map(|_| run()).min().unwrap() as f64
        };
        let times = fastest(16 * STEPS) / fastest(STEPS);
        assert!((14.0..18.0).contains(&times), "{times}");
        // Six operations, of which CPUs join some with the next: at least three cycles of 0.1 ns.
        assert!(fastest(STEPS) > 0.3 * f64::from(STEPS));
    }
}
