//! Functions as verdicts name them: whose code they are, and which of a stack's speaks for it.

use hangdog_graph::Evidence;
use hangdog_trace::ids::StackId;
use hangdog_trace::stacks::ResolvedFrame;
use hangdog_trace::words::StackEnd;

/// A function with where it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Function {
    pub name: String,
    /// Source as file:line where that is known, otherwise the module.
    pub place: String,
    /// The function that holds its code, if that is another one.
    pub inlined_into: Option<String>,
    /// A stack that it was seen in.
    pub stack: StackId,
}

/// Whose code a function is: the more it is the program's own, the more it says of what the
/// program did.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Origin {
    Kernel,
    /// What every program has: the C library, the loader, the compiler's own libraries.
    Runtime,
    /// The program's outermost function, which says nothing that its name does not.
    Entry,
    /// A place in a file without names of functions.
    Nameless,
    /// Another library.
    Library,
    /// The program itself, compiled code of its scripts among it.
    Program,
}

impl Origin {
    /// None for a function that has no name.
    pub(crate) fn of(frame: &ResolvedFrame<'_>) -> Option<Origin> {
        const RUNTIME: [&str; 12] = [
            "[vdso]",
            "libc.so",
            "libc-2.",
            "ld-",
            "ld.so",
            "libm.so",
            "libpthread",
            "libdl.so",
            "librt.so",
            "libgcc_s",
            "libstdc++",
            "libc++",
        ];
        let function = frame.function?;
        let module = frame.module.unwrap_or_default();
        Some(match module {
            _ if frame.kernel => Origin::Kernel,
            _ if RUNTIME.iter().any(|start| module.starts_with(start)) => Origin::Runtime,
            _ if is_place(function) => Origin::Nameless,
            _ if module.contains(".so") => Origin::Library,
            _ if matches!(function, "main" | "_start") => Origin::Entry,
            _ => Origin::Program,
        })
    }
}

/// Whether a function goes by where it is, as `libfoo.so.1+0x1234`.
fn is_place(function: &str) -> bool {
    function
        .rsplit_once("+0x")
        .is_some_and(|(_, offset)| offset.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// The functions of a stack, innermost first, each with the name of the function that holds its
/// code where that is another one.
pub(crate) fn with_holders<'a>(
    evidence: &'a Evidence<'_>,
    stack: StackId,
) -> Vec<(ResolvedFrame<'a>, Option<&'a str>)> {
    let mut frames: Vec<_> = evidence
        .stacks
        .stack(stack)
        .map(|frame| (frame, None))
        .collect();
    let mut holder = None;
    for (frame, inlined_into) in frames.iter_mut().rev() {
        match frame.inlined {
            true => *inlined_into = holder,
            false => holder = frame.function,
        }
    }
    frames
}

/// The function that speaks for a stack: of those that are the program's own the innermost, or,
/// where there are none, of those that are nearest to it.
pub(crate) fn own(evidence: &Evidence<'_>, stack: StackId) -> Option<Function> {
    let frames = with_holders(evidence, stack);
    let best = frames
        .iter()
        .filter_map(|(frame, _)| Origin::of(frame))
        .max()?;
    let (frame, inlined_into) = frames
        .iter()
        .find(|(frame, _)| Origin::of(frame) == Some(best))?;
    let place = match frame.source {
        "" => frame.module.unwrap_or("?"),
        source => source,
    };
    Some(Function {
        name: frame.to_string(),
        place: place.to_owned(),
        inlined_into: inlined_into.map(str::to_owned),
        stack,
    })
}

/// The frames of a stack in words, innermost first.
pub(crate) fn frames(evidence: &Evidence<'_>, stack: StackId) -> Vec<String> {
    let frames = evidence.stacks.stack(stack);
    frames.map(|frame| frame.to_string()).collect()
}

/// Why a stack ends before its outermost function; none if it does not, or if that is not known.
pub(crate) fn early_end(evidence: &Evidence<'_>, stack: StackId) -> Option<&'static str> {
    match evidence.stacks.end(stack) {
        StackEnd::Root | StackEnd::Unknown => None,
        end => Some(end.text()),
    }
}
