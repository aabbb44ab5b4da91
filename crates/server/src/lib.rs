//! The server of `hangdog open`: it shows a trace in the browser, on loopback.
//!
//! What it sends are the answers of `hangdog-report` as JSON, and what fits the pixels
//! (`hangdog-levels`) as binary tiles; docs/API.md describes each route. It analyses nothing by
//! itself, and it writes nothing but answers.
//!
//! - [`shelf`]: the traces that there are, and those that are open.
//! - [`opened`]: one open trace. It is read on threads of its own, tracks first, so that they can
//!   be looked at while the rest is read.
//! - [`tiles`]: the binary form of what tracks show.
//! - [`routes`]: the HTTP interface.
//! - [`single`]: a problem as one file that opens offline.
//! - [`guard`]: who may ask: loopback, a token, the right Host and Origin.
//! - [`page`]: the page itself, inside the binary.

mod calls;
pub mod guard;
pub mod opened;
pub mod page;
pub mod redact;
mod regions;
pub mod routes;
pub mod shelf;
pub mod single;
mod spans;
mod threads;
pub mod tiles;
pub mod track;

use anyhow::{Context, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;

pub use opened::MakeLoading;
pub use shelf::Shelf;

/// What to serve, and where.
pub struct Options {
    /// Where to listen; loopback unless the user asked for more.
    pub listen: SocketAddr,
    /// The traces.
    pub shelf: Shelf,
}

impl Options {
    /// Any port of loopback.
    pub fn loopback(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }
}

/// Writes a problem of a trace as one file that opens offline: that with the number, or the worst.
///
/// # Errors
/// If the trace cannot be read, has no such problem, or the file would be too large.
pub fn report(
    trace: PathBuf,
    loading: MakeLoading,
    wanted: Option<u32>,
    redact: bool,
) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let opened = opened::Opened::begin(trace, loading);
    runtime.block_on(routes::report_of(&opened, wanted, redact))
}

/// Serves until the process is asked to stop. `ready` gets the address to open, with its token.
///
/// # Errors
/// If nothing can listen there.
pub fn serve(options: Options, ready: impl FnOnce(&str)) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the server's threads")?;
    runtime.block_on(async {
        let listener = TcpListener::bind(options.listen)
            .await
            .with_context(|| format!("cannot listen on {}", options.listen))?;
        let address = listener.local_addr()?;
        let guard = guard::Guard::new(address)?;
        let url = guard.url();
        let app = routes::router(Arc::new(options.shelf), Arc::new(guard));
        ready(&url);
        axum::serve(listener, app).await?;
        Ok(())
    })
}
