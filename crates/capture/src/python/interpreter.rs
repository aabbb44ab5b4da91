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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;
    use std::process::Command;

    /// A library with what `source` defines; its data does not lie as far from its code as in the
    /// file.
    fn library(dir: &Path, name: &str, source: &str) -> PathBuf {
        let (path, from) = (dir.join(name), dir.join(format!("{name}.c")));
        std::fs::write(&from, source).expect("a source");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&path, &from])
            .status();
        assert!(built.expect("a C compiler (cc)").success());
        path
    }

    /// The state of a 3.11 is found where the loader puts it.
    #[test]
    fn the_state_is_where_the_loader_puts_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = "const unsigned long Py_Version = 0x030b02f0;
            char _PyRuntime[166688]; int f(void) { return _PyRuntime[1]; }";
        let path = library(dir.path(), "libsnake.so", source);
        let Some(Interpreter::Known { state }) = Interpreter::of_file(&path) else {
            panic!("not known");
        };
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the library was made above and has nothing that runs when it is loaded.
        let address = unsafe {
            let library = libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null());
            libc::dlsym(library, c"_PyRuntime".as_ptr()) as u64
        };
        let mappings = procfs::mappings(std::process::id());
        let code = mappings
            .iter()
            .find(|mapping| Path::new(&mapping.path) == path)
            .expect("its code");
        assert_eq!((code.start - code.file_offset).wrapping_add(state), address);
    }

    /// Another version, or one that does not say which it is, is an interpreter that is not known;
    /// a library without the state is none, nor is what is no ELF file.
    #[test]
    fn others_are_told_apart() {
        let dir = tempfile::tempdir().expect("a directory");
        let of = |name: &str, source: &str| {
            let path = library(dir.path(), name, source);
            Interpreter::of_file(&path)
        };
        let newer = "const unsigned long Py_Version = 0x030c01f0; char _PyRuntime[166688];";
        assert_eq!(of("newer.so", newer), Some(Interpreter::Unknown));
        let older = "char _PyRuntime[166688];";
        assert_eq!(of("older.so", older), Some(Interpreter::Unknown));
        let small = "char _PyRuntime[8]; const unsigned long Py_Version = 0x030b02f0;";
        assert_eq!(of("small.so", small), None);
        assert_eq!(Interpreter::of_file(&dir.path().join("small.so.c")), None);
        assert_eq!(Interpreter::of_file(&dir.path().join("absent")), None);
    }
}
