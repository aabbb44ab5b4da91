//! Whether an ELF file is an interpreter whose functions can be told: a Python, and of which version,
//! Java's virtual machine, V8, or one of Ruby, PHP or Perl; or a Go program, whose goroutines can be told.
//!
//! Every CPython that can load extension modules exports its state, `_PyRuntime`, and since 3.11
//! also its version, `Py_Version`: the file's name does not matter. HotSpot exports the variables with
//! which it describes itself ([`hotspot`](crate::hotspot)), V8 numbers ([`v8`](crate::v8)).

use std::fs::File;
use std::ops::RangeInclusive;

use object::Endianness;
use object::elf::{PF_X, PT_LOAD, STT_OBJECT};
use object::read::elf::{ElfFile64, ProgramHeader, Sym};
use object::read::{ReadCache, ReadRef};
use serde::{Deserialize, Serialize};

use crate::go::Goroutines;
use crate::hotspot::Variables;
use crate::script::Script;
use crate::v8;

const STATE: &[u8] = b"_PyRuntime";
const VERSION: &[u8] = b"Py_Version";
/// `bpf/python.h` has their layouts: 3.11 to 3.13.
const VERSIONS: RangeInclusive<u64> = 11..=13;
/// Where 3.13's state says whether it was built without the interpreter's lock.
const FREE_THREADED: u64 = 16;
/// The state is 160 KB: names need not be looked at in a library of small things.
const LEAST_STATE: u64 = 4096;

/// An interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interpreter {
    /// A Python; `bpf/python.h` knows how it keeps its frames.
    Known(Known),
    /// A Python, Ruby, PHP or Perl that keeps its frames in another way.
    Unknown,
    /// Java's virtual machine.
    Java(Variables),
    /// V8, which runs JavaScript.
    V8(v8::Layout),
    /// An interpreter of Ruby, PHP or Perl.
    Script(Script),
    /// A Go program, which runs goroutines.
    Go(Goroutines),
}

/// A Python whose frames can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// How far its state lies from where offset 0 of the file would be mapped with the code; wraps
    /// around.
    pub state: u64,
    /// 11 for 3.11.
    pub version: u64,
}

impl Interpreter {
    /// Whether it can be what it says: it may come from a process that is not trusted.
    pub(crate) fn is_plausible(&self) -> bool {
        match self {
            Interpreter::Known(known) => VERSIONS.contains(&known.version),
            Interpreter::Unknown
            | Interpreter::Java(_)
            | Interpreter::V8(_)
            | Interpreter::Script(_)
            | Interpreter::Go(_) => true,
        }
    }

    /// Of Python, Java and JavaScript; `None` if the file is no interpreter, or cannot be read.
    pub(crate) fn of(file: &File) -> Option<Interpreter> {
        let cache = ReadCache::new(file);
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
        let headers = file.elf_program_headers();
        let loaded = || headers.iter().filter(|h| h.p_type(endian) == PT_LOAD);
        // How far from offset 0 of the file, had it been mapped with the code.
        let code = loaded().find(|header| header.p_flags(endian).0 & PF_X.0 != 0)?;
        let mapped = code.p_vaddr(endian).wrapping_sub(code.p_offset(endian));
        let from_code = |address: u64| address.wrapping_sub(mapped);
        let variable = |name: &str| Some(from_code(find(name.as_bytes(), 0)?.st_value(endian)));
        if let Some(variables) = Variables::find(variable) {
            return Some(Interpreter::Java(variables));
        }
        // What is zero need not lie in the file.
        let number = |name: &str| {
            let address = find(name.as_bytes(), 4)?.st_value(endian);
            let (header, within) = loaded().find_map(|header| {
                let within = address.checked_sub(header.p_vaddr(endian))?;
                (within < header.p_memsz(endian)).then_some((header, within))
            })?;
            if within >= header.p_filesz(endian) {
                return Some(0);
            }
            let offset = header.p_offset(endian).checked_add(within)?;
            let bytes = (&cache).read_bytes_at(offset, 4).ok()?;
            Some(i32::from_le_bytes(bytes.try_into().ok()?))
        };
        if let Some(layout) = v8::Layout::find(number) {
            return Some(Interpreter::V8(layout));
        }
        let state = find(STATE, LEAST_STATE)?.st_value(endian);
        let word = |address: u64| {
            let offset = loaded().find_map(|header| {
                let within = address.checked_sub(header.p_vaddr(endian))?;
                let offset = header.p_offset(endian).checked_add(within);
                offset.filter(|_| within < header.p_filesz(endian))
            })?;
            let bytes = (&cache).read_bytes_at(offset, 8).ok()?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let version = find(VERSION, 0).and_then(|symbol| word(symbol.st_value(endian)));
        let version = version.unwrap_or(0);
        // 0x030b02f0 is 3.11.2.
        let minor = version >> 16 & 0xff;
        // Without its lock all objects are larger; since 3.13 the state says so.
        let free_threaded = || word(state.wrapping_add(FREE_THREADED)) != Some(0);
        if version >> 24 != 3 || !VERSIONS.contains(&minor) || minor >= 13 && free_threaded() {
            return Some(Interpreter::Unknown);
        }
        Some(Interpreter::Known(Known {
            state: from_code(state),
            version: minor,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};
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

    fn of_file(path: &Path) -> Option<Interpreter> {
        Interpreter::of(&File::open(path).ok()?)
    }

    /// The state of a 3.11 is found where the loader puts it.
    #[test]
    fn the_state_is_where_the_loader_puts_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = "const unsigned long Py_Version = 0x030b02f0;
            char _PyRuntime[166688]; int f(void) { return _PyRuntime[1]; }";
        let path = library(dir.path(), "libsnake.so", source);
        let Some(Interpreter::Known(known)) = of_file(&path) else {
            panic!("not known");
        };
        assert_eq!(known.version, 11);
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the library was made above and has nothing that runs when it is loaded.
        let address = unsafe {
            let library = libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null());
            libc::dlsym(library, c"_PyRuntime".as_ptr()) as u64
        };
        let mappings = maps::executable(std::process::id());
        let code = mappings
            .iter()
            .find(|mapping| Path::new(&mapping.path) == path)
            .expect("its code");
        let start = code.start - code.file_offset;
        assert_eq!(start.wrapping_add(known.state), address);
    }

    /// Another version, or one that does not say which it is, is an interpreter that is not known;
    /// a library without the state is none, nor is what is no ELF file.
    #[test]
    fn others_are_told_apart() {
        let dir = tempfile::tempdir().expect("a directory");
        let of = |name: &str, source: &str| {
            let path = library(dir.path(), name, source);
            of_file(&path)
        };
        let version = |hex: &str, state: &str| {
            format!("const unsigned long Py_Version = {hex}; long _PyRuntime[20000]{state};")
        };
        let newest = version("0x030e00f0", " = {7}");
        assert_eq!(of("newest.so", &newest), Some(Interpreter::Unknown));
        let without_lock = version("0x030d00f0", " = {7, 7, 1}");
        assert_eq!(of("without.so", &without_lock), Some(Interpreter::Unknown));
        let with_lock = version("0x030d00f0", " = {7, 7, 0}");
        let known = of("with.so", &with_lock);
        assert!(
            matches!(known, Some(Interpreter::Known(Known { version: 13, .. }))),
            "{known:?}"
        );
        let older = "char _PyRuntime[166688];";
        assert_eq!(of("older.so", older), Some(Interpreter::Unknown));
        let small = "char _PyRuntime[8]; const unsigned long Py_Version = 0x030b02f0;";
        assert_eq!(of("small.so", small), None);
        assert_eq!(of_file(&dir.path().join("small.so.c")), None);
        assert_eq!(of_file(&dir.path().join("absent")), None);
    }
}
