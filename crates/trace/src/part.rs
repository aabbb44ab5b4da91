//! A part: one Parquet file that holds some consecutive rows of one table.
//!
//! It is decoded column by column, all parts of a column at the same time; [`encoding`](crate::encoding)
//! makes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Repetition;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::Type;
use rayon::prelude::*;

use crate::budget::Budget;
use crate::cell::Cell;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::guard::guarded;
use crate::regular;

/// Rows that the writer puts into one part at most.
pub(crate) const PART_ROWS: usize = 1 << 20;
/// Rows that a reader accepts in one part: a few bytes of a hostile file can claim any number.
const MAX_PART_ROWS: usize = 1 << 24;
/// Bytes that a reader accepts in one part, for the same reason.
const MAX_PART_BYTES: u64 = 1 << 30;
/// Ending of a part's name.
pub(crate) const EXTENSION: &str = "parquet";

/// The columns of a part.
#[derive(Default)]
pub struct Schema {
    fields: Vec<ParquetResult<Type>>,
}

impl Schema {
    /// Adds a column.
    pub(crate) fn add<T: Cell>(&mut self, name: &str) {
        self.fields.push(T::field(name));
    }

    /// As Parquet knows it.
    pub(crate) fn build(self, table: &str) -> ParquetResult<Type> {
        let fields = self
            .fields
            .into_iter()
            .map(|f| f.map(Arc::new))
            .collect::<ParquetResult<_>>()?;
        Type::group_type_builder(table).with_fields(fields).build()
    }
}

/// Takes the columns of a part in order.
pub struct Encoder<'a> {
    pub(crate) group: SerializedRowGroupWriter<'a, Vec<u8>>,
    pub(crate) path: &'a Path,
}

impl Encoder<'_> {
    /// Writes the next column.
    pub(crate) fn column<T: Cell>(&mut self, values: &[T]) -> Result<()> {
        let mut write = || match self.group.next_column()? {
            Some(mut column) => {
                T::write(values, &mut column)?;
                column.close()
            }
            None => Err(ParquetError::General("more columns than declared".into())),
        };
        write().map_err(|e| encoding(self.path, e))
    }
}

/// The error of a part that could not be encoded.
pub(crate) fn encoding(path: &Path, e: ParquetError) -> Error {
    Error::Io {
        path: path.into(),
        cause: std::io::Error::other(e),
    }
}

/// A part that was opened: its footer was read and makes sense.
pub struct Part {
    path: PathBuf,
    reader: SerializedFileReader<Bytes>,
    rows: usize,
    size: u64,
}

/// The bytes of a part, which must be as it was `listed`, if it was.
pub(crate) fn read(path: &Path, listed: Option<Entry>) -> Result<Vec<u8>> {
    let bytes = regular::read(path, MAX_PART_BYTES).map_err(|e| Error::reading(path, e))?;
    if let Some(entry) = listed {
        entry.check(path, &bytes)?;
    }
    Ok(bytes)
}

/// What a part's footer tells.
pub(crate) struct Footer {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Part {
    /// Reads a part's bytes and its footer. It must be as it was `listed`, if it was.
    pub(crate) fn open(path: PathBuf, listed: Option<Entry>) -> Result<Part> {
        let bytes = read(&path, listed)?;
        let size = bytes.len() as u64;
        let reader = guarded(&path, || SerializedFileReader::new(Bytes::from(bytes)))?;
        let rows = row_count(&path, &reader)?;
        if listed.is_some_and(|entry| entry.rows != rows as u64) {
            return Err(Error::damaged(
                &path,
                "meta.json says that it has other rows",
            ));
        }
        Ok(Part {
            path,
            reader,
            rows,
            size,
        })
    }

    /// Reads the footer alone.
    pub(crate) fn footer(path: &Path) -> Result<Footer> {
        let file = regular::open(path).map_err(|e| Error::reading(path, e))?;
        let bytes = file.metadata().map_err(|e| Error::io(path, e))?.len();
        let reader = guarded(path, || SerializedFileReader::new(file))?;
        Ok(Footer {
            rows: row_count(path, &reader)? as u64,
            bytes,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Size of its file, bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Reads a column into `values`, which has as many as the part has rows; false if the part has no such
    /// column.
    fn column<T: Cell>(&self, name: &str, values: &mut [T], budget: &Budget) -> Result<bool> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let expected = guarded(&self.path, || T::field(name))?;
        let mut found = None;
        for (leaf, column) in schema.columns().iter().enumerate() {
            if schema.get_column_root(leaf).name() != name {
                continue;
            }
            let root = schema.get_column_root(leaf);
            if !same_shape(root, &expected) || column.physical_type() != T::PHYSICAL {
                let what = format!(
                    "column {name} is not of type {}",
                    std::any::type_name::<T>()
                );
                return Err(Error::damaged(&self.path, what));
            }
            found = Some(leaf);
        }
        let Some(leaf) = found else { return Ok(false) };
        guarded(&self.path, || self.values(leaf, values, budget)).map(|()| true)
    }

    fn values<T: Cell>(
        &self,
        leaf: usize,
        values: &mut [T],
        budget: &Budget,
    ) -> Result<(), String> {
        let mut filled = 0;
        for group in 0..self.reader.num_row_groups() {
            let group = self
                .reader
                .get_row_group(group)
                .map_err(|e| e.to_string())?;
            let rows = group.metadata().num_rows() as usize;
            let column = group.get_column_reader(leaf).map_err(|e| e.to_string())?;
            filled += T::read(column, &mut values[filled..filled + rows], budget)?;
        }
        if filled != self.rows {
            return Err(format!("{filled} of {} rows are there", self.rows));
        }
        Ok(())
    }
}

/// Whether a file's column has the form that its type is written in: names inside it aside.
fn same_shape(found: &Type, expected: &Type) -> bool {
    let repetition = |t: &Type| match t.get_basic_info().has_repetition() {
        true => t.get_basic_info().repetition(),
        false => Repetition::REQUIRED,
    };
    if repetition(found) != repetition(expected) || found.is_group() != expected.is_group() {
        return false;
    }
    if !found.is_group() {
        return found.get_physical_type() == expected.get_physical_type();
    }
    let (found, expected) = (found.get_fields(), expected.get_fields());
    found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| same_shape(f, e))
}

/// The rows of all row groups, if they are a number that can be.
fn row_count(path: &Path, reader: &impl FileReader) -> Result<usize> {
    let mut rows = 0usize;
    for group in reader.metadata().row_groups() {
        rows = usize::try_from(group.num_rows())
            .ok()
            .and_then(|n| rows.checked_add(n))
            .filter(|&rows| rows <= MAX_PART_ROWS)
            .ok_or_else(|| {
                Error::damaged(path, "its footer claims an impossible number of rows")
            })?;
    }
    Ok(rows)
}

/// A column's values in all parts, in order. A part that lacks it gives `default` for each row.
pub(crate) fn read_column<T: Cell>(
    parts: &[Part],
    name: &str,
    default: T,
    budget: &Budget,
) -> Result<Vec<T>> {
    let mut values = vec![T::default(); parts.iter().map(Part::rows).sum()];
    let mut rest = values.as_mut_slice();
    let mut places = Vec::with_capacity(parts.len());
    for part in parts {
        let (place, behind) = rest.split_at_mut(part.rows);
        places.push((part, place));
        rest = behind;
    }
    places.into_par_iter().try_for_each(|(part, place)| {
        if !part.column(name, place, budget)? {
            place.fill(default.clone());
        }
        Ok(())
    })?;
    Ok(values)
}
