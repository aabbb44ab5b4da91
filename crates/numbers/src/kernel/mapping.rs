//! Mapped memory that is unmapped when it is dropped, what a touch of its pages costs, and whether
//! they are in the page cache.

use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::{Duration, Instant};

use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// What is mapped and unmapped in `kernel.mmap`, bytes.
const MAPPED: usize = 64 << 10;

pub(crate) const MAP: Method = Method {
    id: "kernel.mmap",
    section: Section::Kernel,
    figures: &[Kind::ns("kernel.mmap", "mmap + munmap 64 KiB")],
    how: "mmap of 64 KiB of anonymous memory and munmap of it; no page is touched, so no fault and \
          no page's release is in it.",
    source: "lmbench's lat_mmap (McVoy and Staelin 1996), which maps a file and touches it",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let _pinned = cpu::pin(place.here)?;
        meter.repeat("kernel.mmap", || {
            black_box(Mapping::anonymous(MAPPED)?);
            Ok(())
        })
    },
};

/// Memory between mmap and munmap, readable; writable if it is not a file's.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut u8,
    bytes: usize,
}

/// What touching pages did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touched {
    pub took: Duration,
    /// Faults that the kernel counted for this thread meanwhile, without and with reading a disk.
    pub minor: u64,
    pub major: u64,
}

impl Mapping {
    /// Fresh memory.
    pub fn anonymous(bytes: usize) -> Result<Mapping, Untried> {
        Mapping::new(
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
        )
    }

    /// The file as it is, to read.
    pub fn shared(file: &File, bytes: usize) -> Result<Mapping, Untried> {
        Mapping::new(bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// The file's content, copied where it is written.
    pub fn private(file: &File, bytes: usize) -> Result<Mapping, Untried> {
        Mapping::new(
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
        )
    }

    #[inline]
    fn new(bytes: usize, access: i32, flags: i32, file: i32) -> Result<Mapping, Untried> {
        // SAFETY: the kernel chooses an address where nothing is.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, file, 0) };
        if start == libc::MAP_FAILED {
            return Err(Untried::last("mmap"));
        }
        Ok(Mapping {
            start: start.cast(),
            bytes,
        })
    }

    /// Tells the kernel how it will be used. Advice that a kernel was built without is no loss.
    pub fn advise(&self, advice: i32) {
        // SAFETY: only advice that leaves the content as it is, of this mapping.
        unsafe { libc::madvise(self.start.cast(), self.bytes, advice) };
    }

    /// Reads a byte every `stride` bytes, ascending.
    pub fn read(&self, stride: usize) -> Result<Touched, Untried> {
        self.touch(stride, |byte| {
            // SAFETY: `touch` gives addresses within the mapping, which may be read.
            unsafe { byte.read_volatile() };
        })
    }

    /// Writes a byte every `stride` bytes, ascending. Not for a shared mapping.
    pub fn write(&mut self, stride: usize) -> Result<Touched, Untried> {
        self.touch(stride, |byte| {
            // SAFETY: as above, and the mapping is borrowed by nobody else.
            unsafe { byte.write_volatile(1) };
        })
    }

    /// Reads the byte at `offset`.
    pub fn read_at(&self, offset: usize) -> Result<Touched, Untried> {
        assert!(offset < self.bytes);
        touched(|| {
            // SAFETY: within the mapping, which may be read.
            unsafe { self.start.add(offset).read_volatile() };
        })
    }

    #[inline(always)]
    fn touch(&self, stride: usize, each: impl Fn(*mut u8)) -> Result<Touched, Untried> {
        touched(|| {
            for offset in (0..self.bytes).step_by(stride) {
                // SAFETY: the offset is below the mapping's length.
                each(unsafe { self.start.add(offset) });
            }
        })
    }

    /// For each page, whether it is in the page cache. A file's owner is told; others hear that all
    /// pages are.
    pub fn cached(&self) -> Result<Vec<bool>, Untried> {
        let mut pages = vec![0u8; self.bytes.div_ceil(page_bytes())];
        // SAFETY: the kernel fills a byte for each page of this mapping.
        if unsafe { libc::mincore(self.start.cast(), self.bytes, pages.as_mut_ptr()) } != 0 {
            return Err(Untried::last("mincore"));
        }
        Ok(pages.iter().map(|page| page & 1 != 0).collect())
    }
}

impl Drop for Mapping {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and addresses in it end with it.
        let result = unsafe { libc::munmap(self.start.cast(), self.bytes) };
        debug_assert_eq!(result, 0);
    }
}

#[inline(always)]
fn touched(touch: impl FnOnce()) -> Result<Touched, Untried> {
    let (minor, major) = faults()?;
    let start = Instant::now();
    touch();
    let took = start.elapsed();
    let (minor_after, major_after) = faults()?;
    Ok(Touched {
        took,
        minor: minor_after - minor,
        major: major_after - major,
    })
}

/// Faults of this thread so far, minor and major.
fn faults() -> Result<(u64, u64), Untried> {
    // SAFETY: a rusage is plain numbers; the kernel fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_THREAD, &mut usage) != 0 {
            return Err(Untried::last("getrusage"));
        }
        usage
    };
    Ok((usage.ru_minflt as u64, usage.ru_majflt as u64))
}

/// A page's size, bytes.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: asks for a constant.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is measured maps memory, takes no fault, and unmaps it: no trace in /proc/self/maps.
    #[test]
    fn a_mapping_comes_and_goes_untouched() {
        let before = faults().unwrap();
        let mapping = Mapping::anonymous(MAPPED).unwrap();
        assert_eq!(faults().unwrap(), before);
        let start = mapping.start as usize;
        // Neighbours may have been joined to it: what counts is whether its start is covered.
        let mapped = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.lines().any(|line| {
                let range = line.split(' ').next().unwrap();
                let (from, to) = range.split_once('-').unwrap();
                let number = |hex| usize::from_str_radix(hex, 16).unwrap();
                (number(from)..number(to)).contains(&start)
            })
        };
        assert!(mapped());
        let page = start as *mut libc::c_void;
        // SAFETY: asks about a page of the mapping, which exists.
        unsafe {
            let mut there = 0u8;
            assert_eq!(libc::mincore(page, 1, &mut there), 0);
            assert_eq!(there & 1, 0, "never touched");
        }
        drop(mapping);
    }
}
