//! The HTTP interface, as docs/API.md describes it: a test holds the two against each other.

mod compared;
mod stories;
mod verdicts;

use crate::guard::{self, Guard};
use crate::opened::{Gap, Ground, Opened, Phase};
use crate::page;
use crate::shelf::{Listed, Shelf};
use crate::threads::thread_rows;
use crate::tiles::{self, MOST_BINS, MOST_TRACKS, View};
use crate::track::TrackId;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Json, Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use hangdog_report::instant;
use hangdog_report::load::{self, Chosen};
use hangdog_report::select::{NothingFound, Window};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use verdicts::report_of;

/// Every route of the interface: method and path.
pub const ROUTES: [(&str, &str); 20] = [
    ("GET", "/api/traces"),
    ("GET", "/api/views"),
    ("GET", "/api/traces/{id}"),
    ("GET", "/api/traces/{id}/threads"),
    ("GET", "/api/traces/{id}/calls"),
    ("GET", "/api/traces/{id}/regions"),
    ("GET", "/api/traces/{id}/region"),
    ("GET", "/api/traces/{id}/tiles"),
    ("GET", "/api/traces/{id}/problems"),
    ("GET", "/api/traces/{id}/verdict"),
    ("GET", "/api/traces/{id}/explain"),
    ("GET", "/api/traces/{id}/story"),
    ("GET", "/api/traces/{id}/at"),
    ("GET", "/api/traces/{id}/range"),
    ("GET", "/api/traces/{id}/flame"),
    ("GET", "/api/traces/{id}/compare"),
    ("GET", "/api/traces/{id}/load"),
    ("GET", "/api/traces/{id}/awake"),
    ("GET", "/api/traces/{id}/report.html"),
    ("POST", "/api/traces/{id}/answers"),
];

type Shared = State<Arc<Shelf>>;
type Answer = Result<Response, Failure>;

/// All that the server answers, behind the guard.
pub fn router(shelf: Arc<Shelf>, guard: Arc<Guard>) -> Router {
    let trace = Router::new()
        .route("/", get(state))
        .route("/threads", get(threads))
        .route("/calls", get(calls))
        .route("/regions", get(regions))
        .route("/region", get(region))
        .route("/tiles", get(tile))
        .route("/problems", get(verdicts::problems))
        .route("/verdict", get(verdicts::verdict))
        .route("/explain", get(verdicts::explained))
        .route("/story", get(stories::story))
        .route("/at", get(stories::at))
        .route("/range", get(stories::in_range))
        .route("/flame", get(stories::flame))
        .route("/compare", get(compared::compared))
        .route("/load", get(loaded))
        .route("/awake", get(awake))
        .route("/report.html", get(verdicts::report))
        .route("/answers", post(verdicts::answer));
    Router::new()
        .route("/", get(page::index))
        .route("/assets/{*path}", get(page::asset))
        .route("/api/traces", get(traces))
        .route("/api/views", get(views))
        .nest("/api/traces/{id}", trace)
        .fallback(async || (StatusCode::NOT_FOUND, "there is nothing here\n"))
        .layer(middleware::from_fn_with_state(guard, guard::check))
        .with_state(shelf)
}

/// Why a question is not answered, in a sentence.
pub struct Failure(StatusCode, String);

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        let status = match error.downcast_ref::<NothingFound>() {
            Some(_) => StatusCode::NOT_FOUND,
            None => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Failure(status, format!("{error:#}"))
    }
}

macro_rules! rejections {
    ($($kind:ty),+) => {$(
        impl From<$kind> for Failure {
            fn from(rejection: $kind) -> Failure {
                Failure(StatusCode::BAD_REQUEST, rejection.body_text())
            }
        }
    )+};
}
rejections!(QueryRejection, PathRejection, JsonRejection);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

fn answer_json(value: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(value).map_err(anyhow::Error::from)?;
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, text).into_response())
}

fn find(shelf: &Shelf, id: Result<Path<usize>, PathRejection>) -> Result<Arc<Opened>, Failure> {
    let Path(id) = id?;
    shelf.open(id).ok_or_else(|| {
        let what = format!("there is no trace {id}: /api/traces lists them");
        Failure(StatusCode::NOT_FOUND, what)
    })
}

type Id = Result<Path<usize>, PathRejection>;

async fn traces(State(shelf): Shared) -> Answer {
    let listed: Listed = tokio::task::spawn_blocking(move || shelf.list())
        .await
        .map_err(anyhow::Error::from)?;
    answer_json(&listed)
}

async fn views(State(shelf): Shared) -> Answer {
    answer_json(shelf.views())
}

/// How far a trace is read, and what is known of it as a whole.
async fn state(State(shelf): Shared, id: Id) -> Answer {
    answer_json(&state_of(&*find(&shelf, id)?))
}

fn state_of(opened: &Opened) -> Value {
    let path = opened.path().display().to_string();
    let (phase, ground) = match opened.phase() {
        Phase::Failed(why) => {
            return json!({ "phase": "failed", "error": why, "path": path });
        }
        Phase::Reading(step) => {
            return json!({ "phase": "reading", "step": step, "path": path });
        }
        Phase::Tracks(ground) => ("tracks", ground),
        Phase::Ready(ground) => ("ready", ground),
    };
    let recording = &*ground.recording;
    let meta = recording.trace.meta();
    let gaps: &[Gap] = &ground.gaps;
    json!({
        "phase": phase,
        "path": path,
        "duration_ns": recording.timeline.end(),
        "cpus": recording.timeline.cpu_count(),
        "started": meta.started,
        "host": meta.host,
        "kernel": meta.kernel,
        "command": meta.command,
        "mode": meta.mode,
        "loss": recording.loss,
        "loss_text": recording.loss.text(),
        "gaps": gaps,
        "not_recorded": not_recorded(meta, &ground),
    })
}

/// What the trace cannot show, and how to record it.
fn not_recorded(meta: &hangdog_trace::Meta, ground: &Ground) -> Vec<Value> {
    let mut missing = Vec::new();
    if !meta.options.calls {
        let how = "only those that a thread blocks in; record with --calls";
        missing.push(("all system calls", how));
    }
    if !meta.options.faults {
        let how = "only those that wait, as waits; record with --faults";
        missing.push(("minor page faults", how));
    }
    if !ground.has_marks {
        let how = "no program marked anything: docs/MARKS.md says how they do";
        missing.push(("regions of programs", how));
    }
    if !meta.options.stacks {
        missing.push(("stacks", "record without --no-stacks"));
    }
    if meta.options.sample_hz == 0 {
        missing.push(("samples of what ran", "record with --sample 1000"));
    }
    if !meta.options.transfers {
        missing.push(("all pipe I/O", "record with --transfers"));
    }
    if ground.recording.interrupts.is_empty() {
        missing.push((
            "interrupts",
            "the trace has none: see hangdog info for the hooks",
        ));
    }
    missing
        .into_iter()
        .map(|(what, how)| json!({ "what": what, "how": how }))
        .collect()
}

async fn threads(State(shelf): Shared, id: Id) -> Answer {
    let ground = find(&shelf, id)?.ground().await?;
    answer_json(&json!({ "threads": thread_rows(&ground.recording, |_| true) }))
}

async fn calls(State(shelf): Shared, id: Id) -> Answer {
    let ground = find(&shelf, id)?.ground().await?;
    let value = tokio::task::spawn_blocking(move || {
        let (threads, names) = ground.calls()?.listed();
        anyhow::Ok(json!({ "threads": threads, "names": names }))
    })
    .await
    .map_err(anyhow::Error::from)??;
    answer_json(&value)
}

async fn regions(State(shelf): Shared, id: Id) -> Answer {
    let ground = find(&shelf, id)?.ground().await?;
    let value = tokio::task::spawn_blocking(move || {
        let regions = ground.regions()?;
        let rows: Vec<_> = regions.tracks.iter().map(|track| &track.row).collect();
        anyhow::Ok(json!({ "tracks": rows, "left_out": regions.left_out }))
    })
    .await
    .map_err(anyhow::Error::from)??;
    answer_json(&value)
}

#[derive(Deserialize)]
struct RegionQuery {
    /// The number of the name, as in the list of tracks.
    track: usize,
    t: u64,
}

async fn region(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<RegionQuery>, QueryRejection>,
) -> Answer {
    let ground = find(&shelf, id)?.ground().await?;
    let Query(query) = query?;
    tokio::task::spawn_blocking(move || {
        let region = (ground.regions()?).at(&ground.recording, query.track, query.t);
        let nothing = || NothingFound::new("no region is open there");
        answer_json(&region.ok_or_else(nothing).map_err(anyhow::Error::from)?)
    })
    .await
    .map_err(anyhow::Error::from)?
}

#[derive(Deserialize)]
struct TileQuery {
    tracks: String,
    from: u64,
    shift: u32,
    bins: usize,
}

/// Set when it is dropped: whoever asked has gone, or has the answer.
struct Cancel(Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn tile(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<TileQuery>, QueryRejection>,
) -> Answer {
    let opened = find(&shelf, id)?;
    let Query(query) = query?;
    let tracks: Result<Vec<TrackId>, String> = query
        .tracks
        .split(',')
        .filter(|track| !track.is_empty())
        .map(str::parse)
        .collect();
    let tracks = tracks.map_err(|why| Failure(StatusCode::BAD_REQUEST, why))?;
    let view = View {
        from: query.from,
        shift: query.shift,
        bins: query.bins,
    };
    if tracks.len() > MOST_TRACKS || view.bins > MOST_BINS || view.shift > 62 {
        let what = format!(
            "at most {MOST_TRACKS} tracks, {MOST_BINS} bins and a shift of 62 can be asked for"
        );
        return Err(Failure(StatusCode::BAD_REQUEST, what));
    }
    let ground = opened.ground().await?;
    let cancel = Cancel(Arc::default());
    let is_cancelled = cancel.0.clone();
    let made = tokio::task::spawn_blocking(move || {
        tiles::tiles(&ground, &tracks, view, &is_cancelled).unwrap_or_default()
    })
    .await
    .map_err(anyhow::Error::from)?;
    let headers = [
        (CONTENT_TYPE, "application/octet-stream"),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, made).into_response())
}

#[derive(Deserialize)]
struct LoadQuery {
    /// Length of an interval, ns.
    width: u64,
    /// A process, by its id within the trace; all if left out.
    process: Option<u32>,
    /// Only at this kernel priority or a higher one, which is a lower number.
    priority: Option<u8>,
}

/// So many intervals are counted.
const MOST_STRETCHES: u64 = 100_000;

async fn loaded(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<LoadQuery>, QueryRejection>,
) -> Answer {
    let ground = find(&shelf, id)?.ground().await?;
    let Query(query) = query?;
    let end = ground.recording.timeline.end();
    let count = end.checked_div(query.width).map(|n| n + 1);
    if count.is_none_or(|count| count > MOST_STRETCHES) {
        let what = format!("width is to cut the trace into at most {MOST_STRETCHES} stretches");
        return Err(Failure(StatusCode::BAD_REQUEST, what));
    }
    let value = tokio::task::spawn_blocking(move || {
        let window = Window { from: 0, to: end };
        let processes = query.process.map(|upid| [upid]);
        let chosen = Chosen {
            processes: processes.as_ref().map(|processes| &processes[..]),
            priority: query.priority,
        };
        let load = load::load(&ground.recording, window, query.width, chosen);
        json!({
            "width_ns": load.step_ns,
            "cpus": load.cpus,
            "average": load.average,
        })
    })
    .await
    .map_err(anyhow::Error::from)?;
    answer_json(&value)
}

#[derive(Deserialize)]
struct AwakeQuery {
    t: u64,
}

async fn awake(
    State(shelf): Shared,
    id: Id,
    query: Result<Query<AwakeQuery>, QueryRejection>,
) -> Answer {
    let ground = find(&shelf, id)?.ground().await?;
    let Query(query) = query?;
    answer_json(&json!({ "threads": instant::awake(&ground.recording, query.t) }))
}
