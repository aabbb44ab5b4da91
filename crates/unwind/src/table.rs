//! The table of one file.

use std::fs;
use std::io;
use std::path::Path;

use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian};
use object::read::{ReadCache, ReadRef};

use crate::cfi::{Cfi, Rows};
use crate::elf::{Elf, Layout, Section};
use crate::error::{Error, Result};
use crate::rule::{Row, Rule};

/// How to unwind from each place of a file: rows sorted by place, no two neighbours with one rule.
///
/// It is of `.eh_frame`, or of `.debug_frame` where that says nothing. A compressed `.debug_frame`
/// counts as none: it is Go that compresses it, and Go keeps frame pointers.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Row>,
    skipped: u64,
}

impl Table {
    /// The table of the file at `path`. Only the parts that are needed are read, and never mapped:
    /// a file that shrinks meanwhile is an error, not a signal.
    ///
    /// # Errors
    /// [`Error::Read`] if it cannot be opened; otherwise as [`Table::from_elf`].
    pub fn from_file(path: &Path) -> Result<Table> {
        if !fs::metadata(path)?.is_file() {
            return Err(Error::Read(io::Error::other("it is no regular file")));
        }
        let cache = ReadCache::new(fs::File::open(path)?);
        Table::new(&cache, Layout::File)
    }

    /// The table of an ELF file's bytes; its places are offsets in the file.
    ///
    /// # Errors
    /// [`Error::NotElf`], [`Error::Machine`], [`Error::NoInformation`], [`Error::TooLarge`].
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
        let elf = Elf::parse(data, layout)?;
        let rows = match layout {
            Layout::File => {
                let section = match elf.section(".eh_frame")? {
                    Some(section) => Some(section),
                    None => elf.loaded_eh_frame()?,
                };
                let rows = section.map(|section| eh_frame(&elf, &section));
                match rows.filter(|rows| !rows.rows.is_empty()) {
                    Some(rows) => Some(rows),
                    None => elf
                        .section(".debug_frame")?
                        .map(|section| debug_frame(&elf, &section)),
                }
            }
            // What describes the layout of the file does not describe the image.
            Layout::Image => elf
                .loaded_eh_frame()?
                .map(|section| eh_frame(&elf, &section)),
        };
        match rows {
            Some(Rows { rows, skipped }) if !rows.is_empty() => Ok(Table { rows, skipped }),
            _ => Err(Error::NoInformation),
        }
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

fn eh_frame<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>, section: &Section<'data>) -> Rows {
    Cfi {
        section: EhFrame::new(section.bytes, LittleEndian),
        bytes: section.bytes,
        bases: &BaseAddresses::default().set_eh_frame(section.address),
        terminated: true,
    }
    .rows(|address| elf.code(address))
}

fn debug_frame<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>, section: &Section<'data>) -> Rows {
    Cfi {
        section: DebugFrame::new(section.bytes, LittleEndian),
        bytes: section.bytes,
        bases: &BaseAddresses::default(),
        terminated: false,
    }
    .rows(|address| elf.code(address))
}
