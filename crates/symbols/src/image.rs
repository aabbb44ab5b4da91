//! What an ELF file says of itself that matters for naming what is in it: its build-id, where its
//! code goes in memory, and which names it brings along.

use std::fs::File;

use object::elf::{PF_X, PT_LOAD};
use object::read::ReadCache;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection};
use serde::{Deserialize, Serialize};

use crate::text::hexadecimal;

/// A part of the file that is loaded as code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Segment {
    pub file_offset: u64,
    /// Length in the file; a file of debug information alone has 0.
    pub file_size: u64,
    /// Address by the file's own count.
    pub address: u64,
    pub memory_size: u64,
}

/// An ELF file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Image {
    /// In hexadecimal; empty if it has none.
    pub build_id: String,
    pub code: Vec<Segment>,
    /// Whether it has debug information: source lines and inlined functions.
    pub has_lines: bool,
    /// Name of the file that its debug information was moved to, if it says so.
    pub debug_link: Option<String>,
}

impl Image {
    /// Reads a file's headers; `None` if it is no ELF file of 64 bits or cannot be read.
    pub(crate) fn of(file: &File) -> Option<Image> {
        let cache = ReadCache::new(file);
        let file = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let endian = file.endian();
        let code = file
            .elf_program_headers()
            .iter()
            .filter(|header| {
                header.p_type(endian) == PT_LOAD && header.p_flags(endian).0 & PF_X.0 != 0
            })
            .map(|header| Segment {
                file_offset: header.p_offset(endian),
                file_size: header.p_filesz(endian),
                address: header.p_vaddr(endian),
                memory_size: header.p_memsz(endian),
            })
            .collect();
        let has = |name: &str| {
            let section = file.section_by_name(name);
            section.is_some_and(|section| section.file_range().is_some_and(|(_, size)| size > 0))
        };
        let debug_link = file.gnu_debuglink().ok().flatten();
        Some(Image {
            build_id: build_id(&file),
            code,
            has_lines: has(".debug_info") || has(".zdebug_info"),
            debug_link: debug_link.map(|(name, _)| String::from_utf8_lossy(name).into_owned()),
        })
    }

    /// Where in memory, by the file's own count, a place in the file's code goes.
    pub(crate) fn address(&self, file_offset: u64) -> Option<u64> {
        self.code.iter().find_map(|segment| {
            let within = file_offset.checked_sub(segment.file_offset)?;
            (within < segment.file_size).then(|| segment.address.checked_add(within))?
        })
    }

    /// As [`address`](Image::address), for a file of debug information: it keeps the addresses of
    /// the code and not its place in the file. That the one piece of code was mapped from
    /// `mapped_from` on gives it back.
    pub(crate) fn address_by_mapping(&self, file_offset: u64, mapped_from: u64) -> Option<u64> {
        let [segment] = self.code[..] else {
            return None;
        };
        // Both the mapping and the segment's page begin with the same byte.
        let page_start = segment.address - segment.address % page_size();
        let address = page_start.checked_add(file_offset.checked_sub(mapped_from)?)?;
        let end = segment.address.checked_add(segment.memory_size)?;
        (segment.address..end).contains(&address).then_some(address)
    }
}

fn build_id<'data>(file: &ElfFile64<'data, Endianness, &'data ReadCache<&File>>) -> String {
    let id = file.build_id().ok().flatten();
    id.map(hexadecimal).unwrap_or_default()
}

fn page_size() -> u64 {
    // SAFETY: sysconf takes a plain number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096).max(1)
}
