//! The page that `ui/` builds, inside the binary; and what stands in its place where the binary
//! was built without it. A debug build reads the files from `ui/dist` when they are asked for.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use rust_embed::Embed;

#[derive(Embed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Files;

const MISSING: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>hangdog</title>\
    <body><h1>This hangdog was built without its page</h1>\
    <p>Build it with <code>make build</code>, which needs Node.js and fetches one if there is \
    none. The answers themselves are there: see docs/API.md, or use <code>hangdog why</code>.</p>";

/// Whether the binary has the page.
pub fn is_there() -> bool {
    Files::get("index.html").is_some()
}

/// The page's files as texts.
pub struct Parts {
    /// The style sheet.
    pub style: String,
    /// The page's script.
    pub script: String,
    /// The script of the worker that draws.
    pub worker: String,
}

/// The page's files; none if the binary was built without it.
pub fn parts() -> Option<Parts> {
    let find = |start: &str, end: &str| {
        let name = Files::iter().find(|name| name.starts_with(start) && name.ends_with(end))?;
        String::from_utf8(Files::get(&name)?.data.into_owned()).ok()
    };
    Some(Parts {
        style: find("assets/index-", ".css")?,
        script: find("assets/index-", ".js")?,
        worker: find("assets/worker-", ".js")?,
    })
}

/// The page's first file.
pub async fn index() -> Response {
    match Files::get("index.html") {
        Some(_) => file("index.html"),
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            [(CONTENT_TYPE, "text/html; charset=utf-8")],
            MISSING,
        )
            .into_response(),
    }
}

/// One of its other files.
pub async fn asset(Path(path): Path<String>) -> Response {
    file(&format!("assets/{path}"))
}

fn file(path: &str) -> Response {
    let Some(found) = Files::get(path) else {
        return (StatusCode::NOT_FOUND, "the page has no such file\n").into_response();
    };
    let kind = match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    // Assets have a hash in their names.
    let keep = match path.starts_with("assets/") {
        true => "private, max-age=31536000, immutable",
        false => "no-store",
    };
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, keep)];
    (headers, found.data.into_owned()).into_response()
}
