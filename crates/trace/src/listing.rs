//! What a complete trace consists of: each part with its rows, its bytes and a checksum.
//!
//! The list is in `meta.json`, which ends with a checksum of itself. So a file that is missing, was
//! exchanged for another trace's or changed in one bit is noticed before anything is concluded from it. It
//! guards against accidents: who forges a trace can forge its checksums.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::all::Tables;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::format::META_FILE;
use crate::part::EXTENSION;

/// What must be there, by table; a table's parts are numbered from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Listing(BTreeMap<String, Vec<Entry>>);

/// Name of a table's part, from 1.
pub(crate) fn part_name(number: usize) -> String {
    format!("{number:06}.{EXTENSION}")
}

impl Listing {
    /// Adds a table's next part.
    pub(crate) fn push(&mut self, table: &str, entry: Entry) {
        self.0.entry(table.to_owned()).or_default().push(entry);
    }

    /// How many parts of a table there are.
    pub(crate) fn count(&self, table: &str) -> usize {
        self.entries(table).len()
    }

    /// Whether there is no part at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A table's parts, in order.
    pub(crate) fn entries(&self, table: &str) -> &[Entry] {
        self.0.get(table).map_or(&[], Vec::as_slice)
    }

    /// All parts, also of tables that this version does not know, with where they are in `trace`.
    pub(crate) fn files(&self, trace: &Path) -> Vec<(PathBuf, Entry)> {
        let mut files = Vec::new();
        for (table, entries) in &self.0 {
            let named = (1..).map(|number| trace.join(table).join(part_name(number)));
            files.extend(named.zip(entries.iter().copied()));
        }
        files
    }

    /// Whether each part is there with the size that it had, and no other: looks at names and
    /// sizes only.
    ///
    /// # Errors
    /// [`Error::Damaged`] names the file that is not as it was, [`Error::Io`].
    pub(crate) fn check_names(&self, trace: &Path) -> Result<()> {
        let plain =
            |name: &String| !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        if let Some(strange) = self.0.keys().find(|name| !plain(name)) {
            let what = format!("it lists a table named {strange:?}");
            return Err(Error::damaged(&trace.join(META_FILE), what));
        }
        for (path, entry) in self.files(trace) {
            let found = match fs::symlink_metadata(&path) {
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) =>
                {
                    return Err(Error::damaged(&path, "it is missing"));
                }
                found => found.map_err(|e| Error::io(&path, e))?,
            };
            if !found.is_file() {
                return Err(Error::damaged(&path, "it is not a regular file"));
            }
            if found.len() != entry.bytes {
                let what = format!(
                    "it has {} bytes and was recorded with {}",
                    found.len(),
                    entry.bytes
                );
                return Err(Error::damaged(&path, what));
            }
        }
        let known = Tables::ALL.iter().map(|(name, ..)| *name);
        for table in known {
            let count = self.count(table);
            let listed: HashSet<OsString> = (1..=count).map(|n| part_name(n).into()).collect();
            for path in found_parts(&trace.join(table))? {
                if !path.file_name().is_some_and(|name| listed.contains(name)) {
                    let what = "it is not part of this recording: move it away";
                    return Err(Error::damaged(&path, what));
                }
            }
        }
        Ok(())
    }
}

/// The files of a table's folder that look like parts, in order. Whatever else lies there is not
/// the table's.
pub(crate) fn found_parts(dir: &Path) -> Result<Vec<PathBuf>> {
    let no_folder = || Error::damaged(dir, "it should be a folder");
    match fs::symlink_metadata(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io(dir, e)),
        Ok(found) if !found.is_dir() => return Err(no_folder()),
        Ok(_) => {}
    }
    let mut parts = Vec::new();
    for entry in fs::read_dir(dir).map_err(|e| Error::io(dir, e))? {
        let path = entry.map_err(|e| Error::io(dir, e))?.path();
        if path.extension().is_some_and(|e| e == EXTENSION) {
            parts.push(path);
        }
    }
    parts.sort();
    Ok(parts)
}
