//! `hangdog find-flag`: the flag in memory that a thread polls, and who writes it.
//!
//! The thread's loop tells which memory decides it (`hangdog-flags`); breakpoints on that memory
//! tell who writes, and whether the loop then ends.

use super::flag::{options, within};
use crate::args::FindFlagArgs;
use crate::commands::NOTHING_FOUND;
use crate::flag_place::process;
use crate::load;
use crate::output::{self, Colour, Paint};
use anyhow::{Context, Result, bail};
use hangdog_capture::flag::{BREAKPOINTS, Flag, MOST_WITH_READS, with_sharers};
use hangdog_capture::uses::{Use, watch};
use hangdog_diagnose::verdict::Class;
use hangdog_diagnose::{Answers, diagnose, problem};
use hangdog_flags::candidates::{Candidate, Found};
use hangdog_flags::flow::Until;
use hangdog_flags::step::Limits;
use hangdog_flags::{NotFound, find};
use hangdog_report::format;
use hangdog_symbols::variables;
use hangdog_trace::calls::Calls;
use hangdog_trace::words::Access;
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// A thread that has not looked at its flag for so long has left its loop, ns.
const LEFT_NS: u64 = 500_000_000;
/// How long threads are compared to find the one that polls.
const LOOK: Duration = Duration::from_millis(300);
/// So many naps in that time are polling.
const NAPS: u64 = 10;

/// The answer.
#[derive(Serialize)]
struct Answer {
    pid: u32,
    tid: u32,
    thread: String,
    /// Rounds of the loop that were seen.
    rounds: usize,
    /// What may be the flag, the best first.
    candidates: Vec<CandidateAnswer>,
    /// Which of them it is, by its place in that list; none where that is not known.
    flag: Option<usize>,
    /// Who wrote it.
    writer: Option<Writer>,
    /// Whether the thread left its loop after that.
    loop_ended: bool,
    /// How sure this is, 0 to 1.
    confidence: f64,
    /// Why nothing was found.
    not_found: Option<String>,
}

#[derive(Serialize)]
struct CandidateAnswer {
    name: String,
    address: String,
    size: u8,
    value: u64,
    /// What ends the loop, where that is known.
    until: Option<String>,
    on_stack: bool,
}

#[derive(Serialize)]
struct Writer {
    pid: u32,
    tid: u32,
    thread: String,
    value: u64,
    /// Whether it is the polling thread itself, in a signal handler.
    itself: bool,
    stack: Vec<String>,
}

/// Finds.
pub fn run(args: &FindFlagArgs) -> Result<ExitCode> {
    let (pid, tid) = match (&args.trace, &args.pid) {
        (Some(trace), _) => polling_in(trace)?,
        (None, Some(selector)) => {
            let pid = process(selector)?;
            (pid, args.tid.map_or_else(|| polling(pid), Ok)?)
        }
        (None, None) => bail!("give a trace, or --pid"),
    };
    let answer = look(pid, tid, Duration::from_nanos(args.duration.ns()))?;
    match args.json {
        true => output::json(&answer)?,
        false => print(Paint::for_stdout(), &answer)?,
    }
    Ok(match answer.candidates.is_empty() {
        true => ExitCode::from(NOTHING_FOUND),
        false => ExitCode::SUCCESS,
    })
}

fn name_of(pid: u32, tid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.trim_end_matches('\n').to_owned()
}

/// The thread that polls by the verdict on a trace, if it still lives.
fn polling_in(trace: &Path) -> Result<(u32, u32)> {
    let case = load::case(trace)?;
    let evidence = case.evidence();
    let answers = Answers::default();
    let polling = problem::find(&evidence, case.scope())
        .iter()
        .find_map(|problem| {
            let verdict = diagnose(&evidence, problem, case.setting(&answers, None));
            let is_polling = verdict.root.class == Class::RepeatedYield;
            is_polling.then_some(verdict.root.who)
        });
    let who =
        polling.context("no thread polls in this trace: no problem is of class RepeatedYield")?;
    let name = name_of(who.pid, who.tid);
    if name != who.thread {
        bail!(
            "{} ({}) does not live any more: find-flag looks at running processes; record again with \
             --watch, if you know the variable",
            who.thread,
            who.tid
        );
    }
    Ok((who.pid, who.tid))
}

/// The thread of a process that spins, yields or naps most.
fn polling(pid: u32) -> Result<u32> {
    let tids = || -> Result<Vec<u32>> {
        let entries = fs::read_dir(format!("/proc/{pid}/task"))
            .with_context(|| format!("there is no process {pid}"))?;
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        Ok(numbers.collect())
    };
    // Ticks on a CPU, and switches that the thread wanted.
    let work = |tid: u32| -> Option<(u64, u64)> {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ').skip(11);
        let ticks: u64 =
            fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
        let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
        let switches = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((ticks, switches.trim().parse().ok()?))
    };
    let before: Vec<_> = tids()?
        .into_iter()
        .filter_map(|tid| Some((tid, work(tid)?)))
        .collect();
    std::thread::sleep(LOOK);
    let mut most: Option<((u64, u64), u32)> = None;
    for (tid, (ticks, switches)) in before {
        let Some((now_ticks, now_switches)) = work(tid) else {
            continue;
        };
        // A tick is 10 ms: who spins has many, who naps has switches.
        let done = (
            now_ticks.saturating_sub(ticks) / 5,
            now_switches.saturating_sub(switches),
        );
        // A person waits for the main thread, if that polls at all.
        if tid == pid && (done.0 > 0 || done.1 >= NAPS) {
            return Ok(tid);
        }
        if done > (0, 0) && most.is_none_or(|(best, _)| done > best) {
            most = Some((done, tid));
        }
    }
    let (_, tid) = most.with_context(|| {
        format!("no thread of process {pid} spins, yields or naps; give one with --tid")
    })?;
    Ok(tid)
}

fn look(pid: u32, tid: u32, patience: Duration) -> Result<Answer> {
    let mut answer = Answer {
        pid,
        tid,
        thread: name_of(pid, tid),
        rounds: 0,
        candidates: Vec::new(),
        flag: None,
        writer: None,
        loop_ended: false,
        confidence: 0.0,
        not_found: None,
    };
    let found = match find(pid, tid, Limits::default()) {
        Ok(found) => found,
        Err(why @ NotFound::Step { .. }) => return Err(why.into()),
        Err(NotFound::Calls { numbers }) => {
            let calls = Calls::new(std::env::consts::ARCH);
            let names: Vec<_> = (numbers.iter())
                .filter_map(|&number| Some(calls.name(i16::try_from(number).ok()?)))
                .collect();
            answer.not_found = Some(format!(
                "its loop looks at what {} returns, and at no memory that another thread could \
                 change: it waits for a file or the kernel",
                names.join(", ")
            ));
            return Ok(answer);
        }
        Err(why) => {
            answer.not_found = Some(why.to_string());
            return Ok(answer);
        }
    };
    answer.rounds = found.rounds;
    let watched = &found.candidates[..found.equals.min(BREAKPOINTS)];
    answer.candidates = watched.iter().map(|it| described(pid, it)).collect();
    let flags = (watched.iter().zip(&answer.candidates)).map(|(it, described)| Flag {
        pid,
        address: it.address,
        size: it.size,
        name: described.name.clone(),
        memory: 0,
    });
    let flags = with_sharers(flags.collect()).map_err(anyhow::Error::msg)?;
    let mut waiter = Waiter::new(tid, watched, &flags);
    watch(&options(flags.clone()), Some(patience), |now, uses| {
        waiter.see(now, uses)
    })?;
    answer.loop_ended = waiter.has_left;
    match waiter.written() {
        Some((candidate, used)) => {
            answer.flag = Some(candidate);
            answer.confidence = confidence(&found, true, answer.loop_ended);
            answer.writer = Some(Writer {
                pid: flags[used.flag].pid,
                tid: used.tid,
                thread: used.thread,
                value: used.value,
                itself: used.tid == tid,
                stack: used.stack,
            });
        }
        None => {
            answer.flag = (found.equals == 1).then_some(0);
            answer.confidence = confidence(&found, false, false);
        }
    }
    Ok(answer)
}

fn described(pid: u32, candidate: &Candidate) -> CandidateAnswer {
    let Candidate {
        address,
        size,
        value,
        until,
        on_stack,
        ..
    } = *candidate;
    let name = match variables::at(pid, address) {
        Some(variable) if variable.address == address => variable.name,
        Some(variable) => format!("{}+{:#x}", variable.name, address - variable.address),
        None => format!("{address:#x}"),
    };
    CandidateAnswer {
        name,
        address: format!("{address:#x}"),
        size,
        value,
        until: until.map(condition),
        on_stack,
    }
}

/// What ends a loop, as the rest of "until it ...".
fn condition(until: Until) -> String {
    let Until { mask, with, equal } = until;
    let is = if equal { "is" } else { "is not" };
    match mask.trailing_ones() + mask.leading_zeros() == u64::BITS {
        true if mask.count_ones() >= 8 => format!("{is} {with:#x}"),
        _ => format!("& {mask:#x} {is} {with:#x}"),
    }
}

/// How sure it is that the flag is the one that is named.
fn confidence(found: &Found, written: bool, ended: bool) -> f64 {
    let among = found.equals.max(1) as f64;
    let doubtful = found
        .candidates
        .first()
        .is_none_or(|it| it.on_stack || it.in_library);
    let sure = match (written, ended) {
        (true, true) if found.equals <= BREAKPOINTS => 0.95,
        // Something was written, and the loop went on: it may be another that ends it.
        (true, _) => 0.5 / among,
        (false, _) => 0.8 / among,
    };
    if doubtful { sure * 0.7 } else { sure }
}

/// The thread that polls, as the uses of its flags show it.
struct Waiter<'a> {
    tid: u32,
    watched: &'a [Candidate],
    flags: &'a [Flag],
    /// By candidate: when it last looked, or could have looked, ns.
    looked: Vec<u64>,
    /// By candidate: looks come too often and are not watched.
    paused: Vec<bool>,
    /// Writes by others, with the candidate.
    writes: Vec<(usize, Use)>,
    /// It was seen to leave its loop, after the last of `writes`.
    has_left: bool,
}

/// Whether a stack goes through a signal handler: its caller is what a handler returns to, a piece of the
/// C library that has a name in debug information only.
fn is_in_handler(stack: &[String]) -> bool {
    let callers = stack.iter().skip(1);
    let mut callers = callers.map(String::as_str);
    callers.any(|it| it.contains("restore_rt") || it.starts_with("libc.so.6+0x"))
}

/// A look is noted up to so much earlier than the write that it saw, ns.
const LATE_NS: u64 = 50_000;
/// No instruction is longer, bytes.
const LONGEST_INSTRUCTION: u64 = 15;
/// So many writes are kept.
const MOST_WRITES: usize = 100_000;

impl<'a> Waiter<'a> {
    fn new(tid: u32, watched: &'a [Candidate], flags: &'a [Flag]) -> Waiter<'a> {
        Waiter {
            tid,
            watched,
            flags,
            looked: vec![0; watched.len()],
            paused: vec![false; watched.len()],
            writes: Vec::new(),
            has_left: false,
        }
    }

    fn see(&mut self, now: u64, uses: &[Use]) -> ControlFlow<()> {
        for used in uses {
            let at = self.flags[used.flag].memory;
            let Some(candidate) = self.watched.get(at) else {
                continue;
            };
            let behind = used.instruction.wrapping_sub(candidate.instruction);
            match used.access {
                Access::Paused => self.paused[at] = true,
                Access::Resumed => {
                    self.paused[at] = false;
                    self.looked[at] = used.ns;
                }
                // One that tries to take the flag writes to look.
                _ if used.tid == self.tid
                    && (used.access == Access::Read
                        || (1..=LONGEST_INSTRUCTION).contains(&behind)) =>
                {
                    self.looked[at] = used.ns;
                }
                // What it writes outside of a signal handler it writes after its loop.
                Access::Write if used.tid == self.tid && !is_in_handler(&used.stack) => {}
                Access::Write => {
                    if self.writes.len() < MOST_WRITES {
                        self.writes.push((at, used.clone()));
                    }
                    if candidate.until.is_some_and(|until| until.holds(used.value)) {
                        self.has_left = true;
                        return ControlFlow::Break(());
                    }
                }
                _ => {}
            }
        }
        let sees_looks = self.watched.len() <= MOST_WITH_READS;
        for (at, candidate) in self.watched.iter().enumerate() {
            let last = self.writes.iter().rev().find(|(of, _)| *of == at);
            let Some((_, write)) = last else {
                continue;
            };
            let quiet = now.saturating_sub(self.looked[at].max(write.ns));
            if sees_looks && candidate.until.is_none() && !self.paused[at] && quiet >= LEFT_NS {
                // The write that the last look saw.
                let end = self.looked[at] + LATE_NS;
                let is_seen = |(of, used): &(usize, Use)| *of == at && used.ns <= end;
                let seen = self.writes.iter().rposition(is_seen);
                let seen = seen.or_else(|| self.writes.iter().position(|(of, _)| *of == at));
                self.writes.truncate(seen.map_or(0, |seen| seen + 1));
                self.has_left = true;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// The last write of those that matter.
    fn written(self) -> Option<(usize, Use)> {
        self.writes.into_iter().next_back()
    }
}

fn print(paint: Paint, answer: &Answer) -> std::io::Result<()> {
    let mut out = output::stdout();
    let who = format!("{} ({})", format::printable(&answer.thread), answer.tid);
    if let Some(why) = &answer.not_found {
        writeln!(out, "{who}: no flag found: {}", format::printable(why))?;
        return out.flush();
    }
    match (
        answer.flag.and_then(|at| answer.candidates.get(at)),
        &answer.writer,
    ) {
        (Some(flag), Some(writer)) => {
            let name = format::printable(&flag.name);
            let wrote = match writer.itself {
                true => "its own signal handler".to_owned(),
                false => format!("{} ({})", format::printable(&writer.thread), writer.tid),
            };
            let then = match answer.loop_ended {
                true => "and the loop ended",
                false => "and the loop went on",
            };
            let verdict = format!(
                "{who} polls {name}: {wrote} wrote {:#x}, {then}",
                writer.value
            );
            writeln!(out, "{}", paint.text(Colour::Heading, &verdict))?;
            writeln!(
                out,
                "  written{}",
                format::printable(&within(&writer.stack))
            )?;
        }
        (Some(flag), None) => {
            let name = format::printable(&flag.name);
            let verdict = format!("{who} polls {name}: nobody wrote it while it was watched");
            writeln!(out, "{}", paint.text(Colour::Heading, &verdict))?;
        }
        (None, _) => {
            let verdict = format!("{who} polls one of these, and nobody wrote any of them:");
            writeln!(out, "{}", paint.text(Colour::Heading, &verdict))?;
        }
    }
    writeln!(
        out,
        "  confidence {:.0} %, by {} rounds of its loop",
        answer.confidence * 100.0,
        answer.rounds
    )?;
    for it in &answer.candidates {
        let until = it
            .until
            .as_ref()
            .map_or(String::new(), |it| format!(", until it {it}"));
        let stack = if it.on_stack {
            ", on its own stack"
        } else {
            ""
        };
        writeln!(
            out,
            "  {} at {}, {} bytes, holds {:#x}{until}{stack}",
            format::printable(&it.name),
            it.address,
            it.size,
            it.value
        )?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(until: Option<Until>) -> Candidate {
        Candidate {
            address: 0x1000,
            size: 4,
            value: 0,
            instruction: 0x400,
            until,
            on_stack: false,
            in_library: false,
        }
    }

    fn flag() -> Flag {
        Flag {
            pid: 1,
            address: 0x1000,
            size: 4,
            name: "ready".into(),
            memory: 0,
        }
    }

    fn used(ns: u64, tid: u32, access: Access, value: u64) -> Use {
        Use {
            ns,
            flag: 0,
            access,
            value,
            tid,
            thread: String::new(),
            instruction: 0x900,
            stack: Vec::new(),
        }
    }

    /// A write that fulfils the loop's condition ends it; one that does not is passed over.
    #[test]
    fn the_condition_decides() {
        let until = Until {
            mask: 4,
            with: 0,
            equal: false,
        };
        let (watched, flags) = ([candidate(Some(until))], [flag()]);
        let mut waiter = Waiter::new(7, &watched, &flags);
        let other = used(5, 8, Access::Write, 3);
        assert!(waiter.see(10, &[other]).is_continue());
        let write = used(15, 9, Access::Write, 7);
        assert!(waiter.see(20, std::slice::from_ref(&write)).is_break());
        assert_eq!(waiter.written(), Some((0, write)));
    }

    /// What the polling thread writes itself is no answer, unless a signal handler does.
    #[test]
    fn its_own_writes() {
        let (watched, flags) = ([candidate(None)], [flag()]);
        let mut waiter = Waiter::new(7, &watched, &flags);
        let own = used(5, 7, Access::Write, 3);
        assert!(waiter.see(10, std::slice::from_ref(&own)).is_continue());
        assert_eq!(waiter.writes, []);
        let stack = ["on_signal", "libc.so.6+0x3c04f", "poll"]
            .map(str::to_owned)
            .to_vec();
        let handler = Use { stack, ..own };
        assert!(waiter.see(20, std::slice::from_ref(&handler)).is_continue());
        assert_eq!(waiter.writes, [(0, handler)]);
    }

    /// Without a known condition the loop has ended when nobody looks any more, by the write that the
    /// last look saw; not where looks are not watched.
    #[test]
    fn the_last_look_decides() {
        let (watched, flags) = ([candidate(None)], [flag()]);
        let mut waiter = Waiter::new(7, &watched, &flags);
        let seen = used(1_000_000, 8, Access::Write, 1);
        let look = used(2_000_000, 7, Access::Read, 1);
        let later = used(400_000_000, 9, Access::Write, 2);
        assert!(
            waiter
                .see(3_000_000, &[seen.clone(), look, later])
                .is_continue()
        );
        let mut hot = Waiter {
            paused: vec![true],
            writes: waiter.writes.clone(),
            ..Waiter::new(7, &watched, &flags)
        };
        assert!(hot.see(9_000_000_000, &[]).is_continue());
        assert!(waiter.see(1_000_000_000, &[]).is_break());
        assert_eq!(waiter.written(), Some((0, seen)));
    }
}
