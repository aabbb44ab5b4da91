//! How late a sleeping thread wakes.

use super::call::now;
use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Slept, ns.
const AHEAD: i64 = 1_000_000;

pub(crate) const LATE: Method = Method {
    id: "timer.late",
    section: Section::Kernel,
    figures: &[Kind::ns("timer.late", "a timer's lateness")],
    how: "clock_nanosleep until a moment 1 ms ahead: from that moment until the thread reads the \
          clock. The timer slack is as programs have it (50 µs unless set), which is most of it; \
          then comes waking an idle CPU.",
    source: "cyclictest of rt-tests, with the default slack and priority",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let _pinned = cpu::pin(place.here)?;
        loop {
            meter.push("timer.late", sleep()? as f64);
            if meter.time_left().is_zero() {
                return Ok(());
            }
        }
    },
};

/// Sleeps, and says how late it woke, ns.
fn sleep() -> Result<i64, Untried> {
    let ns = |time: libc::timespec| time.tv_sec * 1_000_000_000 + time.tv_nsec;
    let until = ns(now()?) + AHEAD;
    let until_time = libc::timespec {
        tv_sec: until / 1_000_000_000,
        tv_nsec: until % 1_000_000_000,
    };
    loop {
        // SAFETY: the time is read during the call; what is left of it is not asked for.
        let result = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &until_time,
                std::ptr::null_mut(),
            )
        };
        match result {
            0 => break,
            // A signal came between; the moment is still the same.
            libc::EINTR => {}
            error => {
                let error = std::io::Error::from_raw_os_error(error);
                return Err(Untried::call("clock_nanosleep", error));
            }
        }
    }
    Ok(ns(now()?) - until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// It slept until the moment and not less, gave up its CPU to do so, and was late by no
    /// more than what is beyond it.
    #[test]
    fn it_sleeps_until_the_moment() {
        let switches = || {
            // SAFETY: a rusage is plain numbers; the kernel fills it.
            unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
                usage.ru_nvcsw
            }
        };
        for _ in 0..10 {
            let before = switches();
            let start = Instant::now();
            let late = sleep().unwrap();
            assert!(late >= 0);
            assert!(start.elapsed().as_nanos() as i64 >= AHEAD + late);
            assert_eq!(switches(), before + 1);
        }
    }
}
