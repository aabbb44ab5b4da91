//! Which threads and which time a person means.

use crate::format;
use crate::units::Moment;
use anyhow::{Result, bail};
use hangdog_timeline::Timeline;
use hangdog_trace::Threads;
use hangdog_trace::ids::{Upid, Utid};
use serde::Serialize;
use std::fmt::Write;

/// The trace has none of what was asked for: exit status 1.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NothingFound(String);

impl NothingFound {
    /// What there is none of, in a sentence.
    pub fn new(what: impl Into<String>) -> NothingFound {
        NothingFound(what.into())
    }
}

/// A part of a trace's time as it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Since when; the trace's start if left open.
    pub from: Option<Moment>,
    /// Until when; the trace's end if left open.
    pub to: Option<Moment>,
}

/// A part of a trace's time, ns since its start; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Since when.
    pub from: u64,
    /// Up to but without when.
    pub to: u64,
}

impl Window {
    /// What was asked for, of a trace that ends at `end`.
    ///
    /// # Errors
    /// A window that is empty or begins behind the end.
    pub fn new(bounds: impl Into<Bounds>, end: u64) -> Result<Window> {
        let bounds = bounds.into();
        let from = bounds.from.map_or(0, |moment| moment.resolve(0, end));
        let to = bounds.to.unwrap_or(Moment::End).resolve(from, end).min(end);
        if from > 0 && from >= end {
            bail!(
                "--from is at {}, and the trace ends at {}",
                format::moment(from),
                format::moment(end)
            );
        }
        if end > 0 && from >= to {
            bail!(
                "--from is at {} and --to at {}: give a --to that is later",
                format::moment(from),
                format::moment(to)
            );
        }
        Ok(Window { from, to })
    }
}

/// Who a thread is, as reports name it.
#[derive(Serialize, Clone, Debug, PartialEq, Eq)]
pub struct Who<'a> {
    /// Name of its process.
    pub process: &'a str,
    /// The kernel's process id.
    pub pid: u32,
    /// Its name.
    pub thread: &'a str,
    /// The kernel's thread id.
    pub tid: u32,
    /// Id within the trace.
    pub utid: Utid,
}

impl<'a> Who<'a> {
    /// Of a thread of these.
    pub fn new(threads: &'a Threads, utid: Utid) -> Who<'a> {
        let thread = threads.thread(utid);
        Who {
            process: &threads.process(thread.upid).name,
            pid: thread.pid,
            thread: thread.name(),
            tid: thread.tid,
            utid,
        }
    }

    /// `process/thread (tid)`.
    pub fn text(&self) -> String {
        let name = format!("{}/{}", self.process, self.thread);
        format!("{} ({})", format::printable(&name), self.tid)
    }
}

/// The threads that `selector` means, among those that live within the window.
///
/// # Errors
/// [`NothingFound`] if there is none.
pub fn threads(
    threads: &Threads,
    timeline: &Timeline,
    window: Window,
    selector: &str,
) -> Result<Vec<Utid>> {
    let found = threads.find(selector);
    if found.is_empty() {
        return Err(NothingFound(format!(
            "no thread is named or numbered '{selector}'; hangdog threads lists them"
        ))
        .into());
    }
    let living: Vec<Utid> = found
        .iter()
        .copied()
        .filter(|&utid| {
            let life = timeline.life(utid);
            life.start < window.to && window.from < life.end
        })
        .collect();
    if living.is_empty() {
        return Err(NothingFound(format!("'{selector}' does not live within the window")).into());
    }
    Ok(living)
}

/// The one thread that `selector` means within the window.
///
/// # Errors
/// [`NothingFound`] if there is none; a list to choose from if there are several.
pub fn thread(all: &Threads, timeline: &Timeline, window: Window, selector: &str) -> Result<Utid> {
    const SHOWN: usize = 20;
    let found = threads(all, timeline, window, selector)?;
    if let [only] = found[..] {
        return Ok(only);
    }
    let mut message = format!(
        "'{selector}' may be any of {} threads; give the tid, or process/thread:",
        found.len()
    );
    for &utid in found.iter().take(SHOWN) {
        let (who, life) = (Who::new(all, utid), timeline.life(utid));
        // Writing to a string does not fail.
        let _ = write!(
            message,
            "\n  tid {:<8} {}/{}, alive from {} to {}",
            who.tid,
            format::printable(who.process),
            format::printable(who.thread),
            format::moment(life.start),
            format::moment(life.end)
        );
    }
    if found.len() > SHOWN {
        let _ = write!(message, "\n  and {} more", found.len() - SHOWN);
    }
    bail!(message)
}

/// The processes that `selector` means ([`Threads::find_processes`]).
///
/// # Errors
/// [`NothingFound`] if there is none.
pub fn processes(threads: &Threads, selector: &str) -> Result<Vec<Upid>> {
    let found = threads.find_processes(selector);
    if found.is_empty() {
        return Err(NothingFound(format!(
            "no process is named or numbered '{selector}'; hangdog threads lists them"
        ))
        .into());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(from: Option<&str>, to: Option<&str>) -> Option<(u64, u64)> {
        let parse = |text: &str| text.parse().expect("a moment");
        let args = Bounds {
            from: from.map(parse),
            to: to.map(parse),
        };
        let window = Window::new(args, 10_000_000).ok()?;
        Some((window.from, window.to))
    }

    /// The whole trace unless told otherwise; `+` counts from --from; the end is not passed.
    #[test]
    fn windows() {
        assert_eq!(window(None, None), Some((0, 10_000_000)));
        assert_eq!(window(Some("2ms"), None), Some((2_000_000, 10_000_000)));
        assert_eq!(
            window(Some("+2ms"), Some("+3ms")),
            Some((2_000_000, 5_000_000))
        );
        assert_eq!(window(None, Some("+3ms")), Some((0, 3_000_000)));
        assert_eq!(window(None, Some("1s")), Some((0, 10_000_000)));
        assert_eq!(
            window(Some("9ms"), Some("end")),
            Some((9_000_000, 10_000_000))
        );
    }

    /// A window without any time in it is refused.
    #[test]
    fn no_windows() {
        assert_eq!(window(Some("5ms"), Some("5ms")), None);
        assert_eq!(window(Some("5ms"), Some("4ms")), None);
        assert_eq!(window(Some("10ms"), None), None);
        assert_eq!(window(Some("end"), None), None);
        assert_eq!(window(None, Some("0ns")), None);
    }
}
