//! Two reports side by side: what differs by more than the spread.

use super::table::{binary, value};
use crate::output::{self, Colour, Paint};
use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use hangdog_numbers::compare::Comparison;
use hangdog_numbers::{Axis, Report, kind};
use hangdog_report::format;
use std::io::Write;

/// Prints what differs, and how much does not.
pub fn print(comparison: &Comparison, reports: [&Report; 2]) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    if !comparison.same_machine {
        for (name, report) in ["A", "B"].iter().zip(reports) {
            let machine = &report.machine;
            let text = format!(
                "{name}: {}, {} CPUs, Linux {}",
                machine.cpu, machine.cpus, machine.kernel
            );
            writeln!(out, "{}", format::printable(&text))?;
        }
        writeln!(out)?;
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["", "A", "10 to 90 %", "B", "10 to 90 %", "B by A"]);
    for row in comparison.rows.iter().filter(|row| !row.agrees) {
        let title = kind(&row.id).map_or(row.id.as_str(), |kind| kind.title);
        let over = kind(&row.id).and_then(|kind| kind.over);
        let name = match (over, row.at) {
            (Some(Axis::Times), Some(at)) => format!("{title}, {at} times the work"),
            (_, Some(at)) => format!("{title}, {}", binary(at)),
            (_, None) => title.to_owned(),
        };
        let of = |part: f64| value(part, row.unit);
        let span = |low: f64, high: f64| format!("{} to {}", of(low), of(high));
        table.add_row([
            format::printable(&name).into_owned(),
            of(row.a.median),
            span(row.a.low, row.a.high),
            of(row.b.median),
            span(row.b.low, row.b.high),
            row.ratio
                .map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
        ]);
    }
    for column in 1..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let differ = comparison.rows.len() - comparison.agreeing;
    let summary = format!(
        "{} of {} figures differ by more than their spread",
        format::count(differ as u64),
        format::count(comparison.rows.len() as u64)
    );
    writeln!(out, "{}", paint.text(Colour::Heading, &summary))?;
    if differ > 0 {
        writeln!(out, "{table}")?;
    }
    for (name, only) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
        if !only.is_empty() {
            writeln!(
                out,
                "Only in {name}: {}",
                format::printable(&only.join(", "))
            )?;
        }
    }
    Ok(out.flush()?)
}
