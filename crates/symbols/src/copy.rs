//! What names need of an ELF file, in memory.
//!
//! Debug information is read through a mapping, and a mapped file that is cut ends its reader by
//! SIGBUS. So the sections that names are made of are copied first, with plain reads, to where they
//! lie in the file; the rest of the copy stays empty and takes no memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use object::Endianness;
use object::elf::{FileHeader64, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE, SHT_STRTAB, SHT_SYMTAB};
use object::read::elf::{FileHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};
use rustix::fs::{MemfdFlags, memfd_create};

/// Debug information beyond this is left out, and the symbols name alone.
const MOST_DEBUG: u64 = 1 << 30;
/// A symbol table beyond this is nobody's.
const MOST: u64 = 2 << 30;

/// Where this process's own descriptors are, as it sees the file system.
static DESCRIPTORS: OnceLock<PathBuf> = OnceLock::new();

/// From now on the root of the file system is the folder of descriptors.
pub(crate) fn root_is_descriptors() {
    let _ = DESCRIPTORS.set("/".into());
}

/// A copy, as long as it is kept.
pub(crate) struct Copy(File);

impl Copy {
    /// Copies a file; also whether debug information had to be left out.
    pub(crate) fn of(file: &File) -> io::Result<(Copy, bool)> {
        let (wanted, cut) = wanted(file)?;
        let length = file.metadata()?.len();
        let copy = File::from(memfd_create("names", MemfdFlags::CLOEXEC)?);
        copy.set_len(length)?;
        let mut buffer = vec![0; 256 << 10];
        for range in wanted {
            let end = range.end.min(length);
            let mut at = range.start;
            while at < end {
                let most = buffer.len().min((end - at) as usize);
                let read = file.read_at(&mut buffer[..most], at)?;
                if read == 0 {
                    break;
                }
                copy.write_all_at(&buffer[..read], at)?;
                at += read as u64;
            }
        }
        Ok((Copy(copy), cut))
    }

    /// A path by which this process can open it.
    pub(crate) fn path(&self) -> PathBuf {
        let folder = DESCRIPTORS.get_or_init(|| "/proc/self/fd".into());
        folder.join(self.0.as_raw_fd().to_string())
    }
}

/// The parts that names are made of.
fn wanted(file: &File) -> io::Result<(Vec<Range<u64>>, bool)> {
    let damaged = |_| io::Error::from(io::ErrorKind::InvalidData);
    let cache = ReadCache::new(file);
    let data = &cache;
    let header = FileHeader64::<Endianness>::parse(data).map_err(damaged)?;
    let endian = header.endian().map_err(damaged)?;
    let sections = header.sections(endian, data).map_err(damaged)?;
    let part = |start: u64, size: u64| start..start.saturating_add(size);
    let count = |number: u16, size: u16| u64::from(number) * u64::from(size);
    let mut parts = vec![
        part(0, 64),
        part(
            header.e_phoff(endian),
            count(header.e_phnum(endian), header.e_phentsize(endian)),
        ),
        part(
            header.e_shoff(endian),
            sections.len() as u64 * u64::from(header.e_shentsize(endian)),
        ),
    ];
    let (mut debug, mut plain) = (Vec::new(), 0u64);
    for section in sections.iter() {
        let kind = section.sh_type(endian);
        let name = sections.section_name(endian, section).unwrap_or_default();
        let range = part(section.sh_offset(endian), section.sh_size(endian));
        if kind == SHT_NOBITS {
        } else if name.starts_with(b".debug_") || name.starts_with(b".zdebug_") {
            debug.push(range);
        } else if [SHT_SYMTAB, SHT_DYNSYM, SHT_STRTAB, SHT_NOTE].contains(&kind)
            || name.starts_with(b".gnu_debug")
        {
            plain = plain.saturating_add(range.end.saturating_sub(range.start));
            parts.push(range);
        }
    }
    if plain > MOST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let size = debug.iter().fold(0u64, |sum, range| {
        sum.saturating_add(range.end - range.start)
    });
    let cut = size > MOST_DEBUG;
    if !cut {
        parts.append(&mut debug);
    }
    let length = data.len().map_err(|()| io::ErrorKind::InvalidData)?;
    parts.retain(|range| range.start < length);
    Ok((parts, cut))
}
