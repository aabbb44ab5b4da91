//! The time of day in words: where this machine is for people and names of files, in UTC for
//! traces.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, ns since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// A time (ns since 1970) for names of files: `20261122-140322`.
pub fn stamp(unix_ns: u64) -> String {
    written(&local(unix_ns), "", "-", "")
}

/// A time (ns since 1970) to be read: `2026-11-22 14:03:22`.
pub fn text(unix_ns: u64) -> String {
    written(&local(unix_ns), "-", " ", ":")
}

/// A time (ns since 1970) as RFC 3339 has it, in UTC: `2026-11-22T13:03:22Z`.
pub(crate) fn rfc3339(unix_ns: u64) -> String {
    written(&utc(unix_ns), "-", "T", ":") + "Z"
}

/// A time with what is between the parts of its date, between the two, and between the parts of
/// the time of day.
fn written(time: &libc::tm, date: &str, between: &str, day: &str) -> String {
    format!(
        "{:04}{date}{:02}{date}{:02}{between}{:02}{day}{:02}{day}{:02}",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec
    )
}

fn local(unix_ns: u64) -> libc::tm {
    let seconds = seconds(unix_ns);
    // SAFETY: tm is plain integers and a pointer, for which zero is valid; localtime_r reads one
    // valid place and fills another.
    unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut time);
        time
    }
}

fn utc(unix_ns: u64) -> libc::tm {
    let seconds = seconds(unix_ns);
    // SAFETY: as above, of gmtime_r.
    unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&seconds, &mut time);
        time
    }
}

fn seconds(unix_ns: u64) -> libc::time_t {
    (unix_ns / 1_000_000_000) as libc::time_t
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both local forms say the same; a day on, the same time of day (June has no change of
    /// clocks).
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

    /// A billion seconds after 1970 it was the 9th of September 2001, 01:46:40, wherever this runs.
    #[test]
    fn in_utc() {
        assert_eq!(rfc3339(1_000_000_000_999_999_999), "2001-09-09T01:46:40Z");
    }
}
