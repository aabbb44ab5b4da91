//! What tracks show within a part of the time, in binary: numbers in columns, so that the page
//! reads them where they lie and makes no object of each interval.
//!
//! The layout is in docs/API.md. All numbers are little-endian, and each column begins at a
//! multiple of its own size.

use crate::opened::Ground;
use crate::track::TrackId;
use hangdog_levels::source::{Cpu, STATES, Source, Thread};
use hangdog_levels::{Bin, Sums};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first four bytes of an answer: `hdt1`.
pub const MAGIC: u32 = u32::from_le_bytes(*b"hdt1");
/// So many bins can be asked for at once.
pub const MOST_BINS: usize = 16_384;
/// So many tracks can be asked for at once.
pub const MOST_TRACKS: usize = 512;
/// Where a view has no more intervals than this for each bin, it gets the intervals.
const FEW: usize = 1;

/// Which part of the time, in which detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Since when, ns since the trace's start.
    pub from: u64,
    /// A bin is 2^shift ns.
    pub shift: u32,
    /// How many bins.
    pub bins: usize,
}

impl View {
    fn to(self) -> u64 {
        let width = 1u64.checked_shl(self.shift).unwrap_or(u64::MAX);
        self.from
            .saturating_add(width.saturating_mul(self.bins as u64))
    }
}

/// The answer for some tracks; none if `is_cancelled` was set meanwhile.
pub fn tiles(
    ground: &Ground,
    tracks: &[TrackId],
    view: View,
    is_cancelled: &AtomicBool,
) -> Option<Vec<u8>> {
    let mut out = Buffer::default();
    out.u32(MAGIC);
    out.u32(tracks.len() as u32);
    out.u32(view.shift);
    out.u32(view.bins as u32);
    out.f64(view.from as f64);
    let timeline = &ground.recording.timeline;
    for &track in tracks {
        if is_cancelled.load(Ordering::Relaxed) {
            return None;
        }
        let sums = ground.sums(track);
        match track {
            TrackId::Thread(utid) => {
                let source = Thread(timeline.intervals(utid));
                track_of(&mut out, source, &sums, view, |_| utid);
            }
            TrackId::Cpu(cpu) => {
                let occupancy = timeline.cpu(&ground.recording.switches, cpu);
                track_of(&mut out, Cpu(occupancy), &sums, view, |i| {
                    occupancy.get(i).map_or(0, |occupant| occupant.thread)
                });
            }
            TrackId::Region(number) => {
                track_of(&mut out, ground.region(number), &sums, view, |_| 0);
            }
            TrackId::Calls(utid) => {
                let calls = ground.calls_of(utid);
                track_of(&mut out, calls, &sums, view, |i| calls.call(i));
            }
        }
    }
    Some(out.0)
}

/// Bins or intervals, whichever is less.
fn track_of(
    out: &mut Buffer,
    source: impl Source,
    sums: &Sums,
    view: View,
    what: impl Fn(usize) -> u32,
) {
    let first = source.first_after(0, view.from).saturating_sub(1);
    let last = source.first_after(first, view.to().saturating_sub(1));
    if last - first <= view.bins * FEW {
        intervals(out, source, first..last, what);
    } else {
        bins(
            out,
            &sums.bins(source, view.from, view.shift, view.bins),
            view,
            what,
        );
    }
}

/// What a track's part begins with: 1, how many intervals, 0, 0.
const INTERVALS: u32 = 1;
/// What a track's part begins with: 2, how many bins that are not idle, 0, 0.
const BINS: u32 = 2;

fn intervals(
    out: &mut Buffer,
    source: impl Source,
    range: std::ops::Range<usize>,
    what: impl Fn(usize) -> u32,
) {
    // Where two switches have one time, what lies between is empty and shows nothing.
    let shown: Vec<usize> = range
        .filter(|&i| source.end_of(i) > source.start(i))
        .collect();
    out.u32(INTERVALS);
    out.u32(shown.len() as u32);
    out.u32(0);
    out.u32(0);
    for &i in &shown {
        out.f64(source.start(i) as f64);
    }
    for &i in &shown {
        out.f64(source.end_of(i) as f64);
    }
    for &i in &shown {
        out.u32(what(i));
    }
    for &i in &shown {
        out.u8(source.state(i) as u8);
    }
    out.align();
}

fn bins(out: &mut Buffer, bins: &[Bin], view: View, what: impl Fn(usize) -> u32) {
    // Of a thread that waits there is nothing to draw but that it lives, which the page knows.
    let busy: Vec<(usize, &Bin)> = bins
        .iter()
        .enumerate()
        .filter(|(_, bin)| !bin.is_idle())
        .collect();
    out.u32(BINS);
    out.u32(busy.len() as u32);
    out.u32(0);
    out.u32(0);
    for (at, _) in &busy {
        out.u32(*at as u32);
    }
    for (_, bin) in &busy {
        out.u32(bin.count);
    }
    for (_, bin) in &busy {
        out.u32(what(bin.longest_at));
    }
    for (_, bin) in &busy {
        out.f32(bin.longest as f32);
    }
    let width = 2f64.powi(view.shift as i32);
    for state in 0..STATES {
        for (_, bin) in &busy {
            out.u16((bin.time[state] as f64 / width * f64::from(u16::MAX)).round() as u16);
        }
    }
    out.align();
}

/// Bytes being written.
#[derive(Default)]
struct Buffer(Vec<u8>);

impl Buffer {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn f32(&mut self, value: f32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn f64(&mut self, value: f64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Zeros up to the next multiple of 8.
    fn align(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}
