//! perf events: the sampling clock, counters, breakpoints, and mapping events.
//!
//! A mapping cannot be had from a typed tracepoint, and polling /proc misses programs that live
//! for milliseconds. A dummy event per CPU with `mmap2` and `comm_exec` tells of every executable
//! mapping and of every exec, in order, with build-ids.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use hangdog_symbols::text::hexadecimal;

use crate::error::{Error, Result};
use crate::records::{Definition, RawMapping, What, text};

/// `struct perf_event_attr` up to its sixth version; the kernel takes any known size.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period_or_frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
    aux_sample_size: u32,
    reserved3: u32,
}

const TYPE_SOFTWARE: u32 = 1;
const TYPE_BREAKPOINT: u32 = 5;
const CPU_CLOCK: u64 = 0;
const MINOR_FAULTS: u64 = 5;
const MAJOR_FAULTS: u64 = 6;
const DUMMY: u64 = 9;
const SAMPLE_TIME: u64 = 1 << 2;

/// Of the call itself: close the descriptor on exec.
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;

const FLAG_DISABLED: u64 = 1;
const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_EXCLUDE_HV: u64 = 1 << 6;
const FLAG_MMAP: u64 = 1 << 8;
const FLAG_COMM: u64 = 1 << 9;
const FLAG_FREQUENCY: u64 = 1 << 10;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_MMAP2: u64 = 1 << 23;
const FLAG_COMM_EXEC: u64 = 1 << 24;
const FLAG_USE_CLOCKID: u64 = 1 << 25;
const FLAG_BUILD_ID: u64 = 1 << 34;
const FLAG_INHERIT_THREAD: u64 = 1 << 35;
const FLAG_REMOVE_ON_EXEC: u64 = 1 << 36;

fn open(attributes: &Attributes, cpu: usize) -> std::io::Result<OwnedFd> {
    open_for(attributes, ALL_THREADS, cpu as i32)
}

/// Of all threads that a CPU runs.
const ALL_THREADS: i32 = -1;
/// On whichever CPU a thread runs.
const ALL_CPUS: i32 = -1;

fn open_for(attributes: &Attributes, tid: i32, cpu: i32) -> std::io::Result<OwnedFd> {
    // SAFETY: `attributes` is a live perf_event_attr whose `size` field is its true size, and the
    // call keeps no pointer to it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes as *const Attributes,
            tid,
            cpu,
            -1,
            FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// The sampling clock of one CPU, `hz` times a second.
pub(crate) fn sampling_clock(cpu: usize, hz: u32) -> Result<OwnedFd> {
    let attributes = Attributes {
        kind: TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: CPU_CLOCK,
        sample_period_or_frequency: hz.into(),
        flags: FLAG_FREQUENCY | FLAG_DISABLED,
        ..Attributes::default()
    };
    open(&attributes, cpu).map_err(|cause| Error::system("open the sampling clock", cause))
}

/// Each page fault of one CPU, when it is over: the major ones, or the minor ones.
pub(crate) fn page_faults(cpu: usize, major: bool) -> Result<OwnedFd> {
    let attributes = Attributes {
        kind: TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: if major { MAJOR_FAULTS } else { MINOR_FAULTS },
        sample_period_or_frequency: 1,
        flags: FLAG_DISABLED,
        ..Attributes::default()
    };
    open(&attributes, cpu).map_err(|cause| Error::system("listen to page faults", cause))
}

/// What a breakpoint reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// `HW_BREAKPOINT_W`.
    Writes = 2,
    /// `HW_BREAKPOINT_RW`.
    ReadsAndWrites = 3,
}

/// A hardware breakpoint of one thread and of the threads that it will make, not yet enabled. What
/// the kernel does on the thread's behalf is not reported. A child process does not have it, nor
/// another program that the process executes; and it is gone with its descriptor.
pub(crate) fn breakpoint(
    tid: u32,
    address: u64,
    size: u8,
    watched: Watched,
) -> std::io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: TYPE_BREAKPOINT,
        size: size_of::<Attributes>() as u32,
        sample_period_or_frequency: 1,
        flags: FLAG_DISABLED
            | FLAG_INHERIT
            | FLAG_EXCLUDE_KERNEL
            | FLAG_EXCLUDE_HV
            | FLAG_INHERIT_THREAD
            | FLAG_REMOVE_ON_EXEC,
        bp_type: watched as u32,
        config1: address,
        config2: size.into(),
        ..Attributes::default()
    };
    open_for(&attributes, tid as i32, ALL_CPUS)
}

/// Has an event, and those that were inherited from it, report or not.
pub(crate) fn enable(event: &OwnedFd, on: bool) {
    const ENABLE: libc::c_ulong = 0x2400;
    const DISABLE: libc::c_ulong = 0x2401;
    let request = if on { ENABLE } else { DISABLE };
    // SAFETY: both requests take a plain number, and the descriptor is ours. They fail only where
    // the event's thread is gone.
    unsafe { libc::ioctl(event.as_raw_fd(), request, 0) };
}

/// An event that counts all that one CPU does; `class` and `config` say what.
pub(crate) fn counter(cpu: usize, class: u32, config: u64) -> std::io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: class,
        size: size_of::<Attributes>() as u32,
        config,
        ..Attributes::default()
    };
    open(&attributes, cpu)
}

/// Mappings that a CPU's ring has room for, about.
pub(crate) const MAPPINGS: u32 = 2000;
/// Data pages of a mapping ring: 256 KiB a CPU.
const DATA_PAGES: usize = 64;
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The kernel's word on mappings and execs of one CPU.
pub(crate) struct MappingEvents {
    /// Keeps the event alive.
    _fd: OwnedFd,
    base: *mut u8,
    page: usize,
    data: Vec<u8>,
}

// SAFETY: `base` is a mapping owned by this value alone, unmapped in Drop; nothing in it is bound
// to the thread that made it.
unsafe impl Send for MappingEvents {}

impl MappingEvents {
    /// Opens it on `cpu`.
    pub(crate) fn open(cpu: usize) -> Result<MappingEvents> {
        let mut attributes = Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: DUMMY,
            sample_type: SAMPLE_TIME,
            clockid: libc::CLOCK_MONOTONIC,
            flags: FLAG_MMAP
                | FLAG_MMAP2
                | FLAG_COMM
                | FLAG_COMM_EXEC
                | FLAG_SAMPLE_ID_ALL
                | FLAG_USE_CLOCKID
                | FLAG_BUILD_ID,
            ..Attributes::default()
        };
        let doing = "listen to mappings";
        let fd = open(&attributes, cpu)
            .or_else(|_| {
                // Kernels without build-ids in the event.
                attributes.flags &= !FLAG_BUILD_ID;
                open(&attributes, cpu)
            })
            .map_err(|cause| Error::system(doing, cause))?;
        // SAFETY: sysconf has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        // SAFETY: a fresh mapping of a descriptor that we own; the result is checked.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                (DATA_PAGES + 1) * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Error::last_os(doing));
        }
        Ok(MappingEvents {
            _fd: fd,
            base: base.cast(),
            page,
            data: Vec::new(),
        })
    }

    /// Takes what has come since the last time. Returns how many events the kernel dropped.
    pub(crate) fn drain(&mut self, into: &mut Vec<Definition>) -> u64 {
        // SAFETY: both words lie in the mapped control page, are 8-byte aligned, and the protocol
        // of perf_event_mmap_page makes them atomics shared with the kernel.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(self.base.add(HEAD).cast()),
                AtomicU64::from_ptr(self.base.add(TAIL).cast()),
            )
        };
        let size = DATA_PAGES * self.page;
        let (end, mut at) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let mut lost = 0;
        while at < end {
            let header = self.copy(at, 8, size);
            let kind = u32::from_ne_bytes(header[..4].try_into().expect("4 bytes"));
            let misc = u16::from_ne_bytes(header[4..6].try_into().expect("2 bytes"));
            let length = u16::from_ne_bytes(header[6..8].try_into().expect("2 bytes"));
            if length < 8 || at + u64::from(length) > end {
                break;
            }
            let record = self.copy(at, length.into(), size);
            match parse(kind, misc, &record[8..]) {
                Some(Parsed::Definition(definition)) => into.push(definition),
                Some(Parsed::Lost(count)) => lost += count,
                None => {}
            }
            at += u64::from(length);
        }
        tail.store(end, Ordering::Release);
        lost
    }

    fn copy(&mut self, at: u64, length: usize, size: usize) -> &[u8] {
        let from = (at % size as u64) as usize;
        let first = length.min(size - from);
        self.data.clear();
        // SAFETY: the data area is `size` bytes behind the control page; both pieces lie within
        // it, and the kernel does not write between tail and head.
        unsafe {
            let data = self.base.add(self.page);
            self.data
                .extend_from_slice(std::slice::from_raw_parts(data.add(from), first));
            self.data
                .extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
        &self.data
    }
}

impl Drop for MappingEvents {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`, with the same length, used by nobody any more.
        unsafe { libc::munmap(self.base.cast(), (DATA_PAGES + 1) * self.page) };
    }
}

enum Parsed {
    Definition(Definition),
    Lost(u64),
}

const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_MMAP2: u32 = 10;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_BUILD_ID: u16 = 1 << 14;
const MISC_CPU_MODE: u16 = 7;
const MISC_KERNEL: u16 = 1;

/// Reads a record's body; `None` for what is of no use here.
fn parse(kind: u32, misc: u16, body: &[u8]) -> Option<Parsed> {
    let u64_at = |at: usize| -> Option<u64> {
        Some(u64::from_ne_bytes(body.get(at..at + 8)?.try_into().ok()?))
    };
    let pid = u32::from_ne_bytes(body.get(..4)?.try_into().ok()?);
    // sample_id_all puts the time at the end of every record.
    let ts = u64_at(body.len().checked_sub(8)?)?;
    match kind {
        RECORD_LOST => Some(Parsed::Lost(u64_at(8)?)),
        RECORD_COMM if misc & MISC_COMM_EXEC != 0 => Some(Parsed::Definition(Definition {
            ts,
            what: What::ClearMappings { pid },
        })),
        RECORD_MMAP2 if misc & MISC_CPU_MODE != MISC_KERNEL => {
            let (start, length, file_offset) = (u64_at(8)?, u64_at(16)?, u64_at(24)?);
            let build_id = if misc & MISC_BUILD_ID != 0 {
                let size = usize::from(*body.get(32)?).min(20);
                hexadecimal(body.get(36..36 + size)?)
            } else {
                String::new()
            };
            let path = text(body.get(64..body.len() - 8)?);
            let mapping = RawMapping {
                start,
                end: start.checked_add(length)?,
                file_offset,
                path,
                build_id,
            };
            Some(Parsed::Definition(Definition {
                ts,
                what: What::Map { pid, mapping },
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mapping record with a build-id gives address, offset, path and id; cut short it gives
    /// nothing and does not panic.
    #[test]
    fn a_mapping_record_is_read() {
        let mut body = vec![0u8; 64];
        body[..4].copy_from_slice(&42u32.to_ne_bytes());
        for (at, value) in [(8, 0x1000u64), (16, 0x2000), (24, 0x300)] {
            body[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        body[32] = 2;
        body[36..38].copy_from_slice(&[0xab, 0x01]);
        body.extend_from_slice(b"/lib/x\0\0");
        body.extend_from_slice(&99u64.to_ne_bytes());
        let Some(Parsed::Definition(definition)) = parse(RECORD_MMAP2, MISC_BUILD_ID | 2, &body)
        else {
            panic!()
        };
        assert_eq!(definition.ts, 99);
        let What::Map { pid: 42, mapping } = definition.what else {
            panic!()
        };
        let expected = RawMapping {
            start: 0x1000,
            end: 0x3000,
            file_offset: 0x300,
            path: "/lib/x".into(),
            build_id: "ab01".into(),
        };
        assert_eq!(mapping, expected);
        for length in 0..64 {
            parse(RECORD_MMAP2, MISC_BUILD_ID | 2, &body[..length]);
        }
    }
}
