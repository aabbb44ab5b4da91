//! Marks: what programs write into memory that they share with the recorder.
//!
//! A program has an area with a ring for each of its threads ([`area`], docs/MARKS.md). An area of a
//! program that runs already is found among its mappings; one that is made later announces itself by
//! an executable mapping, of which the kernel tells ([`PATH`]). Once open, an area is read for as long
//! as anything may be in it, whatever becomes of the program.
//!
//! That a program is recorded it knows by a time in its area, which is put forward from time to time:
//! a recorder that is killed is forgotten after [`LEASE_NS`].
//!
//! A program may write anything into its area. What cannot be is counted as lost, or has the area
//! dropped; nothing in it is an address or a length that is relied on.

pub(crate) mod area;
mod finder;
mod follow;
mod ticks;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io;

use hangdog_symbols::maps;
use hangdog_trace::ids::FIRST_MARK_NAME;
use hangdog_trace::meta::Marking;
use hangdog_trace::tables::{MarkName, MarkNames};

use crate::probe::Probe;
use crate::system::monotonic_ns;
use area::{Area, Raw};
pub(crate) use finder::Finder;
use finder::promise;
pub(crate) use follow::Followers;
pub use follow::{Followed, Step};
pub(crate) use ticks::Ticks;

/// The path of an area's mapping, as the kernel has it.
pub(crate) const PATH: &str = "/memfd:hangdog-marks (deleted)";
/// How long one notice to a program that it is recorded holds.
const LEASE_NS: u64 = 10_000_000_000;
/// How often the notice is renewed.
const RENEWAL_NS: u64 = 1_000_000_000;
/// How often it is looked how far rings are that nobody reads.
const GLANCE_NS: u64 = 100_000_000;
/// So many marks are taken in a round; what is left waits for the next. It is those of 0.4 s where
/// programs mark 5 million times a second.
const MOST_OF_ROUND: u64 = 1 << 21;
/// So many are in a snapshot.
const MOST_OF_SNAPSHOT: u64 = 1 << 23;
/// So many areas are open at a time, and so many of one process.
const MOST_AREAS: usize = 512;
const MOST_OF_PROCESS: usize = 16;
/// So many different names are kept.
const MOST_NAMES: usize = 100_000;

/// A mark, with the kernel's numbers of thread and process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawMark {
    /// CLOCK_MONOTONIC, ns.
    pub ts: u64,
    pub pid: u32,
    pub tid: u32,
    /// As the trace has it.
    pub code: u32,
    pub kind: u8,
    pub pairing: u8,
    pub colour: u8,
    pub args: [i64; 4],
}

/// What a process has mapped as if it were an area.
pub(crate) struct Found {
    pid: u32,
    /// Where.
    place: (u64, u64),
    area: io::Result<Area>,
}

/// The areas of a process.
fn look(pid: u32) -> Vec<Found> {
    let mappings = maps::of_path(pid, PATH).into_iter();
    let found = mappings.map(|mapping| Found {
        pid,
        place: (mapping.start, mapping.end),
        area: Area::open(pid, &mapping),
    });
    found.collect()
}

/// An area with what was found out about it.
struct Source {
    area: Area,
    pid: u32,
    /// Where the program has it: once that is no more, nobody writes.
    place: (u64, u64),
    /// When the program was found to have it no more.
    ended: Option<u64>,
    /// The kernel's tids by those that the program knows, where these differ.
    tids: Option<HashMap<u32, u32>>,
    /// Codes of the trace by places of names in the area.
    names: Vec<u32>,
    /// When it was looked, and how many records each ring had begun then; oldest first.
    glances: VecDeque<(u64, Vec<u64>)>,
}

/// The areas of all programs that mark.
pub(crate) struct Marks {
    sources: Vec<Source>,
    seen: HashSet<(u64, u64)>,
    ticks: Ticks,
    /// Nothing is older, ns of CLOCK_MONOTONIC.
    start: u64,
    names: HashMap<String, u32>,
    /// Of these names the trace knows.
    told: Vec<String>,
    /// Empty; its memory is used again.
    raw: Vec<Raw>,
    renewed: u64,
    glanced: u64,
    figures: Marking,
}

impl Marks {
    /// Of a recording that begins at `start`; knows no area yet.
    pub(crate) fn new(start: u64) -> Marks {
        Marks {
            sources: Vec::new(),
            seen: HashSet::new(),
            ticks: Ticks::new(),
            start,
            names: HashMap::new(),
            told: Vec::new(),
            raw: Vec::new(),
            renewed: 0,
            glanced: 0,
            figures: Marking::default(),
        }
    }

    /// Finds the areas of processes that run already. What they marked before is passed over.
    pub(crate) fn adopt<'a>(&mut self, pids: impl Iterator<Item = &'a u32>) {
        for &pid in pids {
            self.add(look(pid), true);
        }
        self.renew();
    }

    /// Takes over what was found of processes that said that they mark, of whom some were `gone`.
    pub(crate) fn hear(&mut self, (found, gone): (Vec<Found>, u64)) {
        self.figures.unread += gone;
        self.add(found, false);
    }

    fn add(&mut self, found: Vec<Found>, is_old: bool) {
        for Found { pid, place, area } in found {
            let of_process = self
                .sources
                .iter()
                .filter(|s| s.pid == pid && s.ended.is_none());
            let is_too_many =
                of_process.count() >= MOST_OF_PROCESS || self.sources.len() >= MOST_AREAS;
            let Some(mut area) = area.ok().filter(|_| !is_too_many) else {
                self.figures.unread += 1;
                continue;
            };
            if !self.seen.insert(area.identity()) {
                continue;
            }
            if is_old {
                area.skip();
            }
            self.figures.programs += 1;
            let tids = (area.pid() != pid).then(HashMap::new);
            self.sources.push(Source {
                area,
                pid,
                place,
                ended: None,
                tids,
                names: Vec::new(),
                glances: VecDeque::new(),
            });
        }
    }

    /// Tells programs that they are recorded, and looks which have ended.
    pub(crate) fn renew(&mut self) {
        let now = monotonic_ns();
        self.renewed = now;
        self.ticks.measure();
        for source in &mut self.sources {
            if source.ended.is_some() {
                continue;
            }
            promise(&mut source.area, &self.ticks);
            let (start, end) = source.place;
            let place = format!("/proc/{}/map_files/{start:x}-{end:x}", source.pid);
            if fs::symlink_metadata(place).is_err() {
                source.ended = Some(now);
            }
        }
    }

    /// Takes what has been marked since the last time. Returns which share of its ring the busiest
    /// thread has filled.
    pub(crate) fn read(&mut self, into: &mut Vec<RawMark>) -> f64 {
        // Before: one that had ended by then has written all that it will.
        if monotonic_ns().saturating_sub(self.renewed) >= RENEWAL_NS {
            self.renew();
        } else {
            self.ticks.measure();
        }
        let (mut filled, mut allowed) = (0.0f64, MOST_OF_ROUND);
        let mut raw = std::mem::take(&mut self.raw);
        let mut sources = std::mem::take(&mut self.sources);
        sources.retain_mut(|source| {
            let round = source.area.read(&mut allowed, &mut raw);
            filled = filled.max(round.filled);
            self.figures.lost = self.figures.lost.saturating_add(round.lost);
            self.take(source, &mut raw, into);
            let may_write = source.ended.is_none() || round.has_more;
            self.keep(source, may_write && !round.is_damaged)
        });
        (self.sources, self.raw) = (sources, raw);
        // Another one is first next time.
        if !self.sources.is_empty() {
            self.sources.rotate_left(1);
        }
        filled
    }

    /// Counts an area that is dropped for being damaged, and forgets one that is not kept.
    fn keep(&mut self, source: &Source, is_kept: bool) -> bool {
        if !is_kept {
            if source.ended.is_none() {
                self.figures.damaged += 1;
            } else {
                // The kernel may give the number to another.
                self.seen.remove(&source.area.identity());
            }
        }
        is_kept
    }

    /// Looks how far rings are that only a snapshot reads: so it is known how much of what was written
    /// since a moment they hold no more. Areas that were left before `horizon` are closed.
    pub(crate) fn glance(&mut self, horizon: u64) {
        let now = monotonic_ns();
        if now.saturating_sub(self.glanced) < GLANCE_NS {
            return;
        }
        self.glanced = now;
        if now.saturating_sub(self.renewed) >= RENEWAL_NS {
            self.renew();
        }
        let mut sources = std::mem::take(&mut self.sources);
        sources.retain_mut(|source| {
            let begun = source.area.begun();
            source.glances.push_back((now, begun));
            while source.glances.get(1).is_some_and(|(at, _)| *at < horizon) {
                source.glances.pop_front();
            }
            self.keep(source, source.ended.is_none_or(|ended| ended >= horizon))
        });
        self.sources = sources;
    }

    /// Copies what the rings hold. What was marked since `start` (CLOCK_MONOTONIC, ns) and is in them
    /// no more is counted as overwritten: at least so much was.
    pub(crate) fn snapshot(&mut self, start: u64, into: &mut Vec<RawMark>) {
        self.ticks.measure();
        self.figures.overwritten = 0;
        let (mut raw, mut allowed) = (Vec::new(), MOST_OF_SNAPSHOT);
        let mut sources = std::mem::take(&mut self.sources);
        for source in &mut sources {
            let since = source.glances.iter().find(|(at, _)| *at >= start);
            let since = since.map_or_else(|| source.area.begun(), |(_, begun)| begun.clone());
            let held = source.area.copy(&since, &mut allowed, &mut raw);
            self.figures.lost = self.figures.lost.saturating_add(held.lost);
            self.figures.overwritten = self.figures.overwritten.saturating_add(held.overwritten);
            self.take(source, &mut raw, into);
        }
        self.sources = sources;
        into.retain(|mark| mark.ts >= start);
    }

    /// Records become marks, in the order of their rings.
    fn take(&mut self, source: &mut Source, raw: &mut Vec<Raw>, into: &mut Vec<RawMark>) {
        let now = monotonic_ns();
        let mut looked = false;
        for record in raw.drain(..) {
            let ts = match source.area.counts_ticks() {
                true => self.ticks.ns(record.time),
                false => record.time,
            };
            if ts < self.start {
                continue;
            }
            /// The line through the clocks' measured points may be so wrong.
            const SLACK_NS: u64 = 1_000_000;
            if ts > now + SLACK_NS {
                self.figures.lost += 1;
                continue;
            }
            let tid = match &mut source.tids {
                None => Some(record.tid),
                Some(tids) => tids.get(&record.tid).copied().or_else(|| {
                    if !std::mem::replace(&mut looked, true) {
                        inner_tids(source.pid, tids);
                    }
                    tids.get(&record.tid).copied()
                }),
            };
            let code = match record.code.checked_sub(FIRST_MARK_NAME) {
                None => Some(record.code),
                Some(at) => self.name(source, at),
            };
            let (Some(tid), Some(code)) = (tid, code) else {
                self.figures.lost += 1;
                continue;
            };
            into.push(RawMark {
                ts: ts.min(now),
                pid: source.pid,
                tid,
                code,
                kind: record.kind,
                pairing: record.pairing,
                colour: record.colour,
                args: record.args,
            });
        }
    }

    /// The trace's code of an area's name.
    fn name(&mut self, source: &mut Source, at: u32) -> Option<u32> {
        if let Some(&code) = source.names.get(at as usize) {
            return Some(code);
        }
        // They come in order, and stay.
        for next in source.names.len() as u32..=at {
            let name = source.area.name(next)?;
            source.names.push(self.code(name)?);
        }
        source.names.last().copied()
    }

    /// The trace's code of a name; `None` where there are too many.
    pub(crate) fn code(&mut self, name: String) -> Option<u32> {
        if let Some(&code) = self.names.get(&name) {
            return Some(code);
        }
        if self.told.len() >= MOST_NAMES {
            return None;
        }
        let code = FIRST_MARK_NAME + self.told.len() as u32;
        self.told.push(name.clone());
        self.names.insert(name, code);
        Some(code)
    }

    /// Probes of programs with the codes of their names.
    pub(crate) fn of_probes(&mut self, probes: &[Probe]) -> Vec<(Probe, u32)> {
        let with_code = |probe: &Probe| Some((probe.clone(), self.code(probe.name.clone())?));
        probes.iter().filter_map(with_code).collect()
    }

    /// Writes the names from the `known`th on.
    pub(crate) fn write_names(&self, known: &mut usize, into: &mut MarkNames) {
        for (at, name) in self.told.iter().enumerate().skip(*known) {
            into.push(MarkName {
                code: FIRST_MARK_NAME + at as u32,
                name: name.clone(),
            });
        }
        *known = self.told.len();
    }

    /// Marks that were taken and could not be kept.
    pub(crate) fn lose(&mut self, count: u64) {
        self.figures.lost = self.figures.lost.saturating_add(count);
    }

    /// What came of it so far.
    pub(crate) fn figures(&self) -> Marking {
        self.figures
    }
}

/// The kernel's tids of a process by those of its innermost pid namespace.
fn inner_tids(pid: u32, tids: &mut HashMap<u32, u32>) {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return;
    };
    for task in tasks.flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let mut numbers = line.unwrap_or("").split_whitespace().map(str::parse);
        let (outer, inner) = (numbers.next(), numbers.next_back());
        if let (Some(Ok(outer)), Some(Ok(inner))) = (outer, inner) {
            tids.insert(inner, outer);
        }
    }
}
