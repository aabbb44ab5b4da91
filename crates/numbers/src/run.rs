//! Goes through the methods, several times, within the time there is.
//!
//! Each pass visits every method once. What is left of the time is shared anew before each visit,
//! by weight, so that a method that took longer than it should (making a chain through 2 GB) costs
//! the others a little and not the user.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::catalogue::methods;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::meter::{Meter, Samples};
use crate::method::Method;
use crate::place::Place;
use crate::quiet::{Disturbance, Watch};
use crate::report::{Noise, Report, Used, VERSION};
use crate::spread::Spread;
use crate::{cpu, steps};

/// What to measure, and for how long.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Where files are made and removed, in a directory of their own.
    pub dir: PathBuf,
    /// A rough result in 15 s instead of a good one in 90.
    pub quick: bool,
    /// Only methods and figures whose id begins with one of these; all if there is none. The time
    /// shrinks with them.
    pub only: Vec<String>,
}

impl Setting {
    fn passes(&self) -> u32 {
        if self.quick { 3 } else { 6 }
    }

    /// For everything. It leaves time to spare: the last visit cannot give back what it overran.
    fn time(&self) -> Duration {
        Duration::from_secs(if self.quick { 12 } else { 78 })
    }
}

/// How far it is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// What is measured now.
    pub method: &'static str,
    /// Visits made, and visits in all.
    pub visits: (u32, u32),
    /// How long it will take from now.
    pub left: Duration,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The directory for files cannot be written.
    #[error("{}: no files can be made there ({cause}); name another directory with --dir", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// `only` names nothing.
    #[error("no figure begins with {0}; `hangdog numbers --list` names them")]
    NothingToMeasure(String),
    /// The CPUs that may be used cannot be had.
    #[error(transparent)]
    Cpus(#[from] crate::meter::Untried),
    /// The user stopped it.
    #[error("stopped before it was done; nothing was kept")]
    Stopped,
}

/// Everything that was found in all visits to one method.
#[derive(Default)]
struct Visits {
    samples: Samples,
    disturbances: Vec<Disturbance>,
    untried: Option<String>,
}

/// Measures. `tell` hears of each visit before it is made; `stop` ends it, within a second or so.
///
/// # Errors
/// Where no file can be made, where nothing of what is wanted can be measured, and when it is
/// stopped. What a single method cannot do is in the report.
pub fn measure(
    setting: &Setting,
    stop: impl Fn() -> bool,
    tell: impl FnMut(&Progress),
) -> Result<Report, Failure> {
    let begun = Instant::now();
    let chosen = chosen(setting)?;
    let own = tempfile::Builder::new()
        .prefix(".hangdog-numbers-")
        .tempdir_in(&setting.dir)
        .map_err(|cause| Failure::Directory {
            dir: setting.dir.clone(),
            cause,
        })?;
    let machine = Machine::look(own.path());
    let place = place(own.path(), &machine, setting)?;
    let watch = Watch::new();
    let found = visit_all(setting, &chosen, &place, &watch, stop, tell)?;

    let noise = Noise::of(&watch, found.iter().flat_map(|visits| &visits.disturbances));
    let mut figures = Vec::new();
    let mut methods = Vec::new();
    for (method, visits) in chosen.iter().zip(&found) {
        figures.extend(figures_of(method, visits, &noise));
        methods.push(Used {
            id: method.id.to_owned(),
            how: method.how.to_owned(),
            source: method.source.to_owned(),
            not_tried: visits.untried.clone(),
        });
    }
    Ok(Report {
        version: VERSION,
        hangdog: env!("CARGO_PKG_VERSION").to_owned(),
        taken_unix_s: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        took_s: begun.elapsed().as_secs_f64(),
        quick: setting.quick,
        steps: steps::of(&figures, &machine.caches),
        machine,
        noise,
        figures,
        methods,
    })
}

/// The methods that are wanted.
fn chosen(setting: &Setting) -> Result<Vec<&'static Method>, Failure> {
    let begins = |method: &Method, start: &str| {
        let figures = method.figures.iter().map(|kind| kind.id);
        figures.chain([method.id]).any(|id| id.starts_with(start))
    };
    for start in &setting.only {
        if !methods().any(|method| begins(method, start)) {
            return Err(Failure::NothingToMeasure(start.clone()));
        }
    }
    let wanted = |method: &&Method| {
        let only = &setting.only;
        only.is_empty() || only.iter().any(|start| begins(method, start))
    };
    Ok(methods().filter(wanted).collect())
}

/// Visits each method once in each pass, within the part of the time that is theirs.
fn visit_all(
    setting: &Setting,
    chosen: &[&'static Method],
    place: &Place,
    watch: &Watch,
    stop: impl Fn() -> bool,
    mut tell: impl FnMut(&Progress),
) -> Result<Vec<Visits>, Failure> {
    let weight = chosen.iter().map(|method| method.weight).sum::<u32>();
    let weight_of_all = methods().map(|method| method.weight).sum::<u32>();
    let part = f64::from(weight) / f64::from(weight_of_all);
    let end = Instant::now() + setting.time().mul_f64(part);
    let passes = setting.passes();
    let mut weight_left = passes * weight;
    let mut visits_made = 0;
    let mut found: Vec<Visits> = chosen.iter().map(|_| Visits::default()).collect();
    for pass in 0..passes {
        for (method, visits) in chosen.iter().zip(&mut found) {
            if stop() {
                return Err(Failure::Stopped);
            }
            let left = end.saturating_duration_since(Instant::now());
            tell(&Progress {
                method: method.id,
                visits: (visits_made, passes * chosen.len() as u32),
                left,
            });
            let budget = left.mul_f64(f64::from(method.weight) / f64::from(weight_left));
            visits_made += 1;
            weight_left -= method.weight;
            if visits.untried.is_some() {
                continue;
            }
            let before = watch.look();
            let mut meter = Meter::new(method.id, method.figures, pass, budget);
            let result = (method.run)(place, &mut meter);
            // What it gave before it failed stays: a large file that does not fit leaves the others.
            visits.untried = result.err().map(|untried| untried.0);
            for (of, mut samples) in meter.samples {
                visits.samples.entry(of).or_default().append(&mut samples);
            }
            visits.disturbances.push(watch.since(&before));
        }
    }
    Ok(found)
}

fn place(dir: &Path, machine: &Machine, setting: &Setting) -> Result<Place, Failure> {
    let cpus = cpu::allowed()?;
    let (here, there) = cpu::pair(&cpus);
    Ok(Place {
        dir: dir.to_owned(),
        here,
        there,
        largest: machine.largest_memory_to_measure() as usize,
        quick: setting.quick,
        cpus,
    })
}

/// A figure for each kind and place, in the order of the method's kinds.
fn figures_of(method: &'static Method, visits: &Visits, noise: &Noise) -> Vec<Figure> {
    let disturbed = noise.disturbed(&visits.disturbances);
    let mut figures = Vec::new();
    for kind in method.figures {
        let of_kind = visits.samples.iter().filter(|((id, _), _)| *id == kind.id);
        figures.extend(of_kind.filter_map(|(&(_, at), samples)| {
            Some(Figure {
                id: kind.id.to_owned(),
                at,
                unit: kind.unit,
                spread: Spread::of(samples, kind.unit)?.widened(noise.wandering(kind.unit)),
                disturbed: disturbed.clone(),
            })
        }));
    }
    figures
}
