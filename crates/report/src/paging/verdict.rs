//! What a verdict adds where the time went to page-ins: which files, and how much of what was read for them was
//! of no use.

use super::{Operation, Paging, Segment, paging};
use crate::case::Case;
use crate::format;
use crate::select::Window;
use hangdog_diagnose::verdict::Verdict;
use hangdog_trace::ids::Upid;
use std::collections::HashSet;

/// Page-ins are described where they took at least this share of the time.
const NOTABLE: f64 = 0.3;
/// So many segments are named.
const MOST_NAMED: usize = 3;
const KIND: &str = "paging";

/// What the page-ins of a problem were for, in a sentence without a full stop; none where little of its time went
/// to page-ins, or the trace's tables of them cannot be read.
pub fn of_verdict(case: &Case, verdict: &Verdict) -> Option<String> {
    let problem = &verdict.problem;
    let spans = || {
        verdict
            .blame_over_time
            .iter()
            .filter(|span| span.kind == KIND)
    };
    let waited: u64 = spans()
        .map(|span| span.to_ns.saturating_sub(span.from_ns))
        .sum();
    if waited == 0 || (waited as f64) < problem.duration_ns as f64 * NOTABLE {
        return None;
    }
    let threads = &case.recording.threads;
    let of = |utid| threads.known(utid).map(|thread| thread.upid);
    let processes: HashSet<Upid> = spans().filter_map(|span| of(span.utid)).collect();
    let operation = Operation {
        window: Window {
            from: problem.start_ns,
            to: problem.start_ns.saturating_add(problem.duration_ns),
        },
        name: String::new(),
        processes,
        others: Vec::new(),
    };
    // A verdict is as good without it.
    paging(case, &operation)
        .ok()
        .and_then(|paging| text(&paging))
}

fn text(paging: &Paging) -> Option<String> {
    let waited = |segment: &&Segment| segment.sum.waited_ns > 0;
    let segments: Vec<&Segment> = paging.segments.iter().filter(waited).collect();
    if segments.is_empty() {
        return None;
    }
    let named: Vec<String> = (segments.iter().take(MOST_NAMED))
        .map(|segment| {
            let name = match segment.path {
                Some(_) => format::printable(&segment.name).into_owned(),
                None => format!(
                    "{} of {}",
                    segment.kind,
                    format::printable(&segment.process)
                ),
            };
            format!("{name} {}", format::duration(segment.sum.waited_ns))
        })
        .collect();
    let sum = &paging.sum;
    let mut text = format!(
        "{}: {}",
        format::things(
            sum.page_ins + sum.minor_waits,
            "wait for a page",
            "waits for pages"
        ),
        named.join(", ")
    );
    let rest = segments.len().saturating_sub(MOST_NAMED);
    if rest > 0 {
        text += &format!(", and {}", format::things(rest as u64, "other", "others"));
    }
    if sum.again > 0 {
        let again = format::things(sum.again, "page-in was", "page-ins were");
        text += &format!("; {again} for what had been in memory before");
    }
    let bytes =
        |of: fn(&Segment) -> Option<u64>| -> u64 { paging.segments.iter().filter_map(of).sum() };
    let fetched = bytes(|segment| segment.fetched_bytes);
    let unused = bytes(|segment| segment.unused_bytes);
    if fetched > 0 && unused > 0 {
        let (fetched, unused) = (format::bytes(fetched), format::bytes(unused));
        text += &format!("; of {fetched} that were read for them {unused} were not used");
    }
    Some(text)
}
