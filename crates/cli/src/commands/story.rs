//! `hangdog story`: what one thread did, interval by interval.

use crate::args::StoryArgs;
use crate::commands::regions;
use crate::load;
use crate::output::{self, Colour, Paint};
use anyhow::Result;
use hangdog_report::calls::ThreadCalls;
use hangdog_report::format;
use hangdog_report::loss::Loss;
use hangdog_report::samples::ThreadSamples;
use hangdog_report::select::{self, Who, Window};
use hangdog_report::story::Story;
use hangdog_timeline::State;
use hangdog_trace::calls::Calls;
use serde::{Serialize, Serializer};
use std::io::Write;
use std::path::Path;

/// The answer in JSON. The intervals are made while they are written: a story can be long.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    thread: Who<'a>,
    from_ns: u64,
    to_ns: u64,
    #[serde(serialize_with = "entries")]
    intervals: (&'a Story<'a>, usize),
    /// Intervals that --limit left out.
    left_out: usize,
}

fn entries<S: Serializer>((story, limit): &(&Story<'_>, usize), to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(story.entries().take(*limit))
}

/// Tells the story.
pub fn run(args: &StoryArgs) -> Result<()> {
    let recording = load::recording(&args.trace)?;
    let window = Window::new(args.window, recording.timeline.end())?;
    let of_region = regions::place(
        &recording,
        &args.region,
        args.window.into(),
        None,
        args.thread.as_deref(),
    )?;
    let (thread, window) = match (of_region, &args.thread) {
        (Some(place), _) => place,
        (None, selector) => {
            let selector = selector.as_deref().unwrap_or_default();
            let thread = select::thread(&recording.threads, &recording.timeline, window, selector)?;
            (thread, window)
        }
    };
    let stacks = load::stacks(&recording.trace)?;
    let samples = ThreadSamples::load(&recording.trace, thread)?;
    let calls = Calls::new(&recording.trace.meta().arch);
    let called = ThreadCalls::load(&recording.trace, thread, &calls, &stacks)?;
    let story = Story {
        recording: &recording,
        stacks: &stacks,
        calls: &calls,
        samples: &samples,
        called: Some(&called),
        thread,
        window,
    };
    let limit = args.limit.unwrap_or(usize::MAX);
    let left_out = story.count().saturating_sub(limit);
    if !args.json {
        return print(&story, limit, left_out);
    }
    output::json(&Answer {
        trace: &args.trace,
        loss: &recording.loss,
        thread: Who::new(&recording.threads, thread),
        from_ns: window.from,
        to_ns: window.to,
        intervals: (&story, limit),
        left_out,
    })
}

/// Width of the columns before the text: time, duration, state.
const INDENT: usize = 14 + 2 + 9 + 2 + 11 + 2;

fn print(story: &Story<'_>, limit: usize, left_out: usize) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let who = Who::new(&story.recording.threads, story.thread);
    writeln!(
        out,
        "{} from {} to {}, {}",
        paint.text(Colour::Heading, &who.text()),
        format::moment(story.window.from),
        format::moment(story.window.to),
        format::things(story.count() as u64, "interval", "intervals"),
    )?;
    writeln!(out, "Lost: {}", story.recording.loss.text())?;
    writeln!(out)?;
    for entry in story.entries().take(limit) {
        let state = format!("{:<11}", entry.state);
        writeln!(
            out,
            "{:>14}  {:>9}  {}  {}",
            format::moment(entry.start_ns),
            format::duration(entry.duration_ns),
            paint.text(colour(entry.state), &state),
            format::printable(&entry.text()),
        )?;
        for line in entry.places() {
            let line = format::printable(&line);
            writeln!(out, "{:INDENT$}{}", "", paint.text(Colour::Quiet, &line))?;
        }
    }
    if left_out > 0 {
        let more = format::things(left_out as u64, "more interval", "more intervals");
        writeln!(out, "\n{more}: raise --limit, or start later with --from")?;
    }
    Ok(out.flush()?)
}

fn colour(state: &str) -> Colour {
    match State::ALL.into_iter().find(|s| s.text() == state) {
        Some(State::Running) => Colour::Good,
        Some(State::Blocked) => Colour::Bad,
        _ => Colour::Warning,
    }
}
