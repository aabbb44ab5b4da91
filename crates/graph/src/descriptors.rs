//! Processes that have as many files open as they may: such a program accepts no connection.

use hangdog_trace::ids::Upid;
use hangdog_trace::words::LimitKind;
use std::ops::Range;

use crate::evidence::Evidence;

/// How many files a process has open, and how many it may, where hardly any is left at some moment of a window or
/// shortly before or behind it.
pub fn open_files(
    evidence: &Evidence<'_>,
    process: Upid,
    window: &Range<u64>,
) -> Option<(u64, u64)> {
    /// It is looked for every 4 s, and as a recording begins and ends.
    const NEAR_NS: u64 = 5_000_000_000;
    let limits = evidence.limits;
    let since = window.start.saturating_sub(NEAR_NS);
    let until = window.end.saturating_add(NEAR_NS);
    let row = (0..limits.len()).find(|&row| {
        LimitKind::from(limits.kind[row]) == LimitKind::Descriptors
            && limits.process[row] == process
            && (since..=until).contains(&limits.ts[row])
    })?;
    Some((limits.used[row], limits.limit[row]))
}
