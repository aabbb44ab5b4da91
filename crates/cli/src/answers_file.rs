//! `answers.toml` in a trace's folder: what the user told hangdog about it.

use anyhow::{Context, Result, anyhow};
use hangdog_diagnose::Answers;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where a trace's answers are.
pub fn path(trace: &Path) -> PathBuf {
    trace.join("answers.toml")
}

/// A trace's answers; none if there is no file.
///
/// # Errors
/// The line that is wrong. The file stays as it is.
pub fn read(trace: &Path) -> Result<Answers> {
    let path = path(trace);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Answers::default()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
    };
    let refused = |what: String| {
        anyhow!(
            "{}: {what}; mend it, or move it away to go on without answers",
            path.display()
        )
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
        refused(format!("line {line}: this is no text in UTF-8"))
    })?;
    Answers::parse(&text).map_err(|error| refused(error.to_string()))
}

/// Writes them; the file is the old one or the new one at any moment.
///
/// # Errors
/// If the trace's folder cannot be written to, or its disk is full; nothing has changed then.
pub fn write(trace: &Path, answers: &Answers) -> Result<()> {
    let path = path(trace);
    let new = path.with_extension("toml.new");
    let cannot = || format!("cannot write {}", path.display());
    let written = fs::write(&new, answers.text()).and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        // What there is of it; that it cannot be removed adds nothing to the error.
        let _ = fs::remove_file(&new);
    }
    written.with_context(cannot)
}
