//! What is known of a recording as a whole: the trace's `meta.json`.
//!
//! It is written when recording begins (state `recording`) and replaced when it ends (state
//! `complete`), each time as a whole: a recording that was killed leaves the first form, and
//! opens. Fields that this version does not know are ignored.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::entry::checksum;
use crate::error::{Error, Result};
use crate::folder::{Folder, Owner};
pub use crate::format::{FORMAT, META_FILE};
use crate::listing::Listing;
use crate::regular;
use crate::yardstick::Yardstick;

/// Times of a recording whose end is not known are at most this, ns: a year.
const LONGEST_NS: u64 = 366 * 24 * 3600 * 1_000_000_000;
/// What is recorded while a recording ends may be so much later than its end, ns.
const AFTER_END_NS: u64 = 60_000_000_000;
/// A `meta.json` is no longer: it lists half a million parts.
const MOST_BYTES: u64 = 1 << 26;

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
    /// Whether the system calls of some processes were recorded.
    pub calls: bool,
    /// Whether minor page faults and the page cache were recorded too.
    pub faults: bool,
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
    /// Interpreters (Python, Ruby, PHP, Perl) of versions whose frames cannot be read: in their stacks stand
    /// functions of the interpreter, not of the program.
    pub unread_interpreters: u64,
}

/// What came of the marks of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marking {
    /// Programs whose marks were read.
    pub programs: u64,
    /// Those of them that wrote what cannot be, and were not read any further.
    pub damaged: u64,
    /// Programs that said that they would mark, and were gone before they could be looked at, or were
    /// too many.
    pub unread: u64,
    /// Marks that were lost.
    pub lost: u64,
    /// Marks that were overwritten before the snapshot was taken, at least.
    pub overwritten: u64,
}

/// Files of which names or unwind rules are missing, because they could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unread {
    /// Why.
    pub reason: String,
    /// How many files.
    pub files: u64,
    /// One of them.
    pub example: String,
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
    /// What came of marks, once the recording is complete; none where no program marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marking>,
    /// Files that could not be read, by reason, once the recording is complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
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
            marks: None,
            unread: Vec::new(),
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
    /// No time in the trace can be later, ns since its start.
    pub(crate) fn latest_ns(&self) -> u64 {
        match (self.state, self.duration_ns) {
            (RecordingState::Recording, _) | (_, 0) => LONGEST_NS,
            (RecordingState::Complete, end) => end.saturating_add(AFTER_END_NS).min(LONGEST_NS),
        }
    }

    /// Whether the trace is of a single moment.
    pub fn is_instant(&self) -> bool {
        self.mode == Mode::Instant
    }

    /// Reads the `meta.json` of the trace in `dir`, with the list of parts if it has one.
    pub(crate) fn read(dir: &Path) -> Result<(Meta, Option<Listing>)> {
        let path = dir.join(META_FILE);
        let text = regular::read(&path, MOST_BYTES).map_err(|e| Error::reading(&path, e))?;
        let changed = || Error::damaged(&path, "it is not as it was recorded");
        let damaged = |e| Error::damaged(&path, e);
        let sealed = match split_seal(&text) {
            Some(body) if seal(body).as_bytes() != text => return Err(changed()),
            found => found.is_some(),
        };
        let Version { format } = serde_json::from_slice(&text).map_err(damaged)?;
        if format > FORMAT {
            return Err(Error::TooNew {
                path: dir.into(),
                version: format,
            });
        }
        let Parts { parts } = serde_json::from_slice(&text).map_err(damaged)?;
        if parts.is_some() && !sealed {
            return Err(changed());
        }
        Ok((serde_json::from_slice(&text).map_err(damaged)?, parts))
    }

    /// Writes it into a trace's folder, in place of the one before, with the list of `parts` once
    /// all are there.
    pub(crate) fn write(
        &self,
        folder: &Folder,
        owner: Option<Owner>,
        parts: Option<&Listing>,
    ) -> Result<()> {
        folder.put(META_FILE, owner, |out| {
            let document = serde_json::to_string_pretty(&Document { meta: self, parts })?;
            let body = document.strip_suffix("\n}").unwrap_or(&document);
            out.write_all(seal(body.as_bytes()).as_bytes())
        })
    }
}

/// The file's content.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    meta: &'a Meta,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<&'a Listing>,
}

/// The part of it that is no [`Meta`].
#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    parts: Option<Listing>,
}

/// What stands before the checksum, the last field: it is the one of all that stands before this.
const SEAL: &str = ",\n  \"checksum\": \"";

/// A document with its checksum, of the document without its end.
pub(crate) fn seal(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    format!("{text}{SEAL}{:016x}\"\n}}\n", checksum(body))
}

/// What a document's checksum is of, if it has one.
fn split_seal(text: &[u8]) -> Option<&[u8]> {
    let at = text
        .windows(SEAL.len())
        .rposition(|w| w == SEAL.as_bytes())?;
    Some(&text[..at])
}
