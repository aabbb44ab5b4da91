//! Functions as verdicts name them, and which of a stack's speaks for it.

use hangdog_graph::{Evidence, Mark};
use hangdog_trace::ids::StackId;
use hangdog_trace::stacks::ResolvedFrame;
use hangdog_trace::words::StackEnd;

use crate::origin::{Origin, nearest};

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
    /// On which share of the samples it is, or of the time of all waits, 0 to 1; 1 where it speaks for all.
    pub share: f64,
    /// The function that most of the other samples are in, where this one speaks for few.
    pub beside: Option<Beside>,
    /// On which share of the samples its thread collected garbage, 0 to 1.
    pub collecting: f64,
    /// What most of the samples are in that are in the kernel, where these are many.
    pub in_kernel: Option<InKernel>,
    /// The function of a library in which most of the samples are, where this one is the program's own.
    pub in_library: Option<Beside>,
    /// The function that called it and in which nearly all samples are, where fewer are in this one.
    pub caller: Option<Beside>,
}

/// Parts of the names of functions that collect the garbage of a language's machine: V8's, CPython's, HotSpot's,
/// Mono's and .NET's, Ruby's, PHP's, OCaml's, Go's, R's, Boehm's collector's, Erlang's and Emacs's.
const COLLECTORS: [&str; 31] = [
    "v8::internal::Heap::",
    "v8::internal::MarkCompact",
    "v8::internal::Scaveng",
    "heap::base::",
    "gc_collect_main",
    "G1CollectedHeap",
    "G1FullCollector",
    "G1ParScanThreadState",
    "G1EvacuateRegions",
    "G1ConcurrentMark",
    "PSScavenge",
    "PSPromotionManager",
    "PSParallelCompact",
    "ParCompactionManager",
    "GenCollectedHeap",
    "GenMarkSweep",
    "ShenandoahHeap",
    "sgen_perform_collection",
    "major_start_or_finish_collection",
    "::gc_heap::",
    "gc_marks",
    "gc_sweep",
    "gc_start",
    "zend_gc_collect_cycles",
    "caml_major_collection",
    "runtime.gcDrain",
    "runtime.gcAssistAlloc",
    "R_gc_internal",
    "garbage_collect",
    "GC_try_to_collect",
    "GC_mark_from",
];

/// Whether a function collects the garbage of a language's machine.
pub(crate) fn is_collector(name: &str) -> bool {
    COLLECTORS.iter().any(|part| name.contains(part))
}

/// What a thread ran in the kernel, on behalf of its function.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InKernel {
    /// The kernel's function.
    pub name: String,
    /// On which share of the samples its thread ran in the kernel, 0 to 1.
    pub share: f64,
}

/// A function beside the one that a thread's time is named after.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beside {
    pub name: String,
    /// As in [`Function`].
    pub place: String,
    /// Of the samples, 0 to 1.
    pub share: f64,
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

/// The function that speaks for a stack.
pub(crate) fn own(evidence: &Evidence<'_>, stack: StackId) -> Option<Function> {
    let frames = with_holders(evidence, stack);
    let (frame, inlined_into) = &frames[own_frame(evidence, stack)?];
    let place = match frame.source {
        "" => frame.module.unwrap_or("?"),
        source => source,
    };
    Some(Function {
        name: frame.to_string(),
        place: place.to_owned(),
        inlined_into: inlined_into.map(str::to_owned),
        stack,
        share: 1.0,
        beside: None,
        collecting: 0.0,
        in_kernel: None,
        in_library: None,
        caller: None,
    })
}

/// Which frame of a stack speaks for it, counted from the innermost; none where none has a name.
pub(crate) fn own_frame(evidence: &Evidence<'_>, stack: StackId) -> Option<usize> {
    let mut frames: Vec<_> = evidence.stacks.stack(stack).collect();
    // Behind it comes the task that the thread parked last. It says something where it waits for another.
    let scheduler = frames
        .iter()
        .position(|frame| frame.function == Some("runtime.mcall"));
    if let Some(scheduler) = scheduler
        && !evidence.shows(stack, Mark::AwaitsTask)
    {
        frames.truncate(scheduler);
    }
    speaks_for_wait(&frames)
}

/// Of a Go thread that has nothing to run: the program's function whose goroutine it parked last, if that goroutine waits
/// for a connection.
pub(crate) fn parked_in(evidence: &Evidence<'_>, stack: StackId) -> Option<String> {
    let frames: Vec<_> = evidence.stacks.stack(stack).collect();
    let is = |frame: &ResolvedFrame<'_>, name: &str| frame.function == Some(name);
    let parked = frames
        .iter()
        .position(|frame| is(frame, "runtime.mcall"))
        .map(|scheduler| &frames[scheduler..])?;
    if !(parked.iter()).any(|frame| is(frame, "internal/poll.runtime_pollWait")) {
        return None;
    }
    let own = &parked[nearest(parked.iter())?];
    (Origin::of(own) == Some(Origin::Program)).then(|| own.to_string())
}

/// Which frame speaks for a stack, that of a wait. A function of a language's library that waits for whatever its
/// caller wants says less than the library that called it.
fn speaks_for_wait(frames: &[ResolvedFrame<'_>]) -> Option<usize> {
    let nearest_of = nearest(frames.iter())?;
    let best = Origin::of(&frames[nearest_of]);
    let says_why = |frame: &ResolvedFrame<'_>| {
        let function = frame.function.unwrap_or_default();
        Origin::of(frame) == best && !hangdog_graph::waits_for_anything(function)
    };
    match best {
        Some(Origin::Package) => frames.iter().position(says_why).or(Some(nearest_of)),
        _ => Some(nearest_of),
    }
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
