//! A problem as one file that opens offline: the page, the verdict, and the tracks around it.
//!
//! It holds what the page would ask for, so that the same page shows it. What is private in it:
//! names of threads, processes, functions and files, command lines, the host's name; `redact` says
//! what of that can be left out.

use crate::opened::Ground;
use crate::page;
use crate::redact::Redaction;
use crate::threads::thread_rows;
use crate::tiles::{self, View};
use crate::track::TrackId;
use anyhow::{Result, bail};
use hangdog_timeline::State;
use hangdog_timeline::summary::summaries;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// The file is no larger than this, bytes.
pub const MOST_BYTES: usize = 10_000_000;
/// What is left of that for tracks.
const MOST_TRACKS: usize = 4_500_000;
/// Bins of a track: far more than a screen has columns, so that one can zoom in.
const BINS: usize = 8_192;

/// What goes into the file.
pub struct Parts<'a> {
    /// The trace's tracks.
    pub ground: &'a Ground,
    /// How the trace is introduced: the answer of `/api/traces/{id}`.
    pub state: Value,
    /// The verdict.
    pub verdict: Value,
    /// The problem alone, as of the list of problems.
    pub problems: Value,
    /// The threads on the path, the problem's first.
    pub path: Vec<u32>,
    /// The problem's window, ns since the trace's start.
    pub window: Range<u64>,
    /// Whether what [`Redaction`] names is left out.
    pub redact: bool,
}

/// Writes it.
///
/// # Errors
/// If the binary was built without the page, or the verdict alone is too large.
pub fn write(parts: Parts<'_>) -> Result<String> {
    let Some(page) = page::parts() else {
        bail!("this hangdog was built without its page: `make build` builds both");
    };
    let recording = &parts.ground.recording;
    let around = around(&parts.window, recording.timeline.end());
    let view = view(&around);
    let (tracks, threads) = tracks(parts.ground, &parts.path, view);
    let (callers, call_names) = parts.ground.calls()?.listed();
    let callers: Vec<_> = callers
        .into_iter()
        .filter(|row| tracks.contains_key(&TrackId::Calls(row.utid).to_string()))
        .collect();
    let mut data = json!({
        "state": parts.state,
        "verdict": parts.verdict,
        "problems": parts.problems,
        "threads": threads,
        "calls": { "threads": callers, "names": call_names },
        "from": view.from,
        "shift": view.shift,
        "bins": view.bins,
        "tracks": tracks,
    });
    if parts.redact {
        Redaction::of(&recording.threads).apply(&mut data);
    }
    // Neither text ends the element that it stands in.
    let data = serde_json::to_string(&data)?.replace('<', "\\u003c");
    let script = |text: &str| text.replace("</script", "<\\/script");
    let file = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; \
         script-src 'unsafe-inline' blob:; worker-src blob:; style-src 'unsafe-inline'; \
         img-src data:\">\
         <link rel=\"icon\" href=\"data:,\"><title>hangdog</title><style>{}</style></head><body>\
         <div id=\"app\"></div>\
         <script type=\"application/json\" id=\"hangdog-data\">{data}</script>\
         <script type=\"text/plain\" id=\"hangdog-worker\">{}</script>\
         <script type=\"module\">{}</script></body></html>\n",
        page.style.replace("</style", "<\\/style"),
        script(&page.worker),
        script(&page.script),
    );
    if file.len() > MOST_BYTES {
        bail!(
            "the report would have {} bytes, of at most {MOST_BYTES}: the verdict is too large",
            file.len()
        );
    }
    Ok(file)
}

/// The problem takes the middle half of what the file shows at most.
fn around(window: &Range<u64>, end: u64) -> Range<u64> {
    let width = (window.end - window.start).max(1_000);
    window.start.saturating_sub(width)..window.end.saturating_add(width).min(end.max(1))
}

fn view(around: &Range<u64>) -> View {
    let width = around.end - around.start;
    let mut shift = 0;
    while (width >> shift) >= BINS as u64 {
        shift += 1;
    }
    let bins = (width >> shift) as usize + 1;
    View {
        from: around.start,
        shift,
        bins,
    }
}

/// Tracks in base64 by name, and the threads that are among them: those on the path, the CPUs, and
/// others, the busiest first, as far as there is room; each thread with its system calls.
fn tracks(ground: &Ground, path: &[u32], view: View) -> (Map<String, Value>, Value) {
    let timeline = &ground.recording.timeline;
    let width = (view.bins as u64) << view.shift;
    let mut others: Vec<(u64, u32)> = summaries(timeline, view.from, view.from + width)
        .into_iter()
        .map(|(utid, summary)| (summary.total() - summary.time_in(State::Blocked), utid))
        .filter(|&(busy, utid)| busy > 0 && !path.contains(&utid))
        .collect();
    others.sort_unstable_by_key(|&(busy, utid)| (Reverse(busy), utid));
    let cpus = (0..timeline.cpu_count() as u16).map(TrackId::Cpu);
    let wanted = path
        .iter()
        .flat_map(|&utid| of_thread(ground, utid))
        .chain(cpus)
        .chain(
            others
                .into_iter()
                .flat_map(|(_, utid)| of_thread(ground, utid)),
        );
    let (mut tracks, mut kept) = (Map::new(), Vec::new());
    let mut room = MOST_TRACKS;
    let is_cancelled = AtomicBool::new(false);
    for track in wanted {
        let name = track.to_string();
        if tracks.contains_key(&name) {
            continue;
        }
        let Some(tile) = tiles::tiles(ground, &[track], view, &is_cancelled) else {
            continue;
        };
        let text = base64(&tile);
        if text.len() > room {
            break;
        }
        room -= text.len();
        tracks.insert(name, text.into());
        if let TrackId::Thread(utid) = track {
            kept.push(utid);
        }
    }
    let rows = thread_rows(&ground.recording, |utid| kept.contains(&utid));
    (tracks, json!(rows))
}

/// A thread's track, and that of its system calls where they were recorded.
fn of_thread(ground: &Ground, utid: u32) -> impl Iterator<Item = TrackId> {
    let calls = ground.calls().ok().and_then(|calls| calls.track(utid));
    [
        Some(TrackId::Thread(utid)),
        calls.map(|_| TrackId::Calls(utid)),
    ]
    .into_iter()
    .flatten()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |word, i| {
            word << 8 | u32::from(three.get(i).copied().unwrap_or(0))
        });
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= three.len() { letter.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a browser's `atob` reads (RFC 4648, section 10).
    #[test]
    fn base64_of_rfc_4648() {
        for (text, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}
