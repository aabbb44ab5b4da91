//! Words and numbers in the picture: units that people read, and text that XML can hold.

use plotters::prelude::*;
use plotters::style::FontFamily;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Text of so many pixels (plotters' sizes are of the whole line), anchored at its left top.
pub(super) fn style(pixels: f64, color: RGBColor) -> TextStyle<'static> {
    font(pixels, FontStyle::Normal).color(&color)
}

/// The same in bold.
pub(super) fn bold(pixels: f64, color: RGBColor) -> TextStyle<'static> {
    font(pixels, FontStyle::Bold).color(&color)
}

fn font(pixels: f64, style: FontStyle) -> FontDesc<'static> {
    FontDesc::new(FontFamily::SansSerif, pixels * 1.24, style)
}

/// Left, at the middle of its height.
pub(super) const LEFT_MIDDLE: Pos = Pos {
    h_pos: HPos::Left,
    v_pos: VPos::Center,
};
/// Right, at the middle of its height.
pub(super) const RIGHT_MIDDLE: Pos = Pos {
    h_pos: HPos::Right,
    v_pos: VPos::Center,
};

/// How wide text of so many pixels becomes at most, roughly: the viewer chooses the font.
pub(super) fn width(text: &str, pixels: f64) -> f64 {
    text.chars().count() as f64 * pixels * 0.6
}

/// Without what XML cannot hold or what breaks lines, and no longer than `letters`.
pub(super) fn plain(text: &str, letters: usize) -> String {
    let holds = |letter: char| !letter.is_control() && !matches!(letter, '\u{fffe}' | '\u{ffff}');
    let mut plain: String = text
        .chars()
        .map(|letter| if holds(letter) { letter } else { ' ' })
        .take(letters + 1)
        .collect();
    if let Some((end, _)) = plain.char_indices().nth(letters) {
        plain.truncate(end);
        plain.pop();
        plain.push('…');
    }
    plain
}

/// `1.3 µs`.
pub(super) fn time(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// `10 GB/s`.
pub(super) fn rate(bytes_per_second: f64) -> String {
    let units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
    scaled(bytes_per_second, 1000.0, &units)
}

/// `4 KiB`.
pub(super) fn size(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    scaled(bytes, 1024.0, &units)
}

fn scaled(value: f64, each: f64, units: &[&str]) -> String {
    // A power of ten that was computed may be a little less than it is.
    let mut value = value * (1.0 + 1e-9);
    let mut left = units;
    while let [_, rest @ ..] = left
        && !rest.is_empty()
        && value >= each
    {
        value /= each;
        left = rest;
    }
    format!("{} {}", number(value), left.first().unwrap_or(&""))
}

/// Three digits, without zeros at the end.
fn number(value: f64) -> String {
    if value != 0.0 && !(0.001..10_000.0).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    let decimals = (2 - value.abs().max(1e-3).log10().floor() as i32).max(0);
    let digits = format!("{value:.*}", decimals as usize);
    match digits.split_once('.') {
        Some(_) => digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
        None => digits,
    }
}

/// `2026-11-22 07:15 UTC`, of seconds since 1970.
pub(super) fn utc(seconds: u64) -> String {
    let (minutes, mut days) = (seconds / 60 % 1440, seconds / 86_400);
    // The calendar repeats every 400 years, which have 146,097 days.
    let mut year = 1970 + days / 146_097 * 400;
    days %= 146_097;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, day) = (minutes / 60, minutes % 60, days + 1);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// Left edges of labels that want to be centred at some places and are so wide, ascending by place:
/// moved apart where they would touch, and kept between `from` and `to` as far as they fit.
pub(super) fn apart(wanted: &[(f64, f64)], from: f64, to: f64) -> Vec<f64> {
    const GAP: f64 = 8.0;
    let mut free = from;
    let mut lefts: Vec<f64> = wanted
        .iter()
        .map(|(center, width)| {
            let left = (center - width / 2.0).max(free);
            free = left + width + GAP;
            left
        })
        .collect();
    let mut free = to;
    for (left, (_, width)) in lefts.iter_mut().zip(wanted).rev() {
        *left = left.min(free - width);
        free = *left - GAP;
    }
    lefts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units change at a thousand, or at 1024, and numbers have no needless digits.
    #[test]
    fn units_are_those_that_people_read() {
        assert_eq!(time(1.0), "1 ns");
        assert_eq!(time(10f64.powf(3.0)), "1 µs");
        assert_eq!(time(0.5), "0.5 ns");
        assert_eq!(time(1.234), "1.23 ns");
        assert_eq!(time(118.4), "118 ns");
        assert_eq!(time(2.5e6), "2.5 ms");
        assert_eq!(time(2e11), "200 s");
        assert_eq!(rate(2e10), "20 GB/s");
        assert_eq!(size(4096.0), "4 KiB");
        assert_eq!(size(57344.0), "56 KiB");
        assert_eq!(size(1.0), "1 B");
        assert_eq!(size(1024.0 * 1024.0 * 1.5), "1.5 MiB");
        assert_eq!(size(2f64.powi(64)), "16 EiB");
    }

    /// Dates that can be looked up: a leap day, the last of a year, the first of all.
    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_826_154), "2000-02-29 12:09 UTC");
        assert_eq!(utc(1_735_689_599), "2024-12-31 23:59 UTC");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    /// Letters that no XML may have become spaces, and what is too long is cut.
    #[test]
    fn text_is_what_xml_can_hold() {
        assert_eq!(plain("a\0b\u{1b}c\nd\u{ffff}", 20), "a b c d ");
        assert_eq!(plain("abcdef", 6), "abcdef");
        assert_eq!(plain("äöüßéè", 4), "äöü…");
    }

    /// Labels that would touch are moved apart, others stay, and the last does not leave the end.
    #[test]
    fn labels_are_moved_apart() {
        assert_eq!(
            apart(&[(50.0, 20.0), (100.0, 20.0)], 0.0, 200.0),
            [40.0, 90.0]
        );
        assert_eq!(
            apart(&[(50.0, 20.0), (55.0, 20.0)], 0.0, 200.0),
            [40.0, 68.0]
        );
        assert_eq!(apart(&[(2.0, 20.0)], 0.0, 200.0), [0.0]);
        assert_eq!(
            apart(&[(190.0, 20.0), (199.0, 20.0)], 0.0, 200.0),
            [152.0, 180.0]
        );
    }
}
