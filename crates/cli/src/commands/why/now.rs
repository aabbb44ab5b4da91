//! Who waits for whom at this moment: `hangdog why --live`, and what `hangdog record --limit` says of
//! a command that hangs.

use super::print::{self, Around};
use crate::args::WhyArgs;
use crate::load;
use crate::output::{self, Paint};
use anyhow::{Context, Result, bail};
use hangdog_capture::live::look;
use hangdog_capture::system::{stop_asked, stop_on_signals};
use hangdog_capture::{CallsOf, Options};
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::{
    Answers, BlameKind, Hint, PathStep, Problem, Setting, Verdict, diagnose, problem, signature,
};
use hangdog_graph::owed::descendants;
use hangdog_graph::{EdgeKind, Evidence};
use hangdog_report::Case;
use hangdog_report::answers::{Found, VerdictAnswer};
use hangdog_report::rank;
use hangdog_report::select::NothingFound;
use hangdog_trace::ids::Utid;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Samples a second of what runs meanwhile.
const SAMPLE_HZ: u32 = 250;
/// Memory for unwind tables, bytes.
const UNWIND_MEMORY: u64 = 64 << 20;
/// A program at rest, or one that has only just asked somebody, is looked at again for so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// One of which no thread has done anything for longer than this does not stall now and then: it is idle, or it hangs, ns.
const LATELY_NS: u64 = 2_000_000_000;
/// An answer that is waited for no longer than this may come at once, ns.
const JUST_NS: u64 = 50_000_000;

/// Looks, and explains.
pub fn run(args: &WhyArgs) -> Result<()> {
    // `--live` alone leaves it to `--process` to name one.
    let named = args.live.as_deref().filter(|process| !process.is_empty());
    let process = match (named, args.which.process.as_deref()) {
        (Some(_), Some(_)) => bail!("name the process once: --live PROCESS"),
        (named, process) => named.or(process).unwrap_or_default(),
    };
    if let Some(trace) = &args.output {
        return Moment::seen(trace, process)?.tell(Some(trace), args.json);
    }
    // Asked to stop, it prints what it has seen so far, and removes the traces of that.
    stop_on_signals().context("cannot handle signals")?;
    let folder = tempfile::tempdir().context("cannot make a directory for what is seen")?;
    let first = Moment::seen(&folder.path().join("1.hang"), process)?;
    let moment = match first.is_stalled() {
        true => first,
        false => look_again(first, folder.path(), process),
    };
    moment.tell(None, args.json)
}

/// Looks again and again, for a few seconds, at a program that is not stalled: one that stalls now and then is mostly met between
/// two stalls. Returns the first moment at which it was, else the first at which it was not at rest, else the `first`.
fn look_again(first: Moment, folder: &Path, process: &str) -> Moment {
    let begun = Instant::now();
    let looks = (2..).take_while(|_| begun.elapsed() < PATIENCE && !stop_asked());
    let moments = looks
        // It may have ended meanwhile.
        .map_while(|look| Moment::seen(&folder.join(format!("{look}.hang")), process).ok());
    let mut best = first;
    let mut count = 1;
    for moment in moments {
        if moment.is_stalled() {
            return moment;
        }
        count += 1;
        if best.is_at_rest && !moment.is_at_rest {
            best = moment;
        }
    }
    if count > 1 {
        let seconds = begun.elapsed().as_secs();
        best.waits.verdict.hints.push(Hint {
            text: format!("it was not held up for long at any of {count} looks in {seconds} s"),
            how: "if it stalls now and then: keep hangdog flight running, and take a snapshot \
                  (hangdog snap) right after a stall"
                .to_owned(),
        });
    }
    best
}

/// What was seen at a moment.
struct Moment {
    case: Case,
    waits: Waits,
    /// The program that was asked about has done something lately, and nothing holds it up.
    is_at_rest: bool,
}

impl Moment {
    /// Whether something holds it up that does not pass at once.
    fn is_stalled(&self) -> bool {
        !self.is_at_rest && !self.waits.has_just_asked
    }

    /// Looks at all threads, and keeps that as a trace; explains those of `process`, or of all if it is empty.
    fn seen(trace: &Path, process: &str) -> Result<Moment> {
        let options = Options {
            memory: 0,
            stacks: true,
            unwind_memory: UNWIND_MEMORY,
            sample_hz: SAMPLE_HZ,
            transfers: false,
            calls: CallsOf::default(),
            faults: false,
            yardstick: None,
            flags: Vec::new(),
            probes: Vec::new(),
        };
        look(&options, process, trace)?;
        let case = load::case(trace)?;
        let evidence = case.evidence();
        let scope = Scope::of(case.recording.trace.meta());
        let found = evidence.threads.find_processes(process);
        let threads: Vec<Utid> = (found.iter())
            .filter(|_| !process.is_empty())
            .flat_map(|&upid| &evidence.threads.process(upid).threads)
            .copied()
            .collect();
        let waits = match process {
            "" => Waits::of(&evidence, problem::find(&evidence, scope), None, &case),
            process => {
                let first = first(&evidence, &threads).with_context(|| {
                    NothingFound::new(format!("no process is named or numbered '{process}'"))
                })?;
                let scope = Scope {
                    command_tid: Some(evidence.threads.thread(first).tid),
                    ..scope
                };
                let own = problem::find_of(&evidence, scope, |thread| threads.contains(&thread));
                Waits::of(&evidence, own, Some(first), &case)
            }
        }?;
        let has_moved = |&thread: &Utid| {
            let since = evidence.away_since(thread);
            since.is_none_or(|since| since.unsigned_abs() < LATELY_NS)
        };
        let is_at_rest = waits.may_be_at_rest && threads.iter().any(has_moved);
        drop(evidence);
        Ok(Moment {
            case,
            waits,
            is_at_rest,
        })
    }

    /// Prints it; `kept` is its trace if that stays.
    fn tell(self, kept: Option<&Path>, json: bool) -> Result<()> {
        let Moment { case, waits, .. } = self;
        match json {
            true => output::json(&VerdictAnswer {
                trace: kept,
                loss: &case.recording.loss,
                signature: signature(&waits.verdict),
                repeats: None,
                paging: None,
                verdict: &waits.verdict,
                problems: waits.found,
                number: waits.number,
                region: None,
            }),
            false => Ok(waits.write(&case, &mut output::stdout(), &Paint::for_stdout())?),
        }
    }
}

/// Says on standard error what the command of this trace, which is not done, waits for.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn of_hung(trace: &Path) -> Result<()> {
    let case = load::case(trace)?;
    let evidence = case.evidence();
    let scope = Scope::of(case.recording.trace.meta());
    let end = evidence.timeline.end();
    let command: Vec<Utid> = (evidence.threads.iter())
        .filter(|thread| Some(thread.tid) == scope.command_tid)
        .map(|thread| thread.utid)
        .collect();
    let command = first(&evidence, &command);
    let family = command
        .map(|thread| {
            descendants(
                &evidence,
                [evidence.threads.thread(thread).upid].into_iter(),
            )
        })
        .unwrap_or_default();
    let is_own = |thread| family.contains(&evidence.threads.thread(thread).upid);
    let mut own = problem::find_of(&evidence, scope, is_own);
    own.retain(|problem| problem.window.end == end);
    let waits = Waits::of(&evidence, own, command, &case)?;
    Ok(waits.write(&case, &mut io::stderr().lock(), &Paint::none())?)
}

/// How much a wait counts for how long it has lasted, 0 to 1: all waits look alike in one moment. Of who
/// does not wait that is not known. The first thread of a program that somebody `named` may look again and again
/// for what it waits for.
fn age(evidence: &Evidence<'_>, thread: Utid, named: bool) -> f64 {
    const LONG_NS: f64 = 1e9;
    const LEAST: f64 = 0.05;
    const LEAST_OF_FIRST: f64 = 0.5;
    let least = match named && evidence.stands_for_program(thread) {
        true => LEAST_OF_FIRST,
        false => LEAST,
    };
    let since = evidence.away_since(thread);
    since.map_or(1.0, |since| {
        (since.min(0).unsigned_abs() as f64 / LONG_NS).clamp(least, 1.0)
    })
}

/// The main one of these threads, or any.
fn first(evidence: &Evidence<'_>, threads: &[Utid]) -> Option<Utid> {
    let is_main = |&&thread: &&Utid| evidence.threads.thread(thread).is_main();
    threads.iter().find(is_main).or(threads.first()).copied()
}

/// What is to be told.
struct Waits {
    verdict: Verdict,
    found: Vec<Found>,
    number: Option<usize>,
    /// It may be that nothing was owed to anybody.
    may_be_at_rest: bool,
    /// What is waited for is an answer, and has been for moments only.
    has_just_asked: bool,
}

impl Waits {
    /// Explains the worst of the `problems`; where there is none, what the `first` thread does in the
    /// end.
    fn of(
        evidence: &Evidence<'_>,
        mut problems: Vec<Problem>,
        first: Option<Utid>,
        case: &Case,
    ) -> Result<Waits> {
        let setting = Setting {
            lost: case.recording.loss.total > 0,
            answers: &Answers::default(),
            baseline: None,
            yardstick: None,
            instant: true,
        };
        for problem in &mut problems {
            problem.score *= age(evidence, problem.thread, first.is_some());
        }
        problems.sort_by(|a, b| b.score.total_cmp(&a.score));
        let explain = |problem: &Problem| diagnose(evidence, problem, setting);
        let (problems, _) = rank::ranked(problems, evidence.timeline.end(), explain);
        let last = first.map(|thread| Problem::picked(thread, evidence.timeline.life(thread)));
        let worst = problems.first().cloned().or(last);
        let chosen = worst.context(NothingFound::new("nobody waits for what somebody owes"))?;
        let verdict = explain(&chosen);
        // It lets time pass, for whatever reason.
        let is_own_timer = verdict.blame_by_thread.first().is_some_and(|most| {
            most.who.tid == evidence.threads.thread(chosen.thread).tid
                && most.kind == BlameKind::Timer.text()
        });
        let awaits_answer = |step: &PathStep| {
            (step.edge.as_ref()).is_some_and(|edge| edge.kind == EdgeKind::Peer.text())
        };
        let is_new = |step: &PathStep| {
            let since = evidence.away_since(step.utid);
            since.is_some_and(|since| since.min(0).unsigned_abs() < JUST_NS)
        };
        let asks_at = verdict.path.iter().position(awaits_answer);
        Ok(Waits {
            has_just_asked: asks_at.is_some_and(|at| verdict.path[..=at].iter().all(is_new)),
            verdict,
            may_be_at_rest: problems.is_empty() || chosen.may_be_at_rest() || is_own_timer,
            found: (problems.iter())
                .map(|problem| Found::new(evidence, problem))
                .collect(),
            number: (!problems.is_empty()).then_some(1),
        })
    }

    fn write(&self, case: &Case, out: &mut impl io::Write, paint: &Paint) -> io::Result<()> {
        let around = Around {
            loss: &case.recording.loss,
            found: &self.found,
            number: self.number,
            paging: None,
        };
        print::write_now(out, paint, &self.verdict, &around)
    }
}
