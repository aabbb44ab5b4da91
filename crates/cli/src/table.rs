//! Tables of reports: bold headings, no rules, nothing behind the last cell.

use crate::output::{Colour, Paint};
use comfy_table::{Attribute, Cell, Table, presets};
use hangdog_report::Loss;
use std::io::{self, Write};

/// A table without rows.
pub fn new(paint: Paint, headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if !paint.is_on() {
        table.force_no_tty();
    }
    let bold = |text: &&str| Cell::new(text).add_attribute(Attribute::Bold);
    table.set_header(headings.iter().map(bold));
    table
}

/// Writes a table.
pub fn write(out: &mut impl Write, table: &Table) -> io::Result<()> {
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// What the trace lost, for the end of a report.
pub fn lost(paint: Paint, loss: &Loss) -> String {
    let colour = if loss.is_none() {
        Colour::Quiet
    } else {
        Colour::Warning
    };
    paint.text(colour, &format!("Lost: {}", loss.text()))
}
