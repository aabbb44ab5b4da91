//! Whether an ELF file is a Python interpreter, and of which version.
//!
//! Every CPython that can load extension modules exports its state, `_PyRuntime`, and since 3.11
//! also its version, `Py_Version`: the file's name does not matter.

use std::fs::File;
use std::path::Path;

use object::Endianness;
use object::elf::{PF_X, PT_LOAD, STT_OBJECT};
use object::read::elf::{ElfFile64, ProgramHeader, Sym};
use object::read::{ReadCache, ReadRef};

const STATE: &[u8] = b"_PyRuntime";
const VERSION: &[u8] = b"Py_Version";
/// The state is 160 KB: names need not be looked at in a library of small things.
const LEAST_STATE: u64 = 4096;

/// A Python interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interpreter {
    /// `bpf/python.h` knows how it keeps its frames; its state lies so far from where offset 0 of
    /// the file would be mapped with the code.
    Known {
        /// Wraps around.
        state: u64,
    },
    /// It keeps its frames in another way.
    Unknown,
}

impl Interpreter {
    /// `None` if the file is no interpreter, or cannot be read.
    pub(crate) fn of_file(path: &Path) -> Option<Interpreter> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let endian = file.endian();
        let symbols = file.elf_dynamic_symbol_table();
        let find = |name: &[u8], least: u64| {
            symbols.iter().find(|symbol| {
                symbol.st_type() == STT_OBJECT
                    && symbol.st_size(endian) >= least
                    && symbol.name(endian, symbols.strings()) == Ok(name)
            })
        };
        let state = find(STATE, LEAST_STATE)?.st_value(endian);
        let headers = file.elf_program_headers();
        let mut loaded = headers.iter().filter(|h| h.p_type(endian) == PT_LOAD);
        let version = find(VERSION, 0).and_then(|symbol| {
            let address = symbol.st_value(endian);
            let offset = headers
                .iter()
                .filter(|header| header.p_type(endian) == PT_LOAD)
                .find_map(|header| {
                    let within = address.checked_sub(header.p_vaddr(endian))?;
                    let there = within < header.p_filesz(endian);
                    header
                        .p_offset(endian)
                        .checked_add(within)
                        .filter(|_| there)
                })?;
            let bytes = (&cache).read_bytes_at(offset, 4).ok()?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        });
        // 0x030b02f0 is 3.11.2.
        if version.map(|version| version >> 16) != Some(0x030b) {
            return Some(Interpreter::Unknown);
        }
        let code = loaded.find(|header| header.p_flags(endian).0 & PF_X.0 != 0)?;
        let mapped = code.p_vaddr(endian).wrapping_sub(code.p_offset(endian));
        Some(Interpreter::Known {
            state: state.wrapping_sub(mapped),
        })
    }
}
