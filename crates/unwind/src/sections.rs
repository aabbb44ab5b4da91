//! Which section of a file is read: `.eh_frame`, or `.debug_frame` where nothing comes of that.
//!
//! A compressed `.debug_frame` counts as none: it is Go that compresses it, and Go keeps frame
//! pointers.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use gimli::{BaseAddresses, DebugFrame, EhFrame, EndianSlice, LittleEndian, UnwindSection};
use object::read::{ReadCache, ReadRef};

use crate::cfi::{Cfi, Rows};
use crate::elf::{Elf, Layout, Section};
use crate::error::{Error, Result};

/// What a section is read for.
pub(crate) trait FromCfi: Sized {
    /// Reads it; `code` maps an address to the offset of the code there, and to how many bytes of
    /// code follow. `None` if nothing comes of it.
    fn from_cfi<'data, S: UnwindSection<EndianSlice<'data, LittleEndian>>>(
        cfi: &Cfi<'_, 'data, S>,
        code: impl Fn(u64) -> Option<(u32, u32)>,
    ) -> Option<Self>;
}

impl FromCfi for Rows {
    fn from_cfi<'data, S: UnwindSection<EndianSlice<'data, LittleEndian>>>(
        cfi: &Cfi<'_, 'data, S>,
        code: impl Fn(u64) -> Option<(u32, u32)>,
    ) -> Option<Self> {
        Some(cfi.rows(code)).filter(|rows| !rows.rows.is_empty())
    }
}

/// A file to read from.
pub(crate) fn open(path: &Path) -> Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(Error::Read(io::Error::other("it is not a regular file")));
    }
    Ok(File::open(path)?)
}

/// Reads what an open file holds.
pub(crate) fn read_file<T: FromCfi>(file: &File) -> Result<T> {
    read(&ReadCache::new(file), Layout::File)
}

/// Reads what `data` holds.
pub(crate) fn read<'data, T: FromCfi, R: ReadRef<'data>>(data: R, layout: Layout) -> Result<T> {
    let elf = Elf::parse(data, layout)?;
    let found = match layout {
        Layout::File => {
            let section = match elf.section(".eh_frame")? {
                Some(section) => Some(section),
                None => elf.loaded_eh_frame()?,
            };
            match section.and_then(|section| eh_frame(&elf, &section)) {
                Some(found) => Some(found),
                None => elf
                    .section(".debug_frame")?
                    .and_then(|section| debug_frame(&elf, &section)),
            }
        }
        // What describes the layout of the file does not describe the image.
        Layout::Image => elf
            .loaded_eh_frame()?
            .and_then(|section| eh_frame(&elf, &section)),
    };
    found.ok_or(Error::NoInformation)
}

fn eh_frame<'data, T: FromCfi, R: ReadRef<'data>>(
    elf: &Elf<'data, R>,
    section: &Section<'data>,
) -> Option<T> {
    let cfi = Cfi {
        section: EhFrame::new(section.bytes, LittleEndian),
        bytes: section.bytes,
        bases: &BaseAddresses::default().set_eh_frame(section.address),
        terminated: true,
    };
    T::from_cfi(&cfi, |address| elf.code(address))
}

fn debug_frame<'data, T: FromCfi, R: ReadRef<'data>>(
    elf: &Elf<'data, R>,
    section: &Section<'data>,
) -> Option<T> {
    let cfi = Cfi {
        section: DebugFrame::new(section.bytes, LittleEndian),
        bytes: section.bytes,
        bases: &BaseAddresses::default(),
        terminated: false,
    };
    T::from_cfi(&cfi, |address| elf.code(address))
}
