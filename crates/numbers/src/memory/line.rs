//! What it costs to store to a line that another core holds.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::order::Order;
use crate::cpu;
use crate::kind::{Kind, Section};
use crate::meter::{Meter, Untried};
use crate::method::Method;
use crate::place::Place;

/// So few that they fit into any first cache, with room.
const LINES: usize = 128;

/// Rounds in a visit, each of which is a sample: more say no more.
const MOST_ROUNDS: u32 = 2000;

pub(super) const LINE: Method = Method {
    id: "memory.line",
    section: Section::Memory,
    figures: &[
        Kind::ns("memory.line.own", "atomic add to a line of this core"),
        Kind::ns(
            "memory.line.other",
            "atomic add to a line that another core holds",
        ),
    ],
    how: "Two threads on two cores add in turn to each of 128 lines, in random order, atomically, each \
          after the one before; when one begins, all lines are in the other's cache, changed. Time of an addition; `own` is a \
          second round by the same thread.",
    source: "Hackenberg, Molka, Nagel, Comparing cache architectures and coherency protocols, 2009",
    weight: 1,
    run,
};

/// A line alone in its pair of 128 bytes, which some CPUs fetch at once.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// What the two threads share.
struct Shared {
    lines: Vec<Line>,
    /// Whose turn it is: 0 the measuring thread's, 1 the other's, 2 the end.
    turn: AtomicU32,
    /// Where the other thread ran when it last stored.
    other_cpu: AtomicUsize,
}

impl Shared {
    fn new() -> Shared {
        Shared {
            lines: (0..LINES).map(|_| Line::default()).collect(),
            turn: AtomicU32::new(0),
            other_cpu: AtomicUsize::new(usize::MAX),
        }
    }

    /// Adds to each line once, and says how long that took. Which line comes next depends on what
    /// was in the one before (`nothing` is 0, but the compiler and the CPU do not know): otherwise
    /// the CPU fetches several at once, and a line seems to cost a few ns.
    fn add_to_all(&self, order: &Order) -> Duration {
        let nothing = black_box(0);
        let start = Instant::now();
        let mut before = 0;
        for index in 0..LINES as u64 {
            let place = order.place(index + (before & nothing));
            before = self.lines[place as usize].0.fetch_add(1, Ordering::SeqCst);
        }
        start.elapsed()
    }

    /// Adds whenever it is told to, until the end.
    fn be_the_other(&self, cpu: usize) -> Result<(), Untried> {
        let pinned = cpu::pin(cpu);
        let order = Order::random(LINES as u64, 3);
        loop {
            match self.turn.load(Ordering::Acquire) {
                0 => std::hint::spin_loop(),
                1 => {
                    self.add_to_all(&order);
                    self.other_cpu.store(cpu::current(), Ordering::Relaxed);
                    self.turn.store(0, Ordering::Release);
                }
                _ => break,
            }
        }
        pinned.map(drop)
    }

    /// Lets the other thread take all lines.
    fn give_away(&self) {
        self.turn.store(1, Ordering::Release);
        while self.turn.load(Ordering::Acquire) != 0 {
            std::hint::spin_loop();
        }
    }
}

fn run(place: &Place, meter: &mut Meter) -> Result<(), Untried> {
    let there = place
        .there
        .ok_or_else(|| Untried("needs a second CPU".to_owned()))?;
    let shared = Shared::new();
    thread::scope(|scope| {
        let other = scope.spawn(|| shared.be_the_other(there));
        let measured = measure(place, meter, &shared);
        shared.turn.store(2, Ordering::Release);
        // A panic there is one of ours: pass it on.
        other
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        measured
    })
}

fn measure(place: &Place, meter: &mut Meter, shared: &Shared) -> Result<(), Untried> {
    let _pinned = cpu::pin(place.here)?;
    let order = Order::random(LINES as u64, 5);
    let ns_each = |took: Duration| took.as_nanos() as f64 / LINES as f64;
    for warm in 0..MOST_ROUNDS {
        if warm > 100 && meter.time_left().is_zero() {
            break;
        }
        shared.give_away();
        let others = shared.add_to_all(&order);
        let own = shared.add_to_all(&order);
        // The first rounds wake the other CPU and fault memory in.
        if warm >= 20 {
            meter.push("memory.line.other", ns_each(others));
            meter.push("memory.line.own", ns_each(own));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines really change hands: each thread's additions are in all of them, and the other
    /// thread ran on the other CPU.
    #[test]
    fn lines_change_hands() {
        let cpus = cpu::allowed().unwrap();
        let (here, Some(there)) = cpu::pair(&cpus) else {
            println!("NOT RUN: lines between cores: needs a second CPU");
            return;
        };
        let shared = Shared::new();
        thread::scope(|scope| {
            let other = scope.spawn(|| shared.be_the_other(there));
            let _pinned = cpu::pin(here).unwrap();
            let order = Order::random(LINES as u64, 5);
            for round in 1..=10 {
                shared.give_away();
                assert!(
                    shared
                        .lines
                        .iter()
                        .all(|line| line.0.load(Ordering::SeqCst) == 2 * round - 1)
                );
                shared.add_to_all(&order);
                assert!(
                    shared
                        .lines
                        .iter()
                        .all(|line| line.0.load(Ordering::SeqCst) == 2 * round)
                );
                assert_eq!(shared.other_cpu.load(Ordering::Relaxed), there);
                assert_eq!(cpu::current(), here);
            }
            shared.turn.store(2, Ordering::Release);
            other.join().unwrap().unwrap();
        });
    }
}
