//! One line on standard error that changes, where that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// How often the line changes: what changes faster cannot be read.
const PERIOD: Duration = Duration::from_millis(100);

/// The line; without a terminal there is none. It is gone when it is dropped.
pub struct StatusLine {
    bar: Option<ProgressBar>,
    shown: Option<Instant>,
}

impl StatusLine {
    /// A line that shows nothing yet.
    pub fn new() -> StatusLine {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
            match ProgressStyle::with_template("{spinner} {msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        StatusLine { bar, shown: None }
    }

    /// Whether there is a terminal that it shows on.
    pub fn is_on(&self) -> bool {
        self.bar.is_some()
    }

    /// Shows a text, unless the last one is too recent.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        let fresh = self.shown.is_some_and(|shown| shown.elapsed() < PERIOD);
        if let Some(bar) = self.bar.as_ref().filter(|_| !fresh) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.set_message(text());
            bar.tick();
            self.shown = Some(Instant::now());
        }
    }

    /// Says something that stays, in a line of its own.
    pub fn tell(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say!("hangdog: {text}")),
            None => say!("hangdog: {text}"),
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}
