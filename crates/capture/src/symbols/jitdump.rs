//! Jitdump: the binary file in which a just-in-time compiler says what it put where
//! (tools/perf/Documentation/jitdump-specification.txt of the kernel).
//!
//! A header, then records of a stated length each: code was loaded, or moved; others are passed
//! over. Records are read up to the first that does not fit: the compiler may be writing the rest.
//! Only files of this machine's byte order are read.

use super::spans::Spans;

/// "JiTD", as a number.
const MAGIC: u32 = 0x4a69_5444;
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const CODE_CLOSE: u32 = 3;
/// What every record begins with: kind, length, time.
const RECORD_HEADER: usize = 16;

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

/// The process that wrote the file, as it calls itself, and the code that it names; `None` if this
/// is no jitdump.
pub(super) fn parse(file: &[u8]) -> Option<(u32, Spans<String>)> {
    let mut reader = Reader(file);
    if reader.u32()? != MAGIC {
        return None;
    }
    let _version = reader.u32()?;
    let header = reader.u32()? as usize;
    let _machine = reader.u32()?;
    let _padding = reader.u32()?;
    let pid = reader.u32()?;
    let mut records = Reader(file.get(header..)?);
    let mut code = Spans::default();
    while apply_next(&mut records, &mut code).is_some() {}
    Some((pid, code))
}

/// Lets the next record happen; `None` behind the last one.
fn apply_next(records: &mut Reader<'_>, code: &mut Spans<String>) -> Option<()> {
    let kind = records.u32()?;
    let length = records.u32()? as usize;
    let _time = records.u64()?;
    let mut record = Reader(records.bytes(length.checked_sub(RECORD_HEADER)?)?);
    match kind {
        CODE_LOAD => load(&mut record, code),
        CODE_MOVE => relocate(&mut record, code),
        CODE_CLOSE => return None,
        _ => Some(()),
    };
    Some(())
}

fn load(record: &mut Reader<'_>, code: &mut Spans<String>) -> Option<()> {
    let _pid_and_tid = record.u64()?;
    let _process_address = record.u64()?;
    let start = record.u64()?;
    let size = record.u64()?;
    let _number = record.u64()?;
    let name = String::from_utf8_lossy(record.text()?).trim().to_owned();
    if !name.is_empty() {
        code.insert(start, size, name);
    }
    Some(())
}

fn relocate(record: &mut Reader<'_>, code: &mut Spans<String>) -> Option<()> {
    let _pid_and_tid = record.u64()?;
    let _process_address = record.u64()?;
    let from = record.u64()?;
    let to = record.u64()?;
    let size = record.u64()?;
    let name = code.remove(from)?;
    code.insert(to, size, name);
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

    /// Code is found where it was loaded, or moved to, by name; what follows the end is not read.
    #[test]
    fn records_are_read() {
        let (pid, code) = parse(&file()).unwrap();
        assert_eq!(pid, 77);
        let at = |address| {
            code.find(address)
                .map(|(start, name)| (start, name.as_str()))
        };
        assert_eq!(at(0x100f), Some((0x1000, "f")));
        assert_eq!(at(0x2000), None);
        assert_eq!(at(0x3004), Some((0x3000, "g")));
        assert_eq!(at(0x4000), None);
    }

    /// What was not written by a compiler of this machine is no jitdump.
    #[test]
    fn other_files_are_refused() {
        assert!(parse(b"").is_none());
        assert!(parse(b"\x7fELF").is_none());
        let mut foreign = file();
        foreign[..4].reverse();
        assert!(parse(&foreign).is_none());
    }

    proptest! {
        /// A file cut anywhere, with any byte changed, is read without harm, and a cut that
        /// leaves the first record leaves its name.
        #[test]
        fn damage_is_survived(cut in 0..=300usize, at in 0..300usize, byte: u8) {
            let mut damaged = file();
            damaged.truncate(cut);
            if let Some((_, code)) = parse(&damaged) {
                let first = 40 + RECORD_HEADER + 40 + 6;
                prop_assert_eq!(code.find(0x1000).is_some(), cut >= first);
            }
            if let Some(place) = damaged.get_mut(at) {
                *place = byte;
            }
            parse(&damaged);
        }

        /// Any bytes at all behind the magic number are read without harm.
        #[test]
        fn noise_is_survived(noise: Vec<u8>) {
            let mut file = MAGIC.to_ne_bytes().to_vec();
            file.extend(noise);
            parse(&file);
        }
    }
}
