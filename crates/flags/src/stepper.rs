//! The process that steps, started for a moment out of this very program.
//!
//! One danger of ptrace: a thread whose tracer is killed in the middle of a step dies of the trap. So
//! the stepping is done by a process of its own, which no terminal reaches and which finishes though
//! whoever asked is gone.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// This very program, whatever became of its file.
const PROGRAM: &str = "/proc/self/exe";

/// What tells a process that it is to step, and what. No command has these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A thread from where it is.
    Thread,
    /// The next call of a function.
    Call,
}

impl Task {
    fn name(self) -> &'static str {
        match self {
            Task::Thread => "hangdog-step-thread",
            Task::Call => "hangdog-step-call",
        }
    }
}

/// What this process is to do, and with what numbers, if it is the one that steps.
pub(crate) fn asked() -> Option<(Task, Vec<u64>)> {
    let mut words = std::env::args().skip(1);
    let name = words.next()?;
    let mut tasks = [Task::Thread, Task::Call].into_iter();
    let task = tasks.find(|task| task.name() == name)?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: to ignore a signal is always allowed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    Some((task, words.filter_map(|word| word.parse().ok()).collect()))
}

/// Ends this process with an answer, or the number of the error.
pub(crate) fn finish(answer: io::Result<impl Serialize>) -> ! {
    let written = answer.and_then(|answer| {
        let bytes = postcard::to_stdvec(&answer).map_err(io::Error::other)?;
        // The caller may have exited: then the answer is dropped.
        let _ = io::stdout().write_all(&bytes);
        Ok(())
    });
    std::process::exit(match written {
        Ok(()) => 0,
        Err(why) => why.raw_os_error().unwrap_or(libc::EIO),
    })
}

/// Has it done by a process of its own.
///
/// # Errors
/// What the process says by its exit.
pub(crate) fn ask<T: DeserializeOwned>(task: Task, numbers: &[u64]) -> io::Result<T> {
    let mut child = Command::new(PROGRAM)
        .arg(task.name())
        .args(numbers.iter().map(u64::to_string))
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut bytes = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_end(&mut bytes)?;
    }
    match child.wait()?.code() {
        Some(0) => postcard::from_bytes(&bytes).map_err(io::Error::other),
        Some(code) => Err(io::Error::from_raw_os_error(code)),
        None => Err(io::Error::other("the stepping process was killed")),
    }
}
