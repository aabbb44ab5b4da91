//! A thread to watch for stalls, as people type it: `render:500ms`, `app/main loop:2s`.

use hangdog_report::units::Span;
use hangdog_watch::stalls::Selector;
use std::str::FromStr;

/// Which threads, and after how long they are stalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    pub selector: Selector,
    pub limit: Span,
}

impl FromStr for Stall {
    type Err = String;

    fn from_str(text: &str) -> Result<Stall, String> {
        // A thread's name can hold colons, a time cannot.
        let Some((names, limit)) = text.rsplit_once(':') else {
            return Err("give THREAD:DURATION, as render:500ms".to_owned());
        };
        Ok(Stall {
            selector: names.parse().map_err(str::to_owned)?,
            limit: limit
                .parse()
                .map_err(|why: hangdog_report::units::UnitError| why.to_string())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names may hold colons; what is missing is said.
    #[test]
    fn forms() {
        let stall = |text: &str| text.parse::<Stall>();
        let colons = stall("a:b:2s").expect("a stall");
        assert_eq!(colons.selector, "a:b".parse().expect("a name"));
        assert_eq!(colons.limit.ns(), 2_000_000_000);
        for text in ["render", "render:", "render:5", ":2s", "app/:2s"] {
            assert!(stall(text).is_err(), "{text}");
        }
    }
}
