//! Files out of the page cache, without root: the kernel is asked to forget a file's pages, and
//! then whether it did.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::mapping::Mapping;
use crate::machine::Machine;
use crate::meter::Untried;

/// How often it is asked: a page in use for a moment (being written back, in a CPU's list) stays.
const TIMES: u32 = 5;

/// Drops the file's pages, and looks whether they are gone. What was written must be on the disk
/// before (fsync): pages that are not are kept. `dir` is told of where they cannot be dropped.
pub(crate) fn forget(file: &File, bytes: usize, dir: &Path) -> Result<(), Untried> {
    let mut left = 0;
    for _ in 0..TIMES {
        // SAFETY: the file is open; 0 to 0 is the whole of it.
        let error =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if error != 0 {
            let error = std::io::Error::from_raw_os_error(error);
            return Err(Untried::call("posix_fadvise", error));
        }
        left = cached_pages(file, bytes)?;
        if left == 0 {
            return Ok(());
        }
    }
    Err(Untried(format!(
        "{left} pages of a file stay in the page cache when they are to be dropped, on this file \
         system ({})",
        Machine::look(dir).files.kind
    )))
}

/// How many of the file's pages are in the page cache.
pub(crate) fn cached_pages(file: &File, bytes: usize) -> Result<usize, Untried> {
    let cached = Mapping::shared(file, bytes)?.cached()?;
    Ok(cached.iter().filter(|&&cached| cached).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mapping::page_bytes;
    use crate::kernel::tests::not_run;
    use std::io::Write;
    use std::os::fd::FromRawFd;

    /// A file that was written is in the cache, as many pages as it has; forgotten, none is; read,
    /// they are again. Files in memory cannot be forgotten, and it is said so.
    #[test]
    fn forgotten_pages_are_gone() {
        let bytes = 16 * page_bytes();
        let dir = std::env::temp_dir();
        let mut file = tempfile::tempfile_in(&dir).unwrap();
        file.write_all(&vec![1; bytes]).unwrap();
        file.sync_all().unwrap();
        assert_eq!(cached_pages(&file, bytes).unwrap(), 16);
        match forget(&file, bytes, &dir) {
            Ok(()) => {
                assert_eq!(cached_pages(&file, bytes).unwrap(), 0);
                Mapping::shared(&file, bytes)
                    .unwrap()
                    .read(page_bytes())
                    .unwrap();
                assert_eq!(cached_pages(&file, bytes).unwrap(), 16);
            }
            Err(untried) => not_run(&untried),
        }

        // SAFETY: the name ends in zero; the file is made here and is nobody else's.
        let mut memory = unsafe { File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), 0)) };
        memory.write_all(&vec![1; bytes]).unwrap();
        let refused = forget(&memory, bytes, &dir).unwrap_err().0;
        assert!(refused.starts_with("16 pages of a file stay"), "{refused}");
    }
}
