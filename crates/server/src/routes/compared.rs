//! The route that compares fast and slow occurrences of a region, or of the turns of a thread's loop.

use super::{Answer, Failure, Id, Shared, answer_json, find};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use hangdog_diagnose::compare::Split;
use hangdog_report::aligned::Aligned;
use hangdog_report::compare::{Found, Wanted};
use hangdog_report::select::{NothingFound, Window};
use hangdog_trace::ids::Utid;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
pub(super) struct CompareQuery {
    /// Regions of this name, or
    region: Option<String>,
    /// the turns of this thread.
    thread: Option<Utid>,
}

pub(super) async fn compared(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<CompareQuery>, QueryRejection>,
) -> Answer {
    let opened = find(&shelf, id)?;
    let Query(query) = query?;
    if query.region.is_some() == query.thread.is_some() {
        let what = "give either a region or a thread".to_owned();
        return Err(Failure(StatusCode::BAD_REQUEST, what));
    }
    let value = opened
        .ask(move |desk| {
            let recording = &*desk.case.recording;
            let window = Window {
                from: 0,
                to: recording.timeline.end(),
            };
            let known = query.thread.and_then(|it| recording.threads.known(it));
            let thread = known.map(|thread| thread.tid.to_string());
            let (selector, wanted) = match &query.region {
                Some(name) => (None, Wanted::Region(name)),
                None => (thread.as_deref(), Wanted::Turns { call: None }),
            };
            let evidence = desk.evidence;
            let found = Found::new(desk.case, evidence, selector, window, wanted);
            let compared = found.and_then(|found| {
                let comparison = found.compare(evidence, Split::Apart)?;
                Ok((found, comparison))
            });
            let (found, comparison) = match compared {
                Ok(compared) => compared,
                // Most threads do no work in turns.
                Err(why) if why.is::<NothingFound>() => {
                    return Ok(json!({ "nothing": why.to_string() }));
                }
                Err(why) => return Err(why),
            };
            let difference = comparison.difference.as_ref();
            let aligned = difference.map(|difference| Aligned::of(evidence, &found, difference));
            Ok(json!({
                "what": found.what,
                "comparison": comparison,
                "aligned": aligned,
                "nothing": null,
            }))
        })
        .await?;
    answer_json(&value)
}
