//! The memory in which one program marks, as docs/MARKS.md describes it.
//!
//! It is read by pread and never mapped: a file that shrinks or has holes is an error or zeros there,
//! and no signal or memory of ours. Which file it is is looked at before it is opened for writing: it
//! must be a memfd that cannot change its size, so that nobody has us write into a file of theirs.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

use hangdog_symbols::maps::Mapping;
use rustix::fs::{CWD, FileType, Mode, OFlags, SealFlags, fcntl_get_seals, fstat, fstatfs, openat};

const MAGIC: u64 = 0x736b_7261_6d67_6468;
const VERSION: u32 = 1;
/// Where things are, bytes.
const RECORDED_UNTIL: u64 = 64;
const UNPLACED: u64 = 128;
const RINGS: u64 = 4096;
/// How long things are, bytes.
const HEADER: usize = 136;
const RING: u64 = 64;
const NAME: u64 = 64;
const LONGEST_NAME: usize = 60;
const RECORD: u64 = 64;
/// The most of each.
const MOST_RINGS: u32 = 1024;
const MOST_RECORDS: u32 = 1 << 20;
const MOST_NAMES: u32 = 4096;
/// Records are read in pieces of this many.
const PIECE: u64 = 4096;
/// So many more can no ring have begun between two rounds: it is damaged.
const IMPOSSIBLE: u64 = 1 << 40;
/// Signal handlers that mark in the middle of a mark in the middle of a mark, and so on.
const NESTED: u64 = 64;
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// A record that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    /// By the area's clock.
    pub time: u64,
    /// As the program knows it.
    pub tid: u32,
    /// A code, or 16384 and a name's place.
    pub code: u32,
    pub kind: u8,
    pub pairing: u8,
    pub colour: u8,
    pub args: [i64; 4],
}

/// What a round of reading came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Round {
    /// Overwritten before they were read, torn, or with no ring.
    pub lost: u64,
    /// Which share of its ring the busiest thread had filled.
    pub filled: f64,
    /// More is there than could be taken.
    pub has_more: bool,
    /// What is there cannot be: nothing of it is to be believed any more.
    pub is_damaged: bool,
}

/// What a copy of what the rings hold came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Torn, with no ring, or more than could be taken.
    pub lost: u64,
    /// Begun since, and overwritten.
    pub overwritten: u64,
}

/// An open area.
pub(crate) struct Area {
    file: File,
    identity: (u64, u64),
    pid: u32,
    counts_ticks: bool,
    rings: u64,
    records: u64,
    names: u32,
    first_record: u64,
    /// The next record to read of each ring.
    next: Vec<u64>,
    unplaced: u64,
}

/// How far a ring is.
#[derive(Clone, Copy)]
struct Ring {
    begun: u64,
    done: u64,
}

fn not_an_area() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |word| u64::from_ne_bytes(*word))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |half| u32::from_ne_bytes(*half))
}

impl Area {
    /// Opens what process `pid` has mapped there.
    ///
    /// # Errors
    /// If it may not be opened, or is no area.
    pub(crate) fn open(pid: u32, mapping: &Mapping) -> io::Result<Area> {
        let (start, end) = (mapping.start, mapping.end);
        let path = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let seen = openat(CWD, path, flags, Mode::empty())?;
        let stat = fstat(&seen)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let is_in_memory = fstatfs(&seen)?.f_type as u64 == TMPFS_MAGIC;
        if !is_file || !is_in_memory || stat.st_nlink != 0 {
            return Err(not_an_area());
        }
        let again = format!("/proc/self/fd/{}", seen.as_fd().as_raw_fd());
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = openat(CWD, again, flags, Mode::empty())?;
        Area::of(File::from(file))
    }

    /// Of a file in memory that is open for reading and writing.
    pub(crate) fn of(file: File) -> io::Result<Area> {
        let wanted = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW;
        if !fcntl_get_seals(&file)?.contains(wanted) {
            return Err(not_an_area());
        }
        let stat = fstat(&file)?;
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0)?;
        let (rings, records, names) = (half(&header, 16), half(&header, 20), half(&header, 24));
        let fits = word(&header, 0) == MAGIC
            && half(&header, 8) == VERSION
            && (1..=MOST_RINGS).contains(&rings)
            && (1..=MOST_RECORDS).contains(&records)
            && records.is_power_of_two()
            && (1..=MOST_NAMES).contains(&names);
        let clock = half(&header, 28);
        let is_clock_known = clock == 0 || clock == 1 && cfg!(target_arch = "x86_64");
        if !fits || !is_clock_known {
            return Err(not_an_area());
        }
        let first_record = RINGS + u64::from(rings) * RING + u64::from(names) * NAME;
        let length = first_record + u64::from(rings) * u64::from(records) * RECORD;
        if stat.st_size as u64 != length {
            return Err(not_an_area());
        }
        Ok(Area {
            file,
            identity: (stat.st_dev, stat.st_ino),
            pid: half(&header, 12),
            counts_ticks: clock == 1,
            rings: rings.into(),
            records: records.into(),
            names,
            first_record,
            next: vec![0; rings as usize],
            unplaced: 0,
        })
    }

    /// What tells it from others.
    pub(crate) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// What the program takes for its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether times are of the CPU's counter, and not of CLOCK_MONOTONIC.
    pub(crate) fn counts_ticks(&self) -> bool {
        self.counts_ticks
    }

    /// Passes over all that is there.
    pub(crate) fn skip(&mut self) {
        if let Ok(rings) = self.rings() {
            self.next = rings.iter().map(|ring| ring.done).collect();
        }
        self.unplaced = self.refused();
    }

    /// Tells the program that it is recorded until then, by its clock.
    pub(crate) fn record_until(&mut self, until: u64) {
        let mut now = [0; 8];
        let is_later = self.file.read_exact_at(&mut now, RECORDED_UNTIL).is_ok()
            && u64::from_ne_bytes(now) < until;
        if is_later {
            // Where that fails the program is not recorded any longer, and there is nothing to read.
            let _ = self.file.write_at(&until.to_ne_bytes(), RECORDED_UNTIL);
        }
    }

    /// How many marks found no ring, since it was made.
    fn refused(&self) -> u64 {
        let mut count = [0; 8];
        match self.file.read_exact_at(&mut count, UNPLACED) {
            Ok(()) => u64::from_ne_bytes(count),
            Err(_) => 0,
        }
    }

    fn rings(&self) -> io::Result<Vec<Ring>> {
        let mut bytes = vec![0; (self.rings * RING) as usize];
        self.file.read_exact_at(&mut bytes, RINGS)?;
        let rings = bytes.chunks_exact(RING as usize).map(|ring| Ring {
            begun: word(ring, 0),
            done: word(ring, 8),
        });
        Ok(rings.collect())
    }

    /// How many records each ring has begun.
    pub(crate) fn begun(&self) -> Vec<u64> {
        let rings = self.rings().unwrap_or_default();
        rings.iter().map(|ring| ring.begun).collect()
    }

    /// A name; none if it is not there.
    pub(crate) fn name(&self, at: u32) -> Option<String> {
        let mut bytes = [0; NAME as usize];
        if at >= self.names {
            return None;
        }
        let place = RINGS + self.rings * RING + u64::from(at) * NAME;
        self.file.read_exact_at(&mut bytes, place).ok()?;
        let length = half(&bytes, 0) as usize;
        (1..=LONGEST_NAME).contains(&length).then_some(())?;
        Some(String::from_utf8_lossy(&bytes[4..4 + length]).into_owned())
    }

    /// Marks that found no ring since the last time.
    fn newly_refused(&mut self) -> u64 {
        let refused = self.refused();
        refused.saturating_sub(std::mem::replace(&mut self.unplaced, refused))
    }

    /// Appends what has come since the last time, ring by ring; at most as much as is `allowed`, of
    /// which that is subtracted.
    pub(crate) fn read(&mut self, allowed: &mut u64, into: &mut Vec<Raw>) -> Round {
        let refused = self.newly_refused();
        let mut round = self.read_rings(allowed, into);
        round.is_damaged |= refused > IMPOSSIBLE;
        round.lost = match round.is_damaged {
            true => 0,
            false => round.lost.saturating_add(refused),
        };
        round
    }

    /// The same without the marks that found no ring, which stay to be counted.
    pub(crate) fn read_rings(&mut self, allowed: &mut u64, into: &mut Vec<Raw>) -> Round {
        let mut round = Round::default();
        let Ok(rings) = self.rings() else {
            round.is_damaged = true;
            return round;
        };
        for (at, ring) in rings.into_iter().enumerate() {
            let next = self.next[at];
            if ring.done == next && ring.begun.wrapping_sub(next) <= NESTED {
                continue;
            }
            let is_possible = next <= ring.done
                && ring.done <= ring.begun
                && ring.begun - ring.done <= NESTED
                && ring.begun - next <= IMPOSSIBLE;
            if !is_possible {
                round.is_damaged = true;
                break;
            }
            round.filled = round
                .filled
                .max((ring.done - next) as f64 / self.records as f64);
            let (end, lost) = self.records_of(at, next, ring, allowed, into);
            round.lost = round.lost.saturating_add(lost);
            round.has_more |= end < ring.done;
            self.next[at] = end;
        }
        if round.is_damaged {
            round.lost = 0;
        }
        round
    }

    /// Appends what the rings hold, ring by ring; at most as much as is `allowed`, of which that is
    /// subtracted. Of what each has begun since it was at `since`, it is counted how much they hold no
    /// more.
    pub(crate) fn copy(&mut self, since: &[u64], allowed: &mut u64, into: &mut Vec<Raw>) -> Held {
        let mut held = Held {
            lost: self.newly_refused(),
            ..Held::default()
        };
        let Ok(rings) = self.rings() else {
            return held;
        };
        for (at, ring) in rings.into_iter().enumerate() {
            if ring.begun < ring.done || ring.begun - ring.done > NESTED {
                continue;
            }
            let oldest = ring.begun.saturating_sub(self.records);
            if let Some(overwritten) = since.get(at).and_then(|since| oldest.checked_sub(*since)) {
                held.overwritten = held.overwritten.saturating_add(overwritten);
            }
            let next = oldest.min(ring.done);
            let (end, lost) = self.records_of(at, next, ring, allowed, into);
            held.lost = held.lost.saturating_add(lost + (ring.done - end));
        }
        held
    }

    /// Appends the records of a ring from `next` on that are done, as many as are allowed. Returns the
    /// next one to read, and how many were overwritten or torn.
    fn records_of(
        &self,
        at: usize,
        next: u64,
        ring: Ring,
        allowed: &mut u64,
        into: &mut Vec<Raw>,
    ) -> (u64, u64) {
        // What was begun has overwritten what is a round older.
        let first = next
            .max(ring.begun.saturating_sub(self.records))
            .min(ring.done);
        let mut lost = first - next;
        let end = ring.done.min(first.saturating_add(*allowed));
        *allowed -= end - first;
        let mut bytes = vec![0; (PIECE * RECORD) as usize];
        let mut from = first;
        while from < end {
            let slot = from % self.records;
            let count = (end - from).min(self.records - slot).min(PIECE);
            let piece = &mut bytes[..(count * RECORD) as usize];
            let place = self.first_record + (at as u64 * self.records + slot) * RECORD;
            if self.file.read_exact_at(piece, place).is_err() {
                return (end, lost + (end - from));
            }
            // Only now it is known what was not overwritten meanwhile.
            let mut begun = [0; 8];
            let ring_at = RINGS + at as u64 * RING;
            let begun = match self.file.read_exact_at(&mut begun, ring_at) {
                Ok(()) => u64::from_ne_bytes(begun),
                Err(_) => u64::MAX,
            };
            let whole_from = begun.saturating_sub(self.records);
            for (at, record) in (0..).zip(piece.chunks_exact(RECORD as usize)) {
                let number: u64 = from + at;
                let is_it = || word(record, 0) == number.wrapping_add(1);
                match parse(record).filter(|_| number >= whole_from && is_it()) {
                    Some(record) => into.push(record),
                    None => lost += 1,
                }
            }
            from += count;
        }
        (end, lost)
    }
}

/// A record, if it has a meaning.
fn parse(record: &[u8]) -> Option<Raw> {
    let (kind, pairing, colour) = (record[24], record[25], record[26]);
    (kind <= 2 && pairing <= 2).then_some(Raw {
        time: word(record, 8),
        tid: half(record, 16),
        code: half(record, 20),
        kind,
        pairing,
        colour,
        args: [0, 1, 2, 3].map(|at| word(record, 32 + 8 * at) as i64),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};

    use super::*;

    const FEW: u32 = 8;

    /// A program's side: two rings of eight records, and room for four names.
    struct Program(File);

    impl Program {
        fn new() -> Program {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let program = Program(File::from(memfd_create("hangdog-marks", flags).unwrap()));
            ftruncate(&program.0, 4096 + 2 * 64 + 4 * 64 + 2 * 8 * 64).unwrap();
            let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW;
            fcntl_add_seals(&program.0, seals).unwrap();
            program.put(0, &MAGIC.to_ne_bytes());
            for (at, value) in [(8, VERSION), (12, 77), (16, 2), (20, FEW), (24, 4)] {
                program.put(at, &value.to_ne_bytes());
            }
            program
        }

        fn put(&self, at: u64, bytes: &[u8]) {
            self.0.write_all_at(bytes, at).unwrap();
        }

        fn area(&self) -> io::Result<Area> {
            Area::of(self.0.try_clone().unwrap())
        }

        /// How far a ring says that it is.
        fn counts(&self, ring: u64, begun: u64, done: u64) {
            self.put(4096 + 64 * ring, &begun.to_ne_bytes());
            self.put(4096 + 64 * ring + 8, &done.to_ne_bytes());
        }

        /// Writes a ring's record number `number`, from 0, with that time.
        fn record(&self, ring: u64, number: u64, time: u64) {
            let mut record = [0; 64];
            record[..8].copy_from_slice(&(number + 1).to_ne_bytes());
            record[8..16].copy_from_slice(&time.to_ne_bytes());
            record[16..20].copy_from_slice(&5u32.to_ne_bytes());
            record[32..40].copy_from_slice(&(-3i64).to_ne_bytes());
            let slot = ring * u64::from(FEW) + number % u64::from(FEW);
            self.put(4096 + 6 * 64 + slot * 64, &record);
        }

        fn mark(&self, ring: u64, number: u64) {
            self.record(ring, number, 100 + number);
            self.counts(ring, number + 1, number + 1);
        }
    }

    fn times(area: &mut Area) -> (Vec<u64>, Round) {
        let mut raw = Vec::new();
        let round = area.read(&mut u64::MAX.clone(), &mut raw);
        (raw.iter().map(|record| record.time).collect(), round)
    }

    /// What two threads mark is read once, in their order, with thread and arguments.
    #[test]
    fn marks_are_read_once() {
        let program = Program::new();
        let mut area = program.area().unwrap();
        assert_eq!((area.pid(), area.counts_ticks()), (77, false));
        for number in 0..3 {
            program.mark(0, number);
        }
        program.mark(1, 0);
        let mut raw = Vec::new();
        let round = area.read(&mut 100, &mut raw);
        assert_eq!(round.filled, 3.0 / 8.0);
        assert_eq!(
            (round.lost, round.is_damaged, round.has_more),
            (0, false, false)
        );
        assert_eq!(
            raw.iter().map(|r| r.time).collect::<Vec<_>>(),
            [100, 101, 102, 100]
        );
        assert_eq!((raw[0].tid, raw[0].args), (5, [-3, 0, 0, 0]));
        assert!(times(&mut area).0.is_empty());
    }

    /// Of 20 marks in a ring of 8 the last 8 are there, and 12 are lost; one that is being written has
    /// taken the place of the oldest.
    #[test]
    fn what_was_overwritten_is_counted() {
        let program = Program::new();
        let mut area = program.area().unwrap();
        for number in 0..20 {
            program.mark(0, number);
        }
        let (read, round) = times(&mut area);
        assert_eq!(read, (112..120).collect::<Vec<_>>());
        assert_eq!(round.lost, 12);

        for number in 20..28 {
            program.mark(0, number);
        }
        program.counts(0, 29, 28);
        let (read, round) = times(&mut area);
        assert_eq!(read, (121..128).collect::<Vec<_>>());
        assert_eq!(round.lost, 1);
    }

    /// Marks that found no ring are counted once, and not by who only reads the rings.
    #[test]
    fn marks_without_a_ring() {
        let program = Program::new();
        let mut area = program.area().unwrap();
        program.mark(0, 0);
        program.put(128, &7u64.to_ne_bytes());
        let mut raw = Vec::new();
        let round = area.read_rings(&mut u64::MAX.clone(), &mut raw);
        assert_eq!((raw.len(), round.lost), (1, 0));
        assert_eq!(area.copy(&[0, 0], &mut 100, &mut raw).lost, 7);
        assert_eq!(times(&mut area).1.lost, 0);
    }

    /// A ring that says that it has been filled to the last number there is leads to nothing worse than
    /// lost marks.
    #[test]
    fn counts_may_be_the_largest() {
        let program = Program::new();
        let mut area = program.area().unwrap();
        program.counts(0, u64::MAX, u64::MAX);
        let mut raw = Vec::new();
        let held = area.copy(&[u64::MAX, 0], &mut 100, &mut raw);
        assert_eq!((held.lost, raw.len()), (u64::from(FEW), 0));
    }

    /// A program that was killed in the middle of a mark leaves all that it had marked before, and that
    /// one is neither read nor waited for.
    #[test]
    fn killed_in_the_middle() {
        let program = Program::new();
        let mut area = program.area().unwrap();
        program.mark(0, 0);
        program.mark(0, 1);
        program.counts(0, 3, 2);
        assert_eq!(times(&mut area).0, [100, 101]);
        let (read, round) = times(&mut area);
        assert_eq!((read, round.lost, round.is_damaged), (vec![], 0, false));
    }

    /// A record whose number is not its own is torn: it is counted, and those around it are read.
    #[test]
    fn torn() {
        let program = Program::new();
        let mut area = program.area().unwrap();
        for number in 0..3 {
            program.mark(0, number);
        }
        program.put(4096 + 6 * 64 + 64, &7u64.to_ne_bytes());
        let (read, round) = times(&mut area);
        assert_eq!((read, round.lost), (vec![100, 102], 1));
    }

    /// No more than is allowed is taken, and the rest is there next time.
    #[test]
    fn as_much_as_allowed() {
        let program = Program::new();
        let mut area = program.area().unwrap();
        for number in 0..5 {
            program.mark(0, number);
        }
        let (mut raw, mut allowed) = (Vec::new(), 2);
        assert!(area.read(&mut allowed, &mut raw).has_more);
        assert_eq!((raw.len(), allowed), (2, 0));
        assert_eq!(times(&mut area).0, [102, 103, 104]);
    }

    /// What was there before is passed over.
    #[test]
    fn old_marks() {
        let program = Program::new();
        program.mark(0, 0);
        let mut area = program.area().unwrap();
        area.skip();
        program.mark(0, 1);
        assert_eq!(times(&mut area).0, [101]);
    }

    /// A copy has all that a ring holds; of 20 that were begun since the ring stood at 3, it holds 8, and
    /// 9 were overwritten since.
    #[test]
    fn copies() {
        let program = Program::new();
        let mut area = program.area().unwrap();
        for number in 0..20 {
            program.mark(0, number);
        }
        for _ in 0..2 {
            let mut raw = Vec::new();
            let held = area.copy(&[3, 0], &mut 100, &mut raw);
            assert_eq!(raw.len(), 8);
            assert_eq!((held.lost, held.overwritten), (0, 9));
        }
        let held = area.copy(&[14, 0], &mut 100, &mut Vec::new());
        assert_eq!(held.overwritten, 0);
    }

    /// Counts that go back, or that no program could reach, have the area dropped.
    #[test]
    fn impossible_counts() {
        for (begun, done) in [
            (0, 1),
            (1, 1),
            (5, 9),
            (u64::MAX, u64::MAX),
            (1 << 50, 1 << 50),
        ] {
            let program = Program::new();
            let mut area = program.area().unwrap();
            program.mark(0, 0);
            program.mark(0, 1);
            assert!(!times(&mut area).1.is_damaged);
            program.counts(0, begun, done);
            assert!(times(&mut area).1.is_damaged, "{begun} {done}");
        }
    }

    /// A program is told once, and no recorder takes back what another promised.
    #[test]
    fn recorded_until() {
        let program = Program::new();
        let mut area = program.area().unwrap();
        let told = || {
            let mut word = [0; 8];
            program.0.read_exact_at(&mut word, 64).unwrap();
            u64::from_ne_bytes(word)
        };
        area.record_until(50);
        area.record_until(40);
        assert_eq!(told(), 50);
        area.record_until(60);
        assert_eq!(told(), 60);
    }

    /// What is no area is not opened: without seals, of another size, with counts that cannot be.
    #[test]
    fn not_areas() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let bare = File::from(memfd_create("hangdog-marks", flags).unwrap());
        ftruncate(&bare, 1 << 20).unwrap();
        assert!(Area::of(bare).is_err());
        assert!(Program::new().area().is_ok());
        for (at, value) in [
            (0, 1u32),
            (8, 2),
            (16, 0),
            (16, 3),
            (20, 7),
            (20, 0),
            (24, u32::MAX),
            (28, 9),
        ] {
            let program = Program::new();
            program.put(at, &value.to_ne_bytes());
            assert!(program.area().is_err(), "{value} at {at}");
        }
        // More rings, records and names than can be counted.
        let program = Program::new();
        program.put(16, &[0xff; 12]);
        assert!(program.area().is_err());
    }

    proptest! {
        /// Whatever a program writes, reading ends, takes no more records than there are places, and
        /// names are texts or none.
        #[test]
        fn hostile(
            counts in proptest::collection::vec(any::<u64>(), 4),
            small in proptest::collection::vec(0u64..40, 4),
            junk in proptest::collection::vec(any::<u8>(), 2 * 8 * 64 + 4 * 64),
        ) {
            let program = Program::new();
            let mut area = program.area().unwrap();
            program.put(4096 + 2 * 64, &junk);
            for counts in [&small, &counts, &small] {
                program.counts(0, counts[0], counts[1]);
                program.counts(1, counts[2], counts[3]);
                let mut raw = Vec::new();
                area.read(&mut u64::MAX.clone(), &mut raw);
                prop_assert!(raw.len() <= 16);
                area.copy(&counts[..2], &mut u64::MAX.clone(), &mut raw);
                prop_assert!(raw.len() <= 32);
            }
            for at in 0..6 {
                let _ = area.name(at);
            }
        }
    }
}
