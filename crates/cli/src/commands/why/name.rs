//! A thread's name as the text of a verdict has it.

use hangdog_diagnose::verdict::Who;
use hangdog_report::format;

/// A thread with its process and tid.
pub fn name(who: &Who) -> String {
    let script = match &who.script {
        Some(script) => format!(" {script}"),
        None => String::new(),
    };
    let text = match who.process == who.thread {
        true => format!("{}{script}", who.thread),
        false => format!("{}{script}/{}", who.process, who.thread),
    };
    format!("{} ({})", format::printable(&text), who.tid)
}
