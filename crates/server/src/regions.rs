//! The regions that programs marked, as tracks: one for each name.
//!
//! Regions of one name may nest, and several threads may be in one at a time. At each moment the track shows
//! the one of them that began last, so that each is seen from its begin.

use hangdog_levels::source::{IDLE_STATE, STATES, Source};
use hangdog_report::Recording;
use hangdog_report::regions::{Marked, Occurrence};
use hangdog_timeline::Region;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// So many names have a track: those that took most.
const MOST_TRACKS: usize = 64;
/// Where no region is open.
const NONE: u32 = u32::MAX;

/// All regions, by name.
pub struct RegionTracks {
    marked: Marked,
    /// Those that took most first.
    pub tracks: Vec<RegionTrack>,
    /// So many names have none.
    pub left_out: usize,
}

/// What is shown of the regions of one name.
pub struct RegionTrack {
    /// The name, and what all of them come to.
    pub row: Row,
    starts: Vec<u64>,
    /// Which region is shown from each of `starts` on.
    shown: Vec<u32>,
    /// The colour of that, as the index of a state.
    colours: Vec<u8>,
    end: u64,
}

/// A name in the list of tracks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The name, or the code in digits.
    pub name: String,
    /// How many regions there are, with those that did not end.
    pub count: usize,
    /// What they took together, ns.
    pub sum_ns: u64,
}

impl RegionTracks {
    /// Of a trace.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn load(recording: &Recording) -> anyhow::Result<RegionTracks> {
        let marked = Marked::load(recording, None)?;
        let mut by_code: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (at, region) in marked.regions.all.iter().enumerate() {
            let of_code = by_code.entry(marked.code(region.begin)).or_default();
            of_code.push(at as u32);
        }
        let end = recording.timeline.end();
        let sum = |regions: &[u32]| -> u64 {
            let regions = regions.iter().map(|&at| &marked.regions.all[at as usize]);
            regions.map(Region::duration).sum()
        };
        let mut names: Vec<(u32, Vec<u32>, u64)> = by_code
            .into_iter()
            .map(|(code, regions)| {
                let sum = sum(&regions);
                (code, regions, sum)
            })
            .collect();
        names.sort_by_key(|&(code, _, sum)| (std::cmp::Reverse(sum), code));
        let left_out = names.len().saturating_sub(MOST_TRACKS);
        names.truncate(MOST_TRACKS);
        let tracks = names
            .into_iter()
            .map(|(code, regions, sum_ns)| {
                let row = Row {
                    name: marked.name(code).into_owned(),
                    count: regions.len(),
                    sum_ns,
                };
                RegionTrack::new(&marked, row, &regions, end)
            })
            .collect();
        Ok(RegionTracks {
            marked,
            tracks,
            left_out,
        })
    }

    /// The region that a track shows at a moment.
    pub fn at<'a>(
        &'a self,
        recording: &'a Recording,
        track: usize,
        t: u64,
    ) -> Option<Occurrence<'a>> {
        let track = self.tracks.get(track)?;
        let at = track.first_after(0, t).checked_sub(1)?;
        let region = self.marked.regions.all.get(track.shown[at] as usize)?;
        Some(self.marked.one(recording, region))
    }
}

impl RegionTrack {
    pub(crate) const fn nothing() -> RegionTrack {
        RegionTrack {
            row: Row {
                name: String::new(),
                count: 0,
                sum_ns: 0,
            },
            starts: Vec::new(),
            shown: Vec::new(),
            colours: Vec::new(),
            end: 0,
        }
    }

    fn new(marked: &Marked, row: Row, regions: &[u32], end: u64) -> RegionTrack {
        let of = |at: u32| &marked.regions.all[at as usize];
        // An end comes before a begin of the same time.
        let mut edges: Vec<(u64, bool, u32)> = regions
            .iter()
            .flat_map(|&at| [(of(at).from, true, at), (of(at).to, false, at)])
            .filter(|&(_, begins, at)| begins || of(at).duration() > 0)
            .collect();
        edges.sort_unstable();
        let mut track = RegionTrack {
            row,
            starts: vec![0],
            shown: vec![NONE],
            colours: vec![IDLE_STATE as u8],
            end,
        };
        let mut open: BTreeSet<(u64, u32)> = BTreeSet::new();
        for (ts, begins, at) in edges {
            let region = of(at);
            match begins {
                true if region.duration() > 0 => drop(open.insert((region.from, at))),
                true => {}
                false => drop(open.remove(&(region.from, at))),
            }
            let shown = open.last().map_or(NONE, |&(_, at)| at);
            let colour = match shown {
                NONE => IDLE_STATE as u8,
                at => colour(marked.first_argument(of(at).begin)),
            };
            track.show(ts, shown, colour);
        }
        track
    }

    fn show(&mut self, ts: u64, shown: u32, colour: u8) {
        if self.shown.last() == Some(&shown) {
            return;
        }
        if self.starts.last() == Some(&ts) {
            self.starts.pop();
            self.shown.pop();
            self.colours.pop();
        }
        self.starts.push(ts);
        self.shown.push(shown);
        self.colours.push(colour);
    }
}

/// One of the colours that are not for being idle, the same for each value.
fn colour(argument: i64) -> u8 {
    let colours: [usize; STATES - 1] = std::array::from_fn(|i| i + usize::from(i >= IDLE_STATE));
    let at = argument.rem_euclid(colours.len() as i64) as usize;
    colours[at] as u8
}

impl Source for &RegionTrack {
    fn len(&self) -> usize {
        self.starts.len()
    }

    fn start(&self, i: usize) -> u64 {
        self.starts[i]
    }

    fn end(&self) -> u64 {
        self.end.max(self.starts.last().copied().unwrap_or(0))
    }

    fn state(&self, i: usize) -> usize {
        self.colours[i].into()
    }
}
