//! Figures and names as reports print them.

use std::borrow::Cow;

/// A duration: three figures in ns, µs and ms, and ms of whole seconds; no idle zeros.
pub fn duration(ns: u64) -> String {
    // Unit, its length in ns, and the digits behind the point for each range of it.
    const STEPS: [(u64, u64, u32, &str); 7] = [
        (1_000, 1, 0, "ns"),
        (10_000, 1_000, 2, "µs"),
        (100_000, 1_000, 1, "µs"),
        (1_000_000, 1_000, 0, "µs"),
        (10_000_000, 1_000_000, 2, "ms"),
        (100_000_000, 1_000_000, 1, "ms"),
        (1_000_000_000, 1_000_000, 0, "ms"),
    ];
    for (below, unit, digits, name) in STEPS {
        let step = unit / 10u64.pow(digits);
        let rounded = ns.saturating_add(step / 2) / step * step;
        if rounded < below {
            return format!("{} {name}", fraction(rounded, unit, digits));
        }
    }
    let rounded = ns.saturating_add(500_000) / 1_000_000 * 1_000_000;
    format!("{} s", fraction(rounded, 1_000_000_000, 3))
}

/// `value / unit` with at most so many digits behind the point, without trailing zeros.
fn fraction(value: u64, unit: u64, digits: u32) -> String {
    let text = format!(
        "{}.{:0width$}",
        value / unit,
        value % unit / (unit / 10u64.pow(digits)),
        width = digits as usize
    );
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// A point in time: seconds to the microsecond, so that a column of them lines up.
pub fn moment(ns: u64) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// A share of a whole, in percent; what is there is never shown as nothing.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0 %".into();
    }
    let share = part as f64 * 100.0 / whole as f64;
    match share {
        s if s < 0.05 => "<0.1 %".into(),
        s if s >= 99.95 => "100 %".into(),
        s => format!("{s:.1} %"),
    }
}

/// An amount of bytes in SI units.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1_000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1_000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number with its thousands apart.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things, with the word in its number.
pub fn things(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A text from a trace as a terminal may show it. Threads and files can be named anything; a
/// name must not move the cursor or change the colours.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    text.chars()
        .map(|c| match c.is_control() {
            true => char::REPLACEMENT_CHARACTER,
            false => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Durations of every size, and where rounding reaches the next unit.
    #[test]
    fn durations() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (1_234, "1.23 µs"),
            (98_000, "98 µs"),
            (98_760, "98.8 µs"),
            (999_499, "999 µs"),
            (999_500, "1 ms"),
            (52_100_000, "52.1 ms"),
            (9_996_000, "10 ms"),
            (523_400_000, "523 ms"),
            (999_600_000, "1 s"),
            (1_234_000_000, "1.234 s"),
            (1_234_567_890, "1.235 s"),
            (100_000_000_000, "100 s"),
            (u64::MAX, "18446744073.709 s"),
        ] {
            assert_eq!(duration(ns), text, "{ns}");
        }
    }

    /// Control characters do not reach the terminal.
    #[test]
    fn names() {
        assert_eq!(printable("worker/0 é"), "worker/0 é");
        assert_eq!(printable("a\x1b[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
    }

    /// Points in time to the microsecond, cut and not rounded: a time printed is never later
    /// than the event.
    #[test]
    fn moments() {
        assert_eq!(moment(0), "0.000000 s");
        assert_eq!(moment(1_234_567_999), "1.234567 s");
    }

    /// Shares: what is small is not shown as nothing, and nothing of nothing is nothing.
    #[test]
    fn percents() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(1, 1_000_000), "<0.1 %");
        assert_eq!(percent(0, 5), "0 %");
        assert_eq!(percent(5, 5), "100 %");
        assert_eq!(percent(0, 0), "0 %");
    }

    /// Amounts in SI units, and numbers in groups of three.
    #[test]
    fn amounts() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_000), "1.0 kB");
        assert_eq!(bytes(12_345_678), "12.3 MB");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123), "123");
        assert_eq!(things(1, "thread", "threads"), "1 thread");
        assert_eq!(things(2_000, "thread", "threads"), "2,000 threads");
    }
}
