//! A trace belongs to whoever asked for it, also where sudo made the recording.
//!
//! While it is written its folder is root's alone: in one that a user owns, a planted link could
//! lead root's writing astray. It changes hands in one go when it is complete.

use std::fs;
use std::io;
use std::os::unix::fs::lchown;
use std::path::Path;

/// Gives a complete trace to the user who called sudo, if one did; to its owner it stays closed
/// to all others.
///
/// # Errors
/// If the system does not allow it; the trace then stays root's.
pub(crate) fn hand_over(trace: &Path) -> io::Result<()> {
    let id = |name| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u32>().ok())
    };
    match (id("SUDO_UID"), id("SUDO_GID")) {
        (Some(user), Some(group)) => give(trace, user, group),
        _ => Ok(()),
    }
}

/// What is inside comes first: as long as the folder is root's, nobody can exchange it.
fn give(path: &Path, user: u32, group: u32) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), user, group)?;
        }
    }
    lchown(path, Some(user), Some(group))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    /// Everything inside changes hands, links themselves instead of what they lead to.
    #[test]
    fn a_whole_trace_changes_hands() {
        // SAFETY: geteuid has no preconditions.
        if unsafe { libc::geteuid() } != 0 {
            return eprintln!("NOT RUN: a_whole_trace_changes_hands: needs root");
        }
        let outside = tempfile::NamedTempFile::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("switches/000001.parquet");
        fs::create_dir(part.parent().unwrap()).unwrap();
        fs::write(&part, "x").unwrap();
        symlink(outside.path(), folder.path().join("link")).unwrap();
        give(folder.path(), 1234, 1235).unwrap();
        for path in [folder.path(), part.as_path()] {
            let found = fs::symlink_metadata(path).unwrap();
            assert_eq!(
                (found.uid(), found.gid()),
                (1234, 1235),
                "{}",
                path.display()
            );
        }
        assert_eq!(fs::metadata(outside.path()).unwrap().uid(), 0);
    }
}
