//! A report as a picture: its curves over the size of memory or of files, in up to four panels.
//!
//! What there is to draw is a table ([`curves::PANELS`]); a curve that was not measured is left out,
//! and so is a panel without curves. Text comes from a report that somebody else may have written:
//! the SVG backend escapes it, and [`text::plain`] takes out what XML cannot hold at all.

mod axis;
mod curves;
mod levels;
mod panel;
#[cfg(test)]
mod tests;
mod text;

use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;

use crate::report::Report;
use panel::Panel;

/// Pixels; wide enough for two panels side by side.
const WIDTH: u32 = 1400;
const PANEL_HEIGHT: u32 = 450;
const HEAD_HEIGHT: u32 = 62;
const WARNING_HEIGHT: u32 = 22;
const MARGIN: u32 = 14;
/// What fits in one line, characters.
const TITLE_LETTERS: usize = 110;
const LINE_LETTERS: usize = 160;

const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const PALE_INK: RGBColor = RGBColor(0x66, 0x66, 0x66);
const WARNING_INK: RGBColor = RGBColor(0xb0, 0x30, 0x00);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<std::io::Error>>;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum Undrawn {
    /// Single figures make no picture.
    #[error(
        "nothing to draw: no curve over the size of memory or files was measured; measure memory. or file."
    )]
    NoCurve,
    /// The drawing failed.
    #[error("the picture could not be drawn: {0}")]
    Drawing(String),
}

/// Draws the report's curves as one SVG picture, 1400 pixels wide, on white.
///
/// Panels: load latency with the levels of memory, bandwidth, what files cost, the speed of
/// reading them. An error if the report has none of these curves.
pub fn svg(report: &Report) -> Result<String, Undrawn> {
    let panels = panel::of(report);
    if panels.is_empty() {
        return Err(Undrawn::NoCurve);
    }
    draw(report, &panels).map_err(|error| Undrawn::Drawing(error.to_string()))
}

fn draw(report: &Report, panels: &[Panel]) -> Drawn<String> {
    let warnings = report.noise.warnings();
    let head = HEAD_HEIGHT
        + if warnings.is_empty() {
            0
        } else {
            WARNING_HEIGHT
        };
    let rows = panels.chunks(2);
    let height = head + PANEL_HEIGHT * rows.len() as u32 + MARGIN;
    let mut picture = String::new();
    {
        let root = SVGBackend::with_string(&mut picture, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        draw_head(&root, report, &warnings)?;
        for (index, row) in rows.enumerate() {
            let top = head + PANEL_HEIGHT * index as u32;
            // A panel without a neighbour takes the whole row.
            let width = (WIDTH - 2 * MARGIN) / row.len() as u32;
            for (column, panel) in row.iter().enumerate() {
                let left = MARGIN + width * column as u32;
                let size = (width, PANEL_HEIGHT - MARGIN);
                panel.draw(&root.clone().shrink((left, top), size))?;
            }
        }
        root.present()?;
    }
    Ok(picture)
}

fn draw_head(root: &Area, report: &Report, warnings: &[String]) -> Drawn {
    let machine = &report.machine;
    let known = |text: &str, otherwise: &str| match text {
        "" => otherwise.to_owned(),
        text => text.to_owned(),
    };
    let title = format!(
        "{}, {} CPU{}{}, Linux {}",
        known(&machine.cpu, "unknown CPU"),
        machine.cpus,
        if machine.cpus == 1 { "" } else { "s" },
        if machine.guest { " (guest)" } else { "" },
        known(&machine.kernel, "of unknown release"),
    );
    let files = &machine.files;
    let about = format!(
        "{} · files on {} ({}) · {}hangdog {} · pale: 10th to 90th percentile",
        text::utc(report.taken_unix_s),
        known(&files.kind, "an unknown file system"),
        known(&files.device, "unknown device"),
        if report.quick { "quick run · " } else { "" },
        report.hangdog,
    );
    let left = MARGIN as i32;
    let title = text::plain(&title, TITLE_LETTERS);
    root.draw_text(&title, &text::bold(20.0, INK), (left, 12))?;
    let about = text::plain(&about, LINE_LETTERS);
    root.draw_text(&about, &text::style(14.0, PALE_INK), (left, 38))?;
    if !warnings.is_empty() {
        let warning = format!("Disturbed: {}", warnings.join("; "));
        let warning = text::plain(&warning, LINE_LETTERS);
        let place = (left, HEAD_HEIGHT as i32 - 2);
        root.draw_text(&warning, &text::style(14.0, WARNING_INK), place)?;
    }
    Ok(())
}
