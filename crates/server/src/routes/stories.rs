//! The routes that tell of one thread: its story, one interval of it, its time within a range, and
//! its stacks.

use super::{Answer, Failure, Id, Shared, answer_json, find};
use anyhow::{Result, bail};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use hangdog_export::{Fold, Selection, folded};
use hangdog_report::samples::ThreadSamples;
use hangdog_report::select::{NothingFound, Who, Window};
use hangdog_report::story::Story;
use hangdog_report::{range, wait};
use hangdog_trace::ids::Utid;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(super) struct StoryQuery {
    thread: Utid,
    /// The first interval, from 0; or that which holds the moment `at`, in the middle.
    first: Option<usize>,
    at: Option<u64>,
    limit: Option<usize>,
}

/// So many intervals of a story come at a time.
const MOST_ENTRIES: usize = 1_000;

pub(super) async fn story(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<StoryQuery>, QueryRejection>,
) -> Answer {
    let opened = find(&shelf, id)?;
    let Query(query) = query?;
    let ground = opened.ground().await?;
    let value = opened
        .ask(move |desk| {
            let recording = &*desk.case.recording;
            let called = ground.called(desk.case, query.thread)?;
            let intervals = recording.timeline.intervals(query.thread);
            let limit = query.limit.unwrap_or(200).min(MOST_ENTRIES);
            let at = query.at.map(|t| match intervals.index_at(t) {
                Some(at) => at,
                None if t < intervals.end() => 0,
                None => intervals.len().saturating_sub(1),
            });
            let first = match (query.first, at) {
                (Some(first), _) => first,
                (None, Some(at)) => at.saturating_sub(limit / 2),
                (None, None) => 0,
            };
            let samples = ThreadSamples::of(&desk.case.samples, query.thread);
            let story = Story {
                recording,
                stacks: &desk.case.stacks,
                calls: &desk.case.calls,
                samples: &samples,
                called: Some(&called),
                thread: query.thread,
                window: Window {
                    from: 0,
                    to: recording.timeline.end(),
                },
            };
            let rows: Vec<Value> = (first..first.saturating_add(limit).min(intervals.len()))
                .filter_map(|i| story.entry(i))
                .map(|entry| {
                    let places: Vec<String> = entry.places().map(|p| p.into_owned()).collect();
                    let text = entry.text();
                    let mut row = serde_json::to_value(entry)?;
                    row["text"] = text.into();
                    row["places"] = places.into();
                    Ok(row)
                })
                .collect::<Result<_>>()?;
            Ok(json!({
                "thread": Who::new(&recording.threads, query.thread),
                "of": intervals.len(),
                "first": first,
                "at": at,
                "intervals": rows,
            }))
        })
        .await?;
    answer_json(&value)
}

#[derive(Deserialize)]
pub(super) struct AtQuery {
    thread: Utid,
    t: u64,
}

pub(super) async fn at(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<AtQuery>, QueryRejection>,
) -> Answer {
    let opened = find(&shelf, id)?;
    let Query(query) = query?;
    let ground = opened.ground().await?;
    let value = opened
        .ask(move |desk| {
            let samples = ThreadSamples::of(&desk.case.samples, query.thread);
            let called = ground.called(desk.case, query.thread)?;
            let found = wait::at(
                desk.case,
                desk.evidence,
                &samples,
                &called,
                query.thread,
                query.t,
            );
            let found = found.ok_or_else(|| NothingFound::new("that thread does not live then"))?;
            Ok(serde_json::to_value(found)?)
        })
        .await?;
    answer_json(&value)
}

#[derive(Deserialize)]
pub(super) struct RangeQuery {
    thread: Utid,
    from: u64,
    to: u64,
}

fn window(from: u64, to: u64, end: u64) -> Result<Window> {
    let to = to.min(end);
    if from >= to {
        bail!("the range is empty: from {from} ns to {to} ns");
    }
    Ok(Window { from, to })
}

pub(super) async fn in_range(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<RangeQuery>, QueryRejection>,
) -> Answer {
    let opened = find(&shelf, id)?;
    let Query(query) = query?;
    let value = opened
        .ask(move |desk| {
            let window = window(query.from, query.to, desk.case.recording.timeline.end())?;
            Ok(serde_json::to_value(range::range(
                desk.case,
                query.thread,
                window,
            ))?)
        })
        .await?;
    answer_json(&value)
}

#[derive(Deserialize)]
pub(super) struct FlameQuery {
    /// A thread; all of them if left out.
    thread: Option<Utid>,
    from: u64,
    to: u64,
    /// on, off, wakes.
    view: String,
}

pub(super) async fn flame(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<FlameQuery>, QueryRejection>,
) -> Answer {
    let opened = find(&shelf, id)?;
    let Query(query) = query?;
    let view = match query.view.as_str() {
        "on" => hangdog_export::View::OnCpu,
        "off" => hangdog_export::View::OffCpu,
        "wakes" => hangdog_export::View::Wakes,
        other => {
            let what = format!("view is '{other}', and can be on, off or wakes");
            return Err(Failure(StatusCode::BAD_REQUEST, what));
        }
    };
    let value = opened
        .ask(move |desk| {
            let window = window(query.from, query.to, desk.case.recording.timeline.end())?;
            let selection = match query.thread {
                Some(thread) => Selection::of(vec![thread], window.from, window.to),
                None => Selection::all(window.from, window.to),
            };
            let source = desk.case.source();
            let fold = Fold::new(&source, &selection, view);
            let lines: Vec<(String, u64)> = folded::lines(&source, &fold).into_iter().collect();
            Ok(json!({
                "unit": if view == hangdog_export::View::OnCpu { "samples" } else { "ns" },
                "period_ns": source.sampling_period(),
                "lines": lines,
            }))
        })
        .await?;
    answer_json(&value)
}
