//! The CPU's time stamp counter as CLOCK_MONOTONIC.
//!
//! Both are read together every second, and whenever something is to be converted: a line through two
//! such points tells the time between them to some 0.1 µs.

use crate::system::monotonic_ns;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    ticks: u64,
    ns: u64,
}

/// How far points are apart that are kept.
const APART_NS: u64 = 1_000_000_000;
/// So many are kept: an hour.
const MOST: usize = 4096;
/// Both are read so often, and the reading that took the shortest time counts.
const TRIES: usize = 8;

/// The points, ascending, at least two.
pub(crate) struct Ticks(Vec<Point>);

impl Ticks {
    /// Takes the first points.
    pub(crate) fn new() -> Ticks {
        let first = measured();
        let mut second = measured();
        // Where the counter is not read, any line does.
        while second.ticks == first.ticks || second.ns < first.ns + 1_000_000 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            second = measured();
            second.ticks = second.ticks.max(first.ticks + 1);
        }
        Ticks(vec![first, second])
    }

    /// Takes another point.
    pub(crate) fn measure(&mut self) {
        self.add(measured());
    }

    fn add(&mut self, point: Point) {
        let [.., before, last] = self.0[..] else {
            return;
        };
        if point.ticks <= last.ticks || point.ns <= last.ns {
            return;
        }
        if last.ns - before.ns < APART_NS {
            self.0.pop();
        }
        self.0.push(point);
        if self.0.len() > MOST {
            self.0.remove(0);
        }
    }

    /// The points between which a moment lies, or that are next to it.
    fn around(&self, is_before: impl Fn(&Point) -> bool) -> (Point, Point) {
        // Nearly all that is converted is of the last second.
        if let [.., before, last] = &self.0[..]
            && is_before(before)
        {
            return (*before, *last);
        }
        let after = self.0.partition_point(is_before).clamp(1, self.0.len() - 1);
        (self.0[after - 1], self.0[after])
    }

    /// CLOCK_MONOTONIC, ns, when the counter stood there.
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        let (a, b) = self.around(|point| point.ticks <= ticks);
        line((a.ticks, a.ns), (b.ticks, b.ns), ticks)
    }

    /// Where the counter stands at that time.
    pub(crate) fn ticks(&self, ns: u64) -> u64 {
        let (a, b) = self.around(|point| point.ns <= ns);
        line((a.ns, a.ticks), (b.ns, b.ticks), ns)
    }
}

/// Where the line through two points is at `x`, as far as the numbers reach.
fn line(a: (u64, u64), b: (u64, u64), x: u64) -> u64 {
    /// So far a float tells every number apart; beyond, slower arithmetic does.
    const EXACT: u64 = 1 << 50;
    if x >= a.0 && x - a.0 < EXACT && b.1 - a.1 < EXACT {
        let slope = (b.1 - a.1) as f64 / (b.0 - a.0) as f64;
        return a.1.saturating_add(((x - a.0) as f64 * slope) as u64);
    }
    let (run, rise) = (i128::from(b.0 - a.0), i128::from(b.1 - a.1));
    let from = i128::from(x) - i128::from(a.0);
    let y = i128::from(a.1) + from.saturating_mul(rise) / run;
    y.clamp(0, u64::MAX.into()) as u64
}

fn measured() -> Point {
    let mut best = Point { ticks: 0, ns: 0 };
    let mut shortest = u64::MAX;
    for _ in 0..TRIES {
        let before = monotonic_ns();
        let ticks = counter();
        let took = monotonic_ns() - before;
        if took < shortest {
            shortest = took;
            best = Point {
                ticks,
                ns: before + took / 2,
            };
        }
    }
    best
}

/// The counter; 0 where there is none.
fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction, which only reads.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(ticks: u64, ns: u64) -> Point {
        Point { ticks, ns }
    }

    /// Between two points and beyond the last the line holds, both ways; before the first too, but not
    /// below 0.
    #[test]
    fn lines() {
        let second = APART_NS;
        let ticks = Ticks(vec![
            point(1000, second),
            point(1000 + 2 * second, 2 * second),
            point(1000 + 5 * second, 3 * second),
        ]);
        assert_eq!(ticks.ns(1000 + second), second * 3 / 2);
        assert_eq!(ticks.ns(1000 + 2 * second + 300), 2 * second + 100);
        assert_eq!(ticks.ns(1000 + 8 * second), 4 * second);
        assert_eq!(ticks.ticks(4 * second), 1000 + 8 * second);
        assert_eq!(ticks.ns(0), second - 500);
        assert_eq!(
            ticks.ns(u64::MAX),
            line(
                (1000 + 2 * second, 2 * second),
                (1000 + 5 * second, 3 * second),
                u64::MAX
            )
        );
        let early = Ticks(vec![point(u64::MAX / 2, 10), point(u64::MAX / 2 + 10, 20)]);
        assert_eq!(early.ns(0), 0);
    }

    /// The last point gives way to a newer one until it is a second from the one before; a clock that
    /// stands still adds none.
    #[test]
    fn points_are_kept_a_second_apart() {
        let mut ticks = Ticks(vec![point(10, 0), point(20, 100)]);
        ticks.add(point(30, APART_NS));
        assert_eq!(ticks.0, [point(10, 0), point(30, APART_NS)]);
        ticks.add(point(40, APART_NS + 5));
        ticks.add(point(40, APART_NS + 6));
        assert_eq!(
            ticks.0,
            [point(10, 0), point(30, APART_NS), point(40, APART_NS + 5)]
        );
    }

    /// What the counter shows now is now, to within what the test was kept from running.
    #[test]
    fn now_is_now() {
        let mut ticks = Ticks::new();
        ticks.measure();
        let before = monotonic_ns();
        let now = counter();
        let after = monotonic_ns();
        if now != 0 {
            let ns = ticks.ns(now);
            assert!(before - 100_000 <= ns && ns <= after + 100_000);
        }
    }
}
