//! The few things asked of the system directly: clocks, names, signals.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hangdog_symbols::end_by;

pub(crate) use hangdog_symbols::boot::{machine, monotonic_ns, unix_ns};

/// How long a jiffy takes, by which the kernel notes when something was sent, ns: what its coarse clocks resolve.
pub(crate) fn tick_ns() -> u64 {
    let mut tick = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes the resolution of a clock that all kernels have into `tick`.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut tick) };
    tick.tv_nsec as u64
}

static STOP: AtomicBool = AtomicBool::new(false);
static SNAPSHOT: AtomicBool = AtomicBool::new(false);

/// How long may pass from the first signal to the end, seconds.
const END_WITHIN: u32 = 5;
/// How long files are still read then, for names: what is left is for writing them.
const READ_FOR: Duration = Duration::from_millis(3500);
/// What ends a process that did not end in time.
const LATE: &[u8] =
    b"hangdog: not finished 5 s after the request to stop; what was written is kept\n";
const LATE_CODE: libc::c_int = 2;

extern "C" fn on_signal(signal: libc::c_int) {
    let is_second = STOP.swap(true, Ordering::Relaxed);
    // SAFETY: both may be called in a signal handler, and take plain numbers.
    unsafe {
        // A terminal that goes tells so more than once.
        if is_second && signal != libc::SIGHUP {
            libc::_exit(128 + signal);
        }
        if !is_second {
            libc::alarm(END_WITHIN);
        }
    }
    end_by(monotonic_ns() + READ_FOR.as_nanos() as u64);
}

extern "C" fn on_user(_: libc::c_int) {
    SNAPSHOT.store(true, Ordering::Relaxed);
}

extern "C" fn on_alarm(_: libc::c_int) {
    // SAFETY: both may be called in a signal handler; the bytes live for ever.
    unsafe {
        libc::write(2, LATE.as_ptr().cast(), LATE.len());
        libc::_exit(LATE_CODE);
    }
}

/// The running kernel's version: its first two numbers, 0 where they are not to be read.
pub(crate) fn kernel_version() -> (u32, u32) {
    let (_, release, _) = machine();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|word| word.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// From now on SIGINT, SIGTERM and SIGHUP ask to stop instead of ending the process: the first one
/// within 5 s, whatever is stuck, the second one at once.
///
/// # Errors
/// If the system does not let signals be handled.
pub fn stop_on_signals() -> io::Result<()> {
    let asked = on_signal as *const () as usize;
    let handlers = [
        (libc::SIGINT, asked),
        (libc::SIGTERM, asked),
        (libc::SIGHUP, asked),
        (libc::SIGALRM, on_alarm as *const () as usize),
    ];
    handlers
        .into_iter()
        .try_for_each(|(signal, handler)| handle(signal, handler))
}

/// From now on SIGUSR1 asks for a snapshot of memory instead of ending the process.
///
/// # Errors
/// If the system does not let signals be handled.
pub(crate) fn snapshot_on_signal() -> io::Result<()> {
    handle(libc::SIGUSR1, on_user as *const () as usize)
}

/// Whether a signal has asked for a snapshot of memory since this was called last.
pub(crate) fn snapshot_asked() -> bool {
    SNAPSHOT.swap(false, Ordering::Relaxed)
}

fn handle(signal: libc::c_int, handler: usize) -> io::Result<()> {
    // SAFETY: a zeroed sigaction is valid; the handlers do what is allowed in one: atomic
    // stores, the clock, alarm, write and _exit.
    let failed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a signal asked to stop.
pub fn stop_asked() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// This process's effective capabilities, a bit each by the kernel's numbers; 0 if unreadable.
pub(crate) fn effective_capabilities() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("CapEff:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        })
        .unwrap_or(0)
}
