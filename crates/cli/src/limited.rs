//! What may take only so long, as people type it: a thread and how long it may block
//! (`render:500ms`, `app/main loop:2s`), a region and how long it may take (`frame:50ms`).

use hangdog_report::units::Span;
use std::str::FromStr;

/// Something with a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited<T> {
    /// What.
    pub what: T,
    /// After how long it is a hang.
    pub limit: Span,
}

impl<T: FromStr<Err = &'static str>> FromStr for Limited<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Limited<T>, String> {
        // A name can hold colons, a time cannot.
        let Some((names, limit)) = text.rsplit_once(':') else {
            return Err("give NAME:DURATION, as render:500ms".to_owned());
        };
        Ok(Limited {
            what: names.parse().map_err(str::to_owned)?,
            limit: limit
                .parse()
                .map_err(|why: hangdog_report::units::UnitError| why.to_string())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangdog_watch::budgets::RegionName;
    use hangdog_watch::stalls::Selector;

    /// Names may contain colons; incomplete forms are refused.
    #[test]
    fn forms() {
        let stall = |text: &str| text.parse::<Limited<Selector>>();
        let colons = stall("a:b:2s").expect("a stall");
        assert_eq!(colons.what, "a:b".parse().expect("a name"));
        assert_eq!(colons.limit.ns(), 2_000_000_000);
        for text in ["render", "render:", "render:5", ":2s", "app/:2s"] {
            assert!(stall(text).is_err(), "{text}");
        }
        let region = |text: &str| text.parse::<Limited<RegionName>>();
        assert_eq!(region("GET /a:1s").expect("a region").what.0, "GET /a");
        assert!(region(":1s").is_err());
    }
}
