//! Where in an ELF file its code and its unwind information are.
//!
//! Nothing is believed: what does not lie in the file is not there. Sizes that cost time or memory
//! have a most.

use gimli::{BaseAddresses, EhFrameHdr, LittleEndian as Gimli, Pointer};
use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::ReadRef;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

use crate::error::{Error, Result};

/// Rows hold offsets in 32 bits.
const LARGEST_FILE: u64 = u32::MAX as u64;
/// Twelve times what LLVM has; bounds the time and the memory that a hostile file can cost.
const LARGEST_SECTION: u64 = 64 << 20;
/// Files have one to four.
const MOST_SEGMENTS: usize = 64;

/// Files that run have some 40; more than 65,279 are counted elsewhere, and this is 0.
const MOST_SECTIONS: u16 = 4096;

/// How the bytes at hand are laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As in the file.
    File,
    /// As the loader puts them into memory.
    Image,
}

/// A loaded part of the file: the addresses from `start` to `end` lie at the offset `offset`.
struct Segment {
    start: u64,
    end: u64,
    offset: u64,
    executable: bool,
}

/// What the headers say.
pub(crate) struct Elf<'data, R> {
    data: R,
    header: &'data FileHeader64<LittleEndian>,
    segments: Vec<Segment>,
    eh_frame_hdr: Option<u64>,
}

/// Unwind information: what the sections hold, and the address to which it is relative.
pub(crate) struct Section<'data> {
    pub(crate) bytes: &'data [u8],
    pub(crate) address: u64,
}

impl<'data, R: ReadRef<'data>> Elf<'data, R> {
    pub(crate) fn parse(data: R, layout: Layout) -> Result<Self> {
        let size = data
            .len()
            .map_err(|()| Error::NotElf("its size is unknown"))?;
        within("it", size, LARGEST_FILE)?;
        let header = header(data)?;
        // This number says that the true one is elsewhere, which the ELF files that run never need.
        if header.e_phnum.get(LittleEndian) == elf::PN_XNUM {
            return Err(Error::NotElf("it has more than 65,534 program headers"));
        }
        let headers = header
            .program_headers(LittleEndian, data)
            .map_err(|_| Error::NotElf("its program headers do not lie in it"))?;
        let (segments, eh_frame_hdr) = segments(headers, layout, size)?;
        Ok(Elf {
            data,
            header,
            segments,
            eh_frame_hdr,
        })
    }

    /// The offset at which the code at `address` lies, and how many bytes of code follow.
    pub(crate) fn code(&self, address: u64) -> Option<(u32, u32)> {
        let (offset, rest) = self.locate(address, true)?;
        let offset = u32::try_from(offset).ok()?;
        let rest = u32::try_from(rest).unwrap_or(u32::MAX);
        Some((offset, rest.min(u32::MAX - offset)))
    }

    /// The section `name` of the file.
    pub(crate) fn section(&self, name: &str) -> Result<Option<Section<'data>>> {
        // Section headers are not needed to run, so broken ones are as good as none.
        if !(1..=MOST_SECTIONS).contains(&self.header.e_shnum.get(LittleEndian)) {
            return Ok(None);
        }
        let Ok(sections) = self.header.sections(LittleEndian, self.data) else {
            return Ok(None);
        };
        let Some((_, section)) = sections.section_by_name(LittleEndian, name.as_bytes()) else {
            return Ok(None);
        };
        let compressed = section.sh_flags(LittleEndian).contains(elf::SHF_COMPRESSED);
        if compressed || section.sh_size(LittleEndian) == 0 {
            return Ok(None);
        }
        within(
            "its unwind section",
            section.sh_size(LittleEndian),
            LARGEST_SECTION,
        )?;
        Ok(section
            .data(LittleEndian, self.data)
            .ok()
            .filter(|bytes| !bytes.is_empty())
            .map(|bytes| Section {
                bytes,
                address: section.sh_addr(LittleEndian),
            }))
    }

    /// `.eh_frame` as running programs find it: by the program headers.
    pub(crate) fn loaded_eh_frame(&self) -> Result<Option<Section<'data>>> {
        let Some(address) = self.eh_frame_hdr else {
            return Ok(None);
        };
        let Some(start) = self.bytes_at(address, 64) else {
            return Ok(None);
        };
        let bases = BaseAddresses::default().set_eh_frame_hdr(address);
        let Ok(Pointer::Direct(address)) = EhFrameHdr::new(start, Gimli)
            .parse(&bases, 8)
            .map(|header| header.eh_frame_ptr())
        else {
            return Ok(None);
        };
        // Where it ends is not said: a terminator does, or the segment.
        if let Some((_, rest)) = self.locate(address, false) {
            within("the rest of its segment", rest, LARGEST_SECTION)?;
        }
        Ok(self
            .bytes_at(address, u64::MAX)
            .map(|bytes| Section { bytes, address }))
    }

    /// The bytes from `address` on, to the end of the segment or to `most`.
    fn bytes_at(&self, address: u64, most: u64) -> Option<&'data [u8]> {
        let (offset, rest) = self.locate(address, false)?;
        self.data.read_bytes_at(offset, rest.min(most)).ok()
    }

    fn locate(&self, address: u64, executable: bool) -> Option<(u64, u64)> {
        let segment = self.segments.iter().find(|segment| {
            segment.start <= address && address < segment.end && (segment.executable || !executable)
        })?;
        let offset = segment.offset.checked_add(address - segment.start)?;
        Some((offset, segment.end - address))
    }
}

fn header<'data, R: ReadRef<'data>>(data: R) -> Result<&'data FileHeader64<LittleEndian>> {
    let ident = data
        .read_bytes_at(0, 20)
        .map_err(|()| Error::NotElf("it is shorter than an ELF header"))?;
    if ident[..4] != elf::ELFMAG {
        return Err(Error::NotElf("it does not start like one"));
    }
    let machine = u16::from_le_bytes([ident[18], ident[19]]);
    let (class, order) = (ident[4], ident[5]);
    if (class, order, machine) != (elf::ELFCLASS64.0, elf::ELFDATA2LSB.0, elf::EM_X86_64.0) {
        return Err(Error::Machine {
            class,
            order,
            machine,
        });
    }
    FileHeader64::parse(data).map_err(|_| Error::NotElf("its header is invalid"))
}

/// The loaded segments, and the address of `.eh_frame_hdr`.
fn segments(
    headers: &[ProgramHeader64<LittleEndian>],
    layout: Layout,
    size: u64,
) -> Result<(Vec<Segment>, Option<u64>)> {
    let mut segments = Vec::new();
    let mut eh_frame_hdr = None;
    let mut base = None;
    for header in headers {
        let start = header.p_vaddr(LittleEndian);
        let in_file = header.p_offset(LittleEndian);
        match header.p_type(LittleEndian) {
            elf::PT_LOAD => {
                within(
                    "the number of its segments",
                    segments.len() as u64 + 1,
                    MOST_SEGMENTS as u64,
                )?;
                let base = *base.get_or_insert(start.wrapping_sub(in_file));
                let offset = match layout {
                    Layout::File => in_file,
                    Layout::Image => start.wrapping_sub(base),
                };
                let there = header
                    .p_filesz(LittleEndian)
                    .min(size.saturating_sub(offset));
                segments.push(Segment {
                    start,
                    end: start.saturating_add(there),
                    offset,
                    executable: header.p_flags(LittleEndian).contains(elf::PF_X),
                });
            }
            elf::PT_GNU_EH_FRAME => eh_frame_hdr = Some(start),
            _ => {}
        }
    }
    Ok((segments, eh_frame_hdr))
}

fn within(what: &'static str, size: u64, most: u64) -> Result<()> {
    if size > most {
        return Err(Error::TooLarge { what, size, most });
    }
    Ok(())
}
