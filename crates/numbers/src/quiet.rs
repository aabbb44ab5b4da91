//! What else the machine does while something is measured: other programs, the hypervisor, a
//! changing clock frequency.
//!
//! The kernel counts all CPUs' time in /proc/stat, in ticks of 10 ms; what is neither idle nor ours
//! was somebody else's. A frequency that changes shows in how long a fixed chain of rotations takes,
//! each of which needs the one before: a cycle each, on every CPU of the last decades (additions of
//! a constant are not: some CPUs do several in a cycle). That works in a guest too, which is not
//! told its frequency.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

/// Rotations in a chain: some 10 µs.
const CHAIN: u32 = 32 * 1024;
/// Chains to take the fastest of, so that an interrupt does not look like a slow clock.
const CHAINS: u32 = 4;

/// The state of the counters at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    busy_s: f64,
    stolen_s: f64,
    all_s: f64,
    own_s: f64,
}

/// What happened between two looks. Shares are of all CPUs' time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disturbance {
    pub others: f64,
    pub stolen: f64,
    /// A cycle now, ns.
    pub cycle_ns: f64,
}

/// Looks, and remembers its first look.
#[derive(Debug)]
pub(crate) struct Watch {
    start: Look,
}

impl Watch {
    pub fn new() -> Watch {
        Watch { start: look() }
    }

    pub fn look(&self) -> Look {
        look()
    }

    pub fn since(&self, before: &Look) -> Disturbance {
        let now = look();
        let all = now.all_s - before.all_s;
        let share = |part: f64| {
            if all > 0.0 {
                (part / all).clamp(0.0, 1.0)
            } else {
                0.0
            }
        };
        // A tick on each side may have been counted that was not used: less than two is nothing.
        let others = (now.busy_s - before.busy_s) - (now.own_s - before.own_s) - 2.0 * tick_s();
        Disturbance {
            others: share(others),
            stolen: share(now.stolen_s - before.stolen_s),
            cycle_ns: cycle_ns(),
        }
    }

    pub fn since_start(&self) -> Disturbance {
        self.since(&self.start)
    }
}

fn tick_s() -> f64 {
    // SAFETY: asks for a constant.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1.0 / ticks.max(1) as f64
}

/// Where /proc/stat cannot be read (a sandbox), all is zero and nothing is told of others.
fn look() -> Look {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let [busy_s, stolen_s, all_s] = ticks_of(&text).map(|ticks| ticks as f64 * tick_s());
    Look {
        busy_s,
        stolen_s,
        all_s,
        own_s: own_s(),
    }
}

/// Busy, stolen and all ticks since boot, of the first line: user, nice, system, idle, iowait, irq,
/// softirq, steal.
fn ticks_of(stat: &str) -> [u64; 3] {
    let line = stat.lines().next().unwrap_or_default();
    let mut ticks = [0u64; 8];
    for (tick, word) in ticks.iter_mut().zip(line.split_ascii_whitespace().skip(1)) {
        *tick = word.parse().unwrap_or(0);
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
    let busy = user + nice + system + irq + softirq;
    [busy, steal, busy + steal + idle + iowait]
}

/// CPU time of this process and of its children that ended, seconds.
fn own_s() -> f64 {
    let of = |who| {
        // SAFETY: a rusage is plain numbers; the kernel fills it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &mut usage);
            usage
        };
        let time = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

/// How long one rotation of a chain takes, ns.
pub(crate) fn cycle_ns() -> f64 {
    let chain = || {
        let start = Instant::now();
        let mut word = black_box(1u64);
        for _ in 0..CHAIN / 8 {
            // Eight in a row, each of which needs the one before and none of which can be left out.
            for _ in 0..8 {
                word = next(word);
            }
        }
        black_box(word);
        start.elapsed()
    };
    let fastest = (0..CHAINS).map(|_| chain()).min().unwrap_or_default();
    fastest.as_nanos() as f64 / f64::from(CHAIN)
}

/// One rotation that the compiler neither joins with its neighbours nor leaves out.
#[inline(always)]
fn next(mut word: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: turns a register, and touches no memory.
    unsafe {
        std::arch::asm!("ror {0}, 7", inout(reg) word, options(nomem, nostack, pure));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("ror {0}, {0}, #7", inout(reg) word, options(nomem, nostack, pure));
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The first line's columns are distinguished as proc(5) has them.
    #[test]
    fn ticks_are_those_of_proc_stat() {
        assert_eq!(
            ticks_of("cpu  1 2 4 100 200 8 16 32 0 0\ncpu0 9 9"),
            [31, 32, 363]
        );
        assert_eq!(ticks_of(""), [0; 3]);
        assert_eq!(ticks_of("cpu x y"), [0; 3]);
    }

    /// A CPU runs at 0.5 to 10 GHz: the chain is neither left out nor anything else than rotations.
    #[test]
    fn a_cycle_is_a_cycle() {
        let cycle = (0..20).map(|_| cycle_ns()).fold(f64::INFINITY, f64::min);
        assert!((0.1..2.0).contains(&cycle), "{cycle} ns");
    }

    /// Work of this process is not others', work of a process that is not waited for is.
    #[test]
    fn own_work_is_not_anothers() {
        let spin = |time: Duration| {
            let start = Instant::now();
            while start.elapsed() < time {
                cycle_ns();
            }
        };
        let watch = Watch::new();
        spin(Duration::from_millis(300));
        let own = look().own_s - watch.start.own_s;
        assert!(own > 0.1, "{own} s");

        let mut other = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let before = watch.look();
        std::thread::sleep(Duration::from_millis(500));
        let disturbed = watch.since(&before);
        other.kill().unwrap();
        other.wait().unwrap();
        let cpus = std::thread::available_parallelism().unwrap().get() as f64;
        assert!(disturbed.others > 0.3 / cpus, "{disturbed:?}");
    }
}
