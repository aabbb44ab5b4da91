//! The table of one file.

use std::fs::File;
use std::path::Path;

use object::read::ReadRef;

use crate::cfi::Rows;
use crate::elf::Layout;
use crate::error::Result;
use crate::rule::{Row, Rule};
use crate::sections;

/// How to unwind from each place of a file: rows sorted by place, no two neighbours with one rule.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Row>,
    skipped: u64,
}

impl From<Rows> for Table {
    fn from(Rows { rows, skipped }: Rows) -> Table {
        Table { rows, skipped }
    }
}

impl Table {
    /// The table of the file at `path`. Only the parts that are needed are read, and never mapped:
    /// a file that shrinks meanwhile is an error, not a signal.
    ///
    /// # Errors
    /// [`Error::Read`](crate::Error::Read) if it cannot be opened; otherwise as [`Table::from_elf`].
    pub fn from_file(path: &Path) -> Result<Table> {
        Table::of(&sections::open(path)?)
    }

    /// The table of an open file, read as [`Table::from_file`] does.
    ///
    /// # Errors
    /// As [`Table::from_elf`].
    pub fn of(file: &File) -> Result<Table> {
        sections::read_file::<Rows>(file).map(Table::from)
    }

    /// The table of an ELF file's bytes; its places are offsets in the file.
    ///
    /// # Errors
    /// All but [`Error::Read`](crate::Error::Read).
    pub fn from_elf(bytes: &[u8]) -> Result<Table> {
        Table::new(bytes, Layout::File)
    }

    /// The table of an ELF file as the loader put it into memory, such as the vdso; its places are
    /// offsets from its start.
    ///
    /// # Errors
    /// As [`Table::from_elf`].
    pub fn from_image(bytes: &[u8]) -> Result<Table> {
        Table::new(bytes, Layout::Image)
    }

    fn new<'data, R: ReadRef<'data>>(data: R, layout: Layout) -> Result<Table> {
        sections::read::<Rows, R>(data, layout).map(Table::from)
    }

    /// The rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// How many FDEs were left out: damaged, without code in the file, or hidden by another with
    /// the same start.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The rule at an offset; [`Rule::NONE`] before the first row.
    pub fn rule(&self, offset: u64) -> Rule {
        let after = self.rows.partition_point(|row| u64::from(row.pc) <= offset);
        after
            .checked_sub(1)
            .map_or(Rule::NONE, |at| self.rows[at].rule)
    }
}
