//! Each fault of an operation, and how long it waited for its page.
//!
//! The kernel's count of a fault tells when it is over, and whether it was major. A fault that is counted
//! as minor may have waited too: for a page that somebody else was reading already. Where minor faults
//! were not recorded, such a one is an interval in which a thread blocked outside of any system call at an
//! address, and no major fault lasted.

use super::is_read;
use crate::case::Case;
use crate::select::Window;
use hangdog_timeline::{Cause, State};
use hangdog_trace::calls::NO_CALL;
use hangdog_trace::ids::{NO_STACK, NONE, StackId, Upid, Utid};
use hangdog_trace::tables::{Areas, Faults, Ios};
use std::collections::{HashMap, HashSet};

/// What faults are read from.
pub(super) struct Tables<'a> {
    pub case: &'a Case,
    pub areas: &'a Areas,
    pub faults: &'a Faults,
    pub ios: &'a Ios,
}

/// How a fault was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Major,
    Minor,
    /// Not at all, as far as the trace tells: it blocked.
    Blocked,
}

/// Where the page of a major fault came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    File,
    Swap,
}

/// A page, whoever has it: of a file, or of a process's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Page {
    Of { file: u32, number: u64 },
    Own { process: Upid, number: u64 },
}

/// What a fault that blocked waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A page to be read.
    Read,
    /// A page that was swapped out.
    Swap,
    /// A program that serves the file (FUSE).
    Served,
    /// A page that is being written.
    Writeback,
    /// The lock of the process's address space.
    Lock,
    /// Memory to become free.
    Memory,
    /// A program that handles the faults of this memory (userfaultfd).
    Handler,
    /// That is not known.
    Unknown,
}

impl Reason {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Reason::Read => "a page to be read from a file",
            Reason::Swap => "a page to be read from swap",
            Reason::Served => "a program that serves the file (FUSE)",
            Reason::Writeback => "a page that was being written",
            Reason::Lock => "the lock of the address space",
            Reason::Memory => "memory to become free",
            Reason::Handler => "a program that handles the faults (userfaultfd)",
            Reason::Unknown => "not known",
        }
    }

    /// By functions of the kernel, the innermost first. What is further in tells more.
    fn of(functions: &[&str]) -> Reason {
        let known = functions.iter().find_map(|function| {
            let is = |names: &[&str]| names.iter().any(|name| function.starts_with(name));
            if is(&["fuse_"]) {
                Some(Reason::Served)
            } else if is(&["handle_userfault"]) {
                Some(Reason::Handler)
            } else if is(&[
                "folio_wait_writeback",
                "folio_wait_stable",
                "wait_on_page_writeback",
            ]) {
                Some(Reason::Writeback)
            } else if is(&[
                "try_to_free_",
                "mem_cgroup_oom",
                "reclaim_throttle",
                "__alloc_pages_direct",
                "balance_dirty_pages",
                "out_of_memory",
            ]) {
                Some(Reason::Memory)
            } else if is(&["rwsem_down_", "mmap_read_lock", "lock_mm_and_find_vma"]) {
                Some(Reason::Lock)
            } else {
                None
            }
        });
        let has = |names: &[&str]| functions.iter().any(|function| names.contains(function));
        known.unwrap_or_else(|| {
            if has(&["do_swap_page", "swap_readpage", "shmem_swapin_folio"]) {
                Reason::Swap
            } else if has(&[
                "filemap_fault",
                "__do_fault",
                "filemap_map_pages",
                "do_fault",
            ]) {
                Reason::Read
            } else {
                Reason::Unknown
            }
        })
    }
}

/// A fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageWait {
    pub thread: Utid,
    pub start: u64,
    /// From the begin to the end, ns.
    pub span: u64,
    /// How long the thread waited for the page: of a major fault all of it, otherwise while it blocked.
    pub waited: u64,
    /// How long it blocked.
    pub blocked: u64,
    pub reason: Reason,
    pub counted: Counted,
    pub source: Source,
    pub page: Page,
    /// Row of the areas, or [`NONE`].
    pub area: u32,
    pub read_bytes: u64,
    pub stack: StackId,
    /// Whether it begins within the operation. Otherwise it lies before that.
    pub in_window: bool,
}

impl PageWait {
    /// When it is over.
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.span)
    }

    /// Whether anybody waited, for a page and not for the lock of the address space.
    pub(super) fn waits(&self) -> bool {
        match self.counted {
            Counted::Major => true,
            Counted::Minor | Counted::Blocked => self.blocked > 0 && self.reason != Reason::Lock,
        }
    }
}

/// An interval in which a thread blocked.
struct Block {
    start: u64,
    end: u64,
    row: usize,
}

/// All faults of chosen threads up to the end of the window, in the order of time for each thread; and the bytes
/// that the threads read from disks outside of faults within the window.
pub(super) fn collect(
    tables: &Tables<'_>,
    window: Window,
    is_chosen: &dyn Fn(Utid) -> bool,
) -> (Vec<PageWait>, CallReads) {
    let Tables {
        case, faults, ios, ..
    } = tables;
    let mut by_thread: HashMap<Utid, Vec<usize>> = HashMap::new();
    for row in 0..faults.ts.len() {
        if faults.ts[row] < window.to && is_chosen(faults.thread[row]) {
            by_thread.entry(faults.thread[row]).or_default().push(row);
        }
    }
    let mut reads: HashMap<Utid, Vec<usize>> = HashMap::new();
    for row in 0..ios.ts.len() {
        if is_read(ios, row) && is_chosen(ios.thread[row]) {
            reads.entry(ios.thread[row]).or_default().push(row);
        }
    }
    let mut reasons = Reasons::default();
    let (mut all, mut by_calls) = (Vec::new(), Vec::new());
    for thread in case
        .recording
        .timeline
        .threads()
        .filter(|&thread| is_chosen(thread))
    {
        let mut rows = by_thread.remove(&thread).unwrap_or_default();
        rows.sort_unstable_by_key(|&row| faults.ts[row]);
        let mut reads = reads.remove(&thread).unwrap_or_default();
        reads.sort_unstable_by_key(|&row| ios.ts[row]);
        let blocks = blocks(case, thread, window);
        let from = all.len();
        of_thread(tables, thread, &rows, &blocks, &mut reasons, &mut all);
        for wait in &mut all[from..] {
            wait.in_window = wait.start >= window.from;
        }
        let mut in_faults = vec![false; reads.len()];
        for wait in &mut all[from..] {
            let first = reads.partition_point(|&row| ios.ts[row] < wait.start);
            let behind = reads.partition_point(|&row| ios.ts[row] <= wait.end());
            for at in first..behind {
                if !std::mem::replace(&mut in_faults[at], true) {
                    wait.read_bytes += u64::from(ios.bytes[reads[at]]);
                }
            }
        }
        let of_calls = reads.into_iter().zip(in_faults);
        by_calls.extend(
            of_calls
                .filter(|(_, in_fault)| !in_fault)
                .map(|(row, _)| row),
        );
    }
    (all, call_reads(ios, by_calls, window))
}

/// What system calls had read from disks.
#[derive(Clone, Copy, Default)]
pub(super) struct CallReads {
    /// How many bytes in the window.
    pub(super) bytes: u64,
    /// How many of them had been read before, in the window or earlier: the page cache did not keep them.
    pub(super) again: u64,
    /// How long requests took of which that is the greater part, in the window, all together, ns.
    pub(super) again_ns: u64,
}

/// A request of the kernel is smaller by far.
const MOST_BLOCKS: u64 = 65_536;

fn call_reads(ios: &Ios, mut rows: Vec<usize>, window: Window) -> CallReads {
    const BLOCK: u64 = 4096;
    rows.sort_unstable_by_key(|&row| ios.ts[row]);
    let mut known: HashSet<(u32, u64)> = HashSet::new();
    let mut sum = CallReads::default();
    for row in rows.into_iter().take_while(|&row| ios.ts[row] < window.to) {
        let bytes = u64::from(ios.bytes[row]);
        let first = ios.sector[row] / (BLOCK / 512);
        let count = bytes.div_ceil(BLOCK).min(MOST_BLOCKS);
        let again = (first..first.saturating_add(count))
            .filter(|&block| !known.insert((ios.device[row], block)))
            .count() as u64;
        if ios.ts[row] >= window.from {
            sum.bytes += bytes;
            let again = (again * BLOCK).min(bytes);
            sum.again += again;
            if again > bytes / 2 {
                sum.again_ns = sum.again_ns.saturating_add(ios.duration[row]);
            }
        }
    }
    sum
}

/// Where a thread blocked in a fault or, which may be one of the kernel's, in a system call.
fn blocks(case: &Case, thread: Utid, window: Window) -> Vec<Block> {
    let intervals = case.recording.timeline.intervals(thread);
    let blocked = intervals.between(0, window.to).filter_map(|interval| {
        let Cause::Switch(row) = interval.cause else {
            return None;
        };
        (interval.state == State::Blocked).then_some(Block {
            start: interval.start,
            end: interval.end,
            row: row as usize,
        })
    });
    blocked.collect()
}

fn of_thread(
    tables: &Tables<'_>,
    thread: Utid,
    rows: &[usize],
    blocks: &[Block],
    reasons: &mut Reasons,
    into: &mut Vec<PageWait>,
) {
    let Tables {
        case,
        areas,
        faults,
        ..
    } = tables;
    let switches = &case.recording.switches;
    let process = case.recording.threads.thread(thread).upid;
    let from = into.len();
    let mut is_told = vec![false; blocks.len()];
    for &row in rows {
        let start = faults.ts[row];
        let end = start.saturating_add(faults.duration[row]);
        let first = blocks.partition_point(|block| block.start < start);
        let behind = blocks.partition_point(|block| block.start < end);
        let mut blocked = 0;
        let mut longest: Option<&Block> = None;
        for (block, told) in blocks[first..behind]
            .iter()
            .zip(&mut is_told[first..behind])
        {
            *told = true;
            blocked += block.end.min(end).saturating_sub(block.start);
            if longest.is_none_or(|longest| longest.end - longest.start < block.end - block.start) {
                longest = Some(block);
            }
        }
        let counted = match faults.major[row] {
            true => Counted::Major,
            false => Counted::Minor,
        };
        let area = faults.area[row];
        let source = source(
            areas,
            area,
            faults.of_file[row] || faults.duration[row] == 0,
        );
        let reason = longest.map(|block| reasons.of(case, switches.kernel_stack[block.row]));
        let reason = reason.filter(|&reason| reason != Reason::Unknown);
        into.push(PageWait {
            thread,
            start,
            span: end - start,
            waited: match counted {
                Counted::Major => end - start,
                _ => blocked,
            },
            blocked,
            reason: reason.unwrap_or(match source {
                Source::File => Reason::Read,
                Source::Swap => Reason::Swap,
            }),
            counted,
            source,
            page: page(areas, area, process, faults.address[row]),
            area,
            read_bytes: 0,
            stack: match faults.user_stack[row] {
                NO_STACK => longest.map_or(NO_STACK, |block| switches.user_stack[block.row]),
                stack => stack,
            },
            in_window: true,
        });
    }
    for (block, told) in blocks.iter().zip(is_told) {
        let (call, address) = (switches.call[block.row], switches.arg[block.row]);
        if told || call != NO_CALL || address == 0 {
            continue;
        }
        let reason = reasons.of(case, switches.kernel_stack[block.row]);
        // Stopped, or frozen, on the way back from a call: nothing of it is a fault's.
        if reason == Reason::Unknown && switches.kernel_stack[block.row] != NO_STACK {
            continue;
        }
        // One fault may block several times.
        if let Some(last) = into[from..].last_mut().filter(|last| {
            last.counted == Counted::Blocked
                && last.page == page(areas, last.area, process, address)
                && last.reason == reason
        }) {
            last.blocked += block.end - block.start;
            last.waited = last.blocked;
            last.span = block.end - last.start;
            continue;
        }
        let area = area_of(areas, process, address);
        into.push(PageWait {
            thread,
            start: block.start,
            span: block.end - block.start,
            waited: block.end - block.start,
            blocked: block.end - block.start,
            reason,
            counted: Counted::Blocked,
            source: source(areas, area, true),
            page: page(areas, area, process, address),
            area,
            read_bytes: 0,
            stack: switches.user_stack[block.row],
            in_window: true,
        });
    }
    into[from..].sort_by_key(|wait| wait.start);
}

/// What a major fault's page came from. One that was looked for in a file came from there, and so did
/// what nobody saw begin, if its memory is a file's.
fn source(areas: &Areas, area: u32, of_file: bool) -> Source {
    let has_file = area != NONE && areas.file[area as usize] != NONE;
    if of_file && (has_file || area == NONE) {
        Source::File
    } else {
        Source::Swap
    }
}

/// The area of a process that has an address, as it was described last.
fn area_of(areas: &Areas, process: Upid, address: u64) -> u32 {
    let rows = (0..areas.area.len()).rev();
    let mut found = rows.filter(|&row| {
        areas.process[row] == process && (areas.start[row]..areas.end[row]).contains(&address)
    });
    found.next().map_or(NONE, |row| row as u32)
}

fn page(areas: &Areas, area: u32, process: Upid, address: u64) -> Page {
    let own = Page::Own {
        process,
        number: address / super::PAGE,
    };
    if area == NONE {
        return own;
    }
    let row = area as usize;
    match areas.file[row] {
        // What a process has written to is its own.
        file if file != NONE && (areas.shared[row] || !areas.writable[row]) => Page::Of {
            file,
            number: (address
                .saturating_sub(areas.start[row])
                .saturating_add(areas.file_offset[row]))
                / super::PAGE,
        },
        _ => own,
    }
}

/// What kernel stacks say, each looked at once.
#[derive(Default)]
struct Reasons(HashMap<StackId, Reason>);

impl Reasons {
    fn of(&mut self, case: &Case, stack: StackId) -> Reason {
        if stack == NO_STACK {
            return Reason::Unknown;
        }
        *self.0.entry(stack).or_insert_with(|| {
            let frames: Vec<_> = case.stacks.stack(stack).collect();
            let functions: Vec<&str> = frames.iter().filter_map(|frame| frame.function).collect();
            Reason::of(&functions)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is further in tells more: a served file is read, and a page that is swapped in may wait for
    /// memory.
    #[test]
    fn the_kernels_functions_tell_the_reason() {
        let of = |functions: &str| Reason::of(&functions.split(' ').collect::<Vec<_>>());
        let common = "__schedule schedule io_schedule folio_wait_bit_common";
        assert_eq!(
            of(&format!("{common} filemap_fault __do_fault")),
            Reason::Read
        );
        assert_eq!(
            of(&format!("{common} __folio_lock_or_retry do_swap_page")),
            Reason::Swap
        );
        assert_eq!(
            of("schedule request_wait_answer fuse_simple_request fuse_read_folio filemap_fault"),
            Reason::Served
        );
        assert_eq!(
            of(&format!(
                "{common} folio_wait_writeback ext4_page_mkwrite do_page_mkwrite do_fault"
            )),
            Reason::Writeback
        );
        assert_eq!(
            of("schedule try_to_free_mem_cgroup_pages charge_memcg do_swap_page"),
            Reason::Memory
        );
        assert_eq!(
            of("schedule rwsem_down_read_slowpath down_read"),
            Reason::Lock
        );
        assert_eq!(of("schedule do_signal_stop get_signal"), Reason::Unknown);
    }
}
