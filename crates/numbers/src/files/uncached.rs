//! Reading files that are not in the page cache.

use std::fs::File;
use std::time::{Duration, Instant};

use super::directory::{Directory, Growing};
use super::read::SIZES;
use crate::cpu;
use crate::kernel::cache;
use crate::kind::{Axis, Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Sizes below are one page, bytes.
const SMALLEST: u64 = 4 << 10;

pub(crate) const READ: Method = Method {
    id: "file.read_uncached",
    section: Section::Files,
    figures: &[
        Kind::ns("file.open_read_uncached", "open + read + close, from disk").over(Axis::Bytes),
        Kind::ns("file.read_uncached", "read an open file, from disk").over(Axis::Bytes),
    ],
    how: "Reads the whole of a file that was written to the disk and dropped from the page cache \
          before each reading (posix_fadvise; mincore says whether it is gone), 64 KiB at a time, \
          with the usual read-ahead; the first reading after the writing does not count. Its name \
          and where it lies on the disk are still known to the kernel, and the disk, or the host of \
          a guest, may have it in a cache of its own. The largest sizes are left out where they \
          take more than the time or a quarter of the free space.",
    source: "lmbench's bw_file_rd (McVoy and Staelin 1996), with a cold cache",
    weight: 5,
    run,
};

fn run(place: &Place, meter: &mut Meter) -> Result<(), Untried> {
    let _pinned = cpu::pin(place.here)?;
    let mut file = Growing::new(place, true)?;
    let sizes = || SIZES.into_iter().filter(|&bytes| bytes >= SMALLEST);
    for (sizes_done, bytes) in sizes().enumerate() {
        if !file.may_be(bytes, meter) {
            break;
        }
        // The first reading may wait for the disk's own writing, and does not count.
        file.grow(bytes, |directory| {
            read(directory, bytes, false, |_| Ok(())).map(|_| ())
        })?;
        // The largest have to be made first: that takes as long as some of the small ones.
        let shares = sizes().count() - sizes_done + 10;
        let end = Instant::now() + meter.time_left() / shares as u32;
        loop {
            for (figure, opened_before) in [
                ("file.open_read_uncached", false),
                ("file.read_uncached", true),
            ] {
                let took = read(&mut file.directory, bytes, opened_before, |_| Ok(()))?;
                meter.push_at(figure, bytes, took.as_nanos() as f64);
            }
            if Instant::now() >= end {
                break;
            }
        }
    }
    Ok(())
}

/// One reading of a file that is not in the cache, as `check` may see for itself just before.
fn read(
    directory: &mut Directory,
    bytes: u64,
    opened_before: bool,
    check: impl FnOnce(&File) -> Result<(), Untried>,
) -> Result<Duration, Untried> {
    let file = directory.open(Growing::NAME)?;
    cache::forget(&file, bytes as usize, directory.path())?;
    check(&file)?;
    let start = Instant::now();
    if opened_before {
        directory.pread(&file, bytes)?;
    } else {
        directory.open_read(Growing::NAME, bytes)?;
    }
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mapping::page_bytes;
    use crate::kernel::tests::{not_run, place};

    /// Just before each reading no page of the file is in the cache, after it all of them are.
    #[test]
    fn what_is_read_was_not_cached() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = Growing::new(&place(dir.path()), true).unwrap();
        for bytes in [SMALLEST, 64 << 10, 1 << 20] {
            file.grow(bytes, |_| Ok(())).unwrap();
            for opened_before in [false, true] {
                let read = read(&mut file.directory, bytes, opened_before, |file| {
                    assert_eq!(cache::cached_pages(file, bytes as usize).unwrap(), 0);
                    Ok(())
                });
                if let Err(untried) = read {
                    return not_run(&untried);
                }
                let opened = file.directory.open(Growing::NAME).unwrap();
                assert_eq!(
                    cache::cached_pages(&opened, bytes as usize).unwrap(),
                    bytes as usize / page_bytes()
                );
            }
        }
    }
}
