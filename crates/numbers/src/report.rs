//! The result: what `--json` prints, what is stored, what two runs are compared by.

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::kind::Unit;
use crate::machine::Machine;
use crate::quiet::{Disturbance, Watch};
use crate::spread::percentile;
use crate::steps::Step;

/// The form of [`Report`] that this version writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// A method that was used, or could not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Its name.
    pub id: String,
    /// How it measures.
    pub how: String,
    /// Where it comes from.
    pub source: String,
    /// Why it could not measure here, or not all of what it does.
    pub not_tried: Option<String>,
}

/// What else the machine did meanwhile. Shares are of all CPUs' time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The share that other programs used.
    pub others: f64,
    /// The share that the hypervisor gave to others.
    pub stolen: f64,
    /// A cycle of the CPU, ns: how long one of a chain of additions takes; the median of all visits.
    pub cycle_ns: f64,
    /// The 10th percentile of all visits...
    pub cycle_low_ns: f64,
    /// ...and the 90th: how far the clock wandered.
    pub cycle_high_ns: f64,
    /// How much longer than the median it was in the slowest visit: 0.1 is 10 % longer.
    pub slowest_clock: f64,
}

/// Beyond this share of the CPUs, others' work is told beside a figure...
const TOLD_OTHERS: f64 = 0.05;
/// ...and the hypervisor's...
const TOLD_STOLEN: f64 = 0.01;
/// ...and a clock that is slower than usual.
const TOLD_CLOCK: f64 = 0.05;

impl Noise {
    pub(crate) fn of<'a>(watch: &Watch, visits: impl Iterator<Item = &'a Disturbance>) -> Noise {
        let whole = watch.since_start();
        let mut cycles: Vec<f64> = visits.map(|visit| visit.cycle_ns).collect();
        cycles.push(whole.cycle_ns);
        cycles.sort_unstable_by(f64::total_cmp);
        let cycle_ns = percentile(&cycles, 0.5);
        Noise {
            others: whole.others,
            stolen: whole.stolen,
            cycle_ns,
            cycle_low_ns: percentile(&cycles, 0.1),
            cycle_high_ns: percentile(&cycles, 0.9),
            slowest_clock: percentile(&cycles, 1.0) / cycle_ns - 1.0,
        }
    }

    /// By which factors a spread is to be widened for the clock's wandering: a time that was taken
    /// while the clock was slow would have been shorter, and the other way round.
    pub(crate) fn wandering(&self, unit: Unit) -> (f64, f64) {
        let (shorter, longer) = (
            self.cycle_low_ns / self.cycle_high_ns,
            self.cycle_high_ns / self.cycle_low_ns,
        );
        match unit {
            Unit::Ns | Unit::BytesPerSecond => (shorter, longer),
            Unit::Share => (1.0, 1.0),
        }
    }

    /// Whether the figures as a whole are spoilt, and by what; empty if they are not.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.others > TOLD_OTHERS {
            warnings.push(format!(
                "other programs used {:.0} % of the CPUs",
                self.others * 100.0
            ));
        }
        if self.stolen > TOLD_STOLEN {
            warnings.push(format!(
                "the hypervisor took {:.0} % of the CPUs",
                self.stolen * 100.0
            ));
        }
        if self.slowest_clock > TOLD_CLOCK {
            warnings.push(format!(
                "the CPU's clock was up to {:.0} % slower at times",
                self.slowest_clock * 100.0
            ));
        }
        warnings
    }

    /// What disturbed a figure that was measured in these visits, in a few words.
    pub(crate) fn disturbed(&self, visits: &[Disturbance]) -> Option<String> {
        let note = |what: &str, limit: f64, share: &dyn Fn(&Disturbance) -> f64| {
            let beyond = visits.iter().filter(|visit| share(visit) > limit).count();
            let most = visits.iter().map(share).fold(0.0, f64::max);
            let (percent, all) = (most * 100.0, visits.len());
            (beyond > 0).then(|| format!("{what} {percent:.0} % in {beyond} of {all} runs"))
        };
        let slower = |visit: &Disturbance| visit.cycle_ns / self.cycle_ns - 1.0;
        let notes = [
            note("others used", TOLD_OTHERS, &|visit| visit.others),
            note("hypervisor took", TOLD_STOLEN, &|visit| visit.stolen),
            note("clock slower by", TOLD_CLOCK, &slower),
        ];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join(", "))
    }
}

/// What was found on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Form, [`VERSION`].
    pub version: u32,
    /// Version of the hangdog that measured.
    pub hangdog: String,
    /// When, seconds since 1970.
    pub taken_unix_s: u64,
    /// How long it took, seconds.
    pub took_s: f64,
    /// Whether it was a rough run.
    pub quick: bool,
    /// Where.
    pub machine: Machine,
    /// What else the machine did.
    pub noise: Noise,
    /// The levels of memory as they were found.
    pub steps: Vec<Step>,
    /// The figures in the table's order.
    pub figures: Vec<Figure>,
    /// How they were measured, and what could not be.
    pub methods: Vec<Used>,
}

impl Report {
    /// Reads what `--json` printed. The error says what was wrong, and where.
    pub fn parse(text: &str) -> Result<Report, String> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let head: Head = serde_json::from_str(text)
            .map_err(|error| format!("not what `hangdog numbers --json` prints: {error}"))?;
        if head.version > VERSION {
            return Err(format!(
                "written in form {} by a newer hangdog; this one reads up to {VERSION}",
                head.version
            ));
        }
        let report: Report = serde_json::from_str(text)
            .map_err(|error| format!("not what `hangdog numbers --json` prints: {error}"))?;
        match report.figures.iter().find(|figure| !figure.is_sound()) {
            Some(figure) => Err(format!(
                "{}: its median is not within its spread",
                figure.id
            )),
            None => Ok(report),
        }
    }

    /// A single figure by its id.
    pub fn figure(&self, id: &str) -> Option<&Figure> {
        self.figures
            .iter()
            .find(|figure| figure.id == id && figure.at.is_none())
    }

    /// A curve by its id, ascending by place.
    pub fn curve<'a>(&'a self, id: &'a str) -> impl Iterator<Item = (u64, &'a Figure)> + 'a {
        self.figures
            .iter()
            .filter(move |figure| figure.id == id)
            .filter_map(|figure| Some((figure.at?, figure)))
    }
}
