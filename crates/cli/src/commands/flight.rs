//! `hangdog flight`: continuous recording into memory, saved on request.
//!
//! It speaks on standard error alone: on a terminal one line that changes, elsewhere (a journal) a
//! line when there is something new.

use crate::args::FlightArgs;
use crate::probes;
use crate::status::StatusLine;
use crate::yardstick;
use anyhow::Result;
use hangdog_capture::flight::{Listeners, Status, fly, socket_path};
use hangdog_capture::{CallsOf, Options};
use hangdog_report::format;
use std::time::Duration;

/// Records until a signal asks to stop.
pub fn run(args: &FlightArgs) -> Result<()> {
    let options = options(args)?;
    let socket = socket_path();
    let mut line = StatusLine::new();
    let mut told: Option<Status> = None;
    let show = |status| {
        // The first status means that recording has begun.
        if told.is_none() {
            line.tell(&format!(
                "recording into {} of memory; `hangdog snap` saves its contents (socket {}), \
                 Ctrl-C stops",
                args.memory,
                socket.display()
            ));
        }
        if line.is_on() {
            line.show(|| text(status));
        } else {
            report(told, status, &line);
        }
        told = Some(status);
    };
    let listeners = Listeners {
        begun: Box::new(|| Ok(())),
        status: Box::new(show),
        names: &[],
        followed: Box::new(|_| {}),
    };
    fly(&options, &socket, listeners)?;
    line.clear();
    Ok(())
}

/// What is to be recorded.
///
/// # Errors
/// If a probe cannot be.
pub fn options(args: &FlightArgs) -> Result<Options> {
    Ok(Options {
        memory: args.memory.bytes(),
        unwind_memory: args.unwind_memory.bytes(),
        stacks: !args.no_stacks,
        sample_hz: if args.no_stacks { 0 } else { args.sample },
        transfers: false,
        calls: CallsOf::default(),
        faults: false,
        yardstick: yardstick::of_this_machine(),
        flags: Vec::new(),
        probes: probes::probes(&args.probes)?,
    })
}

/// Tells what is new since the last time.
fn report(before: Option<Status>, now: Status, line: &StatusLine) {
    if now.full && !before.is_some_and(|before| before.full) {
        let holds = holds(now.holds);
        line.tell(&format!("the ring holds {holds} at the present rate"));
    }
    let taken = before.map_or(0, |before| before.snapshots);
    for number in taken + 1..=now.snapshots {
        line.tell(&format!(
            "snapshot {number} of the last {}",
            holds(now.holds)
        ));
    }
}

fn text(status: Status) -> String {
    let all = if status.full {
        ""
    } else {
        ", all since the start"
    };
    let snapshots = format::things(status.snapshots, "snapshot", "snapshots");
    format!("the ring holds {}{all}; {snapshots}", holds(status.holds))
}

/// How far back a ring reaches: whole seconds say enough, except of less than ten.
pub fn holds(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the ring holds is told to the tenth while that matters.
    #[test]
    fn held_time() {
        assert_eq!(holds(Duration::from_millis(420)), "0.4 s");
        assert_eq!(holds(Duration::from_millis(42_900)), "42 s");
    }
}
