//! `answers.toml` in a trace's folder: what the user told hangdog about it.

use anyhow::{Context, Result, anyhow};
use hangdog_diagnose::Answers;
use hangdog_trace::regular;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The file's name inside a trace.
const NAME: &str = "answers.toml";
/// More than anybody answers, bytes.
const LONGEST: u64 = 4 << 20;

/// Where a trace's answers are.
pub fn path(trace: &Path) -> PathBuf {
    trace.join(NAME)
}

/// A trace's answers; none if there is no file.
///
/// # Errors
/// The line that is wrong. The file stays as it is.
pub fn read(trace: &Path) -> Result<Answers> {
    let path = path(trace);
    let bytes = match regular::read(&path, LONGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Answers::default()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
    };
    let refused = |what: String| {
        anyhow!(
            "{}: {what}; correct it, or move it away to continue without answers",
            path.display()
        )
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
        refused(format!("line {line}: not UTF-8 text"))
    })?;
    Answers::parse(&text).map_err(|error| refused(error.to_string()))
}

/// Writes them; the file is the old one or the new one at any moment.
///
/// # Errors
/// If the trace's folder cannot be written to, or its disk is full; nothing has changed then.
pub fn write(trace: &Path, answers: &Answers) -> Result<()> {
    hangdog_trace::put(trace, NAME, answers.text().as_bytes())
        .with_context(|| format!("cannot write {}", path(trace).display()))
}
