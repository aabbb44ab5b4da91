//! What programs marked: regions by name, each occurrence, and why one took longer than others.

use crate::case::Recording;
use crate::format;
use crate::select::{self, Bounds, NothingFound, Who, Window};
use crate::spans;
use anyhow::{Result, bail};
use hangdog_timeline::{Region, Regions, State, Summary};
use hangdog_trace::ids::FIRST_MARK_NAME;
use hangdog_trace::tables::{MarkNames, Marks};
use hangdog_trace::words::{Colour, MarkKind, Pairing};
use serde::Serialize;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::str::FromStr;

/// What an argument has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Which one, from 0.
    pub index: usize,
    /// What it is.
    pub value: i64,
}

impl FromStr for Argument {
    type Err = String;

    /// `N=VALUE`, where N is 1 to 4.
    fn from_str(text: &str) -> Result<Argument, String> {
        let parse = || -> Option<Argument> {
            let (number, value) = text.split_once('=')?;
            let number: usize = number.parse().ok().filter(|n| (1..=4).contains(n))?;
            Some(Argument {
                index: number - 1,
                value: value.parse().ok()?,
            })
        };
        parse()
            .ok_or_else(|| "give the argument's number, 1 to 4, and its value, as 1=42".to_owned())
    }
}

/// Which marks a person means.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chosen<'a> {
    /// A code, a name, or how names begin.
    pub name: Option<&'a str>,
    /// What arguments of the begin, or of the point, have to be.
    pub arguments: &'a [Argument],
    /// Begun by threads that are meant: tid, name, process/thread.
    pub thread: Option<&'a str>,
    /// Begun by threads of processes that are meant: pid, name, or how the name begins.
    pub process: Option<&'a str>,
    /// Begun in this time.
    pub window: Bounds,
}

/// The marks of a trace.
pub struct Marked {
    marks: Marks,
    names: HashMap<u32, String>,
    /// Begins and ends, paired.
    pub regions: Regions,
}

/// A region by name, over all of its occurrences that ended. Times are ns.
#[derive(Debug, PartialEq, Serialize)]
pub struct RegionRow {
    /// The name, or the code in digits.
    pub name: String,
    /// How many occurrences ended.
    pub count: usize,
    /// How many did not end before the trace did.
    pub open: usize,
    /// The sum.
    pub sum_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The standard deviation.
    pub deviation_ns: u64,
    /// The shortest time that half of them do not exceed.
    pub p50_ns: u64,
    /// The same for 90 of 100.
    pub p90_ns: u64,
    /// The same for 99 of 100.
    pub p99_ns: u64,
}

/// One occurrence of a region, or a point.
#[derive(Debug, PartialEq, Serialize)]
pub struct Occurrence<'a> {
    /// The name, or the code in digits.
    pub name: Cow<'a, str>,
    /// When it began, ns since the trace's start.
    pub start_ns: u64,
    /// How long it took, ns; so far, if it did not end; 0 for a point.
    pub duration_ns: u64,
    /// Its number by duration among those with its name that are listed, from 1, the longest; none for
    /// a point.
    pub nth: Option<usize>,
    /// Whether it did not end before the trace did.
    pub open: bool,
    /// Who began it, or marked the point.
    pub thread: Who<'a>,
    /// Who ended it, if that was another thread.
    pub ended_by: Option<Who<'a>>,
    /// The arguments of its begin.
    pub arguments: [i64; 4],
    /// The arguments of its end, where it has one.
    pub end_arguments: Option<[i64; 4]>,
    /// The colour of its end, or if that has none of its begin.
    pub colour: &'static str,
}

/// An occurrence that is to be explained, beside the others with its name.
#[derive(Debug, PartialEq, Serialize)]
pub struct Picked<'a> {
    /// The occurrence.
    #[serde(flatten)]
    pub occurrence: Occurrence<'a>,
    /// How many there are.
    pub of: usize,
    /// What half of them do not exceed, ns.
    pub median_ns: u64,
    /// Where the time of the thread that began it went.
    pub states: Vec<StateTime>,
}

/// A state of a thread during an occurrence.
#[derive(Debug, PartialEq, Serialize)]
pub struct StateTime {
    /// The state.
    pub state: &'static str,
    /// The time in it, ns.
    pub ns: u64,
    /// The mean of the other occurrences, ns.
    pub others_ns: u64,
}

impl Marked {
    /// Reads the marks of a trace and pairs them, as the program said or by a `rule` for all.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn load(recording: &Recording, rule: Option<Pairing>) -> Result<Marked> {
        let marks: Marks = recording.trace.read()?;
        let mut names: MarkNames = recording.trace.read()?;
        let trace = recording.trace.path();
        let marks = spans::add(trace, &recording.threads, marks, &mut names)?;
        let end = recording.timeline.end();
        let regions = Regions::pair(&marks, &recording.threads, rule, end);
        Ok(Marked {
            marks,
            names: names.code.into_iter().zip(names.name).collect(),
            regions,
        })
    }

    /// A code's name; the code in digits where it has none.
    pub fn name(&self, code: u32) -> Cow<'_, str> {
        match self.names.get(&code) {
            Some(name) if code >= FIRST_MARK_NAME => name.into(),
            _ => code.to_string().into(),
        }
    }

    /// The code of a row of marks.
    pub fn code(&self, row: u32) -> u32 {
        self.marks.code[row as usize]
    }

    /// The first argument of a row of marks.
    pub fn first_argument(&self, row: u32) -> i64 {
        self.marks.arg0[row as usize]
    }

    /// A region by itself.
    pub fn one<'a>(&'a self, recording: &'a Recording, region: &Region) -> Occurrence<'a> {
        self.occurrence(recording, region, None)
    }

    /// The codes that a name means: its own, or those of names that begin so.
    fn codes(&self, wanted: &str) -> Result<Vec<u32>> {
        let mut codes: Vec<u32> = self.marks.code.clone();
        codes.sort_unstable();
        codes.dedup();
        let fitting = |fits: &dyn Fn(&str) -> bool| -> Vec<u32> {
            let fits = |code: &&u32| fits(&self.name(**code));
            codes.iter().filter(fits).copied().collect()
        };
        let mut found = fitting(&|name| name == wanted);
        if found.is_empty() {
            found = fitting(&|name| name.starts_with(wanted));
        }
        if found.is_empty() {
            let known = codes
                .iter()
                .take(20)
                .map(|&code| self.name(code).into_owned());
            let known: Vec<String> = known.collect();
            let known = match known.is_empty() {
                true => "no program marked anything while this was recorded".to_owned(),
                false => format!("there are: {}", known.join(", ")),
            };
            return Err(NothingFound::new(format!("nothing is marked '{wanted}'; {known}")).into());
        }
        Ok(found)
    }

    /// Whether a row of marks is meant, as a function of the row.
    fn fits<'a>(
        &'a self,
        recording: &Recording,
        chosen: &Chosen<'a>,
    ) -> Result<impl Fn(u32) -> bool + 'a> {
        let window = Window::new(chosen.window, recording.timeline.end())?;
        let codes = chosen.name.map(|name| self.codes(name)).transpose()?;
        let threads = &recording.threads;
        let meant = match chosen.thread {
            Some(selector) => Some(select::threads(
                threads,
                &recording.timeline,
                window,
                selector,
            )?),
            None => None,
        };
        let of_processes: Option<Vec<u32>> = match chosen.process {
            Some(selector) => {
                let processes = select::processes(threads, selector)?;
                let of = |upid: u32| threads.process(upid).threads.clone();
                Some(processes.into_iter().flat_map(of).collect())
            }
            None => None,
        };
        let (marks, arguments) = (&self.marks, chosen.arguments);
        let is_everything = chosen.window == Bounds::default();
        Ok(move |row: u32| {
            let at = row as usize;
            let has = |list: &Option<Vec<u32>>, value: u32| {
                list.as_ref().is_none_or(|l| l.contains(&value))
            };
            (is_everything || (window.from..window.to).contains(&marks.ts[at]))
                && has(&codes, marks.code[at])
                && has(&meant, marks.thread[at])
                && has(&of_processes, marks.thread[at])
                && arguments
                    .iter()
                    .all(|argument| self.arguments(row)[argument.index] == argument.value)
        })
    }

    fn arguments(&self, row: u32) -> [i64; 4] {
        let (marks, at) = (&self.marks, row as usize);
        [
            marks.arg0[at],
            marks.arg1[at],
            marks.arg2[at],
            marks.arg3[at],
        ]
    }

    /// The regions that are meant, by time.
    ///
    /// # Errors
    /// [`NothingFound`] if nothing has that name, thread or process; an empty window.
    pub fn chosen(&self, recording: &Recording, chosen: &Chosen<'_>) -> Result<Vec<Region>> {
        let fits = self.fits(recording, chosen)?;
        let all = self.regions.all.iter();
        Ok(all.filter(|region| fits(region.begin)).copied().collect())
    }

    /// The regions by name, those that took most time first.
    pub fn rows(&self, regions: &[Region]) -> Vec<RegionRow> {
        let mut by_code: BTreeMap<u32, (Vec<u64>, usize)> = BTreeMap::new();
        for region in regions {
            let (durations, open) = by_code
                .entry(self.marks.code[region.begin as usize])
                .or_default();
            match region.end {
                Some(_) => durations.push(region.duration()),
                None => *open += 1,
            }
        }
        let mut rows: Vec<RegionRow> = (by_code.into_iter())
            .map(|(code, (durations, open))| row(self.name(code).into_owned(), durations, open))
            .collect();
        rows.sort_by_key(|row| Reverse(row.sum_ns));
        rows
    }

    /// Each of the regions.
    pub fn occurrences<'a>(
        &'a self,
        recording: &'a Recording,
        regions: &[Region],
    ) -> Vec<Occurrence<'a>> {
        let mut order: Vec<usize> = (0..regions.len()).collect();
        order.sort_by_key(|&at| Reverse(regions[at].duration()));
        let mut numbers = vec![0; regions.len()];
        let mut last: HashMap<u32, usize> = HashMap::new();
        for at in order {
            let number = last
                .entry(self.marks.code[regions[at].begin as usize])
                .or_default();
            *number += 1;
            numbers[at] = *number;
        }
        let one = |(region, number)| self.occurrence(recording, region, Some(number));
        regions.iter().zip(numbers).map(one).collect()
    }

    fn occurrence<'a>(
        &'a self,
        recording: &'a Recording,
        region: &Region,
        nth: Option<usize>,
    ) -> Occurrence<'a> {
        let begin = region.begin as usize;
        let who = |row: u32| Who::new(&recording.threads, self.marks.thread[row as usize]);
        let is_others = |&end: &u32| self.marks.thread[end as usize] != self.marks.thread[begin];
        let colours = [region.end, Some(region.begin)];
        let colours = colours.into_iter().flatten();
        let colour = colours
            .map(|row| Colour::from(self.marks.colour[row as usize]))
            .find(|colour| *colour != Colour::None);
        Occurrence {
            name: self.name(self.marks.code[begin]),
            start_ns: region.from,
            duration_ns: region.duration(),
            nth,
            open: region.end.is_none(),
            thread: who(region.begin),
            ended_by: region.end.filter(is_others).map(who),
            arguments: self.arguments(region.begin),
            end_arguments: region.end.map(|end| self.arguments(end)),
            colour: colour.unwrap_or(Colour::None).text(),
        }
    }

    /// The points that are meant, by time.
    ///
    /// # Errors
    /// As [`chosen`](Marked::chosen).
    pub fn points<'a>(
        &'a self,
        recording: &'a Recording,
        chosen: &Chosen<'_>,
    ) -> Result<Vec<Occurrence<'a>>> {
        let fits = self.fits(recording, chosen)?;
        let is_point =
            |row: &u32| MarkKind::from(self.marks.kind[*row as usize]) == MarkKind::Point;
        let rows = (0..self.marks.len() as u32)
            .filter(is_point)
            .filter(|&row| fits(row));
        let point = |row: u32| {
            let ts = self.marks.ts[row as usize];
            let region = Region {
                begin: row,
                end: Some(row),
                from: ts,
                to: ts,
            };
            Occurrence {
                end_arguments: None,
                ..self.occurrence(recording, &region, None)
            }
        };
        Ok(rows.map(point).collect())
    }

    /// The `nth` longest of the regions that are meant, from 1; those that have not ended count with
    /// what they took so far.
    ///
    /// # Errors
    /// As [`chosen`](Marked::chosen), and [`NothingFound`] if there are not so many.
    pub fn nth(
        &self,
        recording: &Recording,
        chosen: &Chosen<'_>,
        nth: u32,
    ) -> Result<(Region, Vec<Region>)> {
        let mut regions = self.chosen(recording, chosen)?;
        regions.sort_by_key(|region| Reverse(region.duration()));
        let number = nth.max(1) as usize;
        match regions.get(number - 1) {
            Some(region) => Ok((*region, regions)),
            None => {
                let name = chosen.name.unwrap_or("such");
                let count = format::things(regions.len() as u64, "region", "regions");
                Err(NothingFound::new(format!(
                    "there are {count} '{name}' that fit, and no number {number}"
                ))
                .into())
            }
        }
    }

    /// A region beside the `all` of its kind, longest first.
    pub fn picked<'a>(
        &'a self,
        recording: &'a Recording,
        region: &Region,
        all: &[Region],
        nth: u32,
    ) -> Picked<'a> {
        let times = |region: &Region| {
            let thread = self.marks.thread[region.begin as usize];
            Summary::of(recording.timeline.intervals(thread), region.from, region.to).time
        };
        let others = all.iter().filter(|other| other.begin != region.begin);
        let mut sums = [0u128; State::COUNT];
        for other in others {
            for (sum, ns) in sums.iter_mut().zip(times(other)) {
                *sum += u128::from(ns);
            }
        }
        let count = (all.len() as u128).saturating_sub(1).max(1);
        let states = State::ALL.into_iter().zip(times(region)).zip(sums);
        Picked {
            occurrence: self.occurrence(recording, region, Some(nth as usize)),
            of: all.len(),
            median_ns: all.get(all.len() / 2).map_or(0, Region::duration),
            states: states
                .map(|((state, ns), sum)| StateTime {
                    state: state.text(),
                    ns,
                    others_ns: (sum / count) as u64,
                })
                .filter(|state| state.ns > 0 || state.others_ns > 0)
                .collect(),
        }
    }

    /// The thread that began a region, and the part of its life that the region took.
    ///
    /// # Errors
    /// If the thread did nothing in it that was recorded.
    pub fn place(&self, recording: &Recording, region: &Region) -> Result<(u32, Range<u64>)> {
        let thread = self.marks.thread[region.begin as usize];
        let life = recording.timeline.life(thread);
        let part = region.from.max(life.start)..region.to.min(life.end);
        if part.is_empty() {
            bail!(
                "the region at {} is empty: nothing was recorded of its thread",
                format::moment(region.from)
            );
        }
        Ok((thread, part))
    }
}

/// The figures of a region, of durations in any order.
fn row(name: String, mut durations: Vec<u64>, open: usize) -> RegionRow {
    durations.sort_unstable();
    let count = durations.len();
    let sum: u64 = durations.iter().fold(0, |sum, ns| sum.saturating_add(*ns));
    let mean = sum as f64 / count.max(1) as f64;
    let squares: f64 = durations.iter().map(|&ns| (ns as f64 - mean).powi(2)).sum();
    // The smallest value that at least that share does not exceed (nearest rank).
    let percentile = |percent: usize| {
        let rank = (count * percent).div_ceil(100).max(1);
        durations.get(rank - 1).copied().unwrap_or(0)
    };
    RegionRow {
        name,
        count,
        open,
        sum_ns: sum,
        min_ns: durations.first().copied().unwrap_or(0),
        mean_ns: mean.round() as u64,
        max_ns: durations.last().copied().unwrap_or(0),
        deviation_ns: (squares / count.max(1) as f64).sqrt().round() as u64,
        p50_ns: percentile(50),
        p90_ns: percentile(90),
        p99_ns: percentile(99),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked out by hand: 10 to 100 in steps of 10 have mean 55, deviation 28.72, and by nearest rank the
    /// 5th, 9th and 10th as percentiles.
    #[test]
    fn figures() {
        let row = row("x".into(), (1..=10).rev().map(|n| n * 10).collect(), 3);
        assert_eq!((row.count, row.open, row.sum_ns), (10, 3, 550));
        assert_eq!(
            (row.min_ns, row.mean_ns, row.max_ns, row.deviation_ns),
            (10, 55, 100, 29)
        );
        assert_eq!((row.p50_ns, row.p90_ns, row.p99_ns), (50, 90, 100));
    }

    /// Nothing that ended has no time, and one has its own.
    #[test]
    fn few() {
        let none = row("x".into(), vec![], 1);
        assert_eq!(
            (none.count, none.sum_ns, none.max_ns, none.p99_ns),
            (0, 0, 0, 0)
        );
        let one = row("x".into(), vec![7], 0);
        assert_eq!(
            (one.min_ns, one.p50_ns, one.p99_ns, one.deviation_ns),
            (7, 7, 7, 0)
        );
    }

    /// An argument is told by number and value.
    #[test]
    fn arguments() {
        assert_eq!(
            "2=-5".parse(),
            Ok(Argument {
                index: 1,
                value: -5
            })
        );
        for wrong in ["", "0=1", "5=1", "1=x", "1"] {
            assert!(wrong.parse::<Argument>().is_err(), "{wrong}");
        }
    }
}
