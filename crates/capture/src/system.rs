//! The few things asked of the system directly: clocks, names, signals.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// CLOCK_MONOTONIC, ns: the clock of every record.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The wall clock at a moment of CLOCK_MONOTONIC, ns since 1970.
pub(crate) fn unix_ns(monotonic: u64) -> u64 {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    (now.as_nanos() as u64).saturating_sub(monotonic_ns().saturating_sub(monotonic))
}

/// Host name, kernel release and machine.
pub(crate) fn machine() -> (String, String, String) {
    // SAFETY: utsname is arrays of bytes, for which zero is valid; uname fills them.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: a valid place for the result.
    unsafe { libc::uname(&mut names) };
    let text = |field: &[libc::c_char]| {
        crate::records::text(&field.iter().map(|&c| c as u8).collect::<Vec<_>>())
    };
    (
        text(&names.nodename),
        text(&names.release),
        text(&names.machine),
    )
}

/// Whether the running kernel, since its start, is the one that recorded `host`, `kernel` at
/// `started_unix_ns`: only then do its addresses mean the same.
pub fn is_this_boot(host: &str, kernel: &str, started_unix_ns: u64) -> bool {
    let (here, release, _) = machine();
    // CLOCK_MONOTONIC stands still in suspend; CLOCK_BOOTTIME would not, but errs to "no" less.
    here == host && release == kernel && unix_ns(0) <= started_unix_ns
}

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// From now on SIGINT, SIGTERM and SIGHUP ask to stop instead of ending the process.
///
/// # Errors
/// If the system does not let signals be handled.
pub fn stop_on_signals() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: a zeroed sigaction is valid; the handler only stores to an atomic, which is
        // allowed in a signal handler.
        let failed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            libc::sigaction(signal, &action, std::ptr::null_mut())
        };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
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
