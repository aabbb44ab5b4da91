//! The comparison in a sentence, and what it rules out.

use super::split::Spread;
use super::{Detail, Difference, FactorKind, FactorRow};
use crate::sentence::duration;

/// A factor below this share of the difference is ruled out.
const LITTLE: f64 = 0.1;
/// A part of a factor is named if it is this share of the factor's difference.
const MAIN_PART: f64 = 0.2;

fn time(ns: f64) -> String {
    duration(ns.max(0.0).round() as u64)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// There is no difference within a trace.
pub(super) fn alike(what: &str, count: usize, durations: &Spread) -> String {
    format!(
        "The {count} {what} are of one kind: half take up to {}, 95 % up to {}, and their durations show no \
         two groups. There is no difference to explain.",
        time(durations.median_ns as f64),
        time(durations.p95_ns as f64)
    )
}

/// There is no difference between two traces.
pub(super) fn same(what: &str, fast: f64, slow: f64, chance: f64) -> String {
    format!(
        "The {what} of both traces take the same time: {} and {} on average, a difference that is either \
         small or what chance gives (p = {chance:.3}). There is no difference to explain.",
        time(fast),
        time(slow)
    )
}

/// The difference within a trace.
pub(super) fn within(what: &str, count: usize, difference: &Difference) -> String {
    let (fast, slow) = (&difference.fast, &difference.slow);
    let begin = format!(
        "Of {count} {what} {} are slow: {} on average, the {} fast ones {}.",
        slow.count,
        time(slow.mean_ns),
        fast.count,
        time(fast.mean_ns)
    );
    format!("{begin} {}", cause(difference))
}

/// The difference between two traces.
pub(super) fn between(what: &str, second_is_slow: bool, difference: &Difference) -> String {
    let (fast, slow) = (&difference.fast, &difference.slow);
    let which = match second_is_slow {
        true => "second",
        false => "first",
    };
    let begin = format!(
        "The {what} of the {which} trace are slower: {} on average, {} in the other.",
        time(slow.mean_ns),
        time(fast.mean_ns)
    );
    format!("{begin} {}", cause(difference))
}

fn cause(difference: &Difference) -> String {
    let Some(first) = difference.factors.first() else {
        return String::new();
    };
    let share = format!(
        "{} of the difference ({} to {} in nine of ten draws)",
        percent(first.share),
        percent(first.share_low),
        percent(first.share_high)
    );
    if !difference.explained {
        return format!(
            "No factor explains it by itself; most is {} {}, {share}.",
            time(first.difference_ns),
            first.factor
        );
    }
    let mut text = format!(
        "The slow ones spend {} more {}: {share}",
        time(first.difference_ns),
        first.factor
    );
    let parts: Vec<String> = main_parts(first)
        .map(|part| {
            let more = time(part.difference());
            match first.kind == FactorKind::Running.text() {
                true => format!("{more} of it in {}", part.what),
                false => format!("{more} of it {}", part.what),
            }
        })
        .collect();
    if !parts.is_empty() {
        text = format!("{text}; {}", parts.join(", "));
    }
    if first.kind == FactorKind::Running.text()
        && let Some(hardware) = &difference.hardware
    {
        text = format!("{text}; {}", hardware.conclusion);
    }
    if let Some(runs) = difference.runs.filter(|runs| runs.in_a_row) {
        let by_chance = runs.by_chance.round();
        let (count, slower) = (runs.count, "something that lasted then made them slow");
        text = format!(
            "{text}. They come in a row ({count} runs of fast and slow ones, where chance gives {by_chance}): \
             {slower}"
        );
    }
    format!("{text}.")
}

/// The parts that most of a factor's difference consists of: one or two.
fn main_parts(factor: &FactorRow) -> impl Iterator<Item = &Detail> {
    let whole = factor.difference_ns;
    let is_main = move |part: &&Detail| whole > 0.0 && part.difference() >= MAIN_PART * whole;
    factor.details.iter().take(2).filter(is_main)
}

/// What the difference is not.
pub(super) fn ruled_out(factors: &[FactorRow]) -> Vec<String> {
    const KINDS: [(FactorKind, &str); 6] = [
        (FactorKind::Running, "running longer"),
        (FactorKind::Interrupt, "interrupts"),
        (FactorKind::Cpu, "waiting for a CPU"),
        (FactorKind::Quota, "a CPU quota"),
        (FactorKind::Migration, "moves to another CPU"),
        (FactorKind::Wait, "waiting for others, devices or time"),
    ];
    let mut ruled_out: Vec<String> = (KINDS.into_iter())
        .filter_map(|(kind, what)| {
            let of_kind = factors.iter().filter(|factor| factor.kind == kind.text());
            let share: f64 = of_kind.map(|factor| factor.share).sum();
            (share.abs() < LITTLE).then(|| format!("{what} ({})", percent(share.max(0.0))))
        })
        .collect();
    let ran = (factors.iter()).find(|factor| factor.kind == FactorKind::Running.text());
    if let Some(ran) = ran.filter(|ran| ran.share >= LITTLE && !ran.details.is_empty()) {
        let faults = ran
            .details
            .iter()
            .filter(|part| part.what.starts_with("page faults"));
        let faults: f64 = faults.map(Detail::difference).sum();
        let share = faults / ran.difference_ns * ran.share;
        if share.abs() < LITTLE {
            ruled_out.push(format!(
                "page faults ({}, by samples)",
                percent(share.max(0.0))
            ));
        }
    }
    ruled_out
}

/// What to do where the trace cannot tell more.
pub(super) fn next(factors: &[FactorRow], explained: bool, only_ran: bool) -> Option<String> {
    if !explained {
        return Some(
            "Record more occurrences, or compare the slowest with the rest: --slowest 10."
                .to_owned(),
        );
    }
    if !only_ran {
        return None;
    }
    let first = factors.first()?;
    let in_faults = main_parts(first).any(|part| part.what.starts_with("page faults"));
    if in_faults {
        return None;
    }
    let functions = match first.details.is_empty() {
        true => "There are too few samples to say in which function: record with --sample 5000. ",
        false => "",
    };
    Some(format!(
        "{functions}No hardware counters were recorded, so the trace cannot tell more code from slower memory \
         (cache or TLB misses), a slower clock, or a host that takes the CPU (steal, in /proc/stat). Compare \
         how much data the slow ones handle; record on a machine with a PMU to count instructions and \
         cache misses."
    ))
}
