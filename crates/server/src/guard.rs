//! Who may ask. Any page that a browser shows, and any user of the machine, can send requests to
//! a port of loopback: so a request needs the token, the right Host, and no foreign Origin.
//!
//! The token stands in the address that the user opens, once: it is exchanged for a cookie that
//! scripts cannot read, and the browser is sent on to the address without it.

use anyhow::{Result, anyhow};
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

/// What a page may load: what the server itself sends, and nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// What a request is held against.
pub struct Guard {
    token: String,
    address: SocketAddr,
}

impl Guard {
    /// A guard with a new token, for a server at this address.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(address: SocketAddr) -> Result<Guard> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes)
            .map_err(|error| anyhow!("cannot make a token for the server: {error}"))?;
        let token = bytes.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        Ok(Guard { token, address })
    }

    /// The address to open, with the token.
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.address, self.token)
    }

    /// The name of the cookie: cookies are not told apart by port, and several servers may run.
    fn cookie(&self) -> String {
        format!("hangdog-{}", self.address.port())
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie();
        headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(key, value)| key == name && same(value, &self.token))
    }

    /// Whether the request names this server. A name that an attacker made point to loopback is
    /// another name.
    fn is_host(&self, headers: &HeaderMap) -> bool {
        let port = self.address.port();
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| {
            host == self.address.to_string() || host == format!("localhost:{port}")
        })
    }

    /// Whether a page that sends it is one of this server.
    fn is_own_origin(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else {
            return true;
        };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        origin
            .to_str()
            .ok()
            .and_then(|origin| origin.strip_prefix("http://"))
            .is_some_and(|origin| Some(origin) == host)
    }
}

/// Compares without telling by the time it takes how much is right.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |d, (a, b)| d | (a ^ b)) == 0
}

/// Lets a request through, or says why not.
pub async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let mut response = if !guard.is_host(headers) {
        refuse("the request names another host than this server")
    } else if !guard.is_own_origin(headers) {
        refuse("the request comes from a page of another origin")
    } else if let Some(token) = token_of(request.uri().query().unwrap_or_default()) {
        match same(token, &guard.token) {
            true => exchange(&guard),
            false => refuse("the address has a wrong token: open the one that hangdog printed"),
        }
    } else if !guard.has_token(headers) {
        refuse("the token is missing: open the address that hangdog open printed")
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    response
}

fn token_of(query: &str) -> Option<&str> {
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix("token="))
}

/// Gives the cookie and sends the browser on to the address without the token.
fn exchange(guard: &Guard) -> Response {
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict",
        guard.cookie(),
        guard.token
    );
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("/"));
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.insert(SET_COOKIE, cookie);
    }
    response
}

fn refuse(why: &'static str) -> Response {
    (StatusCode::FORBIDDEN, format!("hangdog: {why}\n")).into_response()
}
