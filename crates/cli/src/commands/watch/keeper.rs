//! Saves a hang: the snapshot, the verdict on it, and the report of its cause.
//!
//! The verdict is asked of `hangdog why` in a process of its own. So the memory that it takes is
//! given back, it can be made to run after everything else, and a trace that is too much for it
//! does not end the watch.

use super::notice;
use anyhow::{Context, Result, bail};
use hangdog_capture::clock;
use hangdog_capture::flight::snap;
use hangdog_capture::system::stop_asked;
use hangdog_report::format;
use hangdog_trace::Trace;
use hangdog_watch::Hang;
use hangdog_watch::archive::{Archive, Catch, Occasion, Report};
use hangdog_watch::processes::Process;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;
use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Where hangs go.
pub struct Keeper<'a> {
    pub socket: PathBuf,
    pub archive: &'a Archive,
    /// Disk space for traces, bytes.
    pub keep: u64,
}

/// How long a verdict in progress may still take once the watch is to stop.
const GRACE: Duration = Duration::from_secs(3);
/// How often it is looked whether it is.
const LOOK: Duration = Duration::from_millis(100);

/// What the report of all hangs is known by that could not be diagnosed.
const UNDIAGNOSED: &str = "undiagnosed";

impl Keeper<'_> {
    /// Saves and explains a hang, and gives what there is to be said of it.
    pub fn keep(&self, hang: &Hang, process: &Process) -> String {
        let kept = self.save(hang, process);
        let text = match kept {
            Ok(report) => told(&report, self.archive.folder()),
            Err(why) => format!("{}; not saved: {why:#}", notice(hang, process)),
        };
        match self.archive.limit(self.keep) {
            Ok(removed) if removed.is_empty() => text,
            Ok(removed) => {
                let count = format::things(removed.len() as u64, "old trace", "old traces");
                format!("{text}; removed {count} to stay within --keep")
            }
            Err(why) => format!("{text}; cannot stay within --keep: {why}"),
        }
    }

    fn save(&self, hang: &Hang, process: &Process) -> Result<Report> {
        let stamp = clock::stamp(clock::now());
        let path = self.archive.new_trace(&stamp, &process.name);
        let saved = snap(&self.socket, &path).map_err(anyhow::Error::from);
        let reported = saved.and_then(|_| self.report(hang, process, &path));
        if reported.is_err() {
            // What no report leads to would be of no use, and in the way of others.
            self.archive.discard(&path);
        }
        reported
    }

    /// Explains a hang by its trace, and adds it to the report of its cause.
    fn report(&self, hang: &Hang, process: &Process, path: &Path) -> Result<Report> {
        let trace = Trace::open(path)?;
        let meta = trace.meta();
        let zero = meta.clock.monotonic_start_ns;
        let in_trace = |time: u64| time.saturating_sub(zero).min(meta.duration_ns);
        let window = &hang.stretch.window;
        let occasion = Occasion {
            unix_ns: (meta.started_unix_ns + window.start).saturating_sub(zero),
            duration_ns: window.end - window.start,
            goes_on: hang.stretch.goes_on,
            pid: process.pid,
            tid: hang.tid,
            trace: file_name(path),
            from_ns: in_trace(window.start),
            to_ns: in_trace(window.end),
        };
        let answer = why(path, &occasion);
        let (signature, sentence, verdict) = match answer {
            Ok(answer) => {
                let text = |field: &str| answer[field].as_str().map(str::to_owned);
                let signature = text("signature").filter(|text| is_plain(text));
                let (Some(signature), Some(sentence)) = (signature, text("sentence")) else {
                    bail!("`hangdog why` printed no verdict");
                };
                (signature, sentence, answer)
            }
            Err(why) => {
                let sentence = format!("{}; not diagnosed: {why:#}", notice(hang, process));
                (UNDIAGNOSED.to_owned(), sentence, Value::Null)
            }
        };
        let catch = Catch {
            signature,
            program: process.name.clone(),
            sign: hang.sign.text().to_owned(),
            sentence,
            occasion,
        };
        Ok(self.archive.add(&catch, &verdict)?)
    }
}

/// What `hangdog why` says of a hang, as docs/JSON.md has it.
fn why(trace: &Path, hang: &Occasion) -> Result<Value> {
    if hang.from_ns >= hang.to_ns {
        bail!("the ring no longer holds its beginning; give more --memory");
    }
    let program = env::current_exe().context("cannot find the hangdog executable")?;
    let child = Command::new(program)
        .args(["why", "--json", "--thread"])
        .arg(hang.tid.to_string())
        .arg("--from")
        .arg(format!("{}ns", hang.from_ns))
        .arg("--to")
        .arg(format!("{}ns", hang.to_ns))
        .arg(trace)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A Ctrl-C for the watch lets it come to its end.
        .process_group(0)
        .spawn()
        .context("cannot run hangdog why")?;
    // SAFETY: setpriority takes plain numbers; the child has not been waited for, so that the id
    // is its own.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, child.id(), 19) };
    let output = unless_stopped(child).context("cannot read the output of hangdog why")?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let errors = errors.trim().trim_start_matches("hangdog: ");
        bail!("{}", format::printable(errors));
    }
    serde_json::from_slice(&output.stdout).context("the output of hangdog why is not JSON")
}

/// What a child prints until its end. Once the watch is to stop, the child has [`GRACE`] left.
fn unless_stopped(child: Child) -> io::Result<Output> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let process = pidfd_open(pid.ok_or(io::ErrorKind::NotFound)?, PidfdFlags::empty())?;
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut left = GRACE;
            while is_done.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if stop_asked() {
                    left = left.saturating_sub(LOOK);
                }
                if left.is_zero() {
                    // It may have ended by now, which is as well.
                    let _ = pidfd_send_signal(&process, Signal::KILL);
                    return;
                }
            }
        });
        let output = child.wait_with_output();
        drop(done);
        output
    })
}

fn is_plain(signature: &str) -> bool {
    !signature.is_empty() && signature.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The line that is printed of a hang that was kept.
fn told(report: &Report, folder: &Path) -> String {
    let sentence = format::printable(&report.sentence).into_owned();
    let times = match report.count {
        1 => "for the first time".to_owned(),
        count => format!("{} times now", format::count(count)),
    };
    let trace = report.last().map(|last| folder.join(&last.trace));
    let path = trace.unwrap_or_default();
    format!(
        "{sentence} ({}, {times}; {})",
        report.signature,
        path.display()
    )
}
