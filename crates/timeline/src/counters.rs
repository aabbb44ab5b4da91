//! How well a thread used the hardware: rates of its counters, within a window.
//!
//! A counter may not have counted all the time, and then is not known. A rate is of those readings
//! alone that know both of its counters; otherwise a gap in one of them would look like a change.

use hangdog_trace::ids::Utid;
use hangdog_trace::tables::Counters;
use std::collections::HashMap;

/// One counter by another, over the readings that know both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rate {
    part: u64,
    whole: u64,
}

impl Rate {
    fn add(&mut self, part: Option<u64>, whole: Option<u64>) {
        if let (Some(part), Some(whole)) = (part, whole) {
            self.part = self.part.saturating_add(part);
            self.whole = self.whole.saturating_add(whole);
        }
    }

    /// The rate; none if nothing is known to divide by.
    pub fn value(self) -> Option<f64> {
        (self.whole > 0).then(|| self.part as f64 / self.whole as f64)
    }
}

/// The rates of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// Instructions by cycles.
    pub instructions: Rate,
    /// Cache misses by instructions.
    pub cache_misses: Rate,
    /// Reads that missed the data TLB by instructions.
    pub tlb_misses: Rate,
}

/// The rates of each thread that was counted within `(from, to]`. A reading is of the time before
/// it, back to the thread's coming on the CPU or its reading before.
pub fn rates(counters: &Counters, from: u64, to: u64) -> HashMap<Utid, Rates> {
    let mut found: HashMap<Utid, Rates> = HashMap::new();
    for i in 0..counters.len() {
        let count = counters.row(i);
        if count.ts <= from || count.ts > to {
            continue;
        }
        let rates = found.entry(count.thread).or_default();
        let long = |value: u64| (value != u64::MAX).then_some(value);
        let short = |value: u32| (value != u32::MAX).then_some(value.into());
        let instructions = long(count.instructions);
        rates.instructions.add(instructions, long(count.cycles));
        rates
            .cache_misses
            .add(short(count.cache_misses), instructions);
        rates.tlb_misses.add(short(count.tlb_misses), instructions);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangdog_trace::text;

    fn rates_of(from: u64, to: u64) -> (HashMap<Utid, Rates>, Utid) {
        let trace = text::parse(
            "process app 100
             thread main app 100
             1ms cpu0 counters main cycles=1000 instructions=3000 cache-misses=6 tlb-misses=3
             2ms cpu1 counters main cycles=1000 instructions=1000 cache-misses=2
             3ms cpu1 counters main cycles=7000 cache-misses=900 tlb-misses=900
             end 4ms",
        )
        .expect("a trace in text form");
        (rates(&trace.tables.counters, from, to), trace.t("main"))
    }

    /// Sums over both CPUs, without the readings that lack one of the two counters.
    #[test]
    fn readings_that_lack_a_counter_do_not_count() {
        let (rates, main) = rates_of(0, 4_000_000);
        let rates = rates[&main];
        assert_eq!(rates.instructions.value(), Some(2.0));
        assert_eq!(rates.cache_misses.value(), Some(0.002));
        assert_eq!(rates.tlb_misses.value(), Some(0.001));
    }

    /// A reading belongs to the time before it: at the window's start it is outside, at its end in.
    #[test]
    fn a_reading_is_of_the_time_before_it() {
        let (rates, main) = rates_of(1_000_000, 2_000_000);
        assert_eq!(rates[&main].instructions.value(), Some(1.0));
        assert_eq!(rates[&main].tlb_misses.value(), None);
    }

    /// A thread that was not counted has no rates.
    #[test]
    fn who_was_not_counted_has_no_rates() {
        assert!(rates_of(3_000_000, 4_000_000).0.is_empty());
    }
}
