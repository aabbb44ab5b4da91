//! Which machine this is, and since when: addresses and process ids mean nothing on another one, or
//! after it was started anew.

use std::time::{Duration, SystemTime};

use crate::text::text;

/// CLOCK_MONOTONIC, ns: the clock of every record.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The wall clock at a moment of CLOCK_MONOTONIC, ns since 1970.
pub fn unix_ns(monotonic: u64) -> u64 {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    (now.as_nanos() as u64).saturating_sub(monotonic_ns().saturating_sub(monotonic))
}

/// Host name, kernel release and machine.
pub fn machine() -> (String, String, String) {
    // SAFETY: utsname is arrays of bytes, for which zero is valid; uname fills them.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: a valid place for the result.
    unsafe { libc::uname(&mut names) };
    let text = |field: &[libc::c_char]| text(&field.iter().map(|&c| c as u8).collect::<Vec<_>>());
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
