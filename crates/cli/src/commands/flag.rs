//! `hangdog flag`: the uses of a flag in memory, while they happen, and what they come to.

use crate::args::FlagArgs;
use crate::flag_place::{FlagPlace, Place, flags};
use crate::output::{self, Colour, Paint};
use anyhow::Result;
use hangdog_capture::flag::{Flag, MOST_A_SECOND, watches_reads};
use hangdog_capture::uses::{Use, watch};
use hangdog_capture::{CallsOf, Options};
use hangdog_report::format;
use hangdog_trace::words::Access;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Duration;

/// Memory for unwind tables, bytes.
const UNWIND_MEMORY: u64 = 64 << 20;
/// Memory for the rings, bytes.
const RING_MEMORY: u64 = 16 << 20;
/// So many frames of a use are shown on its line.
const CALLERS: usize = 3;
/// So many uses a second are shown one by one.
const SHOWN: usize = 20;

/// What is watched of flags alone.
pub fn options(flags: Vec<Flag>) -> Options {
    Options {
        memory: RING_MEMORY,
        stacks: true,
        unwind_memory: UNWIND_MEMORY,
        sample_hz: 0,
        transfers: false,
        calls: CallsOf::default(),
        faults: false,
        yardstick: None,
        flags,
        probes: Vec::new(),
    }
}

/// The answer in JSON.
#[derive(Serialize)]
struct Answer {
    flags: Vec<FlagAnswer>,
    uses: Vec<Uses>,
    lost: u64,
}

/// A flag that was watched.
#[derive(Serialize)]
struct FlagAnswer {
    name: String,
    pid: u32,
    address: String,
    size: u8,
    reads_watched: bool,
    /// How often reads, or writes, came too often and were not watched for a second.
    pauses: usize,
}

/// Uses that have flag, thread, kind and place in common.
#[derive(Serialize)]
struct Uses {
    flag: String,
    pid: u32,
    tid: u32,
    thread: String,
    access: &'static str,
    count: u64,
    first_ns: u64,
    last_ns: u64,
    last_value: u64,
    stack: Vec<String>,
}

/// Watches.
pub fn run(args: &FlagArgs) -> Result<()> {
    let place = |place| FlagPlace {
        process: args.process.clone(),
        place,
        size: args.size,
    };
    let symbols = args.symbol.iter().cloned().map(Place::Symbol);
    let addresses = args.address.iter().copied().map(Place::Address);
    let places: Vec<FlagPlace> = symbols.chain(addresses).map(place).collect();
    let options = options(flags(&places)?);
    for flag in &options.flags {
        say!(
            "hangdog: watching {} (Ctrl-C stops)",
            described(flag, &options.flags)
        );
    }
    let mut sums: BTreeMap<(usize, u32, &'static str, u64), Uses> = BTreeMap::new();
    let mut pauses = vec![0; options.flags.len()];
    let paint = Paint::for_stdout();
    let mut shown = (0, 0);
    let duration = args.duration.map(|span| Duration::from_nanos(span.ns()));
    let lost = watch(&options, duration, |_, uses| {
        for used in uses {
            let flag = &options.flags[used.flag];
            // Where writes rest, reads do.
            let all = match watches_reads(&options.flags, flag) {
                true => Access::Read,
                false => Access::Write,
            };
            if used.access == Access::Paused && used.value == u64::from(u8::from(all)) {
                pauses[used.flag] += 1;
            }
            // So many in a second that nobody reads them are only counted.
            let second = used.ns / 1_000_000_000;
            shown = if shown.0 == second {
                (second, shown.1 + 1)
            } else {
                (second, 0)
            };
            if !args.json
                && (shown.1 < SHOWN || used.access == Access::Write && shown.1 < 10 * SHOWN)
                && show(paint, flag, used, args.stacks).is_err()
            {
                return ControlFlow::Break(());
            }
            if matches!(used.access, Access::Read | Access::Write) {
                let key = (used.flag, used.tid, used.access.text(), used.instruction);
                let sum = sums.entry(key).or_insert_with(|| Uses {
                    flag: flag.name.clone(),
                    pid: flag.pid,
                    tid: used.tid,
                    thread: used.thread.clone(),
                    access: used.access.text(),
                    count: 0,
                    first_ns: used.ns,
                    last_ns: used.ns,
                    last_value: used.value,
                    stack: used.stack.clone(),
                });
                sum.count += 1;
                sum.last_ns = used.ns;
                sum.last_value = used.value;
            }
        }
        ControlFlow::Continue(())
    })?;
    let answer = Answer {
        flags: (options.flags.iter().zip(pauses))
            .map(|(flag, pauses)| FlagAnswer {
                name: flag.name.clone(),
                pid: flag.pid,
                address: format!("{:#x}", flag.address),
                size: flag.size,
                reads_watched: watches_reads(&options.flags, flag),
                pauses,
            })
            .collect(),
        uses: sums.into_values().collect(),
        lost,
    };
    match args.json {
        true => output::json(&answer),
        false => Ok(total(paint, &answer)?),
    }
}

fn described(flag: &Flag, flags: &[Flag]) -> String {
    let Flag {
        name,
        pid,
        address,
        size,
        ..
    } = flag;
    let what = match watches_reads(flags, flag) {
        true => "reads and writes",
        false => "writes only: a thread has four breakpoints",
    };
    format!("{name} in process {pid}, {size} bytes at {address:#x}, {what}")
}

/// The callers of a use, as the end of a line.
pub fn within(stack: &[String]) -> String {
    match stack {
        [] => String::new(),
        stack => {
            let callers: Vec<&str> = stack.iter().take(CALLERS).map(String::as_str).collect();
            format!(" in {}", callers.join(" < "))
        }
    }
}

fn show(paint: Paint, flag: &Flag, used: &Use, stacks: bool) -> std::io::Result<()> {
    let mut out = output::stdout();
    let at = format::moment(used.ns);
    let name = format::printable(&flag.name);
    match used.access {
        Access::Paused | Access::Resumed => {
            let kind = Access::from(used.value as u8).text();
            let what = match used.access {
                Access::Paused => format!(
                    "{kind}s of {name} come more often than {} a second: not watched for 1 s",
                    format::count(MOST_A_SECOND)
                ),
                _ => format!("{kind}s of {name} are watched again"),
            };
            writeln!(out, "{at}  {}", paint.text(Colour::Warning, &what))?;
        }
        _ => {
            let callers = if stacks {
                String::new()
            } else {
                within(&used.stack)
            };
            writeln!(
                out,
                "{at}  {} ({})  {} {name} = {:#x}{}",
                format::printable(&used.thread),
                used.tid,
                used.access.text(),
                used.value,
                format::printable(&callers)
            )?;
            for frame in used.stack.iter().filter(|_| stacks) {
                writeln!(out, "    {}", format::printable(frame))?;
            }
        }
    }
    out.flush()
}

fn total(paint: Paint, answer: &Answer) -> std::io::Result<()> {
    let mut out = output::stdout();
    writeln!(
        out,
        "{}",
        paint.text(Colour::Heading, "uses by thread and place")
    )?;
    for uses in &answer.uses {
        writeln!(
            out,
            "{:>10}  {} by {} ({}), last value {:#x}{}",
            format::count(uses.count),
            uses.access,
            format::printable(&uses.thread),
            uses.tid,
            uses.last_value,
            format::printable(&within(&uses.stack))
        )?;
    }
    if answer.uses.is_empty() {
        writeln!(out, "  nobody read or wrote it")?;
    }
    for flag in answer.flags.iter().filter(|flag| flag.pauses > 0) {
        writeln!(
            out,
            "{} was used too often: its uses were not watched for {} s, and are missing above",
            format::printable(&flag.name),
            flag.pauses
        )?;
    }
    if answer.lost > 0 {
        writeln!(out, "{} events were lost", format::count(answer.lost))?;
    }
    out.flush()
}
