//! The probes of programs that a recording is asked for.

use anyhow::{Result, bail};
use hangdog_capture::probe::{self, MOST_PROBES, Probe};

use crate::args::ProbeArgs;

/// What they are in the files of this machine.
///
/// # Errors
/// If there is no such file or function, or there are too many.
pub fn probes(args: &ProbeArgs) -> Result<Vec<Probe>> {
    let mut probes = Vec::new();
    for text in &args.uprobe {
        probes.extend(probe::functions_of(text).map_err(anyhow::Error::msg)?);
    }
    for text in &args.usdt {
        probes.push(probe::static_of(text).map_err(anyhow::Error::msg)?);
    }
    if args.trace_marker {
        probes.push(probe::marker().map_err(anyhow::Error::msg)?);
    }
    if args.event_loops {
        probes.extend(probe::event_loops().map_err(anyhow::Error::msg)?);
    }
    if probes.len() > MOST_PROBES {
        bail!(
            "these are {} probes; at most {MOST_PROBES} can be recorded",
            probes.len()
        );
    }
    Ok(probes)
}
