//! What a recording lost, as every answer states it.

use crate::format;
use hangdog_trace::Trace;
use hangdog_trace::meta::RecordingState;
use hangdog_trace::tables::Losses;
use hangdog_trace::words::LossKind;
use serde::Serialize;
use std::collections::BTreeMap;

/// What was lost; nothing if `total` is 0.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Events, definitions and whatever else there was, together.
    pub total: u64,
    /// Whether the recording was cut short, so that its end is missing too.
    pub cut_short: bool,
    /// By kind and CPU.
    pub by: Vec<LossOf>,
    /// Transfers that were not recorded because there were so many, as far as they were counted; none
    /// if there were none. No loss, and not in the total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded_transfers: Option<u64>,
    /// The same of handoffs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded_handoffs: Option<u64>,
    /// Marks that programs had overwritten when the flight recorder took its snapshot, at least; none if
    /// there were none. Not in the total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwritten_marks: Option<u64>,
    /// Switches that the others show to be missing, counted as lost or not; none if they were
    /// not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_switches: Option<usize>,
}

/// A loss of one kind on one CPU.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct LossOf {
    /// What, as the trace's documentation names it.
    pub kind: &'static str,
    /// Where; none if it belongs to no CPU.
    pub cpu: Option<u16>,
    /// How many.
    pub count: u64,
}

impl Loss {
    /// Adds up what a trace says that it lost.
    pub fn of(trace: &Trace) -> hangdog_trace::Result<Loss> {
        let cut_short = trace.meta().state == RecordingState::Recording;
        Ok(Loss::new(&trace.read()?, cut_short))
    }

    fn new(rows: &Losses, cut_short: bool) -> Loss {
        let mut sums = BTreeMap::new();
        let (mut unrecorded_transfers, mut unrecorded_handoffs) = (0u64, 0u64);
        let mut overwritten_marks = 0u64;
        for i in 0..rows.len() {
            let sum: &mut u64 = match LossKind::from(rows.kind[i]) {
                LossKind::Transfers => &mut unrecorded_transfers,
                LossKind::Handoffs => &mut unrecorded_handoffs,
                LossKind::OverwrittenMarks => &mut overwritten_marks,
                _ => sums.entry((rows.kind[i], rows.cpu[i])).or_default(),
            };
            *sum = sum.saturating_add(rows.count[i]);
        }
        let by: Vec<LossOf> = sums
            .into_iter()
            .map(|((kind, cpu), count)| LossOf {
                kind: LossKind::from(kind).text(),
                cpu: (cpu != u16::MAX).then_some(cpu),
                count,
            })
            .collect();
        Loss {
            total: by
                .iter()
                .fold(0, |sum, loss| sum.saturating_add(loss.count)),
            cut_short,
            by,
            unrecorded_transfers: (unrecorded_transfers > 0).then_some(unrecorded_transfers),
            unrecorded_handoffs: (unrecorded_handoffs > 0).then_some(unrecorded_handoffs),
            overwritten_marks: (overwritten_marks > 0).then_some(overwritten_marks),
            missing_switches: None,
        }
    }

    /// Whether nothing was lost.
    pub fn is_none(&self) -> bool {
        self.total == 0 && !self.cut_short
    }

    /// `none`, or what was lost.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        for loss in self.by.iter().filter(|loss| loss.count > 0) {
            let count = format::count(loss.count);
            parts.push(match loss.cpu {
                Some(cpu) => format!("{count} {} on CPU {cpu}", shown(loss.kind)),
                None => format!("{count} {}", shown(loss.kind)),
            });
        }
        // Where the recorder lost nothing the kernel did not tell of them: that is no loss, and the
        // timeline leaves no gap.
        if let Some(missing @ 1..) = self.missing_switches
            && (self.total > 0 || self.cut_short)
        {
            let switches = format::things(missing as u64, "switch", "switches");
            parts.push(format!("at least {switches} inferred from gaps"));
        }
        if self.cut_short {
            parts.push("the end (the recording was cut short or still runs)".into());
        }
        let mut text = match parts.len() {
            0 => "none".into(),
            _ => parts.join(", "),
        };
        if let Some(count) = self.unrecorded_transfers {
            let count = format::things(count, "send or receive", "sends and receives");
            text.push_str(&format!(
                "; left out to limit the overhead: at least {count} (--transfers records all)"
            ));
        }
        if let Some(count) = self.unrecorded_handoffs {
            let count = format::things(count, "async work step", "async work steps");
            text.push_str(&format!(
                "; left out to limit the overhead: at least {count}"
            ));
        }
        if let Some(count) = self.overwritten_marks {
            let count = format::things(count, "mark", "marks");
            text.push_str(&format!(
                "; overwritten before the snapshot: at least {count}"
            ));
        }
        text
    }
}

/// A kind of loss in words; `kind` itself is the key in JSON.
fn shown(kind: &str) -> &str {
    match kind {
        "transfers" => "socket or pipe I/O records",
        "handoffs" => "async work records",
        "recursion" => "probe runs",
        "snapshots" => "snapshots of memory",
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangdog_trace::tables::Loss as Row;

    fn row(cpu: u16, kind: LossKind, count: u64) -> Row {
        Row {
            ts: 0,
            cpu,
            kind: kind.into(),
            count,
        }
    }

    /// No row is no loss, and the text says so.
    #[test]
    fn none() {
        let loss = Loss::new(&Losses::default(), false);
        assert!(loss.is_none());
        assert_eq!(loss.text(), "none");
    }

    /// Transfers that were left out on purpose are mentioned and are no loss.
    #[test]
    fn unrecorded_transfers() {
        let rows = [
            row(0, LossKind::Transfers, 1_000),
            row(1, LossKind::Transfers, 500),
        ];
        let loss = Loss::new(&Losses::from_iter(rows), false);
        assert!(loss.is_none());
        assert_eq!(
            loss.text(),
            "none; left out to limit the overhead: at least 1,500 sends and receives (--transfers \
             records all)"
        );
    }

    /// So are handoffs.
    #[test]
    fn unrecorded_handoffs() {
        let rows = [
            row(0, LossKind::Handoffs, 2_000),
            row(1, LossKind::Events, 3),
        ];
        let loss = Loss::new(&Losses::from_iter(rows), false);
        assert_eq!(loss.total, 3);
        assert_eq!(
            loss.text(),
            "3 events on CPU 1; left out to limit the overhead: at least 2,000 async work steps"
        );
    }

    /// Overwritten marks are mentioned and are no loss; lost ones are.
    #[test]
    fn marks() {
        let rows = [
            row(u16::MAX, LossKind::OverwrittenMarks, 1_000),
            row(u16::MAX, LossKind::Marks, 2),
        ];
        let loss = Loss::new(&Losses::from_iter(rows), false);
        assert_eq!(loss.total, 2);
        assert_eq!(
            loss.text(),
            "2 marks; overwritten before the snapshot: at least 1,000 marks"
        );
    }

    /// Rows of one kind and CPU are one; a loss that belongs to no CPU names none.
    #[test]
    fn sums() {
        let rows = Losses::from_iter([
            row(1, LossKind::Events, 1_000),
            row(u16::MAX, LossKind::Mappings, 2),
            row(1, LossKind::Events, 500),
            row(0, LossKind::Events, 3),
        ]);
        let mut loss = Loss::new(&rows, true);
        loss.missing_switches = Some(2);
        assert_eq!(loss.total, 1_505);
        assert_eq!(
            loss.text(),
            "3 events on CPU 0, 1,500 events on CPU 1, 2 mappings, \
             at least 2 switches inferred from gaps, \
             the end (the recording was cut short or still runs)"
        );
    }
}
