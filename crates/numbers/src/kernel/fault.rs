//! Faults that need no disk: what the first touch of a page costs.
//!
//! Huge pages are refused, so that a fault is for a page of the usual size. The kernel's count of
//! faults divides the time, not the number of touches: that they are the same is not taken for
//! granted.

use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;

use super::mapping::{Mapping, Touched, page_bytes};
use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Touched at a time, bytes: more than 100 µs' worth of faults, and little enough that the memory
/// is given back and had again without the rest of the machine.
const AT_A_TIME: usize = 1 << 20;
/// What a read of a mapped file makes the kernel map at once, bytes, unless told otherwise.
const AROUND: usize = 64 << 10;
/// Of the mapped file, bytes.
const MAPPED_FILE: usize = 8 << 20;

const SOURCE: &str = "lmbench's lat_pagefault (McVoy and Staelin 1996), for each kind of page; there \
                      the time is divided by pages touched, here by faults that the kernel counted";

pub(crate) const ANONYMOUS: Method = Method {
    id: "fault.anonymous",
    section: Section::Kernel,
    figures: &[Kind::ns("fault.anonymous", "fault: fresh memory, written")],
    how: "Writes a byte into each page of 1 MiB of fresh anonymous memory, without huge pages: the \
          kernel finds a page, clears it and maps it. Mapping and unmapping is not counted.",
    source: SOURCE,
    weight: 1,
    run: |place, meter| measure(place, meter, "fault.anonymous", write_fresh),
};

pub(crate) const ZERO: Method = Method {
    id: "fault.zero",
    section: Section::Kernel,
    figures: &[Kind::ns("fault.zero", "fault: fresh memory, read")],
    how: "Reads a byte of each page of 1 MiB of fresh anonymous memory, without huge pages: the \
          kernel maps its one page of zeros.",
    source: SOURCE,
    weight: 1,
    run: |place, meter| measure(place, meter, "fault.zero", read_fresh),
};

pub(crate) const COPY: Method = Method {
    id: "fault.cow",
    section: Section::Kernel,
    figures: &[Kind::ns("fault.cow", "fault: copy on write")],
    how: "Writes a byte into each page of a private mapping of 1 MiB whose pages are in the page \
          cache and were read before: the kernel copies the page and maps the copy, as after a fork.",
    source: SOURCE,
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let file = memory_file(AT_A_TIME)?;
        measure(place, meter, "fault.cow", || copy(&file))
    },
};

pub(crate) const FILE: Method = Method {
    id: "fault.file",
    section: Section::Kernel,
    figures: &[Kind::ns("fault.file", "fault: cached file")],
    how: "Reads a byte every 64 KiB of a fresh shared mapping of a file of 8 MiB that is in the page \
          cache: each is a fault, in which the kernel maps the pages around it too (16 of 4 KiB, as \
          it does unless told otherwise). The file was written 64 KiB at a time: where a file system \
          keeps in one piece what is written in one piece, larger ones are mapped whole, in fewer \
          faults that take longer.",
    source: SOURCE,
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let file = cached_file(place)?;
        measure(place, meter, "fault.file", || map_cached(&file))
    },
};

/// Samples for the time of the visit, each of one go of `touch`.
fn measure(
    place: &Place,
    meter: &mut Meter,
    figure: &'static str,
    touch: impl Fn() -> Result<Touched, Untried>,
) -> Result<(), Untried> {
    let _pinned = cpu::pin(place.here)?;
    // The first has to get its pages from elsewhere; the following get what it gave back.
    touch()?;
    loop {
        let touched = touch()?;
        if touched.minor == 0 {
            return Err(Untried("the kernel counted no faults".into()));
        }
        meter.push(
            figure,
            touched.took.as_nanos() as f64 / touched.minor as f64,
        );
        if meter.time_left().is_zero() {
            return Ok(());
        }
    }
}

fn fresh() -> Result<Mapping, Untried> {
    let memory = Mapping::anonymous(AT_A_TIME)?;
    memory.advise(libc::MADV_NOHUGEPAGE);
    Ok(memory)
}

fn write_fresh() -> Result<Touched, Untried> {
    fresh()?.write(page_bytes())
}

fn read_fresh() -> Result<Touched, Untried> {
    fresh()?.read(page_bytes())
}

fn copy(file: &File) -> Result<Touched, Untried> {
    let mut memory = Mapping::private(file, AT_A_TIME)?;
    memory.advise(libc::MADV_NOHUGEPAGE);
    memory.read(page_bytes())?;
    memory.write(page_bytes())
}

fn map_cached(file: &File) -> Result<Touched, Untried> {
    Mapping::shared(file, MAPPED_FILE)?.read(AROUND)
}

/// A file in memory only, full.
fn memory_file(bytes: usize) -> Result<File, Untried> {
    // SAFETY: the name ends in zero.
    let file = unsafe { libc::memfd_create(c"hangdog-numbers".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(Untried::last("memfd_create"));
    }
    // SAFETY: it was just made, and is nobody else's.
    let mut file = unsafe { File::from_raw_fd(file) };
    file.write_all(&vec![7; bytes])?;
    Ok(file)
}

/// A file of the file system to measure, just written and so in its cache; it has no name.
fn cached_file(place: &Place) -> Result<File, Untried> {
    let mut file = tempfile::tempfile_in(&place.dir)?;
    for _ in 0..MAPPED_FILE / AROUND {
        file.write_all(&[7; AROUND])?;
    }
    if Mapping::shared(&file, MAPPED_FILE)?
        .cached()?
        .contains(&false)
    {
        return Err(Untried(
            "a file that was just written is not in the page cache".into(),
        ));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::place;
    use std::io::{Read, Seek};

    /// Every touch is a fault, one page each, and no disk is read.
    #[test]
    fn each_touch_is_a_fault() {
        let file = memory_file(AT_A_TIME).unwrap();
        for touched in [write_fresh(), read_fresh(), copy(&file)] {
            let touched = touched.unwrap();
            let pages = (AT_A_TIME / page_bytes()) as u64;
            assert_eq!((touched.minor, touched.major), (pages, 0));
        }
    }

    /// A read of fresh memory leaves it without a page of its own, a write does not: the second
    /// touch, a write, faults again only after the read.
    #[test]
    fn read_memory_shares_the_page_of_zeros() {
        for (read_first, expected) in [(true, AT_A_TIME / page_bytes()), (false, 0)] {
            let mut memory = fresh().unwrap();
            if read_first {
                memory.read(page_bytes()).unwrap();
            } else {
                memory.write(page_bytes()).unwrap();
            }
            assert_eq!(memory.write(page_bytes()).unwrap().minor, expected as u64);
        }
    }

    /// The write went to a copy: the file is as it was.
    #[test]
    fn a_write_to_a_private_mapping_leaves_the_file() {
        let mut file = memory_file(AT_A_TIME).unwrap();
        copy(&file).unwrap();
        let mut content = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut content).unwrap();
        assert!(content.iter().all(|&byte| byte == 7));
        assert_eq!(content.len(), AT_A_TIME);
    }

    /// A touch of each 64 KiB of a cached file faults, and never reads the disk. Where the kernel
    /// maps more around it there are fewer faults, and the time is divided by those.
    #[test]
    fn a_cached_file_faults_without_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let file = cached_file(&place(dir.path())).unwrap();
        let touched = map_cached(&file).unwrap();
        assert!(touched.minor > 0 && touched.minor <= (MAPPED_FILE / AROUND) as u64);
        assert_eq!(touched.major, 0);
    }
}
