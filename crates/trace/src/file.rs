//! Files that are whole or absent, and readable by their owner alone.
//!
//! Content goes to a temporary name, which is renamed when all of it is there. Whatever ends the
//! writer in between (kill -9, a full disk) leaves at most a temporary file, and readers ignore
//! those.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::error::{Error, Result};

/// Ending of a file that is not finished.
const TEMPORARY: &str = "tmp";

/// Makes the directory `path`, for its owner alone. Its parent must exist.
pub(crate) fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Puts what `write` writes at `path`, in place of what was there.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let temporary = path.with_extension(TEMPORARY);
    let attempt = || {
        let mut out = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        write(&mut out)?;
        drop(out);
        fs::rename(&temporary, path)
    };
    attempt().map_err(|e| {
        // It may not exist; the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
        Error::io(path, e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A write that fails leaves what was there, and no temporary file.
    #[test]
    fn failure_leaves_the_old_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        replace(&path, |out| out.write_all(b"old")).unwrap();
        let error = replace(&path, |out| {
            out.write_all(b"ne")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(matches!(error, Err(Error::DiskFull { file }) if file == path));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
