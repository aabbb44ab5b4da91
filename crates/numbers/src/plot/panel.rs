//! One panel: its curves with their spread, a legend above them, and the levels of memory.

use plotters::prelude::*;
use plotters::style::ShapeStyle;

use super::axis::{Axis, Chart};
use super::curves::{Curve, Line, PANELS, Plan};
use super::{Area, Drawn, INK, PALE_INK, levels, text};
use crate::report::Report;
use crate::steps::Step;

const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
const PALE_GRID: RGBColor = RGBColor(0xf0, 0xf0, 0xf0);

/// Pixels: letters, and the parts of a panel.
const LETTERS: f64 = 13.0;
const TITLE_HEIGHT: i32 = 26;
const ROW_HEIGHT: i32 = 19;
const LEFT: u32 = 92;
const RIGHT: u32 = 22;
const BOTTOM: u32 = 26;
const AIR: i32 = 6;
/// Curves of more points are drawn without dots.
const DOTS: usize = 24;

/// What there is to draw in one panel.
#[derive(Debug)]
pub(super) struct Panel {
    plan: &'static Plan,
    curves: Vec<Curve>,
    /// Of memory, to be shown in it.
    levels: Vec<Step>,
}

/// The panels of which the report has at least one curve.
pub(super) fn of(report: &Report) -> Vec<Panel> {
    let panel = |plan: &'static Plan| {
        let curves = Curve::all(report, plan);
        let levels = if plan.levels {
            report.steps.clone()
        } else {
            Vec::new()
        };
        (!curves.is_empty()).then_some(Panel {
            plan,
            curves,
            levels,
        })
    };
    PANELS.iter().filter_map(panel).collect()
}

impl Panel {
    pub fn draw(&self, area: &Area) -> Drawn {
        let (width, _) = area.dim_in_pixel();
        let plot_width = f64::from(width.saturating_sub(LEFT + RIGHT));
        let sizes = self.curves.iter().flat_map(|curve| &curve.points);
        let x = Axis::of_sizes(sizes.map(|point| point.at), (plot_width / 62.0) as usize);
        let values = self.curves.iter().flat_map(|curve| &curve.points);
        let values = values.flat_map(|point| [point.low, point.median, point.high]);
        let Some(y) = Axis::of_values(values, 10, self.plan.measure.writer()) else {
            return Ok(());
        };

        area.draw_text(self.plan.title, &text::bold(16.0, INK), (LEFT as i32, 4))?;
        let legend = self.draw_legend(area, plot_width)?;
        let rows = levels::rows(&self.levels, &x);
        let labels = levels::ROW_HEIGHT * rows.len() as i32;
        let (_, body) = area.split_vertically(legend + labels + AIR);
        let mut chart = ChartBuilder::on(&body)
            .margin_right(RIGHT)
            .x_label_area_size(BOTTOM)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(x.clone(), y.clone())?;
        draw_mesh(&mut chart)?;
        for curve in &self.curves {
            draw_band(&mut chart, &x, curve)?;
        }
        levels::draw(&rows, area, &mut chart, (&x, &y), legend)?;
        for curve in &self.curves {
            draw_curve(&mut chart, &x, curve)?;
        }
        Ok(())
    }

    /// In rows below the title, in the table's order. Gives where it ends, pixels from the top.
    fn draw_legend(&self, area: &Area, width: f64) -> Drawn<i32> {
        const SAMPLE: i32 = 26;
        const GAP: i32 = 18;
        let (mut x, mut y) = (LEFT as i32, TITLE_HEIGHT + ROW_HEIGHT / 2);
        let end = LEFT as i32 + width as i32;
        for curve in &self.curves {
            let line = curve.line;
            let wide = SAMPLE + 5 + text::width(line.name, LETTERS) as i32;
            if x > LEFT as i32 && x + wide > end {
                (x, y) = (LEFT as i32, y + ROW_HEIGHT);
            }
            let sample = vec![(x, y), (x + SAMPLE, y)];
            area.draw(&PathElement::new(sample, stroke(line)))?;
            if has_dots(curve) {
                let middle = (x + SAMPLE / 2, y);
                area.draw(&Circle::new(middle, 3, inside(line).filled()))?;
                area.draw(&Circle::new(middle, 3, stroke(line)))?;
            }
            let style = text::style(LETTERS, INK).pos(text::LEFT_MIDDLE);
            area.draw_text(line.name, &style, (x + SAMPLE + 5, y))?;
            x += wide + GAP;
        }
        Ok(y + ROW_HEIGHT / 2 + AIR)
    }
}

fn draw_mesh(chart: &mut Chart) -> Drawn {
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(PALE_GRID)
        .axis_style(PALE_INK)
        .label_style(text::style(LETTERS, INK))
        .set_all_tick_mark_size(4)
        .draw()
}

fn stroke(line: &Line) -> ShapeStyle {
    line.color.stroke_width(2)
}

/// Whether there are so few points that each can be seen.
fn has_dots(curve: &Curve) -> bool {
    curve.points.len() <= DOTS
}

/// What a dot is filled with.
fn inside(line: &Line) -> RGBColor {
    if line.hollow { WHITE } else { line.color }
}

/// From the 10th to the 90th percentile.
fn draw_band(chart: &mut Chart, x: &Axis, curve: &Curve) -> Drawn {
    let at = |at: u64, value: f64| (x.place(at), value.log10());
    let above = curve.points.iter().map(|point| at(point.at, point.high));
    let below = curve.points.iter().map(|point| at(point.at, point.low));
    let around: Vec<(f64, f64)> = above.chain(below.rev()).collect();
    let style = curve.line.color.mix(0.15).filled();
    chart.draw_series([Polygon::new(around, style)])?;
    Ok(())
}

fn draw_curve(chart: &mut Chart, x: &Axis, curve: &Curve) -> Drawn {
    let line = curve.line;
    let points: Vec<(f64, f64)> = curve
        .points
        .iter()
        .map(|point| (x.place(point.at), point.median.log10()))
        .collect();
    chart.draw_series(LineSeries::new(points.iter().copied(), stroke(line)))?;
    if has_dots(curve) {
        let dots = |style: ShapeStyle| points.iter().map(move |&at| Circle::new(at, 3, style));
        chart.draw_series(dots(inside(line).filled()))?;
        chart.draw_series(dots(stroke(line)))?;
    }
    Ok(())
}
