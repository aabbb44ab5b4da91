//! `hangdog paging --try prefetch`: whether a command starts faster from cold files if all that it uses of
//! them is asked for at once.
//!
//! A recording tells which pages it uses. Then it is run without and with the prefetch, in turns, so that
//! whatever else the machine does meets both; before each run its files are taken out of the page cache, and
//! the time of a run with the prefetch includes it.

use crate::args::PagingArgs;
use crate::load;
use crate::output::{self, Colour, Paint};
use crate::status::StatusLine;
use anyhow::{Context, Result, bail};
use hangdog_capture::prefetch::{evict, prefetch};
use hangdog_report::format;
use hangdog_report::paging::{UsedFile, own_processes, used_files};
use serde::Serialize;
use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// What is not faster or slower by this share of the time makes no difference that a person notices.
const NOTABLE: f64 = 0.05;
const PAGE: u64 = 4096;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer {
    sentence: String,
    command: Vec<String>,
    files: usize,
    prefetched_bytes: u64,
    not_evicted_bytes: u64,
    without_ns: Vec<u64>,
    with_ns: Vec<u64>,
    median_without_ns: u64,
    median_with_ns: u64,
    faster_in: usize,
}

/// Tries it out.
pub fn run(args: &PagingArgs) -> Result<()> {
    let mut line = StatusLine::new();
    line.show(|| "learning which files the command uses".to_owned());
    let files = learn(&args.command)?;
    if files.is_empty() {
        bail!("the command used no file that is on a disk, as far as the recording tells");
    }
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let mut not_evicted = 0;
    for round in 0..args.runs {
        // Whatever changes with time meets both alike.
        let order = if round % 2 == 0 {
            [false, true]
        } else {
            [true, false]
        };
        for is_prefetched in order {
            line.show(|| {
                format!(
                    "run {} of {}",
                    without.len() + with.len() + 1,
                    args.runs * 2
                )
            });
            let (_, left) = evict(files.iter().map(|file| file.path.as_str()));
            not_evicted = not_evicted.max(left);
            let begun = Instant::now();
            if is_prefetched {
                for file in &files {
                    prefetch(&file.path, &file.pages);
                }
            }
            let status = quietly(&args.command)?;
            let took = begun.elapsed().as_nanos() as u64;
            check(status)?;
            if is_prefetched {
                &mut with
            } else {
                &mut without
            }
            .push(took);
        }
    }
    line.clear();
    let bytes = |file: &UsedFile| {
        let pages = file.pages.iter().map(|range| range.end - range.start);
        pages.sum::<u64>() * PAGE
    };
    let pairs = without.iter().zip(&with);
    let faster_in = pairs.filter(|(without, with)| with < without).count();
    let (slow, fast) = (median(&without), median(&with));
    let answer = Answer {
        sentence: sentence(slow, fast, faster_in, with.len()),
        command: args
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        files: files.len(),
        prefetched_bytes: files.iter().map(bytes).sum(),
        not_evicted_bytes: not_evicted,
        median_without_ns: slow,
        median_with_ns: fast,
        faster_in,
        without_ns: without,
        with_ns: with,
    };
    if args.json {
        return output::json(&answer);
    }
    print(&answer)
}

/// The command, with nobody to read what it writes.
fn quietly(words: &[OsString]) -> Result<ExitStatus> {
    let (program, arguments) = words.split_first().context("which command?")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
        .status()
        .with_context(|| format!("cannot run {}", program.display()))
}

fn check(status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("the command failed ({status}): what it does then is not what is to be measured");
    }
    Ok(())
}

/// Which pages of which files the command uses. In a process of its own, since who records gives up what
/// is needed afterwards.
fn learn(words: &[OsString]) -> Result<Vec<UsedFile>> {
    let folder = tempfile::tempdir().context("cannot make a directory for the recording")?;
    let trace = folder.path().join("learned.hang");
    let own = env::current_exe().context("where is this program?")?;
    let mut command = Command::new(own);
    command
        .args(["record", "--faults", "--no-stacks", "-o"])
        .arg(&trace)
        .arg("--")
        .args(words);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let done = command.output().context("cannot record the command")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let last = said.lines().last().unwrap_or_default();
        bail!(
            "the command failed, or could not be recorded ({}): {last}",
            done.status
        );
    }
    let recording = load::recording(&trace)?;
    let meta = recording.trace.meta();
    let (_, processes) = own_processes(&recording.threads, meta.command_tid, meta.recorder_pid);
    used_files(&recording, &processes)
}

fn median(times: &[u64]) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    match (sorted.get(low), sorted.get(high)) {
        (Some(low), Some(high)) => low + (high - low) / 2,
        _ => 0,
    }
}

/// It helps, or harms, if it does in nearly all pairs of runs and by a notable share of the time.
fn sentence(without: u64, with: u64, faster_in: usize, pairs: usize) -> String {
    let share = without.abs_diff(with) as f64 / without.max(1) as f64;
    let nearly_all = pairs - pairs / 5;
    let times = format!(
        "{} without and {} with it (medians of {}, cold files)",
        format::duration(without),
        format::duration(with),
        pairs
    );
    if with < without && share >= NOTABLE && faster_in >= nearly_all {
        format!(
            "The prefetch makes the command {:.0} % faster: {times}.",
            share * 100.0
        )
    } else if with > without && share >= NOTABLE && pairs - faster_in >= nearly_all {
        format!(
            "The prefetch makes the command {:.0} % slower: {times}.",
            share * 100.0
        )
    } else {
        format!("The prefetch does not help, as far as these runs tell: {times}.")
    }
}

fn print(answer: &Answer) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    writeln!(out, "{}", paint.text(Colour::Heading, &answer.sentence))?;
    let times = |times: &[u64]| -> String {
        let times: Vec<_> = times.iter().map(|&ns| format::duration(ns)).collect();
        times.join(", ")
    };
    writeln!(out, "\nWithout: {}", times(&answer.without_ns))?;
    writeln!(out, "With:    {}", times(&answer.with_ns))?;
    writeln!(
        out,
        "With it faster in {} of {} pairs. The prefetch asks for {} of {}; its time is in the times.",
        answer.faster_in,
        answer.with_ns.len(),
        format::bytes(answer.prefetched_bytes),
        format::things(answer.files as u64, "file", "files"),
    )?;
    if answer.not_evicted_bytes > 0 {
        writeln!(
            out,
            "{} of these files stayed in memory before each run, since other processes have them mapped \
             or they were not yet written.",
            format::bytes(answer.not_evicted_bytes)
        )?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The median is the middle one, or between the two in the middle.
    #[test]
    fn medians() {
        assert_eq!(median(&[5, 1, 3]), 3);
        assert_eq!(median(&[4, 1, 3, 8]), 3);
        assert_eq!(median(&[]), 0);
    }

    /// A command counts as faster only if nearly all pairs show it and the share is notable; so with slower.
    #[test]
    fn help_is_said_where_it_helps() {
        let of = |with, faster_in| sentence(1000, with, faster_in, 5);
        assert!(of(700, 5).contains("30 % faster"));
        assert!(of(700, 4).contains("30 % faster"));
        assert!(of(700, 3).contains("does not help"));
        assert!(of(960, 5).contains("does not help"));
        assert!(of(1300, 0).contains("30 % slower"));
        assert!(of(1300, 2).contains("does not help"));
    }
}
