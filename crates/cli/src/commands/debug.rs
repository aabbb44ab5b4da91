//! `hangdog debug`: a debugger script that begins where the verdict ends.
//!
//! What the trace names (functions, threads, processes) was chosen by others. It goes into a script
//! only as far as it is made of characters that mean nothing to a debugger.

use crate::args::{DebugArgs, Debugger};
use crate::load;
use anyhow::{Context, Result};
use hangdog_diagnose::diagnose;
use hangdog_diagnose::verdict::Verdict;
use hangdog_report::answers_file;
use hangdog_report::format;
use hangdog_report::rank;
use hangdog_report::which::choose;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

/// Writes the script.
pub fn run(args: &DebugArgs) -> Result<()> {
    let case = load::case(&args.trace)?;
    let evidence = case.evidence();
    let (problems, _) = rank::problems(&case, &evidence);
    let (chosen, _) = choose(&args.which.wanted(), &evidence, &case.recording, &problems)?;
    let answers = answers_file::read(&args.trace)?;
    let good = args.which.baseline.as_deref().map(load::case).transpose()?;
    let baseline = good.as_ref().map(|good| good.evidence());
    let verdict = diagnose(
        &evidence,
        &chosen,
        case.setting(&answers, baseline.as_ref()),
    );
    let lives = lives(verdict.problem.who.pid, &verdict.problem.who.process);
    let script = script(&verdict, args.debugger, lives);
    match &args.output {
        Some(path) => {
            fs::write(path, script).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => std::io::stdout().write_all(script.as_bytes())?,
    }
    Ok(())
}

/// Whether the process still runs, under the name that it had.
fn lives(pid: u32, name: &str) -> bool {
    let now = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    now.trim_end_matches('\n') == name
}

/// A function's name, if a debugger takes it for nothing else.
fn function(name: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '~' | '$' | '.');
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (is_name && name.chars().all(is_plain)).then_some(name)
}

/// Text of a comment or a message in the script.
fn said(text: &str) -> String {
    let text = format::printable(text);
    text.replace(['"', '\\', '\n'], "'")
}

/// A place to stop at.
struct Stop<'v> {
    function: &'v str,
    why: String,
    /// Once is enough.
    once: bool,
}

/// Where the verdict's stacks say that something happened, each function once: the root first, then
/// the way to it, then the waits of open questions.
fn stops(verdict: &Verdict) -> Vec<Stop<'_>> {
    let mut stops: Vec<Stop<'_>> = Vec::new();
    let root = verdict.root.function.as_deref().and_then(function);
    if let Some(function) = root {
        let why = format!("root: {} here", said(&verdict.root.who.thread));
        stops.push(Stop {
            function,
            why,
            once: false,
        });
    }
    for step in &verdict.path {
        let own = step.own_frame.and_then(|at| step.stack.get(at));
        if let Some(function) = own.and_then(|name| function(name))
            && stops.iter().all(|known| known.function != function)
        {
            let why = format!("{} {}", said(&step.who.thread), said(&step.doing));
            stops.push(Stop {
                function,
                why,
                once: false,
            });
        }
    }
    for question in verdict.questions.iter().filter(|it| it.answer.is_none()) {
        let named = question.at.iter().find_map(|name| function(name));
        if let Some(function) = named
            && stops.iter().all(|known| known.function != function)
        {
            let why = format!("question {}: {}", question.number, said(&question.text));
            stops.push(Stop {
                function,
                why,
                once: true,
            });
        }
    }
    stops
}

/// The threads whose stacks matter, the root's first.
fn threads(verdict: &Verdict) -> Vec<(u32, u32)> {
    let mut threads = vec![(verdict.root.who.pid, verdict.root.who.tid)];
    for step in verdict.path.iter().rev() {
        if !threads.contains(&(step.who.pid, step.who.tid)) {
            threads.push((step.who.pid, step.who.tid));
        }
    }
    threads
}

fn script(verdict: &Verdict, debugger: Debugger, lives: bool) -> String {
    let mut text = String::new();
    let pid = verdict.problem.who.pid;
    let use_it = match (debugger, lives) {
        (Debugger::Gdb, true) => "sudo gdb -x SCRIPT".to_owned(),
        (Debugger::Gdb, false) => "gdb -x SCRIPT --args PROGRAM ARGUMENTS, then: run".to_owned(),
        (Debugger::Lldb, true) => "sudo lldb -s SCRIPT".to_owned(),
        (Debugger::Lldb, false) => "lldb -s SCRIPT -- PROGRAM ARGUMENTS, then: run".to_owned(),
    };
    // Writing to a String does not fail.
    let _ = writeln!(text, "# {}\n# {use_it}", said(&verdict.sentence));
    let own: Vec<u32> = (threads(verdict).into_iter())
        .filter(|&(of, _)| of == pid)
        .map(|(_, tid)| tid)
        .collect();
    for (of, tid) in threads(verdict).into_iter().filter(|&(of, _)| of != pid) {
        let _ = writeln!(
            text,
            "# thread {tid} of process {of} is on the way too: attach to that in another debugger"
        );
    }
    match debugger {
        Debugger::Gdb => {
            text.push_str("set pagination off\nset breakpoint pending on\n");
            if lives {
                let _ = writeln!(text, "attach {pid}");
                text.push_str("python\n");
                let _ = writeln!(text, "for tid in {own:?}:");
                text.push_str(
                    "    for thread in gdb.selected_inferior().threads():\n        \
                     if thread.ptid[1] == tid:\n            \
                     thread.switch()\n            \
                     print('thread %d (%s)' % (tid, thread.name))\n            \
                     gdb.execute('backtrace')\nend\n",
                );
            }
            for stop in stops(verdict) {
                let kind = if stop.once { "tbreak" } else { "break" };
                let _ = writeln!(text, "{kind} {}", stop.function);
                let _ = writeln!(text, "commands\necho {}\\n\nbacktrace\nend", stop.why);
            }
        }
        Debugger::Lldb => {
            if lives {
                let _ = writeln!(text, "process attach --pid {pid}");
                text.push_str("thread backtrace all\n");
            }
            for stop in stops(verdict) {
                let once = if stop.once { " --one-shot true" } else { "" };
                let _ = writeln!(text, "# {}", stop.why);
                let _ = writeln!(
                    text,
                    "breakpoint set{once} --name {} --command \"thread backtrace\"",
                    stop.function
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a trace calls a function becomes a debugger's word only if it can be nothing else.
    #[test]
    fn names_are_no_commands() {
        for name in ["wait_for_flag", "app::Queue::~Queue", "f.constprop.0"] {
            assert_eq!(function(name), Some(name));
        }
        for name in [
            "",
            "a\nshell rm",
            "f;g",
            "f if system(1)",
            "[libc]",
            "0x12",
            "a\"b",
        ] {
            assert_eq!(function(name), None, "{name}");
        }
        assert!(!said("a\nb\\n\"%n").contains(['"', '\\', '\n']));
    }
}
