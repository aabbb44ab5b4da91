//! The functions of one file: in stripped code the start of its FDE is what tells one from another.

use std::fs::File;
use std::path::Path;

use gimli::{EndianSlice, LittleEndian, UnwindSection};

use crate::cfi::Cfi;
use crate::elf::Layout;
use crate::error::Result;
use crate::sections::{self, FromCfi};

/// Where the functions of a file lie: one for each FDE, sorted; no two overlap.
///
/// What a compiler splits off as seldom run has an FDE of its own, and all stubs of a procedure
/// linkage table have one together.
#[derive(Clone, Debug)]
pub struct Functions(Vec<(u32, u32)>);

impl Functions {
    /// The functions of the file at `path`, read as [`Table::from_file`](crate::Table::from_file)
    /// does.
    ///
    /// # Errors
    /// [`Error::Read`](crate::Error::Read) if it cannot be opened; otherwise as
    /// [`Functions::from_elf`].
    pub fn from_file(path: &Path) -> Result<Functions> {
        Functions::of(&sections::open(path)?)
    }

    /// The functions of an open file.
    ///
    /// # Errors
    /// As [`Functions::from_elf`].
    pub fn of(file: &File) -> Result<Functions> {
        sections::read_file(file)
    }

    /// The functions of an ELF file's bytes.
    ///
    /// # Errors
    /// As [`Table::from_elf`](crate::Table::from_elf).
    pub fn from_elf(bytes: &[u8]) -> Result<Functions> {
        sections::read(bytes, Layout::File)
    }

    /// The offsets in the file of a function's first byte and of the one behind its last; those of
    /// the function that has the byte at `offset`.
    pub fn find(&self, offset: u64) -> Option<(u64, u64)> {
        let behind = self
            .0
            .partition_point(|&(start, _)| u64::from(start) <= offset);
        let &(start, end) = self.0.get(behind.checked_sub(1)?)?;
        (offset < end.into()).then_some((start.into(), end.into()))
    }
}

impl FromCfi for Functions {
    fn from_cfi<'data, S: UnwindSection<EndianSlice<'data, LittleEndian>>>(
        cfi: &Cfi<'_, 'data, S>,
        code: impl Fn(u64) -> Option<(u32, u32)>,
    ) -> Option<Self> {
        let places = cfi.functions(code).into_iter();
        let functions: Vec<_> = places.map(|place| (place.start, place.end)).collect();
        (!functions.is_empty()).then_some(Functions(functions))
    }
}
