//! `hangdog interrupts`: the time that interrupts took, by source.

use crate::args::InterruptsArgs;
use crate::load;
use crate::output::{self, Paint};
use crate::table;
use anyhow::Result;
use comfy_table::CellAlignment;
use hangdog_report::interrupts::{OnCpu, Source, sources};
use hangdog_report::select::{NothingFound, Who, Window};
use hangdog_report::{Loss, format};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    from_ns: u64,
    to_ns: u64,
    interrupts: &'a [Source<'a>],
}

/// Shows the interrupts.
pub fn run(args: &InterruptsArgs) -> Result<()> {
    let recording = load::recording(&args.trace)?;
    let window = Window::new(args.window, recording.timeline.end())?;
    let sources = sources(&recording.interrupts, &recording.threads, window);
    if sources.is_empty() {
        let what = "no interrupt begins within the time range; hangdog info says which hooks \
                    there were";
        return Err(NothingFound::new(what).into());
    }
    if args.json {
        return output::json(&Answer {
            trace: &args.trace,
            loss: &recording.loss,
            from_ns: window.from,
            to_ns: window.to,
            interrupts: &sources,
        });
    }
    print(&recording.loss, window, &sources)
}

fn print(loss: &Loss, window: Window, sources: &[Source<'_>]) -> Result<()> {
    let paint = Paint::for_stdout();
    let headings = [
        "source",
        "count",
        "min",
        "mean",
        "max",
        "deviation",
        "sum",
        "of a CPU",
        "by CPU",
        "longest",
        "took most from",
    ];
    let mut table = table::new(paint, &headings);
    for source in sources {
        let of_longest = match &source.longest.thread {
            Some(who) => name(who),
            None => "an idle CPU".to_owned(),
        };
        let most = source.interrupted.first();
        table.add_row([
            named(source),
            format::count(source.count),
            format::duration(source.min_ns),
            format::duration(source.mean_ns.round() as u64),
            format::duration(source.max_ns),
            format::duration(source.deviation_ns.round() as u64),
            format::duration(source.sum_ns),
            format::percent(source.sum_ns, window.to - window.from),
            by_cpu(&source.cpus),
            format!(
                "at {} on CPU {}: {of_longest}",
                format::moment(source.longest.at_ns),
                source.longest.cpu
            ),
            most.map_or(String::new(), |thread| {
                format!("{} {}", name(&thread.who), format::duration(thread.sum_ns))
            }),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(7) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut out = output::stdout();
    table::write(&mut out, &table)?;
    writeln!(
        out,
        "\n{} from {} to {}; an interrupt during another counts in both. {}",
        format::things(sources.len() as u64, "source", "sources"),
        format::moment(window.from),
        format::moment(window.to),
        table::lost(paint, loss)
    )?;
    Ok(out.flush()?)
}

fn named(source: &Source<'_>) -> String {
    match source.name {
        Some(name) => format!("{} {name}", source.kind),
        None if source.vector == 0 => source.kind.to_owned(),
        None => format!("{} {}", source.kind, source.vector),
    }
}

/// The CPUs with the largest sums.
fn by_cpu(cpus: &[OnCpu]) -> String {
    const SHOWN: usize = 4;
    let mut most = cpus.to_vec();
    most.sort_by_key(|on| (std::cmp::Reverse(on.sum_ns), on.cpu));
    let shown: Vec<String> = (most.iter().take(SHOWN))
        .map(|on| format!("{}: {}", on.cpu, format::duration(on.sum_ns)))
        .collect();
    let more = if cpus.len() > SHOWN { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn name(who: &Who<'_>) -> String {
    let text = match who.process == who.thread {
        true => format!("{} ({})", who.thread, who.tid),
        false => format!("{}/{} ({})", who.process, who.thread, who.tid),
    };
    format::printable(&text).into_owned()
}
