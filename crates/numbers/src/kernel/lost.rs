//! What a thread loses that would run all the time: to interrupts, to others, to the hypervisor.

use std::fs;
use std::time::{Duration, Instant};

use crate::cpu;
use crate::kind::{Kind, Section, Unit};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Between two readings of the clock more than this passed: something else ran.
const GAP: Duration = Duration::from_micros(5);
/// Of a sample of the gaps: some timer ticks at any usual rate.
const WINDOW: Duration = Duration::from_millis(50);

pub(crate) const LOST: Method = Method {
    id: "kernel.lost",
    section: Section::Kernel,
    figures: &[
        Kind::ns("kernel.gaps", "time lost in gaps").unit(Unit::Share),
        Kind::ns("kernel.steal", "time the hypervisor took").unit(Unit::Share),
    ],
    how: "A thread reads the clock all the time: the share of it in gaps of 5 µs and more, when \
          interrupts, other threads or the hypervisor had the CPU; and what the kernel says that the \
          hypervisor took of that CPU meanwhile (/proc/stat, in ticks of 10 ms).",
    source: "hwlat and osnoise tracers of Linux; proc(5)",
    weight: 2,
    run: |place: &Place, meter: &mut Meter| {
        let _pinned = cpu::pin(place.here)?;
        let stolen_before = stolen(place.here);
        let start = Instant::now();
        loop {
            let gaps = spin(WINDOW);
            let share = gaps.lost.as_secs_f64() / gaps.whole.as_secs_f64();
            meter.push("kernel.gaps", share);
            if meter.time_left() < WINDOW / 2 {
                break;
            }
        }
        let took = start.elapsed();
        let stolen = stolen(place.here)?.saturating_sub(stolen_before?);
        let share = stolen.as_secs_f64() / took.as_secs_f64();
        meter.push("kernel.steal", share.min(1.0));
        Ok(())
    },
};

/// What was lost of how much.
struct Gaps {
    lost: Duration,
    whole: Duration,
}

fn spin(window: Duration) -> Gaps {
    let start = Instant::now();
    let mut last = start;
    let mut lost = Duration::ZERO;
    loop {
        let now = Instant::now();
        let gap = now - last;
        if gap >= GAP {
            lost += gap;
        }
        last = now;
        let whole = now - start;
        if whole >= window {
            return Gaps { lost, whole };
        }
    }
}

/// What the hypervisor took of a CPU since boot.
fn stolen(cpu: usize) -> Result<Duration, Untried> {
    let stat =
        fs::read_to_string("/proc/stat").map_err(|error| Untried::call("/proc/stat", error))?;
    let ticks = stolen_ticks(&stat, cpu)
        .ok_or_else(|| Untried(format!("/proc/stat says nothing of CPU {cpu}")))?;
    // SAFETY: asks for a constant.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Ok(Duration::from_secs_f64(
        ticks as f64 / a_second.max(1) as f64,
    ))
}

/// The eighth number after the CPU's name, as proc(5) has it.
fn stolen_ticks(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    stat.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == name).then(|| words.nth(7)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// What another thread has of the same CPU shows as lost: with two that both want all of it, at
    /// least a quarter, and never all.
    #[test]
    fn a_second_thread_on_the_cpu_shows_as_gaps() {
        let here = *cpu::allowed().unwrap().last().unwrap();
        let stop = AtomicBool::new(false);
        let share = std::thread::scope(|scope| {
            scope.spawn(|| {
                let _pinned = cpu::pin(here).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let _pinned = cpu::pin(here).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            let gaps = spin(Duration::from_millis(500));
            assert_eq!(cpu::current(), here);
            stop.store(true, Ordering::Relaxed);
            gaps.lost.as_secs_f64() / gaps.whole.as_secs_f64()
        });
        assert!((0.25..1.0).contains(&share), "{share}");
    }

    /// The column is the one that proc(5) calls steal, of the CPU that was asked for.
    #[test]
    fn the_hypervisors_part_is_the_eighth_column() {
        let stat =
            "cpu 1 2 3 4 5 6 7 99 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu11 1 1 1 1 1 1 1 70 1 1";
        assert_eq!(stolen_ticks(stat, 1), Some(8));
        assert_eq!(stolen_ticks(stat, 11), Some(70));
        assert_eq!(stolen_ticks(stat, 0), None);
        assert_eq!(stolen_ticks("cpu1 1 2 3", 1), None);
    }
}
