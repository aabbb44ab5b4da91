//! How long a load takes, by how much memory is in use.

use std::time::{Duration, Instant};

use super::LINE;
use super::chain::{Chain, Path};
use super::pages::{Memory, Pages};
use crate::cpu;
use crate::kind::{Axis, Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

const SMALLEST: usize = 4096;
/// Beyond this size the curve is flat or nearly so, and a chain takes long to lay.
const DENSE: usize = 256 << 20;
/// Loads before it counts: laying a chain brought it into the caches already, this brings the TLB
/// and the state of the lines to what they are later.
const WARM_UP: u64 = 1 << 16;

pub(super) const SMALL_PAGES: Method = Method {
    id: "memory.latency",
    section: Section::Memory,
    figures: &[Kind::ns("memory.latency", "load, random order").over(Axis::Bytes)],
    how: "A chain of pointers, one a line of 64 bytes, leads in random order through memory in small \
          pages; each load needs the one before. Time of a load, missed TLBs included.",
    source: "lmbench's lat_mem_rd -t (McVoy, Staelin 1996); order by a one-to-one mixing function",
    weight: 8,
    run: |place, meter| run(place, meter, "memory.latency", Path::Random, Pages::Small),
};

pub(super) const HUGE_PAGES: Method = Method {
    id: "memory.latency.huge",
    section: Section::Memory,
    figures: &[Kind::ns("memory.latency.huge", "load, random order, huge pages").over(Axis::Bytes)],
    how: "The same chain in huge pages, as the kernel confirms in smaps: few TLB misses, so that the \
          caches alone make the steps.",
    source: "lmbench's lat_mem_rd; Drepper, What Every Programmer Should Know About Memory, 2007",
    weight: 7,
    run: |place, meter| {
        run(
            place,
            meter,
            "memory.latency.huge",
            Path::Random,
            Pages::Huge,
        )
    },
};

pub(super) const SEQUENTIAL: Method = Method {
    id: "memory.latency.sequential",
    section: Section::Memory,
    figures: &[Kind::ns(
        "memory.latency.sequential",
        "load, one line after the other",
    )
    .over(Axis::Bytes)],
    how: "The same chain from each line to the next: the CPU fetches ahead, and the steps vanish.",
    source: "Kurkin, AppsConf 2018: sequential access hides the steps",
    weight: 3,
    run: |place, meter| {
        run(
            place,
            meter,
            "memory.latency.sequential",
            Path::Sequential,
            Pages::Small,
        )
    },
};

/// The sizes to measure, ascending: two or four an octave, one where it is large.
fn sizes(largest: usize, quick: bool) -> Vec<usize> {
    let parts = if quick { 2 } else { 4 };
    let mut sizes = Vec::new();
    let mut octave = SMALLEST;
    while octave < largest {
        let parts = if octave >= DENSE { 1 } else { parts };
        // Whole lines: each size is a quarter of an octave, of 4096 bytes or more.
        sizes.extend(
            (0..parts)
                .map(|part| octave + octave / parts * part)
                .filter(|&size| size < largest),
        );
        octave *= 2;
    }
    sizes.push(largest / LINE * LINE);
    sizes
}

fn run(
    place: &Place,
    meter: &mut Meter,
    figure: &'static str,
    path: Path,
    pages: Pages,
) -> Result<(), Untried> {
    let _pinned = cpu::pin(place.here)?;
    let mut memory = Memory::map(place.largest, pages)?;
    let sizes = sizes(place.largest, place.quick);
    // What a size takes grows with it, because its chain is to be laid: so does its part of the time.
    let part = |size: usize| 1.0 + 24.0 * size as f64 / place.largest as f64;
    let mut parts_left: f64 = sizes.iter().map(|&size| part(size)).sum();
    let mut cost = Duration::ZERO;
    for size in sizes {
        // Later visits leave out what takes far too long; the first measures all.
        if meter.visit() > 0 && cost > meter.time_left() {
            break;
        }
        let start = Instant::now();
        let share = meter.time_left().mul_f64(part(size) / parts_left);
        parts_left -= part(size);
        let mut chain = Chain::lay(&mut memory, size, path, meter.visit().into());
        chain.follow(chain.lines.min(WARM_UP));
        let left = share.saturating_sub(start.elapsed());
        meter.batches(figure, size as u64, left, |loads| {
            let start = Instant::now();
            chain.follow(loads);
            // Loads go in eights.
            Ok(start
                .elapsed()
                .mul_f64(loads as f64 / loads.next_multiple_of(8) as f64))
        })?;
        cost = start.elapsed();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 4 KiB to the largest, ascending, whole lines, and each once.
    #[test]
    fn sizes_go_from_4_kib_to_the_largest() {
        for largest in [1 << 20, 100_000_000, 3 << 30] {
            for quick in [false, true] {
                let sizes = sizes(largest, quick);
                assert_eq!(sizes[0], 4096);
                assert_eq!(*sizes.last().unwrap(), largest / LINE * LINE);
                assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{sizes:?}");
                assert!(sizes.iter().all(|size| size % LINE == 0));
            }
        }
    }
}
