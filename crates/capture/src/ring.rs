//! Reading the overwriting rings that the kernel side fills (`bpf/ring.h`).
//!
//! Each CPU has a ring of blocks in one mapped array, and a head that counts the words ever taken.
//! Nobody tells the writer how far the reader is: it overwrites. So a reader keeps its own position
//! and copies from a block what it has not read. The block's first word is 1 + the number that the
//! block has among all of its CPU's, and changes as soon as the writer overwrites the block: if it is
//! the right one after the copying too, the copy is whole. A record that was reserved and is not
//! written yet begins with a 0; the reader stops there until its next round.

use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{Ordering, fence};

use crate::error::{Error, Result};
use crate::event::{BLOCK_WORDS, Event, HEADER_WORDS, Place, Record, read};
use crate::records::CpuState;

/// What one block is in the mapped array.
#[repr(C)]
pub(crate) struct Block([u64; BLOCK_WORDS]);

/// The rings of all CPUs.
pub(crate) struct Rings {
    blocks: *const Block,
    bytes: usize,
    states: *const CpuState,
    cpus: usize,
    shift: u32,
}

// SAFETY: the pointers are to shared memory that outlives this value (the mapping is its own, the
// states belong to the loaded object, which is never unloaded before); all reads are volatile.
unsafe impl Send for Rings {}

/// Where a reader of one CPU's ring is.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// Of the block, among all of the CPU's.
    block: u64,
    /// Of the next record in it; 0 if nothing of it has been read.
    offset: usize,
    place: Place,
    /// Records before it.
    records: u64,
    /// Records before the block were not read, and are counted when its header tells how many.
    is_behind_gap: bool,
}

/// Where a reader is.
#[derive(Clone, Debug)]
pub(crate) struct Cursor(Vec<Position>);

/// Blocks of a ring that hold nothing old: the one that is being filled and the empty one after it.
const MARGIN: u64 = 2;
/// How often a snapshot looks again for a record that is not written yet.
const PATIENCE: u32 = 1000;

impl Rings {
    /// Maps the rings of `cpus` CPUs with 2^`shift` blocks each.
    ///
    /// `states` points at the programs' `cpus` array, which must stay mapped as long as this value
    /// lives.
    pub(crate) fn map(
        fd: RawFd,
        cpus: usize,
        shift: u32,
        states: *const CpuState,
    ) -> Result<Rings> {
        let bytes = (cpus << shift) * size_of::<Block>();
        // SAFETY: a fresh read-only mapping of a map's descriptor; the result is checked.
        let blocks = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if blocks == libc::MAP_FAILED {
            return Err(Error::last_os("map the event rings"));
        }
        Ok(Rings {
            blocks: blocks.cast_const().cast(),
            bytes,
            states,
            cpus,
            shift,
        })
    }

    fn state(&self, cpu: usize) -> CpuState {
        assert!(cpu < self.cpus);
        // SAFETY: the array has a state for each CPU, aligned, of plain numbers, and it is written
        // by the kernel at any time, hence volatile.
        unsafe { ptr::read_volatile(self.states.add(cpu)) }
    }

    fn states(&self) -> impl Iterator<Item = CpuState> + '_ {
        (0..self.cpus).map(|cpu| self.state(cpu))
    }

    /// Definitions for which the ring had no room, by CPU, since the start.
    pub(crate) fn lost_definitions(&self) -> impl Iterator<Item = u64> + '_ {
        self.states().map(|state| state.lost_definitions)
    }

    /// Transfers that were not recorded because there were too many, by CPU, since the start.
    pub(crate) fn refused_transfers(&self) -> impl Iterator<Item = u64> + '_ {
        self.states().map(|state| state.transfers_refused)
    }

    /// The same of handoffs.
    pub(crate) fn refused_handoffs(&self) -> impl Iterator<Item = u64> + '_ {
        self.states().map(|state| state.handoffs_refused)
    }

    /// Events for which no room could be taken, by CPU, since the start.
    pub(crate) fn lost_records(&self) -> impl Iterator<Item = u64> + '_ {
        self.states().map(|state| state.lost_records)
    }

    fn blocks(&self) -> u64 {
        1 << self.shift
    }

    /// The number of the block that is being filled.
    fn newest(&self, head: u64) -> u64 {
        head.saturating_sub(1) / BLOCK_WORDS as u64
    }

    /// The number of the oldest block that is still there, when the head is there.
    fn oldest_block(&self, head: u64) -> u64 {
        (self.newest(head) + MARGIN).saturating_sub(self.blocks())
    }

    /// A cursor at the oldest record that is still there.
    pub(crate) fn oldest(&self) -> Cursor {
        Cursor(self.states().map(|state| self.beginning(&state)).collect())
    }

    fn beginning(&self, state: &CpuState) -> Position {
        // What lies right behind the writer is overwritten while it is read.
        let spare = self.blocks() / 64;
        let block = match self.oldest_block(state.head) {
            0 => 0,
            oldest => (oldest + spare).min(self.newest(state.head)),
        };
        Position {
            block,
            offset: 0,
            place: Place::default(),
            records: 0,
            is_behind_gap: false,
        }
    }

    /// When the oldest record of the CPU whose ring reaches back least was made, ns of
    /// CLOCK_MONOTONIC: from then on all CPUs are complete. `None` while no ring has wrapped around.
    pub(crate) fn horizon(&self) -> Option<u64> {
        let Cursor(oldest) = self.oldest();
        oldest
            .iter()
            .enumerate()
            .filter(|(_, position)| position.block > 0)
            .filter_map(|(cpu, position)| {
                let (mut words, at) = (Vec::new(), position.block);
                self.copy(cpu, at, 0, HEADER_WORDS, &mut words)
                    .then(|| words[1])
            })
            .max()
    }

    /// Copies some words of a block. Returns whether they are that block's still.
    fn copy(&self, cpu: usize, block: u64, from: usize, to: usize, into: &mut Vec<u64>) -> bool {
        assert!(cpu < self.cpus && from <= to && to <= BLOCK_WORDS);
        let index = (cpu << self.shift) + (block & (self.blocks() - 1)) as usize;
        into.clear();
        // SAFETY: `cpu` is below `cpus` and the block's index below the ring's blocks, so it lies
        // in the mapping, and the words in it. The memory is written by the kernel at any time: the
        // reads are volatile, any bits are valid, and the block's number tells a torn copy.
        unsafe {
            let words = self.blocks.add(index).cast::<u64>();
            let is_it = || ptr::read_volatile(words) == block + 1;
            if !is_it() {
                return false;
            }
            fence(Ordering::Acquire);
            into.extend((from..to).map(|at| ptr::read_volatile(words.add(at))));
            fence(Ordering::Acquire);
            is_it()
        }
    }

    /// Which share of its ring what is new since `cursor` takes, on the CPU where it is most.
    pub(crate) fn filled(&self, cursor: &Cursor) -> f64 {
        let new = |(state, position): (CpuState, &Position)| {
            let read = position.block * BLOCK_WORDS as u64 + position.offset as u64;
            state.head.saturating_sub(read)
        };
        let most = self.states().zip(&cursor.0).map(new).max();
        let size = self.blocks() * BLOCK_WORDS as u64;
        most.unwrap_or(0) as f64 / size as f64
    }

    /// Copies what is new since `cursor` and moves it. Returns the records lost by CPU. A record
    /// that is being written is left for the next time.
    pub(crate) fn read(&self, cursor: &mut Cursor, into: &mut Vec<Event>) -> Vec<u64> {
        let positions = cursor.0.iter_mut().enumerate();
        positions
            .map(|(cpu, position)| self.read_cpu(cpu, position, into).lost)
            .collect()
    }

    /// Copies all that is there, of each CPU without a gap: where the writer has wrapped around
    /// meanwhile, what lies before is left out.
    pub(crate) fn snapshot(&self, into: &mut Vec<Event>) {
        for cpu in 0..self.cpus {
            let first = into.len();
            let mut position = self.beginning(&self.state(cpu));
            let until = self.newest(self.state(cpu).head);
            for _ in 0..PATIENCE {
                let unbroken_from = self.read_cpu(cpu, &mut position, into).unbroken_from;
                into.drain(first..unbroken_from.max(first));
                if position.block >= until {
                    break;
                }
                // Whoever has not written its record yet was interrupted, and goes on.
                std::thread::yield_now();
            }
        }
    }

    /// Goes as far as there are whole records.
    fn read_cpu(&self, cpu: usize, position: &mut Position, into: &mut Vec<Event>) -> Outcome {
        let mut words = Vec::with_capacity(BLOCK_WORDS);
        let mut outcome = Outcome::default();
        loop {
            let state = self.state(cpu);
            if state.head == 0 {
                return outcome;
            }
            if position.block < self.oldest_block(state.head) {
                let records = position.records;
                *position = self.beginning(&state);
                // How many are lost is known from the header of the block to go on with.
                position.records = records;
                position.is_behind_gap = true;
                outcome.unbroken_from = into.len();
            }
            let newest = self.newest(state.head);
            let end = match (state.head % BLOCK_WORDS as u64) as usize {
                taken if position.block == newest && taken > 0 => taken,
                _ => BLOCK_WORDS,
            };
            if !self.copy(cpu, position.block, 0, end, &mut words) {
                if position.block < self.oldest_block(self.state(cpu).head) {
                    continue;
                }
                // Its header is not written yet.
                return outcome;
            }
            if position.offset == 0 {
                position.offset = HEADER_WORDS;
                position.place = Place {
                    near: words[1],
                    tid: words[2] as u32,
                };
                // Without a gap the two may differ by what an interrupt wrote while the counter was
                // being raised.
                if std::mem::take(&mut position.is_behind_gap) {
                    outcome.lost += words[3].saturating_sub(position.records);
                }
                position.records = words[3];
            }
            while position.offset < end {
                let rest = &words[position.offset..];
                let (record, length) = read(rest, cpu as u16, &mut position.place);
                match record {
                    Record::Event(event) => into.push(event),
                    Record::Runs => {}
                    Record::Unwritten => return outcome,
                    Record::End => break,
                    // Of what is unknown the length is too: the rest of the block is lost, and the
                    // next block's header tells how much it was.
                    Record::Unknown => {
                        position.is_behind_gap = true;
                        break;
                    }
                }
                position.offset += length;
                position.records += 1;
            }
            if position.block == newest {
                return outcome;
            }
            position.block += 1;
            position.offset = 0;
        }
    }
}

/// What came of reading.
#[derive(Default)]
struct Outcome {
    /// Records that were overwritten before they could be read.
    lost: u64,
    /// From here on in what was read nothing is missing.
    unbroken_from: usize,
}

impl Drop for Rings {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, with its length; nobody uses it any more.
        unsafe { libc::munmap(self.blocks.cast_mut().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    const SHIFT: u32 = 3;
    const BLOCK: u64 = BLOCK_WORDS as u64;
    /// A record of a sample, as the kernel side writes it; it has two words.
    const SAMPLE: u64 = 6 << 32;
    const PER_BLOCK: u64 = (BLOCK - HEADER_WORDS as u64) / 2;

    /// A ring of 8 blocks in a file, with a head, that a test fills as the kernel would.
    struct Fake {
        file: std::fs::File,
        state: Box<CpuState>,
        records: u64,
    }

    impl Fake {
        fn new() -> Fake {
            let file = tempfile::tempfile().unwrap();
            file.set_len((size_of::<Block>() << SHIFT) as u64).unwrap();
            Fake {
                file,
                state: Box::default(),
                records: 0,
            }
        }

        fn rings(&self) -> Rings {
            Rings::map(self.file.as_raw_fd(), 1, SHIFT, &raw const *self.state).unwrap()
        }

        fn store(&self, word: u64, value: u64) {
            let at = word % (BLOCK << SHIFT) * 8;
            self.file.write_all_at(&value.to_ne_bytes(), at).unwrap();
        }

        fn open(&mut self) {
            let number = self.state.head.div_ceil(BLOCK);
            let begin = number * BLOCK;
            if !self.state.head.is_multiple_of(BLOCK) {
                self.store(self.state.head, 15 << 32);
            }
            self.state.head = begin + HEADER_WORDS as u64;
            self.store(begin + 1, self.records);
            self.store(begin + 2, 7);
            self.store(begin + 3, self.records);
            self.store(begin, number + 1);
            (0..BLOCK).for_each(|word| self.store(begin + BLOCK + word, 0));
        }

        /// Takes room for a record; where it is.
        fn take(&mut self) -> u64 {
            let offset = self.state.head % BLOCK;
            if offset == 0 || offset > BLOCK - 6 {
                self.open();
            }
            self.state.head += 2;
            self.records += 1;
            self.state.head - 2
        }

        /// Writes a record whose time is its number.
        fn write(&mut self) {
            let ts = self.records;
            let at = self.take();
            self.store(at + 1, 1);
            self.store(at, SAMPLE | ts);
        }
    }

    fn times(rings: &Rings, cursor: &mut Cursor) -> (Vec<u64>, u64) {
        let mut events = Vec::new();
        let lost = rings.read(cursor, &mut events);
        assert!(events.iter().all(|event| event.tid == 7));
        (events.iter().map(|event| event.ts).collect(), lost[0])
    }

    /// A reader that keeps up sees every record once, in order, and loses none.
    #[test]
    fn a_reader_that_keeps_up_loses_nothing() {
        let mut fake = Fake::new();
        let rings = fake.rings();
        let mut cursor = rings.oldest();
        assert_eq!(times(&rings, &mut cursor), (vec![], 0));
        for round in 0..40 {
            let first = fake.records;
            (0..round * 17).for_each(|_| fake.write());
            let expected = (first..fake.records).collect();
            assert_eq!(times(&rings, &mut cursor), (expected, 0), "{round}");
        }
    }

    /// A reader that was lapped goes on with what is there, and knows how many it missed.
    #[test]
    fn a_lapped_reader_counts_its_loss() {
        let mut fake = Fake::new();
        let rings = fake.rings();
        let mut cursor = rings.oldest();
        (0..PER_BLOCK + 10).for_each(|_| fake.write());
        let (seen, 0) = times(&rings, &mut cursor) else {
            panic!("a loss")
        };
        (0..20 * PER_BLOCK).for_each(|_| fake.write());
        let (rest, lost) = times(&rings, &mut cursor);
        assert_eq!(seen.len() as u64 + lost, rest[0]);
        assert!(rest.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        assert_eq!(rest.last(), Some(&(fake.records - 1)));
        // All blocks but the one that is emptied, and the one that is being filled at least.
        assert!(rest.len() as u64 > 5 * PER_BLOCK, "{}", rest.len());
    }

    /// A snapshot has what is there, to the last record, without a gap.
    #[test]
    fn a_snapshot_has_no_gap() {
        let mut fake = Fake::new();
        let rings = fake.rings();
        for _ in 0..30 {
            (0..PER_BLOCK * 3 / 4).for_each(|_| fake.write());
            let mut events = Vec::new();
            rings.snapshot(&mut events);
            let times: Vec<u64> = events.iter().map(|event| event.ts).collect();
            assert!(times.windows(2).all(|pair| pair[0] + 1 == pair[1]));
            assert_eq!(times.last(), Some(&(fake.records - 1)));
        }
    }

    /// Of a block that is another one now nothing is taken.
    #[test]
    fn an_overwritten_block_is_refused() {
        let mut fake = Fake::new();
        let rings = fake.rings();
        (0..PER_BLOCK * 3).for_each(|_| fake.write());
        let mut words = Vec::new();
        assert!(rings.copy(0, 1, 0, BLOCK_WORDS, &mut words));
        fake.store(BLOCK, 9 + 1);
        assert!(!rings.copy(0, 1, 0, BLOCK_WORDS, &mut words));
        assert!(rings.copy(0, 9, 0, BLOCK_WORDS, &mut words));
    }

    /// A record that is still being written holds the reader up, also where the writer is in the
    /// next block already; it is read once it is whole.
    #[test]
    fn an_unfinished_record_is_waited_for() {
        let mut fake = Fake::new();
        let rings = fake.rings();
        let mut cursor = rings.oldest();
        (1..PER_BLOCK).for_each(|_| fake.write());
        assert_eq!(times(&rings, &mut cursor).0.len() as u64, PER_BLOCK - 1);
        fake.write();
        let late = fake.state.head - 2;
        fake.store(late, 0);
        fake.write();
        assert_eq!(times(&rings, &mut cursor), (vec![], 0));
        fake.store(late, SAMPLE | (PER_BLOCK - 1));
        let expected = vec![PER_BLOCK - 1, PER_BLOCK];
        assert_eq!(times(&rings, &mut cursor), (expected, 0));
    }

    /// Whatever lies in the ring, a reader comes to an end.
    #[test]
    fn noise_is_survived() {
        let mut fake = Fake::new();
        let rings = fake.rings();
        (0..PER_BLOCK * 12).for_each(|_| fake.write());
        let mut seed = 1u64;
        for _ in 0..200 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            fake.store(seed >> 20, seed);
            let mut cursor = rings.oldest();
            rings.read(&mut cursor, &mut Vec::new());
            rings.snapshot(&mut Vec::new());
        }
    }
}
