//! Where each thread's time went, as values.

use crate::case::Recording;
use crate::select::{Who, Window};
use anyhow::Result;
use hangdog_timeline::counters::{self, Rate, Rates};
use hangdog_timeline::summary::{Summary, summaries};
use hangdog_timeline::{Interval, State};
use hangdog_trace::tables::Counters;
use serde::{Serialize, Serializer};

/// A thread with its time by state.
#[derive(Serialize)]
pub struct ThreadRow<'a> {
    /// Who.
    #[serde(flatten)]
    pub who: Who<'a>,
    /// Its life within the window, ns.
    pub time_ns: u64,
    /// Time by state.
    #[serde(serialize_with = "states")]
    pub states: Summary,
    /// How often it came on a CPU.
    pub switches: u64,
    /// The longest interval off the CPU.
    #[serde(serialize_with = "wait")]
    pub longest_wait: Option<Interval>,
    /// What the hardware counted; none where the thread was not counted.
    #[serde(serialize_with = "rates", skip_serializing_if = "Option::is_none")]
    pub counters: Option<Rates>,
}

impl<'a> ThreadRow<'a> {
    fn new(who: Who<'a>, summary: Summary, counters: Option<Rates>) -> ThreadRow<'a> {
        ThreadRow {
            who,
            time_ns: summary.total(),
            states: summary,
            switches: summary.switches,
            longest_wait: summary.longest_wait,
            counters,
        }
    }

    /// Time in a state, ns.
    pub fn time(&self, state: State) -> u64 {
        self.states.time_in(state)
    }
}

/// The threads that live within the window, ascending by utid.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn thread_rows(recording: &Recording, window: Window) -> Result<Vec<ThreadRow<'_>>> {
    let counters: Counters = recording.trace.read()?;
    let rates = counters::rates(&counters, window.from, window.to);
    Ok(summaries(&recording.timeline, window.from, window.to)
        .into_iter()
        .map(|(utid, summary)| {
            let who = Who::new(&recording.threads, utid);
            ThreadRow::new(who, summary, rates.get(&utid).copied())
        })
        .collect())
}

fn states<S: Serializer>(summary: &Summary, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Share {
        ns: u64,
        share: f64,
    }
    let total = summary.total().max(1) as f64;
    to.collect_map(State::ALL.into_iter().map(|state| {
        let ns = summary.time_in(state);
        let share = ns as f64 / total;
        (state.text(), Share { ns, share })
    }))
}

fn wait<S: Serializer>(wait: &Option<Interval>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Wait {
        start_ns: u64,
        duration_ns: u64,
        state: &'static str,
    }
    wait.map(|wait| Wait {
        start_ns: wait.start,
        duration_ns: wait.duration(),
        state: wait.state.text(),
    })
    .serialize(to)
}

fn rates<S: Serializer>(rates: &Option<Rates>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Counted {
        instructions_per_cycle: Option<f64>,
        cache_misses_per_1000_instructions: Option<f64>,
        tlb_misses_per_1000_instructions: Option<f64>,
    }
    let per_1000 = |rate: Rate| rate.value().map(|each| each * 1000.0);
    rates
        .map(|rates| Counted {
            instructions_per_cycle: rates.instructions.value(),
            cache_misses_per_1000_instructions: per_1000(rates.cache_misses),
            tlb_misses_per_1000_instructions: per_1000(rates.tlb_misses),
        })
        .serialize(to)
}
