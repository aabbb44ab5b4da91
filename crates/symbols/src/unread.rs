//! Which files could not be read, and why: a trace says so, because names are missing then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// So many files are distinguished for each reason.
const MOST_FILES: usize = 10_000;

/// Why a file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It is a pipe, a device or a link, where a regular file was mapped.
    NotRegular,
    /// Its disk or server did not answer in time.
    Stalled,
    /// Whoever read it ended in the middle: the file is damaged, or made to do harm.
    ReaderDied,
    /// It says more than there is memory for; the names of some places are missing.
    TooMuch,
    /// The recording was told to end first.
    NoTime,
    /// The process that reads files could not be started.
    NoReader,
}

impl Reason {
    /// As a trace has it.
    pub fn text(self) -> &'static str {
        match self {
            Reason::NotRegular => "not a regular file any more",
            Reason::Stalled => "its disk or server did not answer in time",
            Reason::ReaderDied => "its reader process ended early",
            Reason::TooMuch => {
                "more than the memory for names (1 GiB of debug information, 64 MiB of a \
                 compiler's names)"
            }
            Reason::NoTime => "the recording was asked to stop",
            Reason::NoReader => "the process that reads files could not be started",
        }
    }
}

/// Files of one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The reason.
    pub reason: Reason,
    /// How many files.
    pub files: usize,
    /// One of them.
    pub example: String,
}

static UNREAD: Mutex<BTreeMap<Reason, BTreeSet<String>>> = Mutex::new(BTreeMap::new());

/// All that this process could not read so far.
pub fn unread() -> Vec<Unread> {
    let known = UNREAD.lock().unwrap_or_else(PoisonError::into_inner);
    let all = known.iter().filter_map(|(&reason, files)| {
        Some(Unread {
            reason,
            files: files.len(),
            example: files.first()?.clone(),
        })
    });
    all.collect()
}

/// Notes a file.
pub(crate) fn note(reason: Reason, label: &str) {
    let mut known = UNREAD.lock().unwrap_or_else(PoisonError::into_inner);
    let files = known.entry(reason).or_default();
    if files.len() < MOST_FILES {
        files.insert(label.to_owned());
    }
}
