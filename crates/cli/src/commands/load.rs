//! `hangdog load`: how many threads were running or runnable, which at a moment, and who was in whose way.

use crate::args::LoadArgs;
use crate::load;
use crate::output::{self, Colour, Paint};
use crate::table;
use anyhow::{Result, bail};
use hangdog_report::instant::{Awake, awake};
use hangdog_report::load::{Chosen, Load};
use hangdog_report::rivals::{Rivals, rivals};
use hangdog_report::select::{self, Who, Window};
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

/// The answer in JSON of who was in a thread's way.
#[derive(Serialize)]
struct InTheWay<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    from_ns: u64,
    to_ns: u64,
    #[serde(flatten)]
    rivals: &'a Rivals<'a>,
}

/// Shows the load, who was running or runnable at a moment, or who was in a thread's way.
pub fn run(args: &LoadArgs) -> Result<()> {
    let recording = load::recording(&args.trace)?;
    let end = recording.timeline.end();
    if let Some(selector) = &args.rivals {
        return in_the_way(args, &recording, selector);
    }
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

/// So many rivals are printed.
const MOST_RIVALS: usize = 20;

/// Lists who had the CPUs that a thread wanted.
fn in_the_way(args: &LoadArgs, recording: &Recording, selector: &str) -> Result<()> {
    let window = Window::new(args.window, recording.timeline.end())?;
    let threads = select::threads(&recording.threads, &recording.timeline, window, selector)?;
    let found = rivals(recording, &threads, window);
    if args.json {
        return output::json(&InTheWay {
            trace: &args.trace,
            loss: &recording.loss,
            from_ns: window.from,
            to_ns: window.to,
            rivals: &found,
        });
    }
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let whose = match threads[..] {
        [only] => Who::new(&recording.threads, only).text(),
        _ => format::things(threads.len() as u64, "thread", "threads"),
    };
    let sentence = match found.waits {
        0 => format!("{whose} never waited for a CPU."),
        waits => format!(
            "{whose} waited for a CPU for {} in {}, the longest {}.",
            format::duration(found.wanted_ns),
            format::things(waits, "wait", "waits"),
            format::duration(found.longest_ns),
        ),
    };
    writeln!(out, "{}", paint.text(Colour::Heading, &sentence))?;
    if !found.rivals.is_empty() {
        writeln!(out)?;
        print_rivals(&mut out, paint, &found)?;
    }
    for (ns, what) in [
        (found.idle_ns, "the CPU was idle, and had to be woken"),
        (found.unknown_ns, "the trace does not show who had the CPU"),
    ] {
        if ns > 0 {
            writeln!(out, "For {} {what}.", format::duration(ns))?;
        }
    }
    if !found.helps.is_empty() {
        writeln!(out, "\nWhat would have helped, and by how much at most:")?;
        for help in &found.helps {
            writeln!(out, "  {:>9}  {}", format::duration(help.ns), help.what)?;
        }
    }
    writeln!(out, "\n{}", table::lost(paint, &recording.loss))?;
    Ok(out.flush()?)
}

fn print_rivals(out: &mut impl Write, paint: Paint, found: &Rivals<'_>) -> Result<()> {
    let headings = [
        "process",
        "pid",
        "thread",
        "tid",
        "priority",
        "had the CPU",
        "of it",
    ];
    let mut table = table::new(paint, &headings);
    for rival in found.rivals.iter().take(MOST_RIVALS) {
        table.add_row([
            format::printable(rival.who.process).into_owned(),
            rival.who.pid.to_string(),
            format::printable(rival.who.thread).into_owned(),
            rival.who.tid.to_string(),
            rival
                .priority
                .map_or("unknown".to_owned(), |it| it.to_string()),
            format::duration(rival.ns),
            format::percent(rival.ns, found.wanted_ns),
        ]);
    }
    table::write(out, &table)?;
    let rest = found.rivals.len().saturating_sub(MOST_RIVALS);
    if rest > 0 {
        let more = format::things(rest as u64, "more thread", "more threads");
        writeln!(out, "and {more} (--json has all)")?;
    }
    Ok(())
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
