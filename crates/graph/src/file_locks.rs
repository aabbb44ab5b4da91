//! What threads did about the locks of files: rows of `handoffs`, found by thread and by file.

use hangdog_trace::Threads;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::tables::Handoffs;
use hangdog_trace::words::{HandoffKind, HandoffStep};
use rayon::prelude::*;

use crate::groups::Groups;

/// A file as locks know it: its object, and the number of its device.
pub(crate) type File = (u64, u64);

/// The steps of all locks of files.
pub(crate) struct FileLocks {
    /// The rows of each thread, in order of time.
    by_thread: Groups,
    /// The rows at which a lock was taken, by file and by process, in order of time.
    taken: Vec<(File, Upid, u32)>,
    /// The rows at which a lock was given back, by file, in order of time.
    released: Vec<(File, u32)>,
}

impl FileLocks {
    /// `keys` is the number of threads.
    pub(crate) fn new(handoffs: &Handoffs, threads: &Threads, keys: usize) -> FileLocks {
        let all = handoffs.len().min(u32::MAX as usize) as u32;
        let rows: Vec<u32> = (0..all)
            .into_par_iter()
            .filter(|&row| HandoffKind::from(handoffs.kind[row as usize]) == HandoffKind::FileLock)
            .collect();
        let by_thread = Groups::new(keys, || {
            let threads = rows.iter().map(|&row| handoffs.thread[row as usize]);
            threads.zip(rows.iter().copied())
        });
        let is = |row: u32, step| HandoffStep::from(handoffs.step[row as usize]) == step;
        let mut released: Vec<(File, u32)> = (rows.par_iter())
            .filter(|&&row| is(row, HandoffStep::Released))
            .map(|&row| (file(handoffs, row as usize), row))
            .collect();
        released.par_sort_unstable();
        let mut taken: Vec<(File, Upid, u32)> = rows
            .into_par_iter()
            .filter(|&row| is(row, HandoffStep::Taken))
            .map(|row| {
                let taker = threads.thread(handoffs.thread[row as usize]);
                (file(handoffs, row as usize), taker.upid, row)
            })
            .collect();
        taken.par_sort_unstable();
        FileLocks {
            by_thread,
            taken,
            released,
        }
    }

    /// The rows of a thread in `[from, to]`, in order.
    pub(crate) fn of<'a>(
        &'a self,
        handoffs: &'a Handoffs,
        thread: Utid,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = usize> + 'a {
        let rows = self.by_thread.get(thread as usize);
        let ts = |row: u32| handoffs.ts[row as usize];
        let first = rows.partition_point(|&row| ts(row) < from);
        rows[first..]
            .iter()
            .take_while(move |&&row| ts(row) <= to)
            .map(|&row| row as usize)
    }

    /// The rows from `from` on at which the lock of an object was given back, in order of time for each device.
    pub(crate) fn released_since<'a>(
        &'a self,
        handoffs: &'a Handoffs,
        object: u64,
        from: u64,
    ) -> impl Iterator<Item = usize> + 'a {
        let first = self.released.partition_point(|&((of, _), _)| of < object);
        (self.released[first..].iter())
            .take_while(move |&&((of, _), _)| of == object)
            .map(|&(_, row)| row as usize)
            .filter(move |&row| handoffs.ts[row] >= from)
    }

    /// The row before `row` at which a process took a lock of a file last.
    pub(crate) fn taken_before(&self, file: File, process: Upid, row: usize) -> Option<usize> {
        let behind = self
            .taken
            .partition_point(|&(of, by, at)| (of, by, at as usize) < (file, process, row));
        let &(of, by, at) = self.taken.get(behind.checked_sub(1)?)?;
        ((of, by) == (file, process)).then_some(at as usize)
    }
}

/// The file that a row of `handoffs` is about.
pub(crate) fn file(handoffs: &Handoffs, row: usize) -> File {
    (handoffs.object[row], handoffs.detail[row] >> 32)
}
