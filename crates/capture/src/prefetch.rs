//! Files out of the page cache and into it: for measuring how long a command takes when nothing of its
//! files is in memory, and what it gains if they are asked for at once.

use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use crate::residence::cached_bytes;

const PAGE: u64 = 4096;

/// A regular file, opened for reading. Nothing else is opened: to open a device may do something.
fn open(path: &str) -> Option<File> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    options.open(path).ok()
}

fn advise(file: &File, from: u64, length: u64, advice: i32) {
    // SAFETY: the call takes numbers, and the descriptor is ours; that it fails does no harm.
    unsafe {
        libc::posix_fadvise(
            file.as_raw_fd(),
            from.cast_signed(),
            length.cast_signed(),
            advice,
        )
    };
}

/// Takes files out of the page cache, as far as they are not changed and no process has them mapped. Returns
/// how many bytes of them were there before, and how many still are.
pub fn evict<'a>(paths: impl Iterator<Item = &'a str>) -> (u64, u64) {
    let (mut before, mut after) = (0, 0);
    for file in paths.filter_map(open) {
        before += cached_bytes(&file).unwrap_or(0);
        advise(&file, 0, 0, libc::POSIX_FADV_DONTNEED);
        after += cached_bytes(&file).unwrap_or(0);
    }
    (before, after)
}

/// Has pages of a file read, in their order, and does not wait for them.
pub fn prefetch(path: &str, pages: &[Range<u64>]) {
    let Some(file) = open(path) else {
        return;
    };
    for range in pages {
        let length = range.end.saturating_sub(range.start) * PAGE;
        advise(&file, range.start * PAGE, length, libc::POSIX_FADV_WILLNEED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file goes from the page cache and comes back as far as it is asked for; on a file system in memory
    /// it stays.
    #[test]
    fn a_file_goes_and_comes() {
        let folder = env!("CARGO_MANIFEST_DIR");
        let mut file = tempfile::NamedTempFile::new_in(folder).unwrap();
        file.write_all(&vec![1; 256 * PAGE as usize]).unwrap();
        file.as_file().sync_all().unwrap();
        let path = file.path().to_str().unwrap();
        let (before, after) = evict([path].into_iter());
        assert_eq!(before, 256 * PAGE);
        if after > 0 {
            eprintln!("NOT RUN: {folder} is in memory");
            return;
        }
        prefetch(path, &[0..16, 128..160]);
        let asked_for = 48 * PAGE;
        // It is not waited for.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while cached_bytes(file.as_file()).unwrap() < asked_for {
            assert!(std::time::Instant::now() < until, "it does not come");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(cached_bytes(file.as_file()).unwrap() < 256 * PAGE);
    }
}
