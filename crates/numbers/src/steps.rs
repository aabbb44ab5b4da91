//! The levels of memory, as the latency curve shows them.
//!
//! A level is an interval of the curve that is flat: over half an octave around each of its points
//! the latency grows by less than a third an octave. Between two levels the curve climbs, because a
//! growing part of the loads misses the smaller one; a level is left where the latency passes the
//! geometric mean of its own and the next one's. The idea is that of Saavedra and Smith (Measuring
//! cache and TLB performance, 1995); the limits were chosen by looking at curves.

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::machine::Cache;
use crate::spread::Spread;

/// Growth an octave, as a power of two, up to which the curve is flat: 2^0.43 is 1.35. A cache that
/// is shared with other guests drifts by as much; where it is left, the curve doubles or more.
const FLAT: f64 = 0.43;
/// Flat intervals whose latencies differ by less than this are one level that drifts.
const SAME: f64 = 1.5;

/// A level of the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// L1, L2, L3 or RAM.
    pub name: String,
    /// Where the curve leaves it, bytes; none for the last.
    pub bytes: Option<u64>,
    /// What the system says of the cache, bytes; none for RAM and for a cache that it does not know.
    pub said_bytes: Option<u64>,
    /// A load from it, ns.
    pub latency: Spread,
}

/// From the curve of huge pages, where the caches alone make the steps, or else of small ones.
pub(crate) fn of(figures: &[Figure], caches: &[Cache]) -> Vec<Step> {
    let curve = |id: &str| -> Vec<(u64, Spread)> {
        let of_id = figures.iter().filter(|figure| figure.id == id);
        of_id
            .filter_map(|figure| Some((figure.at?, figure.spread)))
            .collect()
    };
    let huge = curve("memory.latency.huge");
    find(
        &if huge.is_empty() {
            curve("memory.latency")
        } else {
            huge
        },
        caches,
    )
}

/// Of a curve ascending by size.
fn find(curve: &[(u64, Spread)], caches: &[Cache]) -> Vec<Step> {
    // By the 10th percentile, because a cache is what is there undisturbed. More memory is never
    // faster: a point above a later one was disturbed all the same.
    let mut least = f64::INFINITY;
    let mut latency: Vec<f64> = curve
        .iter()
        .rev()
        .map(|(_, spread)| {
            least = least.min(spread.low);
            least
        })
        .collect();
    latency.reverse();

    let levels = levels(curve, &latency);
    let mut edges = Vec::new();
    for pair in levels.windows(2) {
        let between = (pair[0].latency * pair[1].latency).sqrt();
        let inside = (pair[0].first..=pair[1].last).take_while(|&point| latency[point] < between);
        edges.push(inside.last().map(|point| curve[point].0));
    }
    let said: Vec<&Cache> = caches.iter().filter(|cache| cache.data).collect();
    let known: Vec<u64> = edges.iter().flatten().copied().collect();
    let names = match_caches(&known, &said);
    let beyond_caches = curve
        .last()
        .zip(said.last())
        .is_none_or(|((size, _), cache)| *size > cache.bytes);
    levels
        .iter()
        .enumerate()
        .map(|(index, level)| {
            let cache = names.get(index).copied().flatten();
            let name = match cache {
                Some(cache) => format!("L{}", cache.level),
                None if index + 1 == levels.len() && beyond_caches => "RAM".to_owned(),
                None => format!("level {}", index + 1),
            };
            Step {
                name,
                bytes: edges.get(index).copied().flatten(),
                said_bytes: cache.map(|cache| cache.bytes),
                latency: curve[level.typical].1,
            }
        })
        .collect()
}

/// A flat interval: points of the curve, and its latency.
#[derive(Debug)]
struct Level {
    first: usize,
    last: usize,
    /// The point with the median latency.
    typical: usize,
    latency: f64,
}

impl Level {
    fn new(first: usize, last: usize, latency: &[f64]) -> Level {
        let typical = first + (last - first) / 2;
        Level {
            first,
            last,
            typical,
            latency: latency[typical],
        }
    }
}

fn levels(curve: &[(u64, Spread)], latency: &[f64]) -> Vec<Level> {
    let octaves = |from: usize, to: usize| (curve[to].0 as f64 / curve[from].0 as f64).log2();
    // The nearest points a quarter of an octave away or more, on both sides where there are any.
    let is_flat = |point: usize| {
        let before = (0..point)
            .rev()
            .find(|&other| octaves(other, point) >= 0.25)
            .unwrap_or(0);
        let after = (point + 1..curve.len()).find(|&other| octaves(point, other) >= 0.25);
        let after = after.unwrap_or(curve.len() - 1);
        before < after && (latency[after] / latency[before]).log2() <= FLAT * octaves(before, after)
    };
    let mut levels: Vec<Level> = Vec::new();
    let mut point = 0;
    while point < curve.len() {
        let first = point;
        while point < curve.len() && is_flat(point) {
            point += 1;
        }
        if point == first {
            point += 1;
            continue;
        }
        let last = point - 1;
        // Two points in a row may be flat by chance.
        if octaves(first, last) < 0.5 {
            continue;
        }
        let level = Level::new(first, last, latency);
        match levels.last_mut() {
            Some(before) if level.latency < SAME * before.latency => {
                *before = Level::new(before.first, last, latency);
            }
            _ => levels.push(level),
        }
    }
    levels
}

/// Which cache each edge belongs to, both ascending: the assignment in order whose sizes are
/// nearest, by ratio. There are at most five of each, so all are tried.
fn match_caches<'a>(edges: &[u64], caches: &[&'a Cache]) -> Vec<Option<&'a Cache>> {
    fn best<'a>(edges: &[u64], caches: &[&'a Cache]) -> (usize, f64, Vec<Option<&'a Cache>>) {
        let (Some((&edge, edges_left)), Some((&cache, caches_left))) =
            (edges.split_first(), caches.split_first())
        else {
            return (0, 0.0, vec![None; edges.len()]);
        };
        let (matched, cost, mut rest) = best(edges_left, caches_left);
        rest.insert(0, Some(cache));
        let distance = (edge as f64 / cache.bytes.max(1) as f64).log2().abs();
        let together = (matched + 1, cost + distance, rest);
        let without_cache = best(edges, caches_left);
        let (matched, cost, mut rest) = best(edges_left, caches);
        rest.insert(0, None);
        // Most matches first, then the nearest.
        [together, without_cache, (matched, cost, rest)]
            .into_iter()
            .max_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)))
            .unwrap_or_default()
    }
    // Sizes from a damaged system may be many: five levels are more than any machine has.
    best(&edges[..edges.len().min(5)], &caches[..caches.len().min(5)]).2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Unit;

    fn cache(level: u32, kib: u64) -> Cache {
        Cache {
            level,
            data: true,
            bytes: kib << 10,
        }
    }

    /// A curve of four points an octave from 4 KiB to `largest`: loads hit each level with the
    /// part of the memory that it holds.
    fn curve(
        levels: &[(u64, f64)],
        ram: f64,
        largest: u64,
        noise: impl Fn(usize) -> f64,
    ) -> Vec<(u64, Spread)> {
        let sizes = (0..).map(|quarter| (4096.0 * 2f64.powf(f64::from(quarter) / 4.0)) as u64);
        sizes
            .take_while(|&size| size <= largest)
            .enumerate()
            .map(|(index, size)| {
                let mut latency = ram;
                for &(bytes, ns) in levels.iter().rev() {
                    let held = (bytes as f64 / size as f64).min(1.0).powi(3);
                    latency = held * ns + (1.0 - held) * latency;
                }
                (
                    size,
                    Spread::of(&[latency * noise(index)], Unit::Ns).unwrap(),
                )
            })
            .collect()
    }

    fn told(steps: &[Step]) -> Vec<(&str, Option<u64>)> {
        steps
            .iter()
            .map(|step| (step.name.as_str(), step.said_bytes))
            .collect()
    }

    /// Three caches and memory are found, each near its size and at its latency, with 5 % of noise.
    #[test]
    fn three_caches_are_found_where_they_are() {
        let made = [(48 << 10, 1.1), (1 << 20, 4.0), (32 << 20, 15.0)];
        let noise = |index: usize| 1.0 + 0.05 * ((index * 7919) % 11) as f64 / 10.0;
        let caches = [cache(1, 48), cache(2, 1024), cache(3, 32 << 10)];
        let steps = find(&curve(&made, 120.0, 256 << 20, noise), &caches);
        assert_eq!(
            told(&steps),
            [
                ("L1", Some(48 << 10)),
                ("L2", Some(1 << 20)),
                ("L3", Some(32 << 20)),
                ("RAM", None)
            ]
        );
        for (step, (bytes, ns)) in steps.iter().zip(made) {
            let ratio = step.bytes.unwrap() as f64 / bytes as f64;
            assert!((0.7..1.7).contains(&ratio), "{}: {ratio}", step.name);
            assert!(
                (0.95..1.3).contains(&(step.latency.median / ns)),
                "{}",
                step.name
            );
        }
        assert_eq!(steps[3].bytes, None);
    }

    /// A guest's share of the last cache is found smaller than the system says, and is still L3.
    #[test]
    fn a_share_of_a_cache_is_matched_with_it() {
        let made = [(32 << 10, 1.2), (512 << 10, 4.0), (6 << 20, 14.0)];
        let caches = [cache(1, 32), cache(2, 512), cache(3, 480 << 10)];
        let steps = find(&curve(&made, 140.0, 1 << 30, |_| 1.0), &caches);
        assert_eq!(told(&steps)[2], ("L3", Some(480 << 20)));
        assert!(steps[2].bytes.unwrap() < 16 << 20);
    }

    /// Where the memory is small, what comes last is not taken for RAM.
    #[test]
    fn a_curve_that_ends_in_a_cache_has_no_ram() {
        let made = [(32 << 10, 1.2)];
        let caches = [cache(1, 32), cache(2, 8 << 10)];
        let steps = find(&curve(&made, 5.0, 4 << 20, |_| 1.0), &caches);
        assert_eq!(told(&steps), [("L1", Some(32 << 10)), ("level 2", None)]);
    }

    /// A point that was disturbed makes no level, and nothing at all gives none.
    #[test]
    fn a_spike_is_no_level() {
        let made = [(32 << 10, 1.2)];
        let spike = |index: usize| if index == 5 { 40.0 } else { 1.0 };
        let steps = find(&curve(&made, 90.0, 64 << 20, spike), &[cache(1, 32)]);
        assert_eq!(told(&steps), [("L1", Some(32 << 10)), ("RAM", None)]);
        assert!(find(&[], &[cache(1, 32)]).is_empty());
        assert!(of(&[], &[]).is_empty());
    }

    /// A guest whose neighbours use most of the last cache, as it was measured (KiB, ns): the third
    /// level drifts over less than two octaves, and is one. That there are three caches is known of
    /// the CPU.
    #[test]
    fn a_squeezed_cache_is_a_level() {
        #[rustfmt::skip]
        const MEASURED: [(u64, f64); 61] = [
            (4, 1.0), (5, 1.0), (6, 1.0), (7, 1.0), (8, 1.0), (10, 1.0), (12, 1.0), (14, 1.0),
            (16, 1.0), (20, 1.0), (24, 1.0), (28, 1.0), (32, 1.0), (40, 1.0), (48, 1.1), (56, 3.4),
            (64, 3.4), (80, 3.5), (96, 3.4), (112, 3.5), (128, 3.4), (160, 3.4), (192, 3.5),
            (224, 3.5), (256, 3.5), (320, 3.5), (384, 3.5), (448, 3.8), (512, 4.0), (640, 4.2),
            (768, 4.3), (896, 4.8), (1024, 6.5), (1280, 9.2), (1536, 10.0), (1792, 10.8),
            (2048, 11.6), (2560, 12.1), (3072, 13.0), (3584, 14.2), (4096, 13.2), (5120, 17.4),
            (6144, 20.7), (7168, 28.4), (8192, 89.9), (10240, 123.4), (12288, 123.9), (14336, 132.6),
            (16384, 137.6), (20480, 140.5), (24576, 142.1), (28672, 143.9), (32768, 143.9),
            (40960, 145.3), (49152, 147.2), (57344, 147.6), (65536, 148.2), (81920, 149.5),
            (98304, 149.2), (114688, 150.6), (131072, 151.8),
        ];
        let point = |&(kib, ns): &(u64, f64)| (kib << 10, Spread::of(&[ns], Unit::Ns).unwrap());
        let curve: Vec<_> = MEASURED.iter().map(point).collect();
        let caches = [cache(1, 48), cache(2, 1024), cache(3, 32 << 10)];
        let steps = find(&curve, &caches);
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["L1", "L2", "L3", "RAM"]);
        assert!((2 << 20..16 << 20).contains(&steps[2].bytes.unwrap()));
    }
}
