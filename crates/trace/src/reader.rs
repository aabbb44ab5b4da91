//! Reading a trace.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::all::{Tables, Visitor};
use crate::budget::Budget;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::listing::{Listing, found_parts, part_name};
use crate::meta::Meta;
use crate::part::{self, Part};
use crate::tables::{Lifecycle, Table};
use crate::threads::Threads;

/// Rows of a table are numbered in 32 bits, here and in what is derived from a trace.
const MAX_ROWS: usize = u32::MAX as usize;
/// So many threads are believed of any trace,
const THREADS: u64 = 50_000;
/// and one more for so many bytes of it: what a thread does takes more, and reports take some
/// kilobytes of memory for each.
const BYTES_PER_THREAD: u64 = 64;

/// A trace on disk that was found to be one; its tables are read when asked for.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    meta: Meta,
    listing: Option<Listing>,
}

/// What came of [`Trace::verify`].
#[derive(Debug)]
pub struct Verified {
    /// Parts that were looked at.
    pub parts: usize,
    /// Their bytes in all.
    pub bytes: u64,
    /// Those that are not as they were recorded.
    pub damaged: Vec<Error>,
}

/// What a table takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// The table's name.
    pub name: &'static str,
    /// Its rows.
    pub rows: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Files that it is in.
    pub parts: usize,
}

impl Trace {
    /// Opens the trace in the directory `path`. Of a complete one each part must be there with the
    /// size that it had, and no other; that its bytes are as they were is seen when it is read.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::NotATrace`], [`Error::TooNew`], [`Error::Damaged`] if its
    /// `meta.json` cannot be understood or a part is not as it says, [`Error::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Trace> {
        let path = path.as_ref();
        let found = fs::metadata(path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Error::Missing { path: path.into() },
            _ => Error::io(path, e),
        })?;
        let alien = |what: &str| Error::NotATrace {
            path: path.into(),
            what: what.into(),
        };
        if !found.is_dir() {
            return Err(alien("it is a file"));
        }
        match Meta::read(path) {
            Err(Error::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                let mut entries = fs::read_dir(path).map_err(|e| Error::io(path, e))?;
                Err(alien(match entries.next() {
                    None => "the directory is empty",
                    Some(_) => "the directory has no meta.json",
                }))
            }
            Err(e) => Err(e),
            Ok((meta, listing)) => {
                if let Some(listing) = &listing {
                    listing.check_names(path)?;
                }
                Ok(Trace {
                    path: path.into(),
                    meta,
                    listing,
                })
            }
        }
    }

    /// Where the trace is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is known of the recording as a whole.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Reads a table: all of its parts, by ascending `ts` where it has that column. A table that
    /// was never written is empty.
    ///
    /// # Errors
    /// [`Error::Damaged`] names the file, [`Error::Io`].
    pub fn read<T: Table>(&self) -> Result<T> {
        let parts: Vec<Part> = self
            .parts(T::NAME)?
            .into_par_iter()
            .map(|(path, listed)| Part::open(path, listed))
            .collect::<Result<_>>()?;
        let rows: usize = parts.iter().map(Part::rows).sum();
        if rows >= MAX_ROWS {
            let what = format!("its {rows} rows are more than hangdog can number");
            return Err(Error::damaged(&self.path.join(T::NAME), what));
        }
        let budget = Budget::new(parts.iter().map(Part::size).sum());
        budget
            .take(rows.saturating_mul(T::ROW_BYTES))
            .map_err(|what| Error::damaged(&self.path.join(T::NAME), what))?;
        let mut table = T::decode(&parts, &budget)?;
        table
            .check_times(&parts, self.meta.latest_ns())
            .map_err(|(row, what)| {
                let mut left = row;
                let part = parts
                    .iter()
                    .find(|part| match left.checked_sub(part.rows()) {
                        Some(rest) => {
                            left = rest;
                            false
                        }
                        None => true,
                    });
                Error::damaged(part.map_or(&self.path, |part| part.path()), what)
            })?;
        table.sort();
        Ok(table)
    }

    /// The threads and processes of the trace.
    ///
    /// # Errors
    /// As [`read`](Trace::read), and [`Error::Damaged`] if there are more than a trace of this size
    /// can have.
    pub fn threads(&self) -> Result<Threads> {
        let lifecycle: Lifecycle = self.read()?;
        let threads = lifecycle.thread.iter().collect::<HashSet<_>>().len() as u64;
        let most = THREADS + self.bytes()? / BYTES_PER_THREAD;
        if threads > most {
            let what =
                format!("it lists {threads} threads; a trace of its size has at most {most}");
            return Err(Error::damaged(&self.path.join(Lifecycle::NAME), what));
        }
        Ok(Threads::new(&lifecycle))
    }

    /// Bytes of all tables.
    fn bytes(&self) -> Result<u64> {
        let mut bytes = 0u64;
        for (table, ..) in Tables::ALL {
            for (path, listed) in self.parts(table)? {
                let size = match listed {
                    Some(entry) => entry.bytes,
                    None => fs::symlink_metadata(&path)
                        .map_err(|e| Error::io(&path, e))?
                        .len(),
                };
                bytes = bytes.saturating_add(size);
            }
        }
        Ok(bytes)
    }

    /// Reads all tables.
    ///
    /// # Errors
    /// As [`read`](Trace::read).
    pub fn read_all(&self) -> Result<Tables> {
        struct ReadEach<'a>(&'a Trace);
        impl Visitor for ReadEach<'_> {
            fn visit<T: Table>(&mut self, table: &mut T) -> Result<()> {
                *table = self.0.read()?;
                Ok(())
            }
        }
        let mut tables = Tables::default();
        tables.each(&mut ReadEach(self))?;
        Ok(tables)
    }

    /// What each table takes, from the list of parts or from their footers.
    ///
    /// # Errors
    /// As [`read`](Trace::read).
    pub fn tables_info(&self) -> Result<Vec<TableInfo>> {
        let info = |&(name, ..): &(&'static str, _, _)| {
            let parts = self.parts(name)?;
            let mut info = TableInfo {
                name,
                rows: 0,
                bytes: 0,
                parts: parts.len(),
            };
            for (part, listed) in parts {
                let (rows, bytes) = match listed {
                    Some(entry) => (entry.rows, entry.bytes),
                    None => {
                        let footer = Part::footer(&part)?;
                        (footer.rows, footer.bytes)
                    }
                };
                info.rows = info.rows.saturating_add(rows);
                info.bytes = info.bytes.saturating_add(bytes);
            }
            Ok(info)
        };
        Tables::ALL.iter().map(info).collect()
    }

    /// Looks at every byte of the trace; none if it has no list of its parts, being of an older
    /// version or cut short.
    pub fn verify(&self) -> Option<Verified> {
        let files = self.listing.as_ref()?.files(&self.path);
        let check = |(path, entry): &(PathBuf, Entry)| part::read(path, Some(*entry)).err();
        Some(Verified {
            parts: files.len(),
            bytes: files.iter().map(|(_, entry)| entry.bytes).sum(),
            damaged: files.par_iter().filter_map(check).collect(),
        })
    }

    /// The files of a table, in order, each as it is listed, if the trace has a list.
    fn parts(&self, table: &str) -> Result<Vec<(PathBuf, Option<Entry>)>> {
        let dir = self.path.join(table);
        match &self.listing {
            Some(listing) => Ok((1..)
                .map(|number| dir.join(part_name(number)))
                .zip(listing.entries(table).iter().copied().map(Some))
                .collect()),
            None => Ok(found_parts(&dir)?
                .into_iter()
                .map(|path| (path, None))
                .collect()),
        }
    }
}
