//! The table: this machine beside others, then every figure with its spread.

use crate::output::{self, Colour, Paint};
use anyhow::Result;
use comfy_table::{Cell, CellAlignment, Table, presets};
use hangdog_capture::clock;
use hangdog_numbers::{Axis, Figure, Kind, REFERENCES, Report, Section, Spread, Unit, methods};
use hangdog_report::format;
use std::io::Write;

/// Rows beside others' figures, by the figure's name and its place on a curve.
const BESIDE: [(&str, Option<u64>, &str); 6] = [
    (
        "pingpong.semaphore.across",
        None,
        "semaphore: wake and switch",
    ),
    ("thread.overhead", None, "work in a new thread: in all"),
    ("thread.create", None, "  to create it"),
    ("thread.finish", None, "  to finish it"),
    ("thread.join", None, "  to join it"),
    ("file.read", Some(1024), "read 1 KiB of a file"),
];

/// The places of a curve over bytes that the table shows; a picture shows all.
const SHOWN: [u64; 2] = [4 << 10, 1 << 20];

/// Prints it.
pub fn print(report: &Report) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let heading = |text: &str| paint.text(Colour::Heading, text);
    writeln!(out, "{}", heading(&format::printable(&title(report))))?;
    writeln!(out, "{}", format::printable(&circumstances(report)))?;
    for warning in report.noise.warnings() {
        let text = format!("Not quiet: {warning}; what that disturbed is marked.");
        writeln!(out, "{}", paint.text(Colour::Warning, &text))?;
    }
    writeln!(out, "\n{}", beside_others(report))?;
    for reference in REFERENCES.iter() {
        writeln!(out, "{}: {}", reference.name, reference.source)?;
    }
    for (section, name) in [
        (Section::Memory, "Memory"),
        (Section::Threads, "Threads and processes"),
        (Section::Kernel, "Kernel"),
        (Section::Files, "Files"),
    ] {
        let kinds = methods()
            .filter(|method| method.section == section)
            .flat_map(|method| method.figures);
        let table = figures(report, kinds, &paint);
        if table.row_count() > 0 {
            writeln!(out, "\n{}\n{table}", heading(name))?;
        }
    }
    let not_tried = report
        .methods
        .iter()
        .filter_map(|method| Some((method, method.not_tried.as_ref()?)));
    for (number, (method, reason)) in not_tried.enumerate() {
        if number == 0 {
            writeln!(out, "\n{}", heading("Not measured here"))?;
        }
        writeln!(
            out,
            "  {}: {}",
            format::printable(&method.id),
            format::printable(reason)
        )?;
    }
    Ok(out.flush()?)
}

fn title(report: &Report) -> String {
    let machine = &report.machine;
    let guest = if machine.guest {
        ", in a virtual machine"
    } else {
        ""
    };
    format!(
        "{}, {}{guest}, {} of memory, Linux {}",
        machine.cpu,
        format::things(machine.cpus.into(), "CPU", "CPUs"),
        binary(machine.memory_bytes),
        machine.kernel
    )
}

fn circumstances(report: &Report) -> String {
    let files = &report.machine.files;
    let noise = &report.noise;
    format!(
        "{}, {:.0} s{}; files on {} ({}); {:.2} GHz; others used {:.1} % of the CPUs, the \
         hypervisor {:.1} %",
        clock::text(report.taken_unix_s.saturating_mul(1_000_000_000)),
        report.took_s,
        if report.quick { ", a rough run" } else { "" },
        files.device,
        files.kind,
        1.0 / noise.cycle_ns,
        noise.others * 100.0,
        noise.stolen * 100.0,
    )
}

fn empty_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

fn right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// This machine in the first column, then the others.
fn beside_others(report: &Report) -> Table {
    let mut table = empty_table();
    let names = REFERENCES.iter().map(|reference| reference.name.clone());
    table.set_header(["".to_owned(), "here".to_owned()].into_iter().chain(names));
    let mut row = |key: &str, name: String, here: Option<f64>| {
        let others = REFERENCES
            .iter()
            .map(|reference| reference.figures.get(key).copied());
        if here.is_none() && others.clone().all(|other| other.is_none()) {
            return;
        }
        let cells = std::iter::once(here).chain(others);
        let cells = cells.map(|ns| ns.map_or("-".to_owned(), |ns| value(ns, Unit::Ns)));
        table.add_row(std::iter::once(name).chain(cells));
    };
    for step in &report.steps {
        let found = step.bytes.map(|bytes| format!(" up to {}", binary(bytes)));
        let said = step
            .said_bytes
            .map(|bytes| format!(" (the system says {})", binary(bytes)));
        let name = format!(
            "load from {}{}{}",
            step.name,
            found.unwrap_or_default(),
            said.unwrap_or_default()
        );
        let key = format!("memory.{}", step.name.to_lowercase());
        row(&key, name, Some(step.latency.median));
    }
    for (id, at, name) in BESIDE {
        let figure = report
            .figures
            .iter()
            .find(|figure| figure.id == id && figure.at == at);
        row(
            id,
            name.to_owned(),
            figure.map(|figure| figure.spread.median),
        );
    }
    right(&mut table, 1..REFERENCES.len() + 2);
    table
}

/// All figures of these kinds.
fn figures<'a>(report: &Report, kinds: impl Iterator<Item = &'a Kind>, paint: &Paint) -> Table {
    let mut table = empty_table();
    table.set_header(["", "median", "10 %", "90 %", "best", "disturbed"]);
    for kind in kinds {
        let of_kind: Vec<&Figure> = report
            .figures
            .iter()
            .filter(|figure| figure.id == kind.id)
            .collect();
        for (index, figure) in of_kind.iter().enumerate() {
            let is_end = index == 0 || index + 1 == of_kind.len();
            let name = match (kind.over, figure.at) {
                (Some(Axis::Bytes), Some(at)) if is_end || SHOWN.contains(&at) => {
                    format!("{}, {}", kind.title, binary(at))
                }
                (Some(Axis::Bytes), Some(_)) => continue,
                (Some(Axis::Times), Some(at)) => format!("{}, {at} times the work", kind.title),
                _ => kind.title.to_owned(),
            };
            let Spread {
                best,
                low,
                median,
                high,
                ..
            } = figure.spread;
            let mut cells = vec![Cell::new(name)];
            cells.extend([median, low, high, best].map(|part| Cell::new(value(part, kind.unit))));
            let disturbed = figure.disturbed.as_deref().unwrap_or_default();
            cells.push(Cell::new(
                paint.text(Colour::Warning, &format::printable(disturbed)),
            ));
            table.add_row(cells);
        }
    }
    right(&mut table, 1..5);
    table
}

/// A figure in its unit, three digits of it.
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns if value < 99.95 => {
            let digits = if value < 9.995 { 2 } else { 1 };
            format!("{value:.digits$} ns")
        }
        Unit::Ns => format::duration(value.round() as u64),
        Unit::BytesPerSecond => format!("{}/s", format::bytes(value as u64)),
        Unit::Share => format!("{:.2} %", value * 100.0),
    }
}

/// A size of memory, in powers of 1024.
pub fn binary(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let unit = (bytes.ilog2() / 10 - 1).min(3);
    let number = bytes as f64 / 1024f64.powi(unit as i32 + 1);
    let digits = usize::from(number.fract() >= 0.05 && number < 99.95);
    format!("{number:.digits$} {}", UNITS[unit as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three digits in each unit.
    #[test]
    fn values_have_three_digits() {
        assert_eq!(value(1.074, Unit::Ns), "1.07 ns");
        assert_eq!(value(31.66, Unit::Ns), "31.7 ns");
        assert_eq!(value(1234.5, Unit::Ns), "1.24 µs");
        assert_eq!(value(2.84e10, Unit::BytesPerSecond), "28.4 GB/s");
        assert_eq!(value(0.0123, Unit::Share), "1.23 %");
    }

    /// Sizes of memory are powers of two.
    #[test]
    fn sizes_are_binary() {
        assert_eq!(binary(1), "1 B");
        assert_eq!(binary(48 << 10), "48 KiB");
        assert_eq!(binary(3 << 19), "1.5 MiB");
        assert_eq!(binary(25_200_000_000), "23.5 GiB");
        assert_eq!(binary(u64::MAX), "16777216 TiB");
    }
}
