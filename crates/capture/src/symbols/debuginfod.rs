//! Debug information from the servers that DEBUGINFOD_URLS names, through elfutils' own client.
//!
//! `debuginfod-find` keeps what it fetched and knows the servers' ways; where it is not installed,
//! or the variable is not set, nothing is fetched. Servers that are slow must not hold a trace up
//! for long: unless the user says otherwise each file has a limited time, the first file that
//! exceeds it is the last one asked for, and so is the one during which a minute is over.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::image::Image;

const URLS: &str = "DEBUGINFOD_URLS";
/// Seconds for a whole file: what debuginfod-find reads from the environment.
const MOST_TIME: &str = "DEBUGINFOD_MAXTIME";
const MOST_SECONDS: &str = "20";
/// For all files of a trace together.
const MOST_IN_ALL: Duration = Duration::from_secs(60);

/// The servers, if there are any.
pub(super) struct Debuginfod {
    urls: Option<String>,
    since: Instant,
    has_failed: AtomicBool,
}

impl Debuginfod {
    /// As the environment has it.
    pub(super) fn from_environment() -> Debuginfod {
        Debuginfod::new(env::var(URLS).ok())
    }

    pub(super) fn new(urls: Option<String>) -> Debuginfod {
        Debuginfod {
            urls: urls.filter(|urls| !urls.trim().is_empty()),
            since: Instant::now(),
            has_failed: AtomicBool::new(false),
        }
    }

    /// The debug information of the program with a build-id; `None` if no server has it.
    pub(super) fn debug_file(&self, build_id: &str) -> Option<Image> {
        let urls = self.urls.as_ref()?;
        let is_hexadecimal = build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_over = self.has_failed.load(Ordering::Relaxed) || self.since.elapsed() > MOST_IN_ALL;
        if build_id.is_empty() || !is_hexadecimal || is_over {
            return None;
        }
        let mut command = Command::new("debuginfod-find");
        command.args(["debuginfo", build_id]).env(URLS, urls);
        if env::var_os(MOST_TIME).is_none() {
            command.env(MOST_TIME, MOST_SECONDS);
        }
        // Its message tells a missing file from a server that does not answer.
        command.env("LC_ALL", "C").stdin(Stdio::null());
        let Ok(output) = command.output() else {
            self.has_failed.store(true, Ordering::Relaxed);
            return None;
        };
        if !output.status.success() {
            // That a server does not have a file is no failure of the server.
            let errors = String::from_utf8_lossy(&output.stderr);
            let is_missing = errors.contains("No such file");
            self.has_failed.store(!is_missing, Ordering::Relaxed);
            return None;
        }
        let path = String::from_utf8(output.stdout).ok()?;
        Image::open(Path::new(path.trim_end())).filter(|image| image.build_id == build_id)
    }
}
