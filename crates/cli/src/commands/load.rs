//! `hangdog load`: how many threads were running or runnable, and which at a moment.

use crate::args::LoadArgs;
use crate::load;
use crate::output::{self, Colour, Paint};
use crate::table;
use anyhow::{Result, bail};
use hangdog_report::instant::{Awake, awake};
use hangdog_report::load::{Chosen, Load};
use hangdog_report::select::{self, Window};
use hangdog_report::{Loss, Recording, format};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// So many steps are counted.
const MOST_STEPS: u64 = 1_000_000;
/// A bar's character stands for this many threads.
const EACH: f64 = 0.25;
/// A bar is no longer than this.
const LONGEST: usize = 40;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    from_ns: u64,
    to_ns: u64,
    #[serde(flatten)]
    load: &'a Load,
}

/// The answer in JSON where a moment was asked about.
#[derive(Serialize)]
struct Moment<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    at_ns: u64,
    threads: &'a [Awake<'a>],
}

/// Shows the load, or who was running or runnable at a moment.
pub fn run(args: &LoadArgs) -> Result<()> {
    let recording = load::recording(&args.trace)?;
    let end = recording.timeline.end();
    let processes = match &args.process {
        Some(selector) => Some(select::processes(&recording.threads, selector)?),
        None => None,
    };
    let chosen = Chosen {
        processes: processes.as_deref(),
        priority: args.priority,
    };
    if let Some(at) = args.at {
        let at = at.resolve(0, end);
        if at >= end {
            bail!(
                "--at is {}, and the trace ends at {}",
                format::moment(at),
                format::moment(end)
            );
        }
        return moment(args, &recording, chosen, at);
    }
    let window = Window::new(args.window, end)?;
    let step = args.step.ns();
    if step == 0 || (window.to - window.from) / step > MOST_STEPS {
        bail!("--step is to cut the time range into 1 to {MOST_STEPS} steps");
    }
    let load = hangdog_report::load::load(&recording, window, step, chosen);
    if args.json {
        return output::json(&Answer {
            trace: &args.trace,
            loss: &recording.loss,
            from_ns: window.from,
            to_ns: window.to,
            load: &load,
        });
    }
    print(&recording.loss, window, &load)
}

fn print(loss: &Loss, window: Window, load: &Load) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let heading = |text: &str| paint.text(Colour::Heading, text);
    writeln!(
        out,
        "{}",
        heading("       time  threads running or runnable")
    )?;
    for (at, &average) in load.average.iter().enumerate() {
        let moment = format::moment(window.from + at as u64 * load.step_ns);
        let length = ((average / EACH).round() as usize).min(LONGEST);
        let bar = format!("{average:6.2}  {}", "#".repeat(length));
        let is_over = average > load.cpus as f64;
        let bar = match is_over {
            true => paint.text(Colour::Warning, &format!("{bar} > {} CPUs", load.cpus)),
            false => bar,
        };
        writeln!(out, "{moment:>12} {}", bar.trim_end())?;
    }
    let over = load
        .average
        .iter()
        .filter(|&&average| average > load.cpus as f64);
    writeln!(
        out,
        "\n{} of {} from {} to {}; more than {} in {}. {}",
        format::things(load.average.len() as u64, "step", "steps"),
        format::duration(load.step_ns),
        format::moment(window.from),
        format::moment(window.to),
        format::things(load.cpus as u64, "CPU", "CPUs"),
        format::count(over.count() as u64),
        table::lost(paint, loss)
    )?;
    Ok(out.flush()?)
}

/// Lists who was running or runnable at a moment.
fn moment(args: &LoadArgs, recording: &Recording, chosen: Chosen<'_>, at: u64) -> Result<()> {
    let mut threads = awake(recording, at);
    threads.retain(|thread| {
        let process = recording.threads.thread(thread.who.utid).upid;
        let is_there = chosen
            .processes
            .is_none_or(|chosen| chosen.contains(&process));
        let is_high = |least| thread.priority.is_some_and(|own| own <= least);
        is_there && chosen.priority.is_none_or(is_high)
    });
    if args.json {
        return output::json(&Moment {
            trace: &args.trace,
            loss: &recording.loss,
            at_ns: at,
            threads: &threads,
        });
    }
    let paint = Paint::for_stdout();
    let headings = [
        "process", "pid", "thread", "tid", "state", "for", "CPU", "priority",
    ];
    let mut table = table::new(paint, &headings);
    let known = |number: Option<u64>| number.map_or("unknown".to_owned(), |n| n.to_string());
    for thread in &threads {
        table.add_row([
            format::printable(thread.who.process).into_owned(),
            thread.who.pid.to_string(),
            format::printable(thread.who.thread).into_owned(),
            thread.who.tid.to_string(),
            thread.state.to_owned(),
            format::duration(at.saturating_sub(thread.since_ns)),
            known(thread.cpu.map(u64::from)),
            known(thread.priority.map(u64::from)),
        ]);
    }
    let mut out = output::stdout();
    table::write(&mut out, &table)?;
    writeln!(
        out,
        "\n{} at {} on {}. {}",
        format::things(threads.len() as u64, "thread", "threads"),
        format::moment(at),
        format::things(recording.timeline.cpu_count() as u64, "CPU", "CPUs"),
        table::lost(paint, &recording.loss)
    )?;
    Ok(out.flush()?)
}
