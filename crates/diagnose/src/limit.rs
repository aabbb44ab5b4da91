//! The limits of control groups that a wait for a disk, for memory or for a CPU may come from: the device, the
//! machine's memory or its CPUs need not be short. And the limit at which a program cannot be started.

use std::collections::BTreeMap;
use std::ops::Range;

use hangdog_graph::Evidence;
use hangdog_trace::ids::Upid;
use hangdog_trace::words::{LimitKind, USED_UP};

use crate::function::Function;
use crate::kind::BlameKind;
use crate::profile::Profile;

/// No chain of parents is followed further.
const LONGEST: usize = 16;

/// What the control group of a process limits that a wait of this kind is for, or a computation that is paged in
/// meanwhile, or a sleep until the next attempt to start a program; nothing where it has no such limit, or has not
/// used it up. `writes` says that the wait is for a disk to have taken something.
pub(crate) fn of(
    evidence: &Evidence<'_>,
    process: Upid,
    kind: BlameKind,
    writes: bool,
) -> Option<String> {
    let kinds: &[LimitKind] = match (kind, writes) {
        (BlameKind::Run, _) => &[LimitKind::Memory],
        (BlameKind::Paging, _) => &[LimitKind::Memory, LimitKind::DiskRead, LimitKind::DiskReads],
        (BlameKind::Disk, true) => &[LimitKind::DiskWrite, LimitKind::DiskWrites],
        (BlameKind::Disk, false) => &[LimitKind::DiskRead, LimitKind::DiskReads],
        (BlameKind::Timer, _) => &[LimitKind::Tasks],
        _ => return None,
    };
    let rows = rows(evidence, process);
    let limits = evidence.limits;
    let told = kinds.iter().filter_map(|&kind| {
        let of_kind = |&&row: &&usize| LimitKind::from(limits.kind[row]) == kind;
        // The group may have been full at one of the looks only.
        let row = *(rows.iter().filter(of_kind)).max_by_key(|&&row| limits.used[row])?;
        let (limit, used) = (limits.limit[row], limits.used[row]);
        let amount = bytes(limit);
        let of_disks = || rows.iter().copied().filter(|row| of_kind(&row));
        let text = match kind {
            LimitKind::Memory => (used as f64 >= USED_UP * limit as f64)
                .then(|| format!("has used up its memory limit of {amount}")),
            LimitKind::DiskRead => Some(rates(evidence, of_disks(), "reads from", bytes)),
            LimitKind::DiskWrite => Some(rates(evidence, of_disks(), "writes to", bytes)),
            LimitKind::DiskReads => Some(rates(evidence, of_disks(), "reads from", count)),
            LimitKind::DiskWrites => Some(rates(evidence, of_disks(), "writes to", count)),
            LimitKind::Tasks => (used >= limit)
                .then(|| format!("has all {limit} threads and processes that it may have")),
            LimitKind::Cpu | LimitKind::Descriptors | LimitKind::Unknown => None,
        };
        text.map(|text| (&limits.group[row], text))
    });
    // Of the first version of control groups, each kind of limit has a group of its own.
    let mut before = None;
    let texts = told.map(|(group, text)| match before.replace(group) {
        Some(before) if before == group => text,
        _ if group == "/" => format!("the root control group {text}"),
        _ => format!("its control group {group} {text}"),
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(", and "))
}

/// What a group limits of each device: which one a wait is for is not known here, so the first few are named.
fn rates(
    evidence: &Evidence<'_>,
    rows: impl Iterator<Item = usize>,
    what: &str,
    amount: impl Fn(u64) -> String,
) -> String {
    const FEW: usize = 3;
    let limits = evidence.limits;
    // As it was when it was looked at last.
    let by_disk: BTreeMap<&str, u64> = rows
        .map(|row| (limits.device[row].as_str(), limits.limit[row]))
        .collect();
    let each = by_disk.into_iter().take(FEW).map(|(disk, limit)| {
        let disk = if disk.is_empty() { "a disk" } else { disk };
        format!("{what} {disk} to {} per second", amount(limit))
    });
    format!("limits {}", each.collect::<Vec<_>>().join(" and "))
}

fn count(operations: u64) -> String {
    operations.to_string()
}

/// The memory limit of the control group of a process, at whose limit it waited until `at`.
pub(crate) fn of_memory(evidence: &Evidence<'_>, process: Upid, at: u64) -> Option<String> {
    let limits = evidence.limits;
    let is_known = |&row: &usize| {
        LimitKind::from(limits.kind[row]) == LimitKind::Memory && limits.ts[row] < at
    };
    let row = (rows(evidence, process).into_iter()).rfind(is_known)?;
    let (group, amount) = (&limits.group[row], bytes(limits.limit[row]));
    Some(format!("the limit of {group} is {amount}"))
}

/// The quota of a process's group.
pub(crate) struct Quota<'a> {
    pub group: &'a str,
    pub cpus: f64,
    /// The program in the group that had most of the CPU time that the group got in a window, with its share: if
    /// that is another one.
    pub most: Option<(Upid, f64)>,
}

/// The quota of a process's group, and who used it in a window.
pub(crate) fn quota<'a>(
    evidence: &Evidence<'a>,
    process: Upid,
    window: &Range<u64>,
) -> Option<Quota<'a>> {
    let limits = evidence.limits;
    let is_of_cpu = |&row: &usize| LimitKind::from(limits.kind[row]) == LimitKind::Cpu;
    let row = rows(evidence, process).into_iter().find(is_of_cpu)?;
    let ran = |process: Upid| -> u64 {
        let threads = &evidence.threads.process(process).threads;
        let parts = threads
            .iter()
            .flat_map(|&thread| evidence.timeline.between(thread, window.start, window.end));
        parts
            .filter(|part| part.state.is_on_cpu())
            .map(|part| part.duration())
            .sum()
    };
    let mut members: Vec<Upid> = (0..limits.len())
        .filter(is_of_cpu)
        .filter(|&other| limits.group[other] == limits.group[row])
        .map(|other| limits.process[other])
        .chain([process])
        .collect();
    members.sort_unstable();
    members.dedup();
    let times: Vec<(u64, Upid)> = members.into_iter().map(|it| (ran(it), it)).collect();
    let all: u64 = times.iter().map(|(time, _)| time).sum();
    let most = times.into_iter().max().filter(|&(_, it)| it != process);
    let share = |time: u64| time as f64 / all.max(1) as f64;
    let most = most.map(|(time, it)| (it, share(time)));
    Some(Quota {
        group: &limits.group[row],
        cpus: limits.limit[row] as f64 / 1000.0,
        most,
    })
}

/// The function in which a process used most of the CPU time that it had around a window: what used up its quota ran
/// before it had none.
pub(crate) fn used_by(
    evidence: &Evidence<'_>,
    process: Upid,
    window: &Range<u64>,
) -> Option<Function> {
    /// More than some periods of any quota.
    const BEFORE_NS: u64 = 1_000_000_000;
    const MOST: f64 = 0.5;
    let ts = &evidence.samples.ts;
    let row_at = |moment| ts.partition_point(|&ts| ts < moment);
    let rows = row_at(window.start.saturating_sub(BEFORE_NS))..row_at(window.end);
    let is_its = |&row: &usize| {
        let thread = evidence.threads.known(evidence.samples.thread[row]);
        thread.is_some_and(|thread| thread.upid == process)
    };
    let samples: Vec<usize> = rows.filter(is_its).collect();
    let function = Profile::new(evidence, &samples).function();
    function.filter(|function| function.share >= MOST)
}

/// The limits of a process's group: its own, or, of one that was not there when somebody looked, those of the
/// nearest of its ancestors that was, whose group it began in.
fn rows(evidence: &Evidence<'_>, process: Upid) -> Vec<usize> {
    let limits = evidence.limits;
    let is_of_files = |row: usize| LimitKind::from(limits.kind[row]) == LimitKind::Descriptors;
    let mut at = process;
    for _ in 0..LONGEST {
        let own: Vec<usize> = (0..limits.len())
            .filter(|&row| limits.process[row] == at && !is_of_files(row))
            .collect();
        let known = evidence.threads.process(at);
        // It was looked at, and has none.
        let was_there =
            (known.threads.first()).is_some_and(|&first| evidence.timeline.life(first).start == 0);
        if !own.is_empty() || was_there || known.parent == at {
            return own;
        }
        at = known.parent;
    }
    Vec::new()
}

/// An amount with its unit.
fn bytes(amount: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = amount as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    match value {
        value if unit == 0 || value >= 100.0 => format!("{value:.0} {}", UNITS[unit]),
        value => format!("{value:.1} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        let told = [999, 16_777_216, 250_000_000].map(bytes);
        assert_eq!(told, ["999 B", "16.8 MB", "250 MB"]);
    }
}
