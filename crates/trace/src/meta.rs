//! What is known of a recording as a whole: the trace's `meta.json`.
//!
//! It is written when recording begins (state `recording`) and replaced when it ends (state
//! `complete`), each time as a whole: a recording that was killed leaves the first form, and
//! opens. Fields that this version does not know are ignored.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::file;
use crate::yardstick::Yardstick;

/// The format version that this crate writes, and the newest that it reads.
pub const FORMAT: u32 = 1;
/// The file's name inside a trace.
pub const META_FILE: &str = "meta.json";

/// Whether the recording came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordingState {
    /// It runs still, or was killed: what is there is true, the end is missing.
    #[default]
    Recording,
    /// Everything was written.
    Complete,
}

/// How events were collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Everything from start to end (`hangdog record`).
    #[default]
    Record,
    /// What the flight recorder's rings still held (`hangdog snap`).
    Flight,
    /// Who waited for what at one moment (`hangdog why --live`); it lasts for a second in name only.
    Instant,
}

/// How the trace's times map to the system's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// CLOCK_MONOTONIC at the trace's time 0, ns.
    pub monotonic_start_ns: u64,
}

/// What the user asked to be recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Whether stacks were taken.
    pub stacks: bool,
    /// Samples a second on each CPU; 0 for none.
    pub sample_hz: u32,
    /// Whether bytes through pipes and eventfds were recorded too.
    pub transfers: bool,
}

/// What it took to unwind user stacks without frame pointers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unwinding {
    /// Files whose unwind tables were loaded.
    pub files: u64,
    /// Files that could not be read: stacks end in their code.
    pub unreadable_files: u64,
    /// Memory that their tables took in the end, bytes.
    pub memory: u64,
    /// Memory that there was for them, bytes.
    pub memory_limit: u64,
    /// Tables that had to make room for others: stacks end in their code.
    pub evicted: u64,
    /// Stacks of code whose table was not loaded yet, which were copied and unwound afterwards.
    pub copied_stacks: u64,
    /// Python interpreters of versions whose frames cannot be read: in their stacks stand functions
    /// of the interpreter, not of Python.
    pub unread_interpreters: u64,
}

/// A place in the kernel where hangdog listens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hook {
    /// The tracepoint's name.
    pub name: String,
    /// Whether it was listened to.
    pub attached: bool,
    /// Why not; empty if it was.
    pub reason: String,
}

/// The content of `meta.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Format version, [`FORMAT`].
    pub format: u32,
    /// Whether the recording came to its end.
    #[serde(default)]
    pub state: RecordingState,
    /// Version of the hangdog that recorded.
    #[serde(default)]
    pub hangdog: String,
    /// How events were collected.
    #[serde(default)]
    pub mode: Mode,
    /// Date and time of the trace's time 0, UTC, as RFC 3339.
    #[serde(default)]
    pub started: String,
    /// The same, ns since 1970.
    #[serde(default)]
    pub started_unix_ns: u64,
    /// How the trace's times map to the system's clocks.
    #[serde(default)]
    pub clock: Clock,
    /// Where the data ends, ns since the trace's start; 0 while recording.
    #[serde(default)]
    pub duration_ns: u64,
    /// Host name.
    #[serde(default)]
    pub host: String,
    /// Kernel release.
    #[serde(default)]
    pub kernel: String,
    /// Machine as `uname -m` has it: x86_64, aarch64.
    #[serde(default)]
    pub arch: String,
    /// Number of CPUs.
    #[serde(default)]
    pub cpus: u32,
    /// The command that was started and recorded; empty if none.
    #[serde(default)]
    pub command: Vec<String>,
    /// Its first thread's tid.
    #[serde(default)]
    pub command_tid: Option<u32>,
    /// The process that recorded.
    #[serde(default)]
    pub recorder_pid: Option<u32>,
    /// What the user asked to be recorded.
    #[serde(default)]
    pub options: Options,
    /// Every hook, attached or not.
    #[serde(default)]
    pub hooks: Vec<Hook>,
    /// What unwinding took, once the recording is complete; none without stacks, and where they
    /// were walked by frame pointers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwinding: Option<Unwinding>,
    /// Events lost in all, once the recording is complete.
    #[serde(default)]
    pub lost: Option<u64>,
    /// What operations cost on the machine, if that was measured before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yardstick: Option<Yardstick>,
}

impl Default for Meta {
    fn default() -> Meta {
        Meta {
            format: FORMAT,
            state: RecordingState::default(),
            hangdog: String::new(),
            mode: Mode::default(),
            started: String::new(),
            started_unix_ns: 0,
            clock: Clock::default(),
            duration_ns: 0,
            host: String::new(),
            kernel: String::new(),
            arch: String::new(),
            cpus: 0,
            command: Vec::new(),
            command_tid: None,
            recorder_pid: None,
            options: Options::default(),
            hooks: Vec::new(),
            unwinding: None,
            lost: None,
            yardstick: None,
        }
    }
}

/// What can be understood of a `meta.json` of any version.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

impl Meta {
    /// Whether the trace is of a single moment.
    pub fn is_instant(&self) -> bool {
        self.mode == Mode::Instant
    }

    /// Reads the `meta.json` of the trace in `dir`.
    pub(crate) fn read(dir: &Path) -> Result<Meta> {
        let path = dir.join(META_FILE);
        let text = fs::read(&path).map_err(|e| Error::io(&path, e))?;
        let damaged = |e| Error::damaged(&path, e);
        let Version { format } = serde_json::from_slice(&text).map_err(damaged)?;
        if format > FORMAT {
            return Err(Error::TooNew {
                path: dir.into(),
                version: format,
            });
        }
        serde_json::from_slice(&text).map_err(damaged)
    }

    /// Writes it into the trace in `dir`, in place of the one before.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let path = dir.join(META_FILE);
        file::replace(&path, |out| {
            serde_json::to_writer_pretty(&mut *out, self)?;
            out.write_all(b"\n")
        })
    }
}
