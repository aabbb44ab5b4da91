//! Files made to hurt: what they cost stays in proportion to their size, and what they say wrong
//! stays where they say it. Fuzzing (`fuzz/`) looks for what is not thought of here.

use std::time::{Duration, Instant};

use hangdog_unwind::{Error, Kind, Rule, Table};

/// Where `.eh_frame` begins: after the ELF header, two program headers, `.eh_frame_hdr`.
const FRAME: usize = 64 + 2 * 56 + 8;
/// What each may take; they take less than a second, and without limits more than a minute.
const LONG: Duration = Duration::from_secs(20);

/// A file of one executable segment, loaded at 0, with this `.eh_frame`. It says that the segment is
/// longer than the file.
fn file(eh_frame: &[u8]) -> Vec<u8> {
    let size = 1u64 << 40;
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    for word in [0, 64, 0u64] {
        bytes.extend(word.to_le_bytes()); // entry, program headers, section headers
    }
    bytes.extend([0, 0, 0, 0, 64, 0, 56, 0, 2, 0, 64, 0, 0, 0, 0, 0]);
    let hdr = FRAME as u64 - 8;
    for (kind, flags, at, size) in [(1u32, 7u32, 0, size), (0x6474_e550, 4, hdr, 8)] {
        bytes.extend(kind.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        for word in [at, at, at, size, size, 1] {
            bytes.extend(word.to_le_bytes());
        }
    }
    // Version 1, a pointer relative to itself in four bytes, neither count nor table.
    bytes.extend([1, 0x1b, 0xff, 0xff, 4, 0, 0, 0]);
    bytes.extend(eh_frame);
    bytes
}

/// An entry: its length, what its CIE is, the rest.
fn entry(to: &mut Vec<u8>, cie: u32, rest: &[u8]) {
    to.extend((rest.len() as u32 + 4).to_le_bytes());
    to.extend(cie.to_le_bytes());
    to.extend(rest);
}

/// A CIE at the start: CFA = rsp + 8, rip at CFA - 8, then `more`.
fn cie(more: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    let start = [1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1];
    entry(&mut section, 0, &[&start, more].concat());
    section
}

/// An FDE of that CIE.
fn fde(to: &mut Vec<u8>, start: u64, length: u64, program: &[u8]) {
    let rest = [&start.to_le_bytes(), &length.to_le_bytes(), program].concat();
    entry(to, to.len() as u32 + 4, &rest);
}

fn built(section: &[u8]) -> Result<Table, Error> {
    let begin = Instant::now();
    let table = Table::from_elf(&file(section));
    assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
    if let Ok(table) = &table {
        assert!(2 * table.rows().len() <= section.len());
    }
    table
}

/// A function said to have 2^63 bytes, and one that wraps around, end where the file does.
#[test]
fn functions_without_end() {
    for length in [1 << 63, u64::MAX] {
        let mut section = cie(&[]);
        fde(&mut section, 16, length, &[]);
        let size = (FRAME + section.len()) as u64;
        let table = built(&section).expect("a table");
        assert_eq!(table.rule(15), Rule::NONE);
        assert_eq!(table.rule(16).kind(), Kind::Sp);
        assert_eq!(table.rule(size - 1).kind(), Kind::Sp);
        assert_eq!(table.rule(size), Rule::NONE);
    }
}

/// Rows that run backwards, or beyond the function, do not reach other functions.
#[test]
fn rows_elsewhere() {
    let back = [
        &[0x42, 0x0e, 24, 0x01],
        &8u64.to_le_bytes()[..],
        &[0x0e, 32],
    ]
    .concat();
    let beyond = [0x42, 0x0e, 24, 0x7f, 0x0e, 32];
    for (program, damaged) in [(&back[..], 1), (&beyond[..], 0)] {
        let mut section = cie(&[]);
        fde(&mut section, 8, 8, &[]);
        fde(&mut section, 16, 8, program);
        fde(&mut section, 24, 8, &[0x0e, 16]);
        let table = built(&section).expect("a table");
        assert_eq!(table.skipped(), damaged);
        assert_eq!(Some(table.rule(8)), Rule::new(Kind::Sp, 1, 0));
        assert_eq!(Some(table.rule(24)), Rule::new(Kind::Sp, 2, 0));
        assert_eq!(table.rule(32), Rule::NONE);
    }
}

/// A CIE whose program is long and shared by very many functions.
#[test]
fn a_long_program_for_many_functions() {
    let offsets: Vec<u8> = (0..116).flat_map(|i| [0x80 + i % 31, 1]).collect();
    for more in [offsets.clone(), offsets.repeat(100)] {
        let mut section = cie(&more);
        let from = section.len();
        while section.len() < 8 << 20 {
            let start = (section.len() - from) as u64 / 2;
            fde(&mut section, start, 4, &[]);
        }
        let _ = built(&section);
    }
}

/// A program that does nothing but remember and restore a state with many registers.
#[test]
fn a_long_memory() {
    let registers: Vec<u8> = (0..31).flat_map(|i| [0x80 | i, 1]).collect();
    let mut section = cie(&registers);
    let program = [0x0a, 0x0b].repeat(4 << 20);
    fde(&mut section, 0, 1 << 20, &program);
    assert_eq!(built(&section).expect("a table").skipped(), 0);
}

/// A state that is remembered without end.
#[test]
fn no_end_of_memory() {
    let mut section = cie(&[]);
    fde(&mut section, 0, 1 << 20, &[0x0a].repeat(8 << 20));
    assert!(matches!(built(&section), Err(Error::NoInformation)));
}

/// As many rows as bytes can hold.
#[test]
fn very_many_rows() {
    let mut section = cie(&[]);
    fde(
        &mut section,
        0,
        u64::MAX,
        &[0x41, 0x0e, 16, 0x41, 0x0e, 24].repeat(1 << 20),
    );
    let table = built(&section).expect("a table");
    // One before the first advance, one after each, one at the end of the file.
    assert_eq!(table.rows().len(), 1 + (2 << 20) + 1);
}

/// A section too large to be true is refused before it is read.
#[test]
fn a_section_too_large() {
    let table = Table::from_elf(&file(&vec![0; 65 << 20]));
    assert!(matches!(table, Err(Error::TooLarge { .. })), "{table:?}");
}
