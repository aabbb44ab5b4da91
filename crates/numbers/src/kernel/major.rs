//! A fault that has to read the disk.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use super::cache;
use super::mapping::{Mapping, Touched};
use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// Of the file, bytes.
const BYTES: usize = 4 << 20;
/// From one page that is touched to the next, bytes.
const APART: usize = 32 << 10;

pub(crate) const MAJOR: Method = Method {
    id: "fault.major",
    section: Section::Kernel,
    figures: &[Kind::ns("fault.major", "fault: file on disk")],
    how: "Reads a byte of a page of a mapped file of 4 MiB that was written to the disk and dropped \
          from the page cache before (posix_fadvise; mincore says whether it is gone), in no order, \
          without read-ahead: the kernel reads that page. The disk, or the host of a guest, may have \
          it in a cache of its own.",
    source: "lmbench's lat_pagefault (McVoy and Staelin 1996), with a cold cache",
    weight: 1,
    run: |place: &Place, meter: &mut Meter| {
        let _pinned = cpu::pin(place.here)?;
        let file = OnDisk::new(&place.dir)?;
        loop {
            let mapping = file.map_uncached()?;
            for offset in file.order() {
                if let Some(took) = from_disk(&mapping.read_at(offset)?) {
                    meter.push("fault.major", took.as_nanos() as f64);
                }
                if meter.time_left().is_zero() {
                    return Ok(());
                }
            }
        }
    },
};

/// How long it took, if it was one fault that read the disk. A page that was read along with a
/// neighbour, against the advice, takes none.
fn from_disk(touched: &Touched) -> Option<Duration> {
    (touched.major == 1 && touched.minor == 0).then_some(touched.took)
}

/// A file whose content is on the disk; it has no name.
struct OnDisk<'a> {
    file: std::fs::File,
    dir: &'a Path,
}

impl OnDisk<'_> {
    fn new(dir: &Path) -> Result<OnDisk<'_>, Untried> {
        let mut file = tempfile::tempfile_in(dir)?;
        file.write_all(&vec![7; BYTES])?;
        file.sync_all()?;
        Ok(OnDisk { file, dir })
    }

    /// A fresh mapping, none of whose pages is in the cache.
    fn map_uncached(&self) -> Result<Mapping, Untried> {
        cache::forget(&self.file, BYTES, self.dir)?;
        let mapping = Mapping::shared(&self.file, BYTES)?;
        mapping.advise(libc::MADV_RANDOM);
        Ok(mapping)
    }

    /// Offsets of the pages to touch, each once, so that no disk sees a direction: steps of an odd
    /// number modulo a power of two come by all.
    fn order(&self) -> impl Iterator<Item = usize> {
        const PAGES: usize = BYTES / APART;
        const { assert!(PAGES.is_power_of_two()) };
        (0..PAGES).map(|place| place * 45 % PAGES * APART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mapping::page_bytes;
    use crate::kernel::tests::not_run;
    use std::collections::HashSet;

    /// No page is cached when its file is mapped; each touch is a fault that reads the disk, after
    /// which that page is cached; touched again it is no such fault, and gives no sample.
    #[test]
    fn each_touch_reads_the_disk() {
        let dir = std::env::temp_dir();
        let file = OnDisk::new(&dir).unwrap();
        let mapping = match file.map_uncached() {
            Ok(mapping) => mapping,
            Err(untried) => return not_run(&untried),
        };
        assert!(!mapping.cached().unwrap().contains(&true));
        for offset in file.order().take(10) {
            assert!(!mapping.cached().unwrap()[offset / page_bytes()]);
            let touched = mapping.read_at(offset).unwrap();
            assert_eq!((touched.major, touched.minor), (1, 0));
            assert!(from_disk(&touched).is_some());
            assert!(mapping.cached().unwrap()[offset / page_bytes()]);
            assert!(from_disk(&mapping.read_at(offset).unwrap()).is_none());
        }
    }

    /// Each place once, and hardly ever the next one.
    #[test]
    fn the_order_has_no_direction() {
        let dir = std::env::temp_dir();
        let file = OnDisk::new(&dir).unwrap();
        let order: Vec<usize> = file.order().collect();
        let places: HashSet<usize> = order.iter().copied().collect();
        assert_eq!(places, (0..BYTES).step_by(APART).collect());
        let steps = order.windows(2);
        assert!(steps.clone().all(|pair| pair[0].abs_diff(pair[1]) > APART));
    }
}
