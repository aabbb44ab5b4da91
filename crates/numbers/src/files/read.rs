//! Reading files that are in the page cache.

use std::time::{Duration, Instant};

use super::directory::Growing;
use crate::cpu;
use crate::kind::{Axis, Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Bytes.
pub(super) const SIZES: [u64; 11] = [
    1,
    64,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
    64 << 20,
];
/// From here on each reading is a sample, bytes: it takes more than 20 µs.
const SINGLY: u64 = 256 << 10;
pub(crate) const READ: Method = Method {
    id: "file.read",
    section: Section::Files,
    figures: &[
        Kind::ns("file.open_read", "open + read + close").over(Axis::Bytes),
        Kind::ns("file.read", "read an open file").over(Axis::Bytes),
    ],
    how: "Reads the whole of a file that was just written and is in the page cache, 64 KiB at a time \
          into the same buffer: with opening and closing it, and alone (pread). The largest sizes are \
          left out where making them takes more than the time, or a quarter of the free space.",
    source: "lmbench's bw_file_rd open2close and io_only (McVoy and Staelin 1996), which adds up what \
             it reads; D. Kurkin's talk at AppsConf 2018",
    weight: 4,
    run,
};

fn run(place: &Place, meter: &mut Meter) -> Result<(), Untried> {
    let _pinned = cpu::pin(place.here)?;
    let mut file = Growing::new(place, false)?;
    for (sizes_done, bytes) in SIZES.into_iter().enumerate() {
        if !file.may_be(bytes, meter) {
            break;
        }
        // The first reading finds memory that others used before, and does not count.
        file.grow(bytes, |directory| directory.open_read(Growing::NAME, bytes))?;
        // The largest have to be made first: that takes as long as some of the small ones.
        let shares = SIZES.len() - sizes_done + 5;
        let time = meter.time_left() / shares as u32 / 2;
        let directory = &mut file.directory;
        sample(meter, "file.open_read", bytes, time, || {
            directory.open_read(Growing::NAME, bytes)
        })?;
        let opened = directory.open(Growing::NAME)?;
        sample(meter, "file.read", bytes, time, || {
            directory.pread(&opened, bytes)
        })?;
    }
    Ok(())
}

/// Samples of an operation on so many bytes, for a time, at least one.
fn sample(
    meter: &mut Meter,
    figure: &'static str,
    bytes: u64,
    time: Duration,
    mut operation: impl FnMut() -> Result<(), Untried>,
) -> Result<(), Untried> {
    let mut some = |count| {
        let start = Instant::now();
        for _ in 0..count {
            operation()?;
        }
        Ok(start.elapsed())
    };
    if bytes < SINGLY {
        return meter.batches(figure, bytes, time, some);
    }
    let end = Instant::now() + time;
    loop {
        let took = some(1)?;
        meter.push_at(figure, bytes, took.as_nanos() as f64);
        if Instant::now() >= end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cache::cached_pages;
    use crate::kernel::mapping::page_bytes;
    use crate::kernel::tests::place;

    /// The file that is read has the size, and is in the page cache as a whole, at each size.
    #[test]
    fn what_is_read_is_cached() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = Growing::new(&place(dir.path()), false).unwrap();
        for bytes in SIZES {
            file.grow(bytes, |_| Ok(())).unwrap();
            let opened = file.directory.open(Growing::NAME).unwrap();
            assert_eq!(opened.metadata().unwrap().len(), bytes);
            assert_eq!(
                cached_pages(&opened, bytes as usize).unwrap(),
                (bytes as usize).div_ceil(page_bytes())
            );
        }
    }
}
