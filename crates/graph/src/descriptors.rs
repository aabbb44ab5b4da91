//! Processes that have as many files open as they may: such a program accepts no connection.

use hangdog_trace::ids::Upid;
use hangdog_trace::words::LimitKind;
use std::collections::HashMap;
use std::ops::Range;

use crate::evidence::Evidence;

/// How many files a process has open, and how many it may, where hardly any is left at some moment of a window or
/// shortly before or behind it.
pub fn descriptors_used_up(
    evidence: &Evidence<'_>,
    process: Upid,
    window: &Range<u64>,
) -> Option<(u64, u64)> {
    /// It is looked for every 4 s, and as a recording begins and ends.
    const NEAR_NS: u64 = 5_000_000_000;
    let limits = evidence.limits;
    let since = window.start.saturating_sub(NEAR_NS);
    let until = window.end.saturating_add(NEAR_NS);
    let used_up = evidence.memo.used_up.get_or_init(|| looks(evidence));
    let looks = used_up.get(&process)?;
    let first = looks.partition_point(|&(ts, _)| ts < since);
    let &(_, row) = looks.get(first).filter(|&&(ts, _)| ts <= until)?;
    Some((limits.used[row], limits.limit[row]))
}

/// Of each process the looks at which it had hardly any file left to open: when, and the row of `limits`.
fn looks(evidence: &Evidence<'_>) -> HashMap<Upid, Vec<(u64, usize)>> {
    let limits = evidence.limits;
    let mut all: HashMap<Upid, Vec<(u64, usize)>> = HashMap::new();
    for row in 0..limits.len() {
        if LimitKind::from(limits.kind[row]) == LimitKind::Descriptors {
            let looks = all.entry(limits.process[row]).or_default();
            looks.push((limits.ts[row], row));
        }
    }
    all.values_mut().for_each(|looks| looks.sort_unstable());
    all
}
