//! Times, durations and sizes as people type them.

use std::fmt;
use std::str::FromStr;

/// A length of time: `10s`, `1.5ms`, `2m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(u64);

/// A point in a trace's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So many ns after the trace's start: `1.234s`.
    At(u64),
    /// So many ns after where it is counted from: `+5ms`.
    After(u64),
    /// The trace's end: `end`.
    End,
}

/// An amount of memory: `32M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(u64);

/// What is wrong with what was typed, and how to type it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a number followed by a unit of time.
    #[error("not a time: give a number with its unit (ns, us, ms, s, m, h), as 1.234s or 5ms")]
    Time,
    /// A number alone.
    #[error("a time needs its unit (ns, us, ms, s, m, h), as 1.234s or 5ms")]
    NoUnit,
    /// Not an amount of memory.
    #[error("not a size: give a number with K, M or G, as 128M")]
    Size,
    /// More than 64 bits hold.
    #[error("too large")]
    TooLarge,
}

impl Span {
    /// Its length, ns.
    pub fn ns(self) -> u64 {
        self.0
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Span, UnitError> {
        parse_ns(text).map(Span)
    }
}

impl FromStr for Moment {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Moment, UnitError> {
        match text.strip_prefix('+') {
            _ if text == "end" => Ok(Moment::End),
            Some(text) => parse_ns(text).map(Moment::After),
            None => parse_ns(text).map(Moment::At),
        }
    }
}

impl Moment {
    /// The time in ns since the trace's start, for a trace that ends at `end`; `+` counts from
    /// `base`.
    pub fn resolve(self, base: u64, end: u64) -> u64 {
        match self {
            Moment::At(ns) => ns,
            Moment::After(ns) => base.saturating_add(ns),
            Moment::End => end,
        }
    }
}

impl Size {
    /// How much, bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = UnitError;

    /// Units are powers of 1024, as memory has them; a bare number is bytes.
    fn from_str(text: &str) -> Result<Size, UnitError> {
        let (number, unit) = split(text);
        let shift = match unit.to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            _ => return Err(UnitError::Size),
        };
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(UnitError::Size);
        }
        let number: u64 = number.parse().map_err(|_| UnitError::TooLarge)?;
        number
            .checked_mul(1 << shift)
            .map(Size)
            .ok_or(UnitError::TooLarge)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.trailing_zeros() {
            _ if self.0 == 0 => f.write_str("0"),
            30.. => write!(f, "{}G", self.0 >> 30),
            20.. => write!(f, "{}M", self.0 >> 20),
            10.. => write!(f, "{}K", self.0 >> 10),
            _ => write!(f, "{}", self.0),
        }
    }
}

/// Number and unit; a blank between them is allowed, because reports print one.
fn split(text: &str) -> (&str, &str) {
    let unit = text
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    (number, unit.trim())
}

/// A time in ns, exactly; what is finer than a nanosecond is cut off.
fn parse_ns(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text);
    let scale: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" if !number.is_empty() => return Err(UnitError::NoUnit),
        _ => return Err(UnitError::Time),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return Err(UnitError::Time);
    }
    let whole: u64 = match whole {
        "" => 0,
        _ => whole.parse().map_err(|_| UnitError::TooLarge)?,
    };
    // An hour in ns has 13 digits: no more of the fraction can matter.
    let (mut part, mut divisor) = (0u128, 1u128);
    for digit in fraction.bytes().take(13) {
        part = part * 10 + u128::from(digit - b'0');
        divisor *= 10;
    }
    let part = (part * u128::from(scale) / divisor) as u64;
    whole
        .checked_mul(scale)
        .and_then(|ns| ns.checked_add(part))
        .ok_or(UnitError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str) -> Result<u64, UnitError> {
        text.parse().map(Span::ns)
    }

    /// Every unit, with and without a fraction, exactly.
    #[test]
    fn times() {
        assert_eq!(ns("1.234s"), Ok(1_234_000_000));
        assert_eq!(ns("52.1 ms"), Ok(52_100_000));
        assert_eq!(ns("98us"), Ok(98_000));
        assert_eq!(ns("98µs"), Ok(98_000));
        assert_eq!(ns("7ns"), Ok(7));
        assert_eq!(ns("2m"), Ok(120_000_000_000));
        assert_eq!(ns("1.5h"), Ok(5_400_000_000_000));
        assert_eq!(ns(".5s"), Ok(500_000_000));
        assert_eq!(ns("0.1234567899s"), Ok(123_456_789));
    }

    /// What is no time is refused, and for the right reason.
    #[test]
    fn no_times() {
        assert_eq!(ns("10"), Err(UnitError::NoUnit));
        assert_eq!(ns("0"), Err(UnitError::NoUnit));
        for text in [
            "", "s", ".s", "1..2s", "1.2.3s", "-1s", "1 parsec", "1e3s", "+1s",
        ] {
            assert_eq!(ns(text), Err(UnitError::Time), "{text}");
        }
        assert_eq!(ns("99999999999999s"), Err(UnitError::TooLarge));
        assert_eq!(ns("99999999999999999999999s"), Err(UnitError::TooLarge));
    }

    /// A moment counts from the trace's start, from its base, or is the end.
    #[test]
    fn moments() {
        let at = |text: &str| text.parse::<Moment>().map(|m| m.resolve(1_000, 9_000));
        assert_eq!(at("5us"), Ok(5_000));
        assert_eq!(at("+5us"), Ok(6_000));
        assert_eq!(at("end"), Ok(9_000));
        assert_eq!(at("++5us"), Err(UnitError::Time));
        assert_eq!(at("ending"), Err(UnitError::Time));
    }

    /// Sizes count in powers of 1024, and print as they are typed.
    #[test]
    fn sizes() {
        let bytes = |text: &str| text.parse().map(Size::bytes);
        assert_eq!(bytes("32M"), Ok(33_554_432));
        assert_eq!(bytes("1GiB"), Ok(1_073_741_824));
        assert_eq!(bytes("4k"), Ok(4_096));
        assert_eq!(bytes("100"), Ok(100));
        for text in ["", "M", "1.5M", "32X", "-1M"] {
            assert_eq!(bytes(text), Err(UnitError::Size), "{text}");
        }
        assert_eq!(bytes("99999999999G"), Err(UnitError::TooLarge));
        for text in ["32M", "128M", "2G", "4K", "100", "0"] {
            assert_eq!(text.parse::<Size>().map(|s| s.to_string()), Ok(text.into()));
        }
    }
}
