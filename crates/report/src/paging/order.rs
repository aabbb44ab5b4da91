//! Which functions of a file an operation executed, in the order in which they were first seen: a linker
//! that puts them side by side in that order leaves fewer pages to be fetched.

use crate::case::Case;
use crate::select::Window;
use anyhow::Result;
use hangdog_trace::ids::{ModuleId, NO_STACK, Utid};
use hangdog_trace::tables::{Faults, Frames, Modules, Stacks};
use hangdog_trace::words::ModuleKind;
use std::collections::{HashMap, HashSet};

/// The places in a file that were executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The file's path.
    pub path: String,
    /// Its build-id in hexadecimal; empty if it has none.
    pub build_id: String,
    /// Offsets in the file, in the order in which they were first seen.
    pub offsets: Vec<u64>,
}

/// The places that chosen threads executed in the window, of the file `name`: its path, or its name without
/// directories. Seen is what stands in the stacks of faults, samples, waits and wakes; a function that none
/// of these met is not there. None where no module has that name.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn order(
    case: &Case,
    name: &str,
    window: Window,
    is_chosen: &dyn Fn(Utid) -> bool,
) -> Result<Option<Order>> {
    let trace = &case.recording.trace;
    let (modules, frames, stacks): (Modules, Frames, Stacks) =
        (trace.read()?, trace.read()?, trace.read()?);
    let faults: Faults = trace.read()?;
    let is_named = |row: &usize| {
        let path = &modules.path[*row];
        let short = path.rsplit('/').next().unwrap_or(path);
        ModuleKind::from(modules.kind[*row]) == ModuleKind::File && (path == name || short == name)
    };
    let Some(row) = (0..modules.module.len()).find(is_named) else {
        return Ok(None);
    };
    let module = modules.module[row];
    let mut seen: Vec<(u64, u32)> = Vec::new();
    let mut see = |ts: u64, thread: Utid, stack: u32| {
        if stack != NO_STACK && (window.from..window.to).contains(&ts) && is_chosen(thread) {
            seen.push((ts, stack));
        }
    };
    for row in 0..faults.ts.len() {
        see(faults.ts[row], faults.thread[row], faults.user_stack[row]);
    }
    let (switches, wakes) = (&case.recording.switches, &case.recording.wakes);
    for row in 0..switches.ts.len() {
        see(
            switches.ts[row],
            switches.prev[row],
            switches.user_stack[row],
        );
    }
    for row in 0..wakes.ts.len() {
        see(wakes.ts[row], wakes.waker[row], wakes.user_stack[row]);
    }
    let samples = &case.samples;
    for row in 0..samples.ts.len() {
        see(
            samples.ts[row],
            samples.thread[row],
            samples.user_stack[row],
        );
    }
    seen.sort_by_key(|&(ts, _)| ts);
    Ok(Some(Order {
        path: modules.path[row].clone(),
        build_id: modules.build_id[row].clone(),
        offsets: offsets(&seen, &stacks, &frames, module),
    }))
}

/// The offsets in a module of all frames of stacks, each once; of a stack the outermost first, since it ran
/// first.
fn offsets(seen: &[(u64, u32)], stacks: &Stacks, frames: &Frames, module: ModuleId) -> Vec<u64> {
    let rows: HashMap<u32, usize> = (stacks.stack.iter().copied()).zip(0..).collect();
    let places: HashMap<u32, u64> = (0..frames.frame.len())
        .filter(|&row| frames.module[row] == module)
        .map(|row| (frames.frame[row], frames.offset[row]))
        .collect();
    let (mut told, mut known) = (HashSet::new(), HashSet::new());
    let mut offsets = Vec::new();
    for (_, stack) in seen {
        if !known.insert(stack) {
            continue;
        }
        let Some(&row) = rows.get(stack) else {
            continue;
        };
        for frame in stacks.frames[row].iter().rev() {
            if let Some(&offset) = places.get(frame)
                && told.insert(offset)
            {
                offsets.push(offset);
            }
        }
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangdog_trace::tables::{Frame, Stack};

    /// The outermost of a stack comes first, each place once, and other files are left out.
    #[test]
    fn places_come_in_the_order_of_their_first_execution() {
        let frame = |frame, module, offset| Frame {
            frame,
            module,
            offset,
        };
        let frames = [
            frame(0, 5, 10),
            frame(1, 5, 20),
            frame(2, 6, 30),
            frame(3, 5, 40),
        ];
        let frames: Frames = frames.into_iter().collect();
        let stack = |stack, frames: &[u32]| Stack {
            stack,
            process: 1,
            frames: frames.to_vec(),
            end: 0,
        };
        let stacks = [stack(1, &[0, 2, 1]), stack(2, &[3, 1])];
        let stacks: Stacks = stacks.into_iter().collect();
        let found = offsets(&[(1, 1), (2, 2), (3, 1), (4, 99)], &stacks, &frames, 5);
        assert_eq!(found, [20, 10, 40]);
    }
}
