//! Writing a trace: rows collect in memory, parts go to disk.

use std::collections::BTreeMap;
use std::io::ErrorKind::AlreadyExists;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::all::{Tables, Visitor};
use crate::error::{Error, Result};
use crate::file;
use crate::meta::{Meta, RecordingState};
use crate::part::{self, EXTENSION, PART_ROWS};
use crate::tables::Table;

/// Writes a new trace.
///
/// The owner pushes rows into [`tables`](TraceWriter::tables) and calls
/// [`write_part`](TraceWriter::write_part) from time to time. What a part holds is safe from then
/// on, whatever happens to the writer.
#[derive(Debug)]
pub struct TraceWriter {
    /// The rows that are not on disk yet.
    pub tables: Tables,
    path: PathBuf,
    parts: BTreeMap<&'static str, u32>,
}

impl TraceWriter {
    /// Makes the trace's directory, for its owner alone, and writes its `meta.json`.
    ///
    /// # Errors
    /// [`Error::Exists`] if something is at `path` already, [`Error::DiskFull`], [`Error::Io`].
    pub fn create(path: impl AsRef<Path>, mut meta: Meta) -> Result<TraceWriter> {
        let path = path.as_ref();
        file::make_dir(path).map_err(|e| match e.kind() {
            AlreadyExists => Error::Exists { path: path.into() },
            _ => Error::io(path, e),
        })?;
        meta.state = RecordingState::Recording;
        meta.write(path).inspect_err(|_| {
            // Nothing was saved: the name is free for the next attempt.
            let _ = std::fs::remove_dir(path);
        })?;
        Ok(TraceWriter {
            tables: Tables::default(),
            path: path.into(),
            parts: BTreeMap::new(),
        })
    }

    /// Where the trace is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces `meta.json`, for what became known only after the start; the state stays
    /// `recording`.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`].
    pub fn update(&self, mut meta: Meta) -> Result<()> {
        meta.state = RecordingState::Recording;
        meta.write(&self.path)
    }

    /// Puts the collected rows on disk and forgets them.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`]. Parts written before stay readable; rows that did not
    /// reach the disk stay in `tables`.
    pub fn write_part(&mut self) -> Result<()> {
        self.tables.each(&mut PartWriter {
            path: &self.path,
            parts: &mut self.parts,
        })
    }

    /// Puts the last rows on disk and marks the trace as complete.
    ///
    /// # Errors
    /// As [`write_part`](TraceWriter::write_part).
    pub fn finish(mut self, mut meta: Meta) -> Result<()> {
        self.write_part()?;
        meta.state = RecordingState::Complete;
        meta.write(&self.path)
    }
}

struct PartWriter<'a> {
    path: &'a Path,
    parts: &'a mut BTreeMap<&'static str, u32>,
}

impl Visitor for PartWriter<'_> {
    fn visit<T: Table>(&mut self, table: &mut T) -> Result<()> {
        while !table.is_empty() {
            let dir = self.path.join(T::NAME);
            let number = self.parts.entry(T::NAME).or_insert_with(|| 0);
            if *number == 0 {
                match file::make_dir(&dir) {
                    Err(e) if e.kind() != AlreadyExists => return Err(Error::io(&dir, e)),
                    _ => {}
                }
            }
            let path = dir.join(format!("{:06}.{EXTENSION}", *number + 1));
            let rows = table.len().min(PART_ROWS);
            let bytes = part::encode(table, 0..rows, &path)?;
            file::replace(&path, |out| out.write_all(&bytes))?;
            *number += 1;
            table.forget(rows);
        }
        Ok(())
    }
}
