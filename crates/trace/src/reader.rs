//! Reading a trace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::all::{Tables, Visitor};
use crate::error::{Error, Result};
use crate::meta::Meta;
use crate::part::{EXTENSION, Part};
use crate::tables::Table;

/// Rows of a table are numbered in 32 bits, here and in what is derived from a trace.
const MAX_ROWS: usize = u32::MAX as usize;

/// A trace on disk that was found to be one; its tables are read when asked for.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    meta: Meta,
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
    /// Opens the trace in the directory `path`.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::NotATrace`], [`Error::TooNew`], [`Error::Damaged`] if its
    /// `meta.json` cannot be understood, [`Error::Io`].
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
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let mut entries = fs::read_dir(path).map_err(|e| Error::io(path, e))?;
                Err(alien(match entries.next() {
                    None => "the directory is empty",
                    Some(_) => "the directory has no meta.json",
                }))
            }
            Err(e) => Err(e),
            Ok(meta) => Ok(Trace {
                path: path.into(),
                meta,
            }),
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
            .map(Part::open)
            .collect::<Result<_>>()?;
        let rows: usize = parts.iter().map(Part::rows).sum();
        if rows >= MAX_ROWS {
            let what = format!("its {rows} rows are more than hangdog can number");
            return Err(Error::damaged(&self.path.join(T::NAME), what));
        }
        let mut table = T::decode(&parts)?;
        table.sort();
        Ok(table)
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

    /// What each table takes, from its parts' footers alone.
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
            for part in parts {
                let footer = Part::footer(&part)?;
                info.rows += footer.rows;
                info.bytes += footer.bytes;
            }
            Ok(info)
        };
        Tables::ALL.iter().map(info).collect()
    }

    /// The files of a table, in order. Whatever else lies there is not the table's.
    fn parts(&self, table: &str) -> Result<Vec<PathBuf>> {
        let dir = self.path.join(table);
        let entries = match fs::read_dir(&dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
                return Err(Error::damaged(&dir, "it should be a folder"));
            }
            entries => entries.map_err(|e| Error::io(&dir, e))?,
        };
        let mut parts = Vec::new();
        for entry in entries {
            let path = entry.map_err(|e| Error::io(&dir, e))?.path();
            if path.extension().is_some_and(|e| e == EXTENSION) {
                parts.push(path);
            }
        }
        parts.sort();
        Ok(parts)
    }
}
