//! Fast against slow occurrences of the same work, in one trace or two: which occurrences a person means,
//! and the comparison of them.

use crate::case::Case;
use crate::regions::{Chosen, Marked};
use crate::select::{self, NothingFound, Window};
use anyhow::{Result, anyhow, bail};
use hangdog_diagnose::Answers;
use hangdog_diagnose::compare::{self, Comparison, Home, Occurrence, Side, Split};
use hangdog_graph::Evidence;
use hangdog_trace::ids::Utid;
use hangdog_trace::tables::{Counters, SystemCalls};

/// Which occurrences. A new source of them needs a variant, its words, and its list in `of_thread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// The turns of threads' loops, from one wait in this call to the next; each thread's own where
    /// none is given.
    Turns {
        /// The call's name.
        call: Option<&'a str>,
    },
    /// The requests that threads made, from what they sent until what they then received.
    Requests,
    /// The calls of this name, where calls were recorded.
    Calls(&'a str),
    /// The regions of this name or code that programs marked and that ended; of any thread where none is
    /// named.
    Region(&'a str),
}

/// A trace with the occurrences in it that are wanted.
pub struct Found<'a> {
    case: &'a Case,
    counters: Counters,
    answers: Answers,
    occurrences: Vec<Occurrence>,
    /// What they are, in the plural.
    pub what: String,
}

impl<'a> Found<'a> {
    /// The occurrences of the threads that `selector` means that lie within the window. Without a selector,
    /// only regions can be found.
    ///
    /// # Errors
    /// [`NothingFound`] if there is no such thread, call, or occurrence.
    pub fn new(
        case: &'a Case,
        evidence: &Evidence<'_>,
        selector: Option<&str>,
        window: Window,
        wanted: Wanted<'_>,
    ) -> Result<Found<'a>> {
        let recording = &*case.recording;
        let found = |occurrences, what| -> Result<Found<'a>> {
            Ok(Found {
                case,
                counters: recording.trace.read()?,
                answers: Answers::default(),
                occurrences,
                what,
            })
        };
        if let Wanted::Region(name) = wanted {
            let occurrences = regions(case, name, selector, window)?;
            return found(occurrences, format!("regions {name}"));
        }
        let Some(selector) = selector else {
            bail!("--thread says whose work is compared");
        };
        let threads = select::threads(&recording.threads, &recording.timeline, window, selector)?;
        let call = |name: &str| {
            let number = case.calls.number(name);
            number.ok_or_else(|| anyhow!("there is no system call '{name}'"))
        };
        let log: SystemCalls = match wanted {
            Wanted::Calls(_) => recording.trace.read()?,
            _ => SystemCalls::default(),
        };
        let (mut occurrences, mut what) = (Vec::new(), String::new());
        for &thread in &threads {
            let (found, is) = match wanted {
                Wanted::Turns { call: None } => match compare::home(evidence, thread) {
                    Some(home) => turns(case, evidence, thread, home),
                    None => continue,
                },
                Wanted::Turns { call: Some(name) } => {
                    let home = Home {
                        call: call(name)?,
                        object: None,
                    };
                    turns(case, evidence, thread, home)
                }

                Wanted::Requests => {
                    let requests = compare::requests(evidence, thread);
                    (requests, format!("requests of {selector}"))
                }
                Wanted::Calls(name) => {
                    let calls = compare::calls(&log, thread, call(name)?);
                    (calls, format!("calls of {name} by {selector}"))
                }
                Wanted::Region(_) => continue,
            };
            // Of several threads the words of the one that has the most.
            if found.len() > occurrences.len() || what.is_empty() {
                what = is;
            }
            occurrences.extend(found);
        }
        occurrences.retain(|found| window.from <= found.from && found.to <= window.to);
        if occurrences.is_empty() {
            let none = match wanted {
                Wanted::Turns { .. } => {
                    "it takes no turns: it never waits for the next thing to do"
                }
                Wanted::Requests => {
                    "it made no requests over a connection or pipe that the trace shows; record --transfers \
                 shows all"
                }
                Wanted::Calls(_) => {
                    "the trace has no such calls; record them with --calls or --calls-of"
                }
                Wanted::Region(_) => "it marked no regions of that name",
            };
            return Err(NothingFound::new(format!("'{selector}': {none}")).into());
        }
        found(occurrences, what)
    }

    /// All that were found.
    pub fn occurrences(&self) -> &[Occurrence] {
        &self.occurrences
    }

    fn side<'s, 'e>(&'s self, evidence: &'s Evidence<'e>) -> Side<'s, 'e> {
        Side {
            evidence,
            interrupts: &self.case.recording.interrupts,
            counters: &self.counters,
            setting: self.case.setting(&self.answers, None),
            occurrences: self.occurrences.clone(),
        }
    }

    /// Compares them with each other.
    ///
    /// # Errors
    /// [`NothingFound`] if there are too few.
    pub fn compare(&self, evidence: &Evidence<'_>, split: Split) -> Result<Comparison> {
        let comparison = compare::within(&self.side(evidence), &self.what, split);
        comparison.map_err(too_few)
    }

    /// Compares them with those of another trace.
    ///
    /// # Errors
    /// [`NothingFound`] if there are too few in one of them.
    pub fn compare_with(
        &self,
        evidence: &Evidence<'_>,
        other: &Found<'_>,
        others: &Evidence<'_>,
    ) -> Result<Comparison> {
        let sides = [self.side(evidence), other.side(others)];
        compare::between(&sides, &self.what).map_err(too_few)
    }
}

/// The regions of a name that began and ended within the window.
fn regions(
    case: &Case,
    name: &str,
    thread: Option<&str>,
    window: Window,
) -> Result<Vec<Occurrence>> {
    let recording = &*case.recording;
    let marked = Marked::load(recording, None)?;
    let chosen = Chosen {
        name: Some(name),
        thread,
        ..Chosen::default()
    };
    let ended = marked.chosen(recording, &chosen)?.into_iter();
    let ended = ended.filter(|region| {
        region.end.is_some() && window.from <= region.from && region.to <= window.to
    });
    // One in which nothing was recorded of its thread tells nothing.
    let places = ended.filter_map(|region| marked.place(recording, &region).ok());
    let occurrences: Vec<Occurrence> = places
        .map(|(thread, part)| Occurrence {
            thread,
            from: part.start,
            to: part.end,
        })
        .collect();
    match occurrences.is_empty() {
        true => Err(NothingFound::new(format!("no region '{name}' ended in that time")).into()),
        false => Ok(occurrences),
    }
}

fn turns(
    case: &Case,
    evidence: &Evidence<'_>,
    thread: Utid,
    home: Home,
) -> (Vec<Occurrence>, String) {
    let what = format!(
        "turns of {} (from one {} to the next)",
        evidence.name(thread),
        case.calls.name(home.call)
    );
    (compare::turns(evidence, thread, home), what)
}

fn too_few(why: String) -> anyhow::Error {
    NothingFound::new(why).into()
}

/// The share that the slowest are, given in percent.
///
/// # Errors
/// If it leaves nothing for one of the groups.
pub fn slowest(percent: f64) -> Result<Split> {
    if !(percent > 0.0 && percent <= 50.0) {
        bail!("--slowest takes a percentage above 0 and up to 50, as in --slowest 10");
    }
    Ok(Split::Slowest(percent / 100.0))
}
