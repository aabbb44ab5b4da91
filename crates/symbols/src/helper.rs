//! The processes that read what others control, so that a file can neither harm nor stop a recording.
//!
//! ```text
//! recorder ──(new pair)──→ nursery
//!     │                       │ forks
//!     ├──(places, question)→ opener ──(open files, question)→ parser ──(answer)→ recorder
//! ```
//!
//! The **nursery** is this program, started anew before the recorder gives its privileges up, and
//! does nothing but fork. The **opener** may open any file and see any process (three
//! capabilities), reads four bytes of each, and gives the open file away: the recorder never has it,
//! so that no dead server can keep it waiting, not even for the closing. The **parser** has no
//! privileges, no file system, and a handful of system calls ([`confine`]). When a pair does not
//! answer in time, the opener is killed, and the parser with it; the recorder waits for neither.

mod confine;
mod nursery;
mod pair;

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

pub(crate) use pair::{Failure, Pair};

/// What tells a process that it is the nursery. No command has this name.
const NAME: &str = "hangdog-helpers";
/// This very program, whatever became of its file.
const PROGRAM: &str = "/proc/self/exe";

/// Whether this program can be started as a nursery.
static IS_THERE: AtomicBool = AtomicBool::new(false);
static NURSERY: Mutex<Option<UnixStream>> = Mutex::new(None);

/// To be called first in `main` of a program that reads files by helpers: as one of them, it does not
/// return.
pub fn run_if_asked() {
    let mut words = std::env::args_os();
    let _program = words.next();
    if words.next().as_deref() == Some(OsStr::new(NAME)) {
        nursery::run();
    }
    IS_THERE.store(true, Ordering::Relaxed);
}

pub(crate) fn is_there() -> bool {
    IS_THERE.load(Ordering::Relaxed)
}

/// Starts what helpers come from, if this program has helpers: a recorder does so before it gives its
/// privileges up. Otherwise it happens with the first question.
///
/// # Errors
/// If the process cannot be started.
pub fn start() -> io::Result<()> {
    let mut nursery = NURSERY.lock().unwrap_or_else(PoisonError::into_inner);
    if is_there() && nursery.is_none() {
        *nursery = Some(begin()?);
    }
    Ok(())
}

fn begin() -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    Command::new(PROGRAM)
        .arg(NAME)
        // A Ctrl-C for the recording is none for it.
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env_clear()
        .current_dir("/")
        // It forks the nursery and ends.
        .status()?;
    Ok(ours)
}
