//! Reading the overwriting rings that the kernel side fills (`bpf/ring.h`).
//!
//! Each CPU has a ring of slots in one mapped array, and a head that counts the records ever
//! reserved. Nobody tells the writer how far the reader is: it overwrites. So a reader keeps its
//! own position, copies a slot, and looks at the slot's `lap` before and after: the lap that the
//! position demands, twice, means that the copy is whole. A later lap means that the writer came
//! round and the record is lost; an earlier one, that it is still being written.

use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{Ordering, fence};

use crate::error::{Error, Result};
use crate::records::{CpuEvent, CpuState, Event};

/// The rings of all CPUs.
pub(crate) struct Rings {
    slots: *const Event,
    bytes: usize,
    states: *const CpuState,
    cpus: usize,
    shift: u32,
}

// SAFETY: the pointers are to shared memory that outlives this value (the mapping is its own, the
// states belong to the loaded object, which is never unloaded before); all reads are volatile.
unsafe impl Send for Rings {}

/// Where a reader is.
#[derive(Clone, Debug)]
pub(crate) struct Cursor(Vec<u64>);

/// How many records a reader must stay behind the writer's full lap: what interrupts may have
/// reserved and not yet written.
const MARGIN: u64 = 8;

impl Rings {
    /// Maps the rings of `cpus` CPUs with 2^`shift` slots each.
    ///
    /// `states` points at the programs' `cpus` array, which must stay mapped as long as this value
    /// lives.
    pub(crate) fn map(
        fd: RawFd,
        cpus: usize,
        shift: u32,
        states: *const CpuState,
    ) -> Result<Rings> {
        let bytes = (cpus << shift) * size_of::<Event>();
        // SAFETY: a fresh read-only mapping of a map's descriptor; the result is checked.
        let slots = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if slots == libc::MAP_FAILED {
            return Err(Error::last_os("map the event rings"));
        }
        Ok(Rings {
            slots: slots.cast_const().cast(),
            bytes,
            states,
            cpus,
            shift,
        })
    }

    fn head(&self, cpu: usize) -> u64 {
        // SAFETY: `cpu` is below `cpus`, the array has that many, and the word is aligned.
        unsafe { ptr::read_volatile(&raw const (*self.states.add(cpu)).head) }
    }

    /// Definitions for which the ring had no room, by CPU, since the start.
    pub(crate) fn lost_definitions(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.cpus).map(|cpu| {
            // SAFETY: as in `head`.
            unsafe { ptr::read_volatile(&raw const (*self.states.add(cpu)).lost_definitions) }
        })
    }

    /// Transfers that were not recorded because there were too many, by CPU, since the start.
    pub(crate) fn refused_transfers(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.cpus).map(|cpu| {
            // SAFETY: as in `head`.
            unsafe { ptr::read_volatile(&raw const (*self.states.add(cpu)).transfers_refused) }
        })
    }

    /// The same of handoffs.
    pub(crate) fn refused_handoffs(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.cpus).map(|cpu| {
            // SAFETY: as in `head`.
            unsafe { ptr::read_volatile(&raw const (*self.states.add(cpu)).handoffs_refused) }
        })
    }

    /// A cursor at the oldest record that is still there.
    pub(crate) fn oldest(&self) -> Cursor {
        let slots = 1u64 << self.shift;
        // What lies right behind the writer is overwritten while it is read.
        let spare = (slots / 64).max(MARGIN);
        let first = |head: u64| head.saturating_sub(slots - spare.min(slots / 2));
        Cursor((0..self.cpus).map(|cpu| first(self.head(cpu))).collect())
    }

    /// When the oldest record of the CPU whose ring reaches back least was made, ns of
    /// CLOCK_MONOTONIC: from then on all CPUs are complete. `None` while no ring has come round.
    pub(crate) fn horizon(&self) -> Option<u64> {
        let Cursor(oldest) = self.oldest();
        (0..self.cpus)
            .filter(|&cpu| oldest[cpu] > 0)
            .filter_map(|cpu| match self.slot(cpu, oldest[cpu]) {
                Slot::Whole(event) => Some(event.ts),
                Slot::Unfinished | Slot::Overwritten => None,
            })
            .max()
    }

    fn slot(&self, cpu: usize, position: u64) -> Slot {
        let slots = 1u64 << self.shift;
        let index = (cpu << self.shift) + (position & (slots - 1)) as usize;
        let wanted = match ((position >> self.shift) + 1) as u16 {
            0 => 1,
            lap => lap,
        };
        // SAFETY: `cpu` is below `cpus` and the offset below the ring's slots, so the index lies
        // in the mapping. The memory is written by the kernel at any time: the reads are volatile,
        // any bit pattern is a valid Event, and the lap check below rejects a torn copy.
        let (before, event, after) = unsafe {
            let slot = self.slots.add(index);
            let lap = &raw const (*slot).lap;
            let before = ptr::read_volatile(lap);
            fence(Ordering::Acquire);
            let event = ptr::read_volatile(slot);
            fence(Ordering::Acquire);
            (before, event, ptr::read_volatile(lap))
        };
        if before == wanted && after == wanted {
            Slot::Whole(event)
        } else if self.head(cpu).saturating_sub(position) > slots - MARGIN.min(slots / 2) {
            Slot::Overwritten
        } else {
            Slot::Unfinished
        }
    }

    /// Copies what is new since `cursor` and moves it. Returns the records lost by CPU. A record
    /// that is being written is left for the next time.
    pub(crate) fn read(&self, cursor: &mut Cursor, into: &mut Vec<CpuEvent>) -> Vec<u64> {
        let slots = 1u64 << self.shift;
        let mut lost = vec![0; self.cpus];
        for (cpu, position) in cursor.0.iter_mut().enumerate() {
            let head = self.head(cpu);
            let oldest = head.saturating_sub(slots);
            if *position < oldest {
                lost[cpu] += oldest - *position;
                *position = oldest;
            }
            while *position < head {
                match self.slot(cpu, *position) {
                    Slot::Whole(event) => into.push(CpuEvent {
                        cpu: cpu as u16,
                        event,
                    }),
                    Slot::Overwritten => lost[cpu] += 1,
                    Slot::Unfinished => break,
                }
                *position += 1;
            }
        }
        lost
    }

    /// Copies all that is there, of each CPU without a gap: where the writer has come round
    /// meanwhile, what lies before is left out.
    pub(crate) fn snapshot(&self, into: &mut Vec<CpuEvent>) {
        for cpu in 0..self.cpus {
            let Cursor(oldest) = self.oldest();
            self.copy_unbroken(cpu, oldest[cpu], into);
        }
    }

    fn copy_unbroken(&self, cpu: usize, from: u64, into: &mut Vec<CpuEvent>) {
        let first = into.len();
        for position in from..self.head(cpu) {
            match self.slot(cpu, position) {
                Slot::Whole(event) => into.push(CpuEvent {
                    cpu: cpu as u16,
                    event,
                }),
                Slot::Overwritten => into.truncate(first),
                Slot::Unfinished => break,
            }
        }
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, with its length; nobody uses it any more.
        unsafe { libc::munmap(self.slots.cast_mut().cast(), self.bytes) };
    }
}

enum Slot {
    Whole(Event),
    Unfinished,
    Overwritten,
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    const SHIFT: u32 = 4;

    /// A ring of 16 slots in a file, with a head, that a test fills as the kernel would.
    struct Fake {
        file: std::fs::File,
        states: Box<[[u64; 24]; 1]>,
    }

    impl Fake {
        fn new() -> Fake {
            let file = tempfile::tempfile().unwrap();
            file.set_len((1 << SHIFT) * size_of::<Event>() as u64)
                .unwrap();
            Fake {
                file,
                states: Box::new([[0; 24]; 1]),
            }
        }

        fn rings(&self) -> Rings {
            Rings::map(self.file.as_raw_fd(), 1, SHIFT, self.states.as_ptr().cast()).unwrap()
        }

        fn write(&mut self, ts: u64) {
            let position = self.states[0][0];
            self.store(position, ts, ((position >> SHIFT) + 1) as u16);
            self.states[0][0] += 1;
        }

        fn store(&mut self, position: u64, ts: u64, lap: u16) {
            use std::os::unix::fs::FileExt;
            let at = (position % (1 << SHIFT)) * size_of::<Event>() as u64;
            self.file.write_all_at(&ts.to_ne_bytes(), at).unwrap();
            self.file.write_all_at(&lap.to_ne_bytes(), at + 12).unwrap();
        }
    }

    fn times(rings: &Rings, cursor: &mut Cursor) -> (Vec<u64>, u64) {
        let mut events = Vec::new();
        let lost = rings.read(cursor, &mut events);
        (events.iter().map(|e| e.event.ts).collect(), lost[0])
    }

    /// A reader that keeps up sees every record once, in order, and loses none.
    #[test]
    fn a_reader_that_keeps_up_loses_nothing() {
        let mut fake = Fake::new();
        let rings = fake.rings();
        let mut cursor = rings.oldest();
        let mut next = 0;
        for _ in 0..20 {
            let first = next;
            for _ in 0..5 {
                fake.write(next);
                next += 1;
            }
            assert_eq!(times(&rings, &mut cursor), ((first..next).collect(), 0));
        }
    }

    /// A reader that was lapped gets the newest records, and the number that it missed.
    #[test]
    fn a_lapped_reader_counts_its_loss() {
        let mut fake = Fake::new();
        let rings = fake.rings();
        let mut cursor = rings.oldest();
        (0..40).for_each(|ts| fake.write(ts));
        assert_eq!(times(&rings, &mut cursor), ((24..40).collect(), 24));
    }

    /// Of records that were overwritten while they were copied, and of what lay before them, a
    /// snapshot has nothing: what it has, it has without a gap.
    #[test]
    fn a_snapshot_has_no_gap() {
        let mut fake = Fake::new();
        let rings = fake.rings();
        (0..40).for_each(|ts| fake.write(ts));
        // As if the writer had come round in the middle: 30 belongs to a later lap already.
        fake.store(30, 46, 3);
        let mut events = Vec::new();
        rings.copy_unbroken(0, 24, &mut events);
        let times: Vec<u64> = events.iter().map(|e| e.event.ts).collect();
        assert_eq!(times, (31..40).collect::<Vec<_>>());
    }

    /// A record that is still being written holds the reader up; it is read once it is whole.
    #[test]
    fn an_unfinished_record_is_waited_for() {
        let mut fake = Fake::new();
        let rings = fake.rings();
        let mut cursor = rings.oldest();
        fake.write(1);
        fake.store(1, 2, 0);
        fake.states[0][0] = 2;
        assert_eq!(times(&rings, &mut cursor), (vec![1], 0));
        fake.store(1, 2, 1);
        assert_eq!(times(&rings, &mut cursor), (vec![2], 0));
    }
}
