//! Debug information from the servers that DEBUGINFOD_URLS names, through elfutils' own client.
//!
//! `debuginfod-find` keeps what it fetched and knows the servers' ways; where it is not installed,
//! or the variable is not set, nothing is fetched. Servers that are slow must not hold a trace up
//! for long: unless the user says otherwise each file has a limited time, the first file that
//! exceeds it is the last one asked for, and so is the one during which a minute is over.

use std::env;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::deadline::is_over;

const URLS: &str = "DEBUGINFOD_URLS";
/// Seconds for a whole file: what debuginfod-find reads from the environment.
const MOST_TIME: &str = "DEBUGINFOD_MAXTIME";
const MOST_FOR_A_FILE: Duration = Duration::from_secs(20);
/// For all files of a trace together.
const MOST_IN_ALL: Duration = Duration::from_secs(60);

/// What it is given to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether it has ended.
const PERIOD: Duration = Duration::from_millis(10);
/// What it may print: a path, or why there is none.
const MOST_OUTPUT: u64 = 64 << 10;

/// What a command prints; `None` if it cannot be run, or does not end within this time.
fn output_within(command: &mut Command, most: Duration) -> Option<Output> {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().ok()?;
    let end = Instant::now() + most;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end && !is_over() => thread::sleep(PERIOD),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut output = Output {
        status,
        stdout: Vec::new(),
        stderr: Vec::new(),
    };
    let (stdout, stderr) = (child.stdout.take()?, child.stderr.take()?);
    // What it may have started keeps the pipes open: what is there is taken.
    for pipe in [stdout.as_fd(), stderr.as_fd()] {
        rustix::io::ioctl_fionbio(pipe, true).ok()?;
    }
    let _ = stdout.take(MOST_OUTPUT).read_to_end(&mut output.stdout);
    let _ = stderr.take(MOST_OUTPUT).read_to_end(&mut output.stderr);
    Some(output)
}

/// The servers, if there are any.
pub(crate) struct Debuginfod {
    urls: Option<String>,
    since: Instant,
    has_failed: AtomicBool,
}

impl Debuginfod {
    /// As the environment has it.
    pub(crate) fn from_environment() -> Debuginfod {
        Debuginfod::new(env::var(URLS).ok())
    }

    pub(crate) fn new(urls: Option<String>) -> Debuginfod {
        Debuginfod {
            urls: urls.filter(|urls| !urls.trim().is_empty()),
            since: Instant::now(),
            has_failed: AtomicBool::new(false),
        }
    }

    /// The debug information of the program with a build-id; `None` if no server has it.
    pub(crate) fn debug_file(&self, build_id: &str) -> Option<PathBuf> {
        let urls = self.urls.as_ref()?;
        let is_hexadecimal = build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_over = self.has_failed.load(Ordering::Relaxed) || self.since.elapsed() > MOST_IN_ALL;
        if build_id.is_empty() || !is_hexadecimal || is_over {
            return None;
        }
        let mut command = Command::new("debuginfod-find");
        command.args(["debuginfo", build_id]).env(URLS, urls);
        if env::var_os(MOST_TIME).is_none() {
            command.env(MOST_TIME, MOST_FOR_A_FILE.as_secs().to_string());
        }
        // Its message tells a missing file from a server that does not answer.
        command.env("LC_ALL", "C").stdin(Stdio::null());
        // A Ctrl-C for the recording is none for it.
        command.process_group(0);
        let most = match env::var(MOST_TIME).map(|seconds| seconds.parse()) {
            Ok(Ok(seconds)) if seconds > 0 => Duration::from_secs(seconds),
            // The user wants no limit for a file: that for all holds.
            Ok(_) => MOST_IN_ALL,
            Err(_) => MOST_FOR_A_FILE,
        };
        let Some(output) = output_within(&mut command, most + GRACE) else {
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
        Some(PathBuf::from(path.trim_end()))
    }
}
