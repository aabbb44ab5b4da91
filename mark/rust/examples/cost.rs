//! Prints what a mark costs, for `bench/marks.py`: 0 or 1 for recorded, and ns. It writes into this
//! process's own shared memory that it is recorded, as a recorder would.

use std::fs::{File, read_to_string};
use std::hint::black_box;
use std::os::unix::fs::FileExt;

use hangdog_mark::{begin, name, point};

/// CPU time of this thread.
fn cpu_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it fills one live value.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn main() -> std::io::Result<()> {
    const COUNT: i64 = 2_000_000;
    let rounds = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(5);
    point(1, &[]);
    let maps = read_to_string("/proc/self/maps")?;
    let line = maps.lines().find(|line| line.contains("hangdog-marks"));
    let start = line.and_then(|line| line.split('-').next()).unwrap_or("0");
    let start = u64::from_str_radix(start, 16).map_err(std::io::Error::other)?;
    let memory = File::options().write(true).open("/proc/self/mem")?;
    for _ in 0..rounds {
        for recorded in 0..2u64 {
            let until = recorded * u64::MAX;
            memory.write_all_at(&until.to_ne_bytes(), start + 64)?;
            let started = cpu_ns();
            for i in 0..COUNT {
                begin(name!("decode"), &[black_box(i), 2, 3, 4]);
            }
            println!("{recorded} {}", (cpu_ns() - started) as f64 / COUNT as f64);
        }
    }
    Ok(())
}
