//! Making and removing files.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use super::directory::{Directory, room};
use crate::cpu;
use crate::kind::{Axis, Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Bytes.
const SIZES: [u64; 9] = [
    0,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
];
/// Files that are made one after the other, and then removed, at most.
const TOGETHER: u64 = 8;
/// FS_TOPDIR_FL of linux/fs.h.
const TOP_OF_HIERARCHY: libc::c_int = 0x0002_0000;
/// How often that is done for a size, at most. Not oftener, because of what [`far_from_others`]
/// says.
const TURNS: u64 = 5;
/// Of such files together, bytes, unless one is larger.
const TOGETHER_BYTES: u64 = 256 << 10;
/// Of all files of a size in a visit, bytes, unless two are larger.
const WRITTEN: u64 = 4 << 20;

pub(crate) const MAKE: Method = Method {
    id: "file.create",
    section: Section::Files,
    figures: &[
        Kind::ns("file.create", "create + write + close").over(Axis::Bytes),
        Kind::ns("file.delete", "delete").over(Axis::Bytes),
    ],
    how: "Makes up to 8 files in an empty directory, each by creat, write of 64 KiB at a time and \
          close, and then removes them by unlink in the same order. Nothing waits for the disk: \
          what was written may never have been there when it is removed. The largest sizes are left \
          out where they take more than the time or a quarter of the free space. ext4 is asked to \
          place the directory apart: where many files were removed in the last minutes, making one \
          takes it longer, up to milliseconds.",
    source: "lmbench's lat_fs (McVoy and Staelin 1996); D. Kurkin's talk at AppsConf 2018",
    weight: 3,
    run,
};

fn run(place: &Place, meter: &mut Meter) -> Result<(), Untried> {
    let _pinned = cpu::pin(place.here)?;
    far_from_others(&place.dir)?;
    let directory = Directory::new(place)?;
    let names = names()?;
    let room = room(place)?;
    let mut slowest = Duration::ZERO;
    for (sizes_done, bytes) in SIZES.into_iter().enumerate() {
        // Four times as much may take four times as long, and comes twice.
        let together = (TOGETHER_BYTES / bytes.max(1)).clamp(1, TOGETHER);
        if together * bytes > room || slowest * 8 > meter.time_left() + meter.budget() / 2 {
            break;
        }
        let names = &names[..together as usize];
        let turns = turns(together * bytes);
        let end = Instant::now() + meter.time_left() / (SIZES.len() - sizes_done + 2) as u32;
        for turn in 0..turns {
            let made = make(&directory, names, bytes)?;
            let removed = remove(&directory, names)?;
            slowest = (made + removed).max(slowest);
            // The first makes room in the directory, and finds memory.
            if turn > 0 {
                let each = |took: Duration| took.as_nanos() as f64 / together as f64;
                meter.push_at("file.create", bytes, each(made));
                meter.push_at("file.delete", bytes, each(removed));
                if Instant::now() >= end {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Asks ext4 to give directories in `dir` places of their own on the disk (`chattr +T`), where few
/// files were removed of late: it goes past each of those before it makes a new one, for minutes.
/// After 20,000 in the neighbourhood a file took 1.1 ms to make instead of 7 µs. Other file systems
/// do not know the flag, and need not.
fn far_from_others(dir: &Path) -> Result<(), Untried> {
    let dir = File::open(dir)?;
    let mut flags: libc::c_int = 0;
    // SAFETY: both calls read or write the flags, which are an int whatever the request's name says.
    unsafe {
        if libc::ioctl(dir.as_raw_fd(), libc::FS_IOC_GETFLAGS, &mut flags) == 0 {
            flags |= TOP_OF_HIERARCHY;
            libc::ioctl(dir.as_raw_fd(), libc::FS_IOC_SETFLAGS, &flags);
        }
    }
    Ok(())
}

/// How often as many bytes are made and removed, the first time included.
fn turns(bytes: u64) -> u64 {
    (WRITTEN / bytes.max(1)).clamp(2, TURNS)
}

fn names() -> Result<Vec<CString>, Untried> {
    (0..TOGETHER)
        .map(|number| CString::new(format!("file-{number}")))
        .collect::<Result<_, _>>()
        .map_err(|error| Untried(error.to_string()))
}

fn make(
    directory: &Directory,
    names: &[impl AsRef<CStr>],
    bytes: u64,
) -> Result<Duration, Untried> {
    let start = Instant::now();
    for name in names {
        directory.write(&directory.create(name.as_ref())?, bytes)?;
    }
    Ok(start.elapsed())
}

fn remove(directory: &Directory, names: &[impl AsRef<CStr>]) -> Result<Duration, Untried> {
    let start = Instant::now();
    for name in names {
        directory.unlink(name.as_ref())?;
    }
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::{not_run, place};

    /// All files are there with their size when they were made, and none when they were removed.
    #[test]
    fn files_are_made_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::new(&place(dir.path())).unwrap();
        let names = names().unwrap();
        let files = || directory.path().read_dir().unwrap();
        for bytes in [0, 1 << 10, 100_000] {
            make(&directory, &names, bytes).unwrap();
            assert_eq!(files().count(), TOGETHER as usize);
            assert!(files().all(|file| file.unwrap().metadata().unwrap().len() == bytes));
            remove(&directory, &names).unwrap();
            assert_eq!(files().count(), 0);
        }
    }

    /// Where the file system has the flag it is set, and what was set before still is.
    #[test]
    fn the_directory_is_placed_apart() {
        let dir = tempfile::tempdir().unwrap();
        let flags = || {
            let mut flags: libc::c_int = 0;
            let opened = File::open(dir.path()).unwrap();
            // SAFETY: the call fills an int.
            let result =
                unsafe { libc::ioctl(opened.as_raw_fd(), libc::FS_IOC_GETFLAGS, &mut flags) };
            (result == 0).then_some(flags)
        };
        let before = flags();
        far_from_others(dir.path()).unwrap();
        let kind = crate::machine::Machine::look(dir.path()).files.kind;
        match (before, flags()) {
            (Some(before), Some(after)) if kind == "ext4" => {
                assert_eq!(after, before | TOP_OF_HIERARCHY);
            }
            (before, after) => {
                assert_eq!(before.is_some(), after.is_some());
                not_run(&Untried(format!("{kind} places directories as it likes")));
            }
        }
    }

    /// A visit that has time for all writes less than 64 MiB: so much.
    #[test]
    fn a_visit_writes_little() {
        let written: u64 = SIZES
            .iter()
            .map(|&bytes| {
                let together = (TOGETHER_BYTES / bytes.max(1)).clamp(1, TOGETHER);
                together * bytes * turns(together * bytes)
            })
            .sum();
        // 16, 4 and 1 MiB; 1 of 256 and 4 of 64 KiB; 8 of 16, 4 and 1 KiB; 5 times each of those.
        let expected = (2 * 16384 + 2 * 4096 + 4 * 1024) + 5 * (256 + 256 + 8 * (16 + 4 + 1));
        assert_eq!(written, expected << 10);
    }
}
