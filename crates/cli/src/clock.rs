//! The time of day, where this machine is.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, ns since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// A time for names of files: `20261122-140322`.
pub fn stamp(unix_ns: u64) -> String {
    let time = local(unix_ns);
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec
    )
}

/// A time to be read: `2026-11-22 14:03:22`.
pub fn text(unix_ns: u64) -> String {
    let time = local(unix_ns);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec
    )
}

fn local(unix_ns: u64) -> libc::tm {
    let seconds = (unix_ns / 1_000_000_000) as libc::time_t;
    // SAFETY: tm is plain integers and a pointer, for which zero is valid; localtime_r reads one
    // valid place and fills another.
    unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut time);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both forms say the same; a day on, the same time of day (June has no change of clocks).
    #[test]
    fn forms() {
        let june = 1_781_000_000_000_000_000;
        let (stamp_then, text_then) = (stamp(june), text(june));
        assert_eq!(
            stamp_then,
            text_then.replace(['-', ':'], "").replace(' ', "-")
        );
        let next = text(june + 86_400_000_000_000);
        assert_ne!(next, text_then);
        assert_eq!(next[10..], text_then[10..]);
    }
}
