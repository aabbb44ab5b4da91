//! What a track is called.

use hangdog_trace::ids::Utid;
use std::fmt;
use std::str::FromStr;

/// What a track shows: `t12` is the thread with utid 12, `s12` its system calls, `c0` CPU 0, `r0` the first
/// name of regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrackId {
    /// A thread's states.
    Thread(Utid),
    /// What a CPU ran.
    Cpu(u16),
    /// The regions of one name, by its place in the list of them.
    Region(u16),
    /// A thread's system calls.
    Calls(Utid),
}

impl fmt::Display for TrackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrackId::Thread(utid) => write!(f, "t{utid}"),
            TrackId::Cpu(cpu) => write!(f, "c{cpu}"),
            TrackId::Region(number) => write!(f, "r{number}"),
            TrackId::Calls(utid) => write!(f, "s{utid}"),
        }
    }
}

impl FromStr for TrackId {
    type Err = String;

    fn from_str(text: &str) -> Result<TrackId, String> {
        let wrong = || {
            format!(
                "'{text}' is not a track: give t or s and a utid, c and a CPU, or r and the number of a name"
            )
        };
        let (kind, number) = text.split_at_checked(1).ok_or_else(wrong)?;
        match kind {
            "t" => number.parse().map(TrackId::Thread).map_err(|_| wrong()),
            "c" => number.parse().map(TrackId::Cpu).map_err(|_| wrong()),
            "r" => number.parse().map(TrackId::Region).map_err(|_| wrong()),
            "s" => number.parse().map(TrackId::Calls).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}
