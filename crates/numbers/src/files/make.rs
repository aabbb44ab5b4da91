//! Making and removing files.

use std::ffi::{CStr, CString};
use std::time::{Duration, Instant};

use super::directory::{Directory, room};
use crate::cpu;
use crate::meter::{Meter, Untried};
use crate::method::{Axis, Kind, Method, Section};
use crate::run::Place;

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
/// How often that is done for a size, at most. Not oftener, because ext4 goes past every file that
/// was removed from the neighbourhood in the last minutes before it makes a new one (1 or 2 ns each).
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
          out where they take more than the time or a quarter of the free space.",
    source: "lmbench's lat_fs (McVoy and Staelin 1996); D. Kurkin's talk at AppsConf 2018",
    weight: 3,
    run,
};

fn run(place: &Place, meter: &mut Meter) -> Result<(), Untried> {
    let _pinned = cpu::pin(place.here)?;
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
    use crate::kernel::tests::place;

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
