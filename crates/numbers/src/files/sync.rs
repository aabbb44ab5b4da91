//! Waiting for the disk.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use super::directory::Directory;
use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Written before each fsync, bytes.
const WRITTEN: usize = 4 << 10;
/// In a visit: what is written is written to a disk, which wears.
const MOST: u32 = 256;

pub(crate) const SYNC: Method = Method {
    id: "file.fsync",
    section: Section::Files,
    figures: &[Kind::ns("file.fsync", "fsync of 4 KiB")],
    how: "Overwrites a file of 4 KiB, which is not counted, and waits for the disk with fsync, which \
          is. What a file system in memory has to do is nothing, and what a guest's disk calls \
          written may be in its host's memory.",
    source: "sysbench fileio and fio, one job that calls fsync after each write",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let _pinned = cpu::pin(place.here)?;
        let directory = Directory::new(place)?;
        let file = directory.create(c"synced")?;
        // The first makes room for the file on the disk.
        write_and_sync(&file, 0)?;
        for turn in 1..=MOST {
            let took = write_and_sync(&file, turn as u8)?;
            meter.push("file.fsync", took.as_nanos() as f64);
            if meter.time_left().is_zero() {
                break;
            }
        }
        Ok(())
    },
};

/// How long the fsync took, without the write.
fn write_and_sync(file: &File, content: u8) -> Result<Duration, Untried> {
    let bytes = [content; WRITTEN];
    // SAFETY: as many bytes as there are.
    let written = unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), WRITTEN, 0) };
    if written != WRITTEN as isize {
        return Err(Untried::last("pwrite"));
    }
    let start = Instant::now();
    // SAFETY: the file is open.
    if unsafe { libc::fsync(file.as_raw_fd()) } != 0 {
        return Err(Untried::last("fsync"));
    }
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cache::{cached_pages, forget};
    use crate::kernel::tests::{not_run, place};

    /// Each time there is something new to write: the file has this turn's content, and afterwards
    /// it is on the disk, because only such pages can be dropped from the cache.
    #[test]
    fn what_was_written_is_on_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::new(&place(dir.path())).unwrap();
        let file = directory.create(c"synced").unwrap();
        let reader = directory.open(c"synced").unwrap();
        for content in [1, 2] {
            write_and_sync(&file, content).unwrap();
            assert_eq!(cached_pages(&reader, WRITTEN).unwrap(), 1);
            if let Err(untried) = forget(&reader, WRITTEN, directory.path()) {
                return not_run(&untried);
            }
            assert_eq!(cached_pages(&reader, WRITTEN).unwrap(), 0);
            let found = std::fs::read(directory.path().join("synced")).unwrap();
            assert_eq!(found, [content; WRITTEN]);
        }
    }
}
