//! Jitdump: the binary file in which a just-in-time compiler says what it put where
//! (tools/perf/Documentation/jitdump-specification.txt of the kernel).
//!
//! A header, then records of a stated length each: code was loaded, or moved; others are passed
//! over. Records are read up to the first that does not fit: the compiler may be writing the rest.
//! Only files of this machine's byte order are read.

use std::io::{self, BufReader, Read};

use crate::spans::Sought;

/// "JiTD", as a number.
const MAGIC: u32 = 0x4a69_5444;
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const CODE_CLOSE: u32 = 3;
/// What every record begins with: kind, length, time.
const RECORD_HEADER: usize = 16;
/// What the file begins with, as far as it is read.
const FILE_HEADER: usize = 24;
/// So much of a record is looked at: what it tells of code, and the name.
const LONGEST_BEGIN: u64 = 64 << 10;

/// Takes a file apart, front to back.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        self.bytes(end)
    }
}

/// Reads the code that the file names, if process `pid`, as it calls itself, wrote it; `None` if this
/// is no such file.
pub(crate) fn parse(file: impl Read, pid: u32, code: &mut Sought<'_>) -> Option<()> {
    let mut file = BufReader::new(file);
    let mut header = [0; FILE_HEADER];
    file.read_exact(&mut header).ok()?;
    let mut reader = Reader(&header);
    if reader.u32()? != MAGIC {
        return None;
    }
    let _version = reader.u32()?;
    let length = u64::from(reader.u32()?);
    let _machine = reader.u32()?;
    let _padding = reader.u32()?;
    (reader.u32()? == pid).then_some(())?;
    skip(&mut file, length.checked_sub(FILE_HEADER as u64)?)?;
    let mut begin = Vec::new();
    while !code.cut && apply_next(&mut file, &mut begin, code).is_some() {}
    Some(())
}

fn skip(file: &mut impl Read, bytes: u64) -> Option<()> {
    let skipped = io::copy(&mut file.take(bytes), &mut io::sink()).ok()?;
    (skipped == bytes).then_some(())
}

/// Lets the next record happen; `None` behind the last one. `begin` is room for the beginning of one.
fn apply_next(file: &mut impl Read, begin: &mut Vec<u8>, code: &mut Sought<'_>) -> Option<()> {
    let mut header = [0; RECORD_HEADER];
    file.read_exact(&mut header).ok()?;
    let mut reader = Reader(&header);
    let kind = reader.u32()?;
    let length = u64::from(reader.u32()?).checked_sub(RECORD_HEADER as u64)?;
    begin.clear();
    let wanted = length.min(LONGEST_BEGIN);
    let read = file.take(wanted).read_to_end(begin).ok()? as u64;
    (read == wanted).then_some(())?;
    let mut record = Reader(begin);
    match kind {
        CODE_LOAD => load(&mut record, code),
        CODE_MOVE => relocate(&mut record, code),
        CODE_CLOSE => return None,
        _ => Some(()),
    };
    // The code itself stands behind its name.
    skip(file, length - wanted)
}

fn load(record: &mut Reader<'_>, code: &mut Sought<'_>) -> Option<()> {
    let _pid_and_tid = record.u64()?;
    let _process_address = record.u64()?;
    let start = record.u64()?;
    let size = record.u64()?;
    let _number = record.u64()?;
    let name = String::from_utf8_lossy(record.text()?);
    let name = name.trim();
    if !name.is_empty() {
        code.keep(start, size, name);
    }
    Some(())
}

fn relocate(record: &mut Reader<'_>, code: &mut Sought<'_>) -> Option<()> {
    let _pid_and_tid = record.u64()?;
    let _process_address = record.u64()?;
    let from = record.u64()?;
    let to = record.u64()?;
    let size = record.u64()?;
    code.relocate(from, to, size);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, numbers: &[u64], name: &str) -> Vec<u8> {
        let mut body: Vec<u8> = [0]
            .iter()
            .chain(numbers)
            .flat_map(|n| n.to_ne_bytes())
            .collect();
        body.extend(name.as_bytes());
        let length = (RECORD_HEADER + body.len()) as u32;
        let mut record = [kind.to_ne_bytes(), length.to_ne_bytes()].concat();
        record.extend([0; 8]);
        record.extend(body);
        record
    }

    /// A file of process 77: f at 0x1000, g at 0x2000 which moves to 0x3000, a kind that nobody
    /// knows, and h behind the end.
    fn file() -> Vec<u8> {
        let mut file: Vec<u8> = [MAGIC, 1, 40, 62, 0, 77]
            .iter()
            .flat_map(|n| n.to_ne_bytes())
            .collect();
        file.extend([0; 16]);
        file.extend(record(CODE_LOAD, &[0x1000, 0x1000, 0x10, 1], "f\0code"));
        file.extend(record(CODE_LOAD, &[0x2000, 0x2000, 0x10, 2], "g\0code"));
        file.extend(record(99, &[], "?"));
        file.extend(record(CODE_MOVE, &[0x3000, 0x2000, 0x3000, 0x10, 2], ""));
        file.extend(record(CODE_CLOSE, &[], ""));
        file.extend(record(CODE_LOAD, &[0x4000, 0x4000, 0x10, 3], "h\0code"));
        file
    }

    fn read<'a>(file: &[u8], sought: &'a [u64]) -> Option<Sought<'a>> {
        let mut code = Sought::new(sought, 1 << 20);
        parse(file, 77, &mut code).map(|()| code)
    }

    /// Code is found where it was loaded, or moved to, by name; what follows the end is not read.
    #[test]
    fn records_are_read() {
        let code = read(&file(), &[]).unwrap();
        assert_eq!(code.find(0x100f), Some((0x1000, "f")));
        assert_eq!(code.find(0x2000), None);
        assert_eq!(code.find(0x3004), Some((0x3000, "g")));
        assert_eq!(code.find(0x4000), None);
    }

    /// What was not written by a compiler of this machine, or by another process, says nothing.
    #[test]
    fn other_files_are_refused() {
        assert!(read(b"", &[]).is_none());
        assert!(read(b"\x7fELF", &[]).is_none());
        let mut foreign = file();
        foreign[..4].reverse();
        assert!(read(&foreign, &[]).is_none());
        let mut code = Sought::new(&[], 1 << 20);
        assert!(parse(&file()[..], 78, &mut code).is_none());
    }

    proptest! {
        /// A file cut anywhere, with any byte changed, is read without harm, and a cut that
        /// leaves the first record leaves its name.
        #[test]
        fn damage_is_survived(cut in 0..=300usize, at in 0..300usize, byte: u8) {
            let mut damaged = file();
            damaged.truncate(cut);
            if let Some(code) = read(&damaged, &[]) {
                let first = 40 + RECORD_HEADER + 40 + 6;
                prop_assert_eq!(code.find(0x1000).is_some(), cut >= first);
            }
            if let Some(place) = damaged.get_mut(at) {
                *place = byte;
            }
            read(&damaged, &[]);
        }

        /// Any bytes at all behind the magic number are read without harm.
        #[test]
        fn noise_is_survived(noise: Vec<u8>) {
            let mut file = MAGIC.to_ne_bytes().to_vec();
            file.extend(noise);
            read(&file, &[]);
        }
    }
}
