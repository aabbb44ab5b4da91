//! What is drawn: the curves of each panel, and their points out of a report.

use plotters::style::RGBColor;

use super::axis::Axis;
use super::text;
use crate::figure::Figure;
use crate::report::Report;

/// What a panel's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Figures in ns, drawn as such.
    Time,
    /// Figures in bytes a second, drawn as such.
    Rate,
    /// Figures in ns for a number of bytes, drawn as bytes a second.
    Speed,
}

impl Measure {
    /// How a value on its axis is written.
    pub fn writer(self) -> fn(&Axis, f64) -> String {
        match self {
            Measure::Time => |_, exponent| text::time(10f64.powf(exponent)),
            Measure::Rate | Measure::Speed => |_, exponent| text::rate(10f64.powf(exponent)),
        }
    }
}

/// How a curve is drawn.
#[derive(Debug)]
pub(super) struct Line {
    /// The figure.
    pub id: &'static str,
    /// Its name in the legend.
    pub name: &'static str,
    pub color: RGBColor,
    /// Whether its dots are white inside.
    pub hollow: bool,
}

/// What belongs into a panel.
#[derive(Debug)]
pub(super) struct Plan {
    pub title: &'static str,
    pub measure: Measure,
    pub lines: &'static [Line],
    /// Whether the levels of memory are shown in it.
    pub levels: bool,
}

const fn dot(id: &'static str, name: &'static str, color: RGBColor) -> Line {
    Line {
        id,
        name,
        color,
        hollow: false,
    }
}

const fn ring(id: &'static str, name: &'static str, color: RGBColor) -> Line {
    Line {
        hollow: true,
        ..dot(id, name, color)
    }
}

// Colours of Okabe and Ito (2008), which colour-blind people tell apart too, and paler ones of the
// same hue for the other of a pair.
const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const PALE_BLUE: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
const RED: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const PALE_RED: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
const GREEN: RGBColor = RGBColor(0x00, 0x7d, 0x5c);
const PALE_GREEN: RGBColor = RGBColor(0x5c, 0xc4, 0xa2);
const PURPLE: RGBColor = RGBColor(0x8e, 0x45, 0x85);

/// In the picture's order.
pub(super) const PANELS: &[Plan] = &[
    Plan {
        title: "A load, by the size of the memory in use",
        measure: Measure::Time,
        lines: &[
            dot("memory.latency", "random order", BLUE),
            dot("memory.latency.huge", "random order, huge pages", RED),
            ring(
                "memory.latency.sequential",
                "one line after the other",
                GREEN,
            ),
        ],
        levels: true,
    },
    Plan {
        title: "Bandwidth, by size: each 4-byte element, or every 4th",
        measure: Measure::Rate,
        lines: &[
            dot("memory.read.fourth", "read every 4th", BLUE),
            ring("memory.read", "read each", PALE_BLUE),
            dot("memory.write.fourth", "write every 4th", RED),
            ring("memory.write", "write each", PALE_RED),
            dot("memory.update.fourth", "double every 4th", GREEN),
            ring("memory.update", "double each", PALE_GREEN),
            dot("memory.copy", "memcpy", PURPLE),
        ],
        levels: false,
    },
    Plan {
        title: "A file, by its size",
        measure: Measure::Time,
        lines: &[
            dot("file.open_read", "open, read, close", BLUE),
            ring("file.read", "read alone", PALE_BLUE),
            dot(
                "file.open_read_uncached",
                "open, read, close, not cached",
                RED,
            ),
            ring("file.read_uncached", "read alone, not cached", PALE_RED),
            dot("file.create", "create and write", GREEN),
            dot("file.delete", "delete", PURPLE),
        ],
        levels: false,
    },
    Plan {
        title: "Speed of reading a file, by its size",
        measure: Measure::Speed,
        lines: &[
            dot("file.open_read", "open, read, close", BLUE),
            ring("file.read", "read alone", PALE_BLUE),
            dot(
                "file.open_read_uncached",
                "open, read, close, not cached",
                RED,
            ),
            ring("file.read_uncached", "read alone, not cached", PALE_RED),
        ],
        levels: false,
    },
];

/// A place on a curve. All values are above 0 and finite, so that they have a logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Bytes.
    pub at: u64,
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

/// A curve that was measured.
#[derive(Debug)]
pub(super) struct Curve {
    pub line: &'static Line,
    /// Ascending; at least one.
    pub points: Vec<Point>,
}

impl Curve {
    /// Those of a panel that the report has.
    pub fn all(report: &Report, plan: &'static Plan) -> Vec<Curve> {
        let curve = |line: &'static Line| {
            let mut points: Vec<Point> = report
                .curve(line.id)
                .filter_map(|(at, figure)| point(at, figure, plan.measure))
                .collect();
            // A report from elsewhere may have them in any order.
            points.sort_by_key(|point| point.at);
            (!points.is_empty()).then_some(Curve { line, points })
        };
        plan.lines.iter().filter_map(curve).collect()
    }
}

/// None where the median has no place on an axis of powers.
fn point(at: u64, figure: &Figure, measure: Measure) -> Option<Point> {
    let spread = &figure.spread;
    let value = |value: f64| match measure {
        Measure::Time | Measure::Rate => value,
        Measure::Speed => at as f64 * 1e9 / value,
    };
    let has_place = |value: &f64| value.is_finite() && *value > 0.0;
    let median = Some(value(spread.median)).filter(has_place)?;
    // The spread of what is so quick that it took no time ends at the median.
    let [one, other] =
        [spread.low, spread.high].map(|end| Some(value(end)).filter(has_place).unwrap_or(median));
    Some(Point {
        at,
        low: one.min(other),
        median,
        high: one.max(other),
    })
}
