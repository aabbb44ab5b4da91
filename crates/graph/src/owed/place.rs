//! Whether two threads are in the same function of their program: who has a lock is often where those are that
//! wait for it, but further on.

use hangdog_trace::ids::StackId;
use hangdog_trace::stacks::ResolvedFrame;

use crate::evidence::Evidence;
use crate::marks::is_named;
use crate::names;

/// So many of a program's functions, from the one that waits outwards, tell the place. Further out are those that
/// all threads of a pool are in.
const NEAR: usize = 3;

/// Whether a thread that waits at `waiting` and another at `stack` are in the same function of their program.
pub(super) fn shares_place(evidence: &Evidence<'_>, waiting: StackId, stack: StackId) -> bool {
    let own: Vec<&str> = functions(evidence, waiting).take(NEAR).collect();
    functions(evidence, stack).any(|function| own.contains(&function))
}

/// Whether a thread at `stack` is in the function of the program in which another waits at `waiting`, and has called
/// another one from there: it is beyond the lock that the function takes.
pub(super) fn is_beyond(evidence: &Evidence<'_>, waiting: StackId, stack: StackId) -> bool {
    let Some(section) = functions(evidence, waiting).next() else {
        return false;
    };
    functions(evidence, stack)
        .skip(1)
        .any(|function| function == section)
}

/// The program's own functions of a stack, innermost first: not those of the libraries and virtual machines that
/// wait for it.
fn functions<'e>(
    evidence: &'e Evidence<'_>,
    stack: StackId,
) -> impl Iterator<Item = &'e str> + use<'e> {
    let is_runtime = |frame: &ResolvedFrame<'_>| {
        frame.module.is_some_and(|module| {
            let mut starts = names::RUNTIMES.iter();
            starts.any(|start| module.starts_with(start))
        })
    };
    let frames = evidence.stacks.stack(stack);
    frames
        .filter(move |frame| !is_runtime(frame))
        .filter_map(|frame| frame.function)
        .filter(|function| !names::WAITS.iter().any(|name| is_named(function, name)))
}
