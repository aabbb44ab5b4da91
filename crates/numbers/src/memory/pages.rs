//! Memory mapped afresh, in small or in huge pages.

use std::fs;
use std::io;
use std::ptr::{self, NonNull};

use crate::meter::Untried;

/// A huge page on x86-64, and on arm64 with pages of 4 KiB.
const HUGE: usize = 2 << 20;

/// Which pages to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// As small as there are.
    Small,
    /// Huge ones only.
    Huge,
}

/// Private anonymous memory, all of it present, aligned to a huge page. Unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Memory {
    mapping: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to this value alone, wherever it goes.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps `bytes` and touches every page. Refuses where the kernel gives other pages than asked.
    pub fn map(bytes: usize, pages: Pages) -> Result<Memory, Untried> {
        let bytes = bytes.next_multiple_of(match pages {
            Pages::Small => 4096,
            Pages::Huge => HUGE,
        });
        let mapped = bytes + HUGE;
        let advice = match pages {
            Pages::Small => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: a new private mapping overlaps nothing; the part handed out lies inside of it,
        // because `mapped` has room for the alignment.
        let memory = unsafe {
            let (protection, flags) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            );
            let address = libc::mmap(ptr::null_mut(), mapped, protection, flags, -1, 0);
            if address == libc::MAP_FAILED {
                return Err(Untried::last(&format!("{bytes} bytes of memory")));
            }
            let mapping = NonNull::new_unchecked(address.cast::<u8>());
            let start = mapping.add(mapping.align_offset(HUGE));
            Memory {
                mapping,
                mapped,
                start,
                bytes,
            }
        };
        // SAFETY: advice on this value's own memory, which keeps its content.
        let advised = unsafe { libc::madvise(memory.start.as_ptr().cast(), bytes, advice) };
        // A kernel without huge pages refuses both kinds of advice, and gives small ones.
        if advised != 0 && pages == Pages::Huge {
            return Err(Untried::last("huge pages"));
        }
        for page in (0..bytes).step_by(4096) {
            // SAFETY: inside the mapping.
            unsafe { memory.start.add(page).write_volatile(0) };
        }
        let huge = memory.huge_bytes()?;
        match pages {
            Pages::Huge if huge < bytes => Err(Untried(format!(
                "of {} MiB asked for in huge pages the kernel gave {} MiB",
                bytes >> 20,
                huge >> 20
            ))),
            Pages::Small if huge > 0 => Err(Untried(
                "the kernel gives huge pages where small ones were asked for".to_owned(),
            )),
            _ => Ok(memory),
        }
    }

    /// Its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its size, bytes; at least what was asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How much of it lies in huge pages now, bytes, as /proc/self/smaps says.
    fn huge_bytes(&self) -> Result<usize, Untried> {
        let smaps = fs::read_to_string("/proc/self/smaps")
            .map_err(|error| Untried::call("/proc/self/smaps", error))?;
        huge_bytes(&smaps, self.start.as_ptr() as usize, self.bytes)
            .ok_or_else(|| Untried::call("/proc/self/smaps", io::ErrorKind::InvalidData.into()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by this value, which is the only one that knows of it.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}

/// The sum of AnonHugePages of the mappings that begin in `start..start + bytes`: advice cuts a
/// mapping in parts. None if there is no such mapping.
fn huge_bytes(smaps: &str, start: usize, bytes: usize) -> Option<usize> {
    let mut inside = false;
    let mut found = None;
    for line in smaps.lines() {
        let head = line
            .split_once(' ')
            .and_then(|(range, _)| range.split_once('-'));
        if let Some(Ok(first)) = head.map(|(first, _)| usize::from_str_radix(first, 16)) {
            inside = (start..start + bytes).contains(&first);
        } else if let Some(size) = line.strip_prefix("AnonHugePages:").filter(|_| inside) {
            let kib: usize = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
            found = Some(found.unwrap_or(0) + kib * 1024);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only mappings inside of the range count, and all of them.
    #[test]
    fn huge_pages_are_counted_in_the_range() {
        let smaps = "1000-3000 rw-p 00000000 00:00 0 \nSize: 8 kB\nAnonHugePages:      4096 kB\n\
                     3000-5000 rw-p 00000000 00:00 0 \nAnonHugePages:         0 kB\n\
                     9000-a000 rw-p 00000000 00:00 0 [heap]\nAnonHugePages:      2048 kB\n";
        assert_eq!(huge_bytes(smaps, 0x1000, 0x4000), Some(4 << 20));
        assert_eq!(huge_bytes(smaps, 0x3000, 0x1000), Some(0));
        assert_eq!(huge_bytes(smaps, 0x6000, 0x1000), None);
    }

    /// Small pages are small, and huge ones huge, as the kernel says; or it says that it has none.
    #[test]
    fn pages_are_what_was_asked_for() {
        let small = Memory::map(8 << 20, Pages::Small).unwrap();
        assert_eq!(small.huge_bytes().unwrap(), 0);
        match Memory::map(8 << 20, Pages::Huge) {
            Ok(huge) => assert_eq!(huge.huge_bytes().unwrap(), 8 << 20),
            Err(untried) => println!("NOT RUN: huge pages: {untried}"),
        }
    }
}
