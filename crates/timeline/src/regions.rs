//! Begins and ends become regions.
//!
//! A begin and an end are one region if their process, code and pairing are the same and, by the
//! pairing, their thread or their first argument ([`Pairing`]). An end belongs to the last such begin
//! that has no end yet: regions that are alike nest. A begin that never ends lasts until the end of the
//! trace, and says so; an end without a begin, which may lie before the trace, is none.

use hangdog_trace::Threads;
use hangdog_trace::tables::Marks;
use hangdog_trace::words::{MarkKind, Pairing};
use std::collections::HashMap;

/// A region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The row of marks with which it begins.
    pub begin: u32,
    /// The row with which it ends; none if it was not seen to end.
    pub end: Option<u32>,
    /// When it began, ns since the trace's start.
    pub from: u64,
    /// When it ended, or when the trace does.
    pub to: u64,
}

impl Region {
    /// How long it took, ns; so far, if it has not ended.
    pub fn duration(&self) -> u64 {
        self.to - self.from
    }
}

/// All regions of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    /// By the time of their begin.
    pub all: Vec<Region>,
    /// The rows of ends to which there is no begin.
    pub stray_ends: Vec<u32>,
}

impl Regions {
    /// Pairs the begins and ends of a trace that ends at `end`, as the program said or, if one is given,
    /// by a `rule` for all.
    pub fn pair(marks: &Marks, threads: &Threads, rule: Option<Pairing>, end: u64) -> Regions {
        let mut regions = Regions::default();
        // The regions that have not ended, by what an end must have in common with them.
        let mut open: HashMap<_, Vec<usize>> = HashMap::new();
        for row in 0..marks.len() {
            let kind = MarkKind::from(marks.kind[row]);
            if !matches!(kind, MarkKind::Begin | MarkKind::End) {
                continue;
            }
            let thread = marks.thread[row];
            let pairing = rule.unwrap_or(Pairing::from(marks.pairing[row]));
            let common = match pairing {
                Pairing::Argument => marks.arg0[row],
                Pairing::Code => 0,
                Pairing::Thread | Pairing::Unknown => thread.into(),
            };
            let process = threads.thread(thread).upid;
            let key = (process, marks.code[row], u8::from(pairing), common);
            let ts = marks.ts[row];
            if kind == MarkKind::Begin {
                open.entry(key).or_default().push(regions.all.len());
                regions.all.push(Region {
                    begin: row as u32,
                    end: None,
                    from: ts,
                    to: end.max(ts),
                });
                continue;
            }
            match open.get_mut(&key).and_then(Vec::pop) {
                Some(at) => {
                    let region = &mut regions.all[at];
                    (region.end, region.to) = (Some(row as u32), ts);
                }
                None => regions.stray_ends.push(row as u32),
            }
        }
        regions
    }
}
