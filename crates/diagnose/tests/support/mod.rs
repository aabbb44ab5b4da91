//! Asking for problems and verdicts, and what must hold of every verdict.
#![allow(dead_code, reason = "each test file uses its own part")]

#[path = "../../../graph/tests/common/mod.rs"]
mod recording;

pub use recording::Recording;

use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::verdict::{PathStep, Ran};
use hangdog_diagnose::{Answers, Problem, Setting, Verdict, diagnose, problem};
use hangdog_trace::ids::NONE;
use hangdog_trace::tables::Module;
use hangdog_trace::text;
use hangdog_trace::words::ModuleKind;
use std::ops::Range;

pub const MS: u64 = 1_000_000;

/// A recording of a text, in which the functions that come from libraries are in their modules, and those whose
/// source is called "script" are in one.
pub fn record(text: &str) -> Recording {
    const LIBC: &[&str] = &[
        "pthread_",
        "__lll_",
        "sched_yield",
        "nanosleep",
        "poll",
        "read",
        "memcpy",
        "qsort",
    ];
    const LIBRARIES: [(u32, &str, &[&str]); 2] = [
        (9, "/lib/libc.so.6", LIBC),
        (10, "/lib/libpng16.so.16", &["png_"]),
    ];
    let mut trace = text::parse(text).expect("a trace in text form");
    let tables = &mut trace.tables;
    for (module, path, starts) in LIBRARIES {
        for (row, function) in tables.symbols.function.iter().enumerate() {
            if starts.iter().any(|start| function.starts_with(start)) {
                tables.frames.module[tables.symbols.frame[row] as usize] = module;
            }
        }
        tables.modules.push(Module {
            module,
            kind: ModuleKind::File.into(),
            path: path.into(),
            build_id: String::new(),
            process: NONE,
        });
    }
    const SCRIPT: u32 = 11;
    for row in 0..tables.symbols.function.len() {
        let source = &tables.symbols.source[row];
        if source == "script" || source.contains(".py") {
            tables.frames.module[tables.symbols.frame[row] as usize] = SCRIPT;
        }
    }
    tables.modules.push(Module {
        module: SCRIPT,
        kind: ModuleKind::Script.into(),
        path: "Python".into(),
        build_id: String::new(),
        process: NONE,
    });
    Recording::new(trace)
}

/// What a diagnosis goes by beside the trace.
pub fn setting(lost: bool, answers: &Answers) -> Setting<'_> {
    Setting {
        lost,
        answers,
        baseline: None,
        yardstick: None,
        instant: false,
    }
}

/// Why `thread` took so long in `window`, in µs.
pub fn explain(recording: &Recording, thread: &str, window_us: Range<u64>) -> Verdict {
    let window = window_us.start * 1000..window_us.end * 1000;
    explain_ns(recording, recording.t(thread), window)
}

/// The same by id and in ns. What must hold of every verdict is checked.
pub fn explain_ns(recording: &Recording, thread: u32, window: Range<u64>) -> Verdict {
    let problem = Problem::picked(thread, window);
    let verdict = diagnose(
        &recording.evidence(),
        &problem,
        setting(false, &Answers::default()),
    );
    if let Err(what) = check(&verdict, &problem) {
        panic!("{what}\n{verdict:#?}");
    }
    verdict
}

/// What must hold of every verdict: the blame is the problem's duration to the nanosecond, by kind
/// and by thread; shares are shares; all samples of what ran are told once; each step of the path
/// lies within the one above.
pub fn check(verdict: &Verdict, problem: &Problem) -> Result<(), String> {
    let duration = problem.duration();
    if (verdict.problem.start_ns, verdict.problem.duration_ns) != (problem.window.start, duration) {
        return Err("it explains another window".into());
    }
    let by_kind: u64 = verdict.blame.iter().map(|row| row.ns).sum();
    let by_thread: u64 = verdict.blame_by_thread.iter().map(|row| row.ns).sum();
    if (by_kind, by_thread) != (duration, duration) {
        return Err(format!(
            "{by_kind} by kind, {by_thread} by thread: of {duration}"
        ));
    }
    let shares = (verdict.blame.iter().map(|row| row.share))
        .chain(verdict.blame_by_thread.iter().map(|row| row.share))
        .chain([verdict.root.share, verdict.root.confidence]);
    for share in shares {
        if !(0.0..=1.0 + 1e-9).contains(&share) {
            return Err(format!("{share} is no share"));
        }
    }
    for kind in &verdict.blame {
        let rows = verdict.blame_by_thread.iter();
        let threads: u64 = rows
            .filter(|row| row.kind == kind.kind)
            .map(|row| row.ns)
            .sum();
        if threads != kind.ns {
            return Err(format!("{}: {} and {threads} differ", kind.kind, kind.ns));
        }
    }
    if let Some(ran) = &verdict.ran {
        check_ran(ran)?;
    }
    let mut outer = problem.window.clone();
    for step in &verdict.path {
        let inner = step.from_ns..step.to_ns;
        if inner.start > inner.end || inner.start < outer.start || inner.end > outer.end {
            return Err(format!("{inner:?} does not lie in {outer:?}"));
        }
        outer = inner;
    }
    Ok(())
}

/// Self times, what is not listed and what is not known are all there is; nothing has more time of
/// its own than in total; what is hot lies within the common function.
fn check_ran(ran: &Ran) -> Result<(), String> {
    const NOTHING: f64 = 1e-9;
    let own: f64 = ran.functions.iter().map(|function| function.own).sum();
    let all = own + ran.others + ran.unknown;
    if (all - 1.0).abs() > NOTHING {
        return Err(format!("the shares of what ran add up to {all}"));
    }
    for function in &ran.functions {
        if function.own > function.total + NOTHING || function.total > 1.0 + NOTHING {
            return Err(format!("{function:?} has no such share"));
        }
    }
    if let Some(common) = &ran.common {
        // What a loop called most is on fewer.
        let least = if ran.samples < 20 { 0.6 } else { 0.25 };
        let hot: f64 = common.hot.iter().map(|hot| hot.share).sum();
        if hot > common.function.total + NOTHING || common.function.total < least - NOTHING {
            return Err(format!("{common:?} is not common"));
        }
    }
    if ran.early_ends.iter().map(|end| end.share).sum::<f64>() > 1.0 + NOTHING {
        return Err(format!("{:?} is more than there is", ran.early_ends));
    }
    Ok(())
}

/// The problems as thread names and windows in µs, worst first.
pub fn problems(recording: &Recording, command_tid: Option<u32>) -> Vec<(String, Range<u64>)> {
    let evidence = recording.evidence();
    problem::find(
        &evidence,
        Scope {
            command_tid,
            recorder_pid: recording.recorder,
            is_snapshot: false,
        },
    )
    .iter()
    .map(|problem| {
        let window = problem.window.start / 1000..problem.window.end / 1000;
        (evidence.name(problem.thread), window)
    })
    .collect()
}

/// The time that went to a kind, µs.
pub fn of_kind(verdict: &Verdict, kind: &str) -> u64 {
    let rows = verdict.blame.iter().filter(|row| row.kind == kind);
    rows.map(|row| row.ns).sum::<u64>() / 1000
}

/// The time that went to a thread in a way, µs.
pub fn of_thread(verdict: &Verdict, tid: u32, kind: &str) -> u64 {
    let rows = verdict.blame_by_thread.iter();
    rows.filter(|row| row.who.tid == tid && row.kind == kind)
        .map(|row| row.ns)
        .sum::<u64>()
        / 1000
}

/// The threads of a path, and how one leads to the next.
pub fn way(verdict: &Verdict) -> Vec<(&str, &str)> {
    let kind = |step: &PathStep| step.edge.as_ref().map_or("", |edge| edge.kind);
    verdict
        .path
        .iter()
        .map(|step| (step.who.thread.as_str(), kind(step)))
        .collect()
}

/// Samples of a thread on a CPU every millisecond in a window of ms, all with one stack.
pub fn samples(cpu: u16, thread: &str, window_ms: Range<u64>, stack: &str) -> String {
    let mut text = String::new();
    for at in window_ms {
        text += &format!("{at}ms cpu{cpu} sample {thread} stack={stack}\n");
    }
    text
}
