//! The time that interrupts took, by source, as values: how often, how long, and at whose cost.
//!
//! An interrupt that came during another is counted in both, as it took its time on top of the other:
//! sums of different sources may overlap, so they are not added up here.

use crate::describe::softirq;
use crate::select::{Who, Window};
use hangdog_trace::Threads;
use hangdog_trace::ids::{IDLE, Utid};
use hangdog_trace::tables::Interrupts;
use hangdog_trace::words::InterruptKind;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// So many threads are told of each source.
const MOST_THREADS: usize = 3;

/// What one source of interrupts did.
#[derive(Debug, PartialEq, Serialize)]
pub struct Source<'a> {
    /// interrupt, softirq, or timer interrupt.
    pub kind: &'static str,
    /// The number of the interrupt or softirq; 0 for the timer.
    pub vector: u16,
    /// The softirq's name, as /proc/softirqs has it; none for an interrupt, whose device the trace
    /// does not name.
    pub name: Option<&'static str>,
    /// How often.
    pub count: u64,
    /// The shortest, ns.
    pub min_ns: u64,
    /// The average, ns.
    pub mean_ns: f64,
    /// The longest, ns.
    pub max_ns: u64,
    /// The standard deviation, ns, of all that there were.
    pub deviation_ns: f64,
    /// All together, ns.
    pub sum_ns: u64,
    /// By CPU, ascending.
    pub cpus: Vec<OnCpu>,
    /// The longest of them.
    pub longest: Longest<'a>,
    /// The threads that it took the most time from, most first; the idle threads are not counted.
    pub interrupted: Vec<Interrupted<'a>>,
}

/// The interrupts of a source on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OnCpu {
    /// Which.
    pub cpu: u16,
    /// How many.
    pub count: u64,
    /// How long together, ns.
    pub sum_ns: u64,
}

/// An interrupt.
#[derive(Debug, PartialEq, Serialize)]
pub struct Longest<'a> {
    /// When it began, ns since the trace's start.
    pub at_ns: u64,
    /// On which CPU.
    pub cpu: u16,
    /// Whom it interrupted; none if the CPU was idle.
    pub thread: Option<Who<'a>>,
}

/// What a source took from a thread.
#[derive(Debug, PartialEq, Serialize)]
pub struct Interrupted<'a> {
    /// Which.
    #[serde(flatten)]
    pub who: Who<'a>,
    /// How often.
    pub count: u64,
    /// How long together, ns.
    pub sum_ns: u64,
}

#[derive(Default)]
struct Sums {
    count: u64,
    sum: u64,
    squares: f64,
    min: u64,
    longest: usize,
    cpus: BTreeMap<u16, OnCpu>,
    threads: HashMap<Utid, (u64, u64)>,
}

/// The sources of the interrupts that begin within the window, by the time that they took, most first.
pub fn sources<'a>(
    interrupts: &Interrupts,
    threads: &'a Threads,
    window: Window,
) -> Vec<Source<'a>> {
    let mut by_source: BTreeMap<(u8, u16), Sums> = BTreeMap::new();
    for row in 0..interrupts.len() {
        if !(window.from..window.to).contains(&interrupts.ts[row]) {
            continue;
        }
        let ns = interrupts.duration[row];
        let sums = (by_source.entry((interrupts.kind[row], interrupts.vector[row])))
            .or_insert_with(|| Sums {
                min: u64::MAX,
                longest: row,
                ..Sums::default()
            });
        sums.count += 1;
        sums.sum = sums.sum.saturating_add(ns);
        sums.squares += ns as f64 * ns as f64;
        sums.min = sums.min.min(ns);
        if ns > interrupts.duration[sums.longest] {
            sums.longest = row;
        }
        let cpu = interrupts.cpu[row];
        let on_cpu = sums.cpus.entry(cpu).or_default();
        on_cpu.cpu = cpu;
        on_cpu.count += 1;
        on_cpu.sum_ns = on_cpu.sum_ns.saturating_add(ns);
        if interrupts.thread[row] != IDLE {
            let (count, sum) = sums.threads.entry(interrupts.thread[row]).or_default();
            (*count, *sum) = (*count + 1, sum.saturating_add(ns));
        }
    }
    let mut sources: Vec<Source<'a>> = by_source
        .into_iter()
        .map(|((kind, vector), sums)| sums.source(kind, vector, interrupts, threads))
        .collect();
    sources.sort_by_key(|source| Reverse(source.sum_ns));
    sources
}

impl Sums {
    fn source<'a>(
        self,
        kind: u8,
        vector: u16,
        interrupts: &Interrupts,
        threads: &'a Threads,
    ) -> Source<'a> {
        let kind = InterruptKind::from(kind);
        let count = self.count.max(1) as f64;
        let mean = self.sum as f64 / count;
        let who = |utid: Utid| Who::new(threads, utid);
        let mut interrupted: Vec<Interrupted<'a>> = (self.threads.iter())
            .filter(|(utid, _)| threads.known(**utid).is_some())
            .map(|(&utid, &(count, sum_ns))| Interrupted {
                who: who(utid),
                count,
                sum_ns,
            })
            .collect();
        interrupted.sort_by_key(|thread| (Reverse(thread.sum_ns), thread.who.utid));
        interrupted.truncate(MOST_THREADS);
        let longest = self.longest;
        let of_longest = interrupts.thread[longest];
        Source {
            kind: kind.text(),
            vector,
            name: (kind == InterruptKind::Soft).then(|| softirq(vector)),
            count: self.count,
            min_ns: self.min,
            mean_ns: mean,
            max_ns: interrupts.duration[longest],
            deviation_ns: (self.squares / count - mean * mean).max(0.0).sqrt(),
            sum_ns: self.sum,
            cpus: self.cpus.into_values().collect(),
            longest: Longest {
                at_ns: interrupts.ts[longest],
                cpu: interrupts.cpu[longest],
                thread: (of_longest != IDLE && threads.known(of_longest).is_some())
                    .then(|| who(of_longest)),
            },
            interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangdog_trace::text;

    /// Three softirqs of 10, 20 and 60 µs on two CPUs, of which one comes to an idle CPU, and a timer
    /// outside the window: the figures are those of the three.
    #[test]
    fn figures_of_a_source() {
        let trace = text::parse(
            "process app 100
            thread app app 100
            0 cpu0 switch idle -> app
            1ms cpu0 irq 10us soft 3 app
            2ms cpu0 irq 60us soft 3 app
            3ms cpu1 irq 20us soft 3 idle
            9ms cpu0 irq 5us timer 0 app
            end 10ms",
        )
        .expect("a trace in text form");
        let threads = Threads::new(&trace.tables.lifecycle);
        let window = Window {
            from: 0,
            to: 8_000_000,
        };
        let sources = sources(&trace.tables.interrupts, &threads, window);
        let [source] = &sources[..] else {
            panic!("{sources:?}");
        };
        assert_eq!((source.kind, source.name), ("softirq", Some("NET_RX")));
        assert_eq!(
            (source.count, source.min_ns, source.max_ns, source.sum_ns),
            (3, 10_000, 60_000, 90_000)
        );
        assert_eq!(source.mean_ns, 30_000.0);
        // The root of ((20² + 30² + 10²) / 3) µs.
        assert!((source.deviation_ns - 21_602.469).abs() < 0.001);
        let cpus: Vec<(u16, u64, u64)> = (source.cpus.iter())
            .map(|on| (on.cpu, on.count, on.sum_ns))
            .collect();
        assert_eq!(cpus, [(0, 2, 70_000), (1, 1, 20_000)]);
        assert_eq!((source.longest.at_ns, source.longest.cpu), (2_000_000, 0));
        let [thread] = &source.interrupted[..] else {
            panic!("{source:?}");
        };
        assert_eq!(
            (thread.who.tid, thread.count, thread.sum_ns),
            (100, 2, 70_000)
        );
    }
}
