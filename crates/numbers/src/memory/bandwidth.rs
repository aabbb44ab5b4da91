//! How many bytes a second go through a core, and through all of them.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::pages::{Memory, Pages};
use crate::cpu;
use crate::kind::{Axis, Kind, Section, Unit};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Memory is gone through in blocks; the smallest size is one.
const BLOCK: usize = 16 << 10;
/// Elements of a block: 4 bytes each, as in the seed and in lmbench.
const ELEMENTS: usize = BLOCK / 4;

const fn curve(id: &'static str, title: &'static str) -> Kind {
    Kind::ns(id, title)
        .unit(Unit::BytesPerSecond)
        .over(Axis::Bytes)
}

const fn single(id: &'static str, title: &'static str) -> Kind {
    Kind::ns(id, title).unit(Unit::BytesPerSecond)
}

pub(super) const ONE: Method = Method {
    id: "memory.bandwidth",
    section: Section::Memory,
    figures: &[
        curve("memory.read", "read every element"),
        curve("memory.read.fourth", "read every fourth element"),
        curve("memory.write", "write every element"),
        curve("memory.write.fourth", "write every fourth element"),
        curve("memory.update", "double every element"),
        curve("memory.update.fourth", "double every fourth element"),
        curve("memory.copy", "copy (memcpy)"),
    ],
    how: "Elements of 4 bytes are read and added up, written, or doubled, one after the other, or every \
          fourth; one load or store each, no vectors. The size of the memory gone through in a second: \
          of every fourth element too, because whole lines move. A copy counts what was copied once.",
    source: "Kurkin, AppsConf 2018; lmbench's bw_mem (frd, fwr; rd, wr; bcopy)",
    weight: 9,
    run: run_one,
};

pub(super) const ALL: Method = Method {
    id: "memory.bandwidth.all",
    section: Section::Memory,
    figures: &[
        single("memory.read.all", "read every fourth element, all CPUs"),
        single("memory.write.all", "write every fourth element, all CPUs"),
        single("memory.update.all", "double every fourth element, all CPUs"),
    ],
    how: "The same from memory beyond the caches, by a thread on each CPU at the same time, each in \
          memory of its own; their sum.",
    source: "STREAM (McCalpin 1995) for all cores at once; loops of lmbench's bw_mem",
    weight: 2,
    run: run_all,
};

/// What is done to a block; the sum keeps reads from being left out.
type Work = fn(&mut [u32; ELEMENTS]) -> u32;

/// Volatile accesses: one load or store an element, none joined into vectors, none left out.
macro_rules! work {
    ($step:literal, |$sum:ident, $element:ident| $body:expr) => {
        |block| {
            // Four sums: one would make each addition wait for the one before.
            let mut sums = [0u32; 4];
            for group in block.chunks_exact_mut(32 * $step) {
                for index in 0..32 {
                    let $element: *mut u32 = &mut group[index * $step];
                    let $sum = &mut sums[index % 4];
                    // SAFETY: a pointer to an element that is borrowed here alone.
                    unsafe { $body };
                }
            }
            sums[0] ^ sums[1] ^ sums[2] ^ sums[3]
        }
    };
}

const READ: Work = work!(1, |sum, element| *sum =
    sum.wrapping_add(element.read_volatile()));
const READ_FOURTH: Work = work!(4, |sum, element| *sum =
    sum.wrapping_add(element.read_volatile()));
const WRITE: Work = work!(1, |_sum, element| element.write_volatile(1));
const WRITE_FOURTH: Work = work!(4, |_sum, element| element.write_volatile(1));
const UPDATE: Work = work!(1, |_sum, element| element
    .write_volatile(element.read_volatile() << 1));
const UPDATE_FOURTH: Work = work!(4, |_sum, element| element
    .write_volatile(element.read_volatile() << 1));

const WORKS: [(&str, Work); 6] = [
    ("memory.read", READ),
    ("memory.read.fourth", READ_FOURTH),
    ("memory.write", WRITE),
    ("memory.write.fourth", WRITE_FOURTH),
    ("memory.update", UPDATE),
    ("memory.update.fourth", UPDATE_FOURTH),
];

/// Goes through the first bytes of a memory, round and round, block by block.
struct Round<'a> {
    memory: &'a mut Memory,
    blocks: usize,
    next: usize,
}

impl Round<'_> {
    fn new(memory: &mut Memory, bytes: usize) -> Round<'_> {
        let blocks = (bytes.min(memory.bytes()) / BLOCK).max(1);
        Round {
            memory,
            blocks,
            next: 0,
        }
    }

    fn work(&mut self, work: Work, blocks: u64) {
        for _ in 0..blocks {
            self.next %= self.blocks;
            // SAFETY: the block lies inside the memory, which is borrowed mutably; any bits are
            // numbers, and it is aligned to more than 4 bytes.
            let block = unsafe { self.memory.start().add(self.next * BLOCK).cast().as_mut() };
            black_box(work(block));
            self.next += 1;
        }
    }

    /// Copies each block of the first half to the second; of one block, its first half.
    fn copy(&mut self, blocks: u64) {
        let half = self.blocks / 2;
        let (away, bytes) = match half {
            0 => (BLOCK / 2, BLOCK / 2),
            _ => (half * BLOCK, BLOCK),
        };
        for _ in 0..blocks {
            self.next %= half.max(1);
            // SAFETY: `next` is a block of the first half, so both lie inside the memory; and they
            // are as far apart as what is copied, or further.
            unsafe {
                let from = self.memory.start().add(self.next * BLOCK);
                libc::memcpy(
                    from.add(away).as_ptr().cast(),
                    black_box(from).as_ptr().cast(),
                    bytes,
                );
            }
            self.next += 1;
        }
    }

    /// Bytes that [`Round::copy`] copies for each block.
    fn copied_each(&self) -> usize {
        if self.blocks == 1 { BLOCK / 2 } else { BLOCK }
    }
}

/// One an octave.
fn sizes(largest: usize) -> impl Iterator<Item = usize> {
    let doubled = move |size: &usize| (size * 2 <= largest).then_some(size * 2);
    std::iter::successors(Some(BLOCK), doubled)
}

fn run_one(place: &Place, meter: &mut Meter) -> Result<(), Untried> {
    let _pinned = cpu::pin(place.here)?;
    let mut memory = Memory::map(place.largest, Pages::Small)?;
    let points = sizes(place.largest).count() as u32 * (WORKS.len() as u32 + 1);
    let mut done = 0;
    for size in sizes(place.largest) {
        let mut round = Round::new(&mut memory, size);
        for (figure, work) in WORKS {
            let share = meter.time_left() / (points - done);
            done += 1;
            rate(meter, figure, size, share, BLOCK, |blocks| {
                round.work(work, blocks)
            });
        }
        let share = meter.time_left() / (points - done);
        done += 1;
        let each = round.copied_each();
        rate(meter, "memory.copy", size, share, each, |blocks| {
            round.copy(blocks)
        });
    }
    Ok(())
}

/// Batches of 200 µs or more, of which each gives a rate.
fn rate(
    meter: &mut Meter,
    figure: &'static str,
    size: usize,
    time: Duration,
    bytes_each: usize,
    mut work: impl FnMut(u64),
) {
    let end = Instant::now() + time;
    let mut timed = |blocks| {
        let start = Instant::now();
        work(blocks);
        start.elapsed()
    };
    let mut blocks = 1;
    while timed(blocks) < Duration::from_micros(200) {
        blocks *= 2;
    }
    for taken in 0.. {
        if taken >= 4 && Instant::now() >= end {
            break;
        }
        let took = timed(blocks).as_secs_f64();
        meter.push_at(
            figure,
            size as u64,
            blocks as f64 * bytes_each as f64 / took,
        );
    }
}

fn run_all(place: &Place, meter: &mut Meter) -> Result<(), Untried> {
    let each = (place.largest / place.cpus.len()).max(1 << 20);
    let works = [
        ("memory.read.all", READ_FOURTH),
        ("memory.write.all", WRITE_FOURTH),
        ("memory.update.all", UPDATE_FOURTH),
    ];
    let mut memories = Vec::new();
    for _ in &place.cpus {
        memories.push(Memory::map(each, Pages::Small)?);
    }
    for (done, (figure, work)) in works.into_iter().enumerate() {
        let share = meter.time_left() / (works.len() - done) as u32;
        for sample in together(&place.cpus, &mut memories, work, share)? {
            meter.push(figure, sample);
        }
    }
    Ok(())
}

/// Bytes a second of all threads, for each of some slices of time that all begin together.
fn together(
    cpus: &[usize],
    memories: &mut [Memory],
    work: Work,
    time: Duration,
) -> Result<Vec<f64>, Untried> {
    const SLICES: u32 = 5;
    let slice = (time / SLICES).max(Duration::from_millis(2));
    let barrier = Barrier::new(cpus.len());
    let each = |cpu: usize, memory: &mut Memory| -> Result<Vec<f64>, Untried> {
        let pinned = cpu::pin(cpu);
        let bytes = memory.bytes();
        let mut round = Round::new(memory, bytes);
        let mut rates = Vec::new();
        for _ in 0..SLICES {
            // Those that could not be pinned come along, so that nobody waits for them for ever.
            barrier.wait();
            let start = Instant::now();
            let mut blocks = 0;
            while start.elapsed() < slice {
                round.work(work, 16);
                blocks += 16;
            }
            rates.push((blocks * BLOCK) as f64 / start.elapsed().as_secs_f64());
        }
        pinned.map(|_| rates)
    };
    let mut sums = vec![0.0; SLICES as usize];
    thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .zip(memories)
            .map(|(&cpu, memory)| scope.spawn(move || each(cpu, memory)))
            .collect();
        for thread in threads {
            let rates = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            for (sum, rate) in sums.iter_mut().zip(rates) {
                *sum += rate;
            }
        }
        Ok(sums)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of one block, as they are before each work.
    fn block() -> Box<[u32; ELEMENTS]> {
        let numbers: Vec<u32> = (0..ELEMENTS as u32).map(|index| index + 7).collect();
        numbers.try_into().unwrap()
    }

    /// Each work touches the elements that it names, once, and no other.
    #[test]
    fn works_touch_the_elements_that_they_name() {
        for (figure, work) in WORKS {
            let mut after = block();
            work(&mut after);
            let step = if figure.ends_with("fourth") { 4 } else { 1 };
            for (index, (&after, &before)) in after.iter().zip(block().iter()).enumerate() {
                let expected = match () {
                    () if index % step != 0 || figure.contains("read") => before,
                    () if figure.contains("write") => 1,
                    () => before * 2,
                };
                assert_eq!(after, expected, "{figure}: element {index}");
            }
        }
    }

    /// Reading really reads: what it gives changes with any element that it should have read, and
    /// with no other.
    #[test]
    fn reading_depends_on_what_is_read() {
        for (work, step) in [(READ, 1), (READ_FOURTH, 4)] {
            let sum = work(&mut block());
            for index in 0..ELEMENTS {
                let mut changed = block();
                changed[index] ^= 1 << 20;
                assert_eq!(
                    work(&mut changed) != sum,
                    index % step == 0,
                    "element {index}"
                );
            }
        }
    }

    /// Blocks follow each other through the whole memory and begin again; a copy makes the second
    /// half like the first.
    #[test]
    fn rounds_go_through_the_whole_memory() {
        let mut memory = Memory::map(8 * BLOCK, Pages::Small).unwrap();
        let bytes = memory.bytes();
        let word = |memory: &Memory, index: usize| {
            // SAFETY: inside the memory.
            unsafe { memory.start().cast::<u32>().add(index).read() }
        };
        let mut round = Round::new(&mut memory, bytes);
        round.work(WRITE, 4);
        for index in 0..bytes / 4 {
            assert_eq!(word(&memory, index), u32::from(index < bytes / 8));
        }
        // From wherever it was left.
        let mut round = Round {
            memory: &mut memory,
            blocks: bytes / BLOCK,
            next: 7,
        };
        round.copy(4);
        assert!((0..bytes / 4).all(|index| word(&memory, index) == 1));
    }
}
