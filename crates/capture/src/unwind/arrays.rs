//! Arrays that the kernel side reads and we write, through a mapping: no call a value.
//!
//! The kernel side may read at any moment. What it must see whole is one word, stored at once.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// As `bpf/unwind.h` has it.
pub(super) const PROCESS_SLOTS: usize = 1 << 16;
/// As `bpf/unwind.h` has it.
pub(crate) const MOST_RANGES: usize = 1 << 16;

/// `struct process_code`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct ProcessCode {
    pub identity: u64,
    pub ranges: u64,
}

/// `struct code_range`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct CodeRange {
    pub start: u64,
    pub end: u64,
    pub file_offset: u64,
    pub rows: u64,
    pub used: u64,
}

/// Where a shape's ranges are on the kernel side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub first: u32,
    pub count: u32,
    /// One more follows, which tells of an interpreter.
    pub interpreter: bool,
}

/// One of the arrays; `T` is a struct of plain integers, valid for any bits.
pub(super) struct Shared<T> {
    base: *mut T,
    count: usize,
}

// SAFETY: the mapping is this value's own, and nothing in it is bound to a thread.
unsafe impl<T> Send for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// Maps the array behind `fd`, which has `count` values.
    pub(super) fn map(fd: BorrowedFd<'_>, count: usize) -> Result<Shared<T>> {
        // SAFETY: a fresh mapping of a map's descriptor; the result is checked.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                count * size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Error::last_os("map the unwind tables"));
        }
        Ok(Shared {
            base: base.cast(),
            count,
        })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn at(&self, index: usize) -> *mut T {
        assert!(index < self.count, "{index} of {}", self.count);
        // SAFETY: the index was checked to lie in the mapping.
        unsafe { self.base.add(index) }
    }

    pub(super) fn get(&self, index: usize) -> T {
        // SAFETY: `at` gives a valid, aligned place; the kernel side may write it, hence volatile.
        unsafe { ptr::read_volatile(self.at(index)) }
    }

    pub(super) fn set(&self, index: usize, value: T) {
        // SAFETY: as in `get`.
        unsafe { ptr::write_volatile(self.at(index), value) }
    }

    /// What lies in a run that nobody writes while it is looked at: the kernel side only reads it.
    pub(super) fn slice(&self, first: usize, count: usize) -> &[T] {
        assert!(first <= self.count && count <= self.count - first);
        // SAFETY: the run lies in the mapping, which lives as long as `self`; writers need `&mut`.
        unsafe { std::slice::from_raw_parts(self.base.add(first), count) }
    }

    /// Fills a run that the kernel side does not look at yet.
    pub(super) fn fill(&mut self, first: usize, values: &[T]) {
        assert!(first <= self.count && values.len() <= self.count - first);
        // SAFETY: the run lies in the mapping, and `values` is memory of our own elsewhere.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), self.base.add(first), values.len()) };
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, with the same length, used by nobody any more.
        unsafe { libc::munmap(self.base.cast(), self.count * size_of::<T>()) };
    }
}

/// The next epoch, for neither side has had it.
pub(super) fn next(last_epoch: *mut u32) -> u32 {
    // SAFETY: a word of the loaded object's memory, aligned, shared by atomic operations alone.
    let last = unsafe { AtomicU32::from_ptr(last_epoch) };
    last.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

/// Gives the slot to `pid` with `epoch`, unless it holds something else than `expected`.
pub(super) fn replace(
    processes: &Shared<ProcessCode>,
    slot: usize,
    expected: u64,
    pid: u32,
    epoch: u32,
) -> bool {
    // SAFETY: `at` gives a valid, aligned place; both sides write the word as a whole.
    let identity = unsafe { AtomicU64::from_ptr(&raw mut (*processes.at(slot)).identity) };
    let new = u64::from(pid) | u64::from(epoch) << 32;
    identity
        .compare_exchange(expected, new, Ordering::AcqRel, Ordering::Relaxed)
        .is_ok()
}

/// Says which ranges the slot's process has in `epoch`.
pub(super) fn point(processes: &Shared<ProcessCode>, slot: usize, block: Block, epoch: u32) {
    // SAFETY: as in `replace`.
    let ranges = unsafe { AtomicU64::from_ptr(&raw mut (*processes.at(slot)).ranges) };
    let place = u64::from(block.first) | u64::from(block.interpreter) << 23;
    let word = place | u64::from(block.count) << 24 | u64::from(epoch) << 40;
    ranges.store(word, Ordering::Release);
}

/// Runs of values that are in use or free.
///
/// What is given back is reused only after two ticks: the kernel side may be in the middle of it.
#[derive(Debug)]
pub(super) struct Runs {
    /// First value → how many; neighbours are joined.
    free: std::collections::BTreeMap<u32, u32>,
    retired: [Vec<(u32, u32)>; 2],
}

impl Runs {
    pub(super) fn new(count: usize) -> Runs {
        Runs {
            free: [(0, count as u32)].into(),
            retired: Default::default(),
        }
    }

    /// The first value of a run of `count`; `None` if there is no such room.
    pub(super) fn take(&mut self, count: u32) -> Option<u32> {
        let (&first, &length) = self.free.iter().find(|&(_, &length)| length >= count)?;
        self.free.remove(&first);
        if length > count {
            self.free.insert(first + count, length - count);
        }
        Some(first)
    }

    /// Gives a run back.
    pub(super) fn retire(&mut self, first: u32, count: u32) {
        if count > 0 {
            self.retired[1].push((first, count));
        }
    }

    /// Whether some runs were given back and are not free yet.
    pub(super) fn is_resting(&self) -> bool {
        self.retired.iter().any(|runs| !runs.is_empty())
    }

    /// Lets time go on.
    pub(super) fn tick(&mut self) {
        let [old, young] = &mut self.retired;
        let over = std::mem::replace(old, std::mem::take(young));
        for (mut first, mut count) in over {
            if let Some((&before, &length)) = self.free.range(..first).next_back()
                && before + length == first
            {
                self.free.remove(&before);
                (first, count) = (before, count + length);
            }
            if let Some(length) = self.free.remove(&(first + count)) {
                count += length;
            }
            self.free.insert(first, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is given back cannot be had before the second tick, and then joins its neighbours.
    #[test]
    fn runs_rest_before_they_are_reused() {
        let mut runs = Runs::new(10);
        let (a, b) = (runs.take(4).unwrap(), runs.take(6).unwrap());
        assert_eq!((a, b, runs.take(1)), (0, 4, None));
        runs.retire(a, 4);
        runs.tick();
        assert_eq!(runs.take(4), None);
        runs.retire(b, 6);
        runs.tick();
        assert_eq!(runs.take(5), None, "only the first run has rested");
        runs.tick();
        assert_eq!(runs.take(10), Some(0));
    }
}
