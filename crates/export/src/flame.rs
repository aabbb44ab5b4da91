//! Flame graphs, drawn by inferno.

use std::io::{self, ErrorKind, Write};

use inferno::flamegraph::color::{BasicPalette, MultiPalette};
use inferno::flamegraph::{self, Options, Palette};

use crate::folded;
use crate::{Fold, Source, View};

/// What a picture has room for: inferno adds without looking at the end of numbers.
const MOST: u64 = 1 << 60;

/// Draws a fold as an SVG picture.
///
/// # Errors
/// What `out` answers; [`ErrorKind::InvalidData`] if there is nothing to draw, or more than a
/// picture has room for, which only a damaged trace has.
pub fn write(
    source: &Source<'_>,
    fold: &Fold,
    title: &str,
    subtitle: &str,
    out: impl Write,
) -> io::Result<()> {
    let lines = folded::lines(source, fold);
    let total = lines.values().fold(0u64, |sum, n| sum.saturating_add(*n));
    if total > MOST {
        let what = "its times are invalid: they add up to centuries";
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    let lines: Vec<String> = lines
        .into_iter()
        .map(|(stack, number)| format!("{stack} {number}"))
        .collect();
    if lines.is_empty() {
        return Err(io::Error::new(ErrorKind::InvalidData, "nothing to draw"));
    }
    let mut options = Options::default();
    options.title = title.into();
    options.subtitle = Some(subtitle.into());
    // Colours follow names, so that a function looks the same in two pictures.
    options.hash = true;
    match fold.view {
        View::OnCpu => {
            // Knows the annotations of the kernel and of inlined functions.
            options.colors = Palette::Multi(MultiPalette::Java);
            options.count_name = "samples".into();
        }
        View::OffCpu | View::Wakes => {
            options.colors = match fold.view {
                View::OffCpu => Palette::Basic(BasicPalette::Blue),
                _ => Palette::Multi(MultiPalette::Wakeup),
            };
            options.count_name = "µs".into();
            options.factor = 0.001;
        }
    }
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
}
