//! Files that a command writes for others: whole or absent under the name that was asked for.
//!
//! Root may write into a folder that a user owns. A regular file is always a new one, made under a
//! name that did not exist and renamed: nothing that is there is written to, and a link that bears
//! the name is replaced. What is written to in place (a pipe, a terminal, `/dev/null`) is looked at
//! once it is open, and reached by a link only if nobody else can have planted that.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use tempfile::NamedTempFile;

/// How much is written at a time, bytes.
const BUFFER: usize = 1 << 18;

/// Where something is written to: a file that gets its name when all is there, or what is there
/// already and can only be written to (a pipe, a terminal).
pub enum WholeFile {
    /// A file under another name.
    Temporary(BufWriter<NamedTempFile>),
    /// What was there.
    Stream(BufWriter<Box<dyn Write>>),
}

impl WholeFile {
    /// Begins to write to `path`, or for `-` to standard output.
    ///
    /// # Errors
    /// If no file can be made there.
    pub fn create(path: &Path) -> Result<WholeFile> {
        if path.as_os_str() == "-" {
            let stream: Box<dyn Write> = Box::new(io::stdout());
            return Ok(WholeFile::Stream(BufWriter::with_capacity(BUFFER, stream)));
        }
        let cannot = || format!("cannot write {}", path.display());
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                bail!("{}: it is a directory, name a file", cannot());
            }
            // A device or pipe must not be replaced by a file.
            Ok(found) if !found.is_file() && !is_foreign_link(path) => {
                let stream = File::options().write(true).open(path);
                let stream = stream.with_context(cannot)?;
                let kind = stream.metadata().with_context(cannot)?.file_type();
                if kind.is_file() || kind.is_block_device() {
                    bail!("{}: not a pipe and not a terminal", cannot());
                }
                let stream: Box<dyn Write> = Box::new(stream);
                return Ok(WholeFile::Stream(BufWriter::with_capacity(BUFFER, stream)));
            }
            _ => {}
        }
        let dir = match path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".hangdog-")
            .tempfile_in(dir)
            .with_context(cannot)?;
        Ok(WholeFile::Temporary(BufWriter::with_capacity(BUFFER, file)))
    }

    /// Gives what was written its name.
    ///
    /// # Errors
    /// If the rest cannot be written, or the file cannot be renamed; nothing has changed then.
    pub fn finish(self, path: &Path) -> Result<()> {
        match self {
            WholeFile::Stream(mut stream) => Ok(stream.flush()?),
            WholeFile::Temporary(file) => {
                let cannot = || format!("cannot write {}", path.display());
                let file = file.into_inner().map_err(|e| e.into_error());
                file.with_context(cannot)?
                    .persist(path)
                    .with_context(cannot)?;
                Ok(())
            }
        }
    }
}

/// Whether a link is there that neither root made nor who runs this.
fn is_foreign_link(path: &Path) -> bool {
    // SAFETY: geteuid has no preconditions.
    let own = unsafe { libc::geteuid() };
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_symlink() && ![0, own].contains(&found.uid()))
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            WholeFile::Temporary(file) => file.write(bytes),
            WholeFile::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            WholeFile::Temporary(file) => file.flush(),
            WholeFile::Stream(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name appears when all is there, in place of what bore it, and nothing else is left.
    #[test]
    fn whole_or_absent() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a.svg");
        fs::write(&path, "old")?;
        let mut given_up = WholeFile::create(&path)?;
        given_up.write_all(b"half")?;
        drop(given_up);
        assert_eq!(fs::read(&path)?, b"old");
        let mut file = WholeFile::create(&path)?;
        file.write_all(b"new")?;
        file.finish(&path)?;
        assert_eq!(fs::read(&path)?, b"new");
        assert_eq!(fs::read_dir(dir.path())?.count(), 1);
        Ok(())
    }

    /// Through a link that somebody else planted nothing is written: it is replaced.
    #[test]
    fn foreign_links_are_replaced() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a.svg");
        std::os::unix::fs::symlink("/dev/null", &path)?;
        if std::os::unix::fs::lchown(&path, Some(54_321), None).is_err() {
            eprintln!("NOT RUN: foreign_links_are_replaced: needs root");
            return Ok(());
        }
        let mut file = WholeFile::create(&path)?;
        file.write_all(b"new")?;
        file.finish(&path)?;
        assert!(fs::symlink_metadata(&path)?.is_file());
        assert_eq!(fs::read(&path)?, b"new");
        Ok(())
    }

    /// A device is written to and stays what it is.
    #[test]
    fn devices_stay() -> Result<()> {
        let path = Path::new("/dev/null");
        let mut file = WholeFile::create(path)?;
        file.write_all(b"nothing")?;
        file.finish(path)?;
        assert!(!fs::metadata(path)?.is_file());
        Ok(())
    }
}
