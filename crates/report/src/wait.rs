//! One interval of a thread at a moment, and who ended it: what an arrow in a picture shows.

use crate::calls::{Called, ThreadCalls};
use crate::case::Case;
use crate::select::Window;
use crate::story::{Entry, Story};
use crate::{samples::ThreadSamples, select::Who};
use hangdog_diagnose::verdict::EdgeReport;
use hangdog_graph::ended::ended_by;
use hangdog_graph::{Evidence, Source, Wait};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::ids::Utid;
use serde::Serialize;

/// The interval of a thread that holds a moment.
#[derive(Serialize)]
pub struct At<'a> {
    /// Whose.
    pub thread: Who<'a>,
    /// Which of its intervals it is, from 0.
    pub index: usize,
    /// How many it has.
    pub of: usize,
    /// The interval.
    pub entry: Entry<'a>,
    /// The same in a line.
    pub text: String,
    /// Where in the code, in lines.
    pub places: Vec<String>,
    /// The system call that the thread is in, where all were recorded.
    pub call: Option<&'a Called>,
    /// The same in a line.
    pub call_text: Option<String>,
    /// What ended it, if it is a wait.
    pub ended: Option<Ended<'a>>,
}

/// What ended a wait, or should have.
#[derive(Serialize)]
pub struct Ended<'a> {
    /// How, how surely, and why that is believed.
    pub edge: EdgeReport,
    /// The thread that did it or should have; none for a device, a timer, or nobody.
    pub by: Option<Who<'a>>,
    /// What it is instead of a thread: timer, disk, network, device, nobody.
    pub source: &'static str,
    /// Whether it was seen to happen; otherwise this is who should have come.
    pub was_seen: bool,
    /// When it made the thread runnable, or the wait's end, ns since the trace's start.
    pub at_ns: u64,
    /// When the thread then had a CPU; none if it never had.
    pub ran_ns: Option<u64>,
    /// The wake, with the waker's stacks.
    pub wake: Option<Entry<'a>>,
    /// The wake in a line.
    pub wake_text: Option<String>,
}

/// The interval of `thread` that holds `t`, with what ended it; none if the thread does not live
/// then.
pub fn at<'a>(
    case: &'a Case,
    evidence: &Evidence<'_>,
    samples: &'a ThreadSamples,
    called: &'a ThreadCalls,
    thread: Utid,
    t: u64,
) -> Option<At<'a>> {
    let recording = &*case.recording;
    let intervals = recording.timeline.intervals(thread);
    let index = intervals.index_at(t)?;
    let story = Story {
        recording,
        stacks: &case.stacks,
        calls: &case.calls,
        samples,
        called: Some(called),
        thread,
        window: Window {
            from: 0,
            to: recording.timeline.end(),
        },
    };
    let entry = story.entry(index)?;
    let ended = match intervals.get(index) {
        Some(interval) if interval.state == State::Blocked => {
            ended(&story, evidence, index, &interval)
        }
        _ => None,
    };
    let call = called.at(t);
    Some(At {
        thread: Who::new(&recording.threads, thread),
        index,
        of: intervals.len(),
        text: entry.text(),
        places: entry.places().map(|place| place.into_owned()).collect(),
        entry,
        call,
        call_text: call.map(Called::text),
        ended,
    })
}

fn ended<'a>(
    story: &Story<'a>,
    evidence: &Evidence<'_>,
    index: usize,
    interval: &Interval,
) -> Option<Ended<'a>> {
    let recording = story.recording;
    let intervals = recording.timeline.intervals(story.thread);
    let next = intervals.get(index + 1);
    let wake = next.and_then(|next| match next.cause {
        Cause::Wake(row) => Some(row as usize),
        _ => None,
    });
    let wait = Wait::new(evidence, story.thread, interval);
    let edge = ended_by(evidence, &wait, wake);
    let (by, source) = match edge.source {
        Source::Thread(utid) => (Some(Who::new(&recording.threads, utid)), "thread"),
        Source::Timer => (None, "timer"),
        Source::Disk => (None, "disk"),
        Source::Network => (None, "network"),
        Source::Device(_) => (None, "device"),
        Source::Nobody => (None, "nobody"),
    };
    let ran_ns = (index + 1..intervals.len())
        .map_while(|i| intervals.get(i))
        .take_while(|later| later.state != State::Blocked)
        .find(|later| later.state.is_on_cpu())
        .map(|later| later.start);
    let entry = wake.and_then(|_| story.entry(index + 1));
    Some(Ended {
        by,
        source,
        was_seen: edge.wake.is_some() || !matches!(edge.source, Source::Thread(_)),
        at_ns: interval.end,
        ran_ns,
        wake_text: entry.as_ref().map(Entry::text),
        wake: entry,
        edge: EdgeReport {
            kind: edge.kind.text(),
            strength: edge.strength.text(),
            reason: edge.reason,
        },
    })
}
