//! A new trace: its name, and the line that is printed when it is saved.

use hangdog_capture::clock;
use hangdog_report::format;
use hangdog_trace::Trace;
use std::path::{Path, PathBuf};

/// The name of a trace that was given none, by the local time.
pub fn default_path() -> PathBuf {
    PathBuf::from(format!("hangdog-{}.hang", clock::stamp(clock::now())))
}

/// A trace that has been written.
pub struct Saved<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// Events in it.
    pub events: u64,
    /// How long a time it covers, ns.
    pub duration_ns: u64,
    /// Records lost; none if that is not known.
    pub lost: Option<u64>,
    /// The commands that are proposed; `why` where there are none.
    pub next: &'a [String],
}

impl Saved<'_> {
    /// Says in one line on standard error what there is now and what can be done with it.
    pub fn tell(&self) {
        say!("hangdog: {}", self.text(size(self.path)));
    }

    fn text(&self, bytes: Option<u64>) -> String {
        let mut parts = vec![
            format::things(self.events, "event", "events"),
            format::duration(self.duration_ns),
        ];
        parts.extend(bytes.map(format::bytes));
        parts.extend(self.lost.map(|lost| match lost {
            0 => "no loss".into(),
            lost => format!("{} lost", format::things(lost, "record", "records")),
        }));
        let path = self.path.display();
        let next = match self.next {
            [] => format!("hangdog why {path}"),
            commands => {
                let commands = commands.iter();
                let commands = commands.map(|command| format!("hangdog {command} {path}"));
                commands.collect::<Vec<_>>().join(", ")
            }
        };
        format!("{path}: {}; next: {next}", parts.join(", "))
    }
}

/// What the trace takes on disk; none if it cannot be read, as that of another user's recorder.
fn size(path: &Path) -> Option<u64> {
    let tables = Trace::open(path)
        .and_then(|trace| trace.tables_info())
        .ok()?;
    Some(tables.iter().map(|table| table.bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The closing line states events, length, size, loss and what to do next.
    #[test]
    fn closing_line() {
        let mut saved = Saved {
            path: Path::new("a.hang"),
            events: 1_234,
            duration_ns: 3_400_000_000,
            lost: Some(0),
            next: &[],
        };
        assert_eq!(
            saved.text(Some(12_345)),
            "a.hang: 1,234 events, 3.4 s, 12.3 kB, no loss; next: hangdog why a.hang"
        );
        saved.lost = Some(7);
        assert_eq!(
            saved.text(None),
            "a.hang: 1,234 events, 3.4 s, 7 records lost; next: hangdog why a.hang"
        );
        let next = ["paging".to_owned(), "threads --sort waiting".to_owned()];
        saved.next = &next;
        let text = saved.text(None);
        assert!(
            text.ends_with("; next: hangdog paging a.hang, hangdog threads --sort waiting a.hang"),
            "{text}"
        );
    }
}
