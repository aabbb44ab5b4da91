//! The levels of memory in the panel of load latencies: lines where they end, labels above.

use plotters::prelude::*;

use super::axis::{Axis, Chart};
use super::{Area, Drawn, text};
use crate::steps::Step;

/// Pixels.
const LETTERS: f64 = 12.0;
/// Pixels.
pub(super) const ROW_HEIGHT: i32 = 18;
/// More than any machine has; a report from elsewhere may have more.
const MOST: usize = 6;
const NAME_LETTERS: usize = 8;
const LATENCY: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FOUND: RGBColor = RGBColor(0x44, 0x44, 0x44);
const SAID: RGBColor = RGBColor(0x88, 0x88, 0x88);

/// Labels above the plot that are about the same thing, and perhaps lines through it.
#[derive(Debug)]
pub(super) struct Row {
    name: &'static str,
    color: RGBColor,
    lines: Lines,
    /// Where each is, on the axis of sizes, ascending.
    labels: Vec<(f64, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    None,
    Whole,
    Dashed,
}

/// What is told of the levels: how long a load from each takes, where each was found to end, and
/// where it ends as the system says. Nothing of what is not known.
pub(super) fn rows(steps: &[Step], x: &Axis) -> Vec<Row> {
    let steps = &steps[..steps.len().min(MOST)];
    let name = |step: &Step| text::plain(&step.name, NAME_LETTERS);
    // From where the one before ends to its own end.
    let mut start = x.range.start;
    let latency = steps.iter().map(|step| {
        let end = step.bytes.map_or(x.range.end, |bytes| x.place(bytes));
        let middle = (start + end) / 2.0;
        start = end;
        (
            middle,
            format!("{} {}", name(step), text::time(step.latency.median)),
        )
    });
    let sizes = |size: fn(&Step) -> Option<u64>| {
        steps.iter().filter_map(move |step| {
            let bytes = size(step)?;
            let beyond = if x.place(bytes) > x.range.end {
                " →"
            } else {
                ""
            };
            let label = format!("{} {}{beyond}", name(step), text::size(bytes as f64));
            Some((x.place(bytes), label))
        })
    };
    let row = |name, color, lines, mut labels: Vec<(f64, String)>| {
        labels.sort_by(|one, other| one.0.total_cmp(&other.0));
        Row {
            name,
            color,
            lines,
            labels,
        }
    };
    let mut rows = vec![
        row("a load from", LATENCY, Lines::None, latency.collect()),
        row(
            "found up to",
            FOUND,
            Lines::Whole,
            sizes(|step| step.bytes).collect(),
        ),
        row(
            "system says",
            SAID,
            Lines::Dashed,
            sizes(|step| step.said_bytes).collect(),
        ),
    ];
    rows.retain(|row| !row.labels.is_empty());
    rows
}

/// Draws the lines into the chart, and the labels into the area around it from `top` on, pixels.
pub(super) fn draw(
    rows: &[Row],
    area: &Area,
    chart: &mut Chart,
    (x, y): (&Axis, &Axis),
    top: i32,
) -> Drawn {
    let pixel = |chart: &Chart, place: f64| {
        let inside = place.clamp(x.range.start, x.range.end);
        let (across, _) = chart.backend_coord(&(inside, y.range.start));
        f64::from(across - area.get_base_pixel().0)
    };
    let (from, to) = (pixel(chart, x.range.start), pixel(chart, x.range.end));
    for (row, index) in rows.iter().zip(0..) {
        let middle = top + ROW_HEIGHT * index + ROW_HEIGHT / 2;
        let style = text::style(LETTERS, row.color);
        let name = style.pos(text::RIGHT_MIDDLE);
        area.draw_text(row.name, &name, (from as i32 - 8, middle))?;
        let wanted: Vec<(f64, f64)> = row
            .labels
            .iter()
            .map(|(place, label)| (pixel(chart, *place), text::width(label, LETTERS)))
            .collect();
        for ((_, label), left) in row.labels.iter().zip(text::apart(&wanted, from, to)) {
            area.draw_text(label, &style.pos(text::LEFT_MIDDLE), (left as i32, middle))?;
        }
        for (place, _) in row
            .labels
            .iter()
            .filter(|(place, _)| x.range.contains(place))
        {
            let ends = [(*place, y.range.start), (*place, y.range.end)];
            match row.lines {
                Lines::None => {}
                Lines::Whole => {
                    chart.draw_series(LineSeries::new(ends, row.color.stroke_width(1)))?;
                }
                Lines::Dashed => {
                    let style = row.color.stroke_width(1);
                    chart.draw_series(DashedLineSeries::new(ends, 5, 4, style))?;
                }
            }
        }
    }
    Ok(())
}
