//! What the tests share: programs built on the spot, and what they are made of.
#![allow(dead_code)] // Each test uses some of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use tempfile::TempDir;

/// What a compiler made of a source text.
pub struct Built {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    _directory: TempDir,
}

/// Compiles `source`, whose language the end of `name` tells, and links it with `arguments`.
pub fn build(name: &str, source: &str, arguments: &[&str]) -> Built {
    let directory = TempDir::new().expect("a temporary directory");
    let input = directory.path().join(name);
    let path = directory.path().join("built");
    fs::write(&input, source).expect("the source is written");
    let compiler = if name.ends_with(".cc") { "g++" } else { "gcc" };
    let output = Command::new(compiler)
        .arg(&input)
        .args(arguments)
        .arg("-o")
        .arg(&path)
        .output()
        .expect("the compiler runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {name}: {said}");
    Built {
        bytes: fs::read(&path).expect("the compiler wrote it"),
        path,
        _directory: directory,
    }
}

impl Built {
    /// The offset in the file of a symbol.
    pub fn offset(&self, symbol: &str) -> u64 {
        let elf: ElfFile64 = ElfFile64::parse(&*self.bytes).expect("an ELF file");
        let address = elf
            .symbol_by_name(symbol)
            .unwrap_or_else(|| panic!("there is a symbol {symbol}"))
            .address();
        file_offset(&self.bytes, address)
    }

    /// The offset in the file of a section.
    pub fn section(&self, name: &str) -> u64 {
        let elf: ElfFile64 = ElfFile64::parse(&*self.bytes).expect("an ELF file");
        let section = elf.section_by_name(name).expect("there is such a section");
        section.file_range().expect("it is in the file").0
    }
}

/// Where in an ELF file the byte is that is loaded at `address`.
pub fn file_offset(bytes: &[u8], address: u64) -> u64 {
    let elf: ElfFile64 = ElfFile64::parse(bytes).expect("an ELF file");
    let segment = elf
        .segments()
        .find(|segment| (segment.address()..segment.address() + segment.size()).contains(&address))
        .expect("a segment has the address");
    address - segment.address() + segment.file_range().0
}

/// A mapping of a process.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub executable: bool,
    pub path: String,
}

/// The mappings of a process: `/proc/WHO/maps`.
pub fn mappings(who: &str) -> Vec<Mapping> {
    let text = fs::read_to_string(Path::new("/proc").join(who).join("maps")).expect("maps");
    let mapping = |line: &str| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let executable = fields.next()?.contains('x');
        let offset = fields.next()?;
        Some(Mapping {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            offset: u64::from_str_radix(offset, 16).ok()?,
            executable,
            path: fields.nth(2).unwrap_or("").to_string(),
        })
    };
    text.lines().filter_map(mapping).collect()
}
