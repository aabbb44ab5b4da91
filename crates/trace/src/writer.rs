//! Writing a trace: rows collect in memory, parts go to disk.
//!
//! `folder.rs` says how it is done so that nobody else can lead the writing astray.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind::AlreadyExists;
use std::io::Write;
use std::path::Path;

use crate::all::{Tables, Visitor};
use crate::encoding::encode;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::folder::{Folder, Owner};
use crate::listing::{Listing, part_name};
use crate::meta::{META_FILE, Meta, RecordingState};
use crate::part::PART_ROWS;
use crate::tables::Table;

/// Writes a new trace.
///
/// Its user pushes rows into [`tables`](TraceWriter::tables) and calls
/// [`write_part`](TraceWriter::write_part) from time to time. What a part holds is safe from then
/// on, whatever happens to the writer. A writer that is dropped before it has written any part
/// removes the trace.
#[derive(Debug)]
pub struct TraceWriter {
    /// The rows that are not on disk yet.
    pub tables: Tables,
    folder: Folder,
    parent: Folder,
    name: OsString,
    owner: Option<Owner>,
    folders: BTreeMap<&'static str, Folder>,
    parts: Listing,
    complete: bool,
}

impl TraceWriter {
    /// Makes the trace's directory, for its owner alone, and writes its `meta.json`.
    ///
    /// # Errors
    /// [`Error::Exists`] if something is at `path` already, [`Error::DiskFull`], [`Error::Io`].
    pub fn create(path: impl AsRef<Path>, meta: Meta) -> Result<TraceWriter> {
        TraceWriter::create_for(path, meta, None)
    }

    /// The same for another user, to whom the trace is given when it is complete. Until then it
    /// belongs to this process's.
    ///
    /// # Errors
    /// As [`create`](TraceWriter::create), and if files cannot be given to that user.
    pub fn create_for(
        path: impl AsRef<Path>,
        mut meta: Meta,
        owner: Option<Owner>,
    ) -> Result<TraceWriter> {
        let path = path.as_ref();
        let (folder, parent) = Folder::create(path).map_err(|e| match e.kind() {
            AlreadyExists => Error::Exists { path: path.into() },
            _ => Error::io(path, e),
        })?;
        let writer = TraceWriter {
            tables: Tables::default(),
            folder,
            parent,
            name: path.file_name().unwrap_or_default().into(),
            owner,
            folders: BTreeMap::new(),
            parts: Listing::default(),
            complete: false,
        };
        meta.state = RecordingState::Recording;
        // If it fails the name is free for the next attempt: nothing was saved.
        meta.write(&writer.folder, owner, None)?;
        Ok(writer)
    }

    /// Replaces `meta.json`, for what became known only after the start; the state stays
    /// `recording`.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`].
    pub fn update(&self, mut meta: Meta) -> Result<()> {
        meta.state = RecordingState::Recording;
        meta.write(&self.folder, self.owner, None)
    }

    /// Puts the collected rows on disk and forgets them.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`]. Parts written before stay readable; rows that did not
    /// reach the disk stay in `tables`.
    pub fn write_part(&mut self) -> Result<()> {
        self.tables.each(&mut PartWriter {
            folder: &self.folder,
            owner: self.owner,
            folders: &mut self.folders,
            parts: &mut self.parts,
        })
    }

    /// Puts the last rows on disk, marks the trace as complete and gives it to its owner.
    ///
    /// # Errors
    /// As [`write_part`](TraceWriter::write_part).
    pub fn finish(mut self, mut meta: Meta) -> Result<()> {
        self.write_part()?;
        meta.state = RecordingState::Complete;
        meta.write(&self.folder, self.owner, Some(&self.parts))?;
        self.complete = true;
        // From here on it is somebody else's: nothing may be done in it.
        self.folder.give(self.owner)
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        if self.complete || !self.parts.is_empty() {
            return;
        }
        // What cannot be removed is left; only empty folders go.
        let _ = self.folder.remove(Path::new(META_FILE));
        for table in self.folders.keys() {
            let _ = self.folder.remove_folder(table.as_ref());
        }
        let _ = self.parent.remove_folder(&self.name);
    }
}

struct PartWriter<'a> {
    folder: &'a Folder,
    owner: Option<Owner>,
    folders: &'a mut BTreeMap<&'static str, Folder>,
    parts: &'a mut Listing,
}

impl Visitor for PartWriter<'_> {
    fn visit<T: Table>(&mut self, table: &mut T) -> Result<()> {
        if T::ASCENDS {
            table.sort();
        }
        while !table.is_empty() {
            let folder = match self.folders.get(T::NAME) {
                Some(folder) => folder,
                None => {
                    let error = |e| Error::io(&self.folder.path().join(T::NAME), e);
                    let folder = self.folder.make(T::NAME).map_err(error)?;
                    folder.give(self.owner)?;
                    self.folders.entry(T::NAME).or_insert(folder)
                }
            };
            let name = part_name(self.parts.count(T::NAME) + 1);
            let rows = table.len().min(PART_ROWS);
            let bytes = encode(table, 0..rows, &folder.path().join(&name))?;
            folder.put(&name, self.owner, |out| out.write_all(&bytes))?;
            self.parts.push(T::NAME, Entry::of(&bytes, rows));
            table.forget(rows);
        }
        Ok(())
    }
}

/// Puts a file into the folder `dir`, in place of what is there under `name`; it is the old or the
/// new at any moment. It becomes the folder's owner's.
///
/// # Errors
/// [`Error::DiskFull`], [`Error::Io`]; nothing has changed then.
pub fn put(dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let folder = Folder::open(dir).map_err(|e| Error::io(dir, e))?;
    let owner = folder.owner_for_root().map_err(|e| Error::io(dir, e))?;
    folder.put(name, owner, |out| out.write_all(bytes))
}
