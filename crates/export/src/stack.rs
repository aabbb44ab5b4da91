//! The rows of a fold as stacks with names, the way flame graphs have them: outermost first.

use std::borrow::Cow;

use hangdog_trace::ids::{NO_STACK, StackId};
use hangdog_trace::stacks::ResolvedFrame;
use hangdog_trace::words::Context;

use crate::Source;
use crate::fold::{Doing, Key, Place, Waker};

/// What a stack's entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A thread's name.
    Thread,
    /// Something that is no code, in brackets; or what parts a stack from its waker's.
    Mark,
    /// A function.
    User,
    /// A function that is inlined into the one before.
    Inlined,
    /// A function of the kernel.
    Kernel,
}

/// An entry of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry<'a> {
    /// Its name. A function that has none goes by its module in brackets.
    pub name: Cow<'a, str>,
    /// File name of the function's module, without folders, if it is known.
    pub module: Option<&'a str>,
    /// What it is.
    pub kind: Kind,
}

/// Where no stack was taken.
pub const NO_STACK_MARK: &str = "[no stack]";
/// What the trace did not see begin.
pub const UNSEEN_MARK: &str = "[start not recorded]";
/// What parts a blocked stack from its waker's, which stands upside down on it.
pub const WAKER_MARK: &str = "--";
/// Time in which a thread could have run.
pub const WAITING_MARK: &str = "[waiting for a CPU]";

impl<'a> Entry<'a> {
    fn mark(name: impl Into<Cow<'a, str>>) -> Entry<'a> {
        Entry {
            name: name.into(),
            module: None,
            kind: Kind::Mark,
        }
    }

    fn thread(name: &'a str) -> Entry<'a> {
        Entry {
            name: name.into(),
            module: None,
            kind: Kind::Thread,
        }
    }

    pub(crate) fn function(frame: ResolvedFrame<'a>) -> Entry<'a> {
        let name = match (frame.function, frame.module) {
            (Some(function), _) => Cow::Borrowed(function),
            // A kernel's or vdso's module has its brackets already.
            (None, Some(module)) if module.starts_with('[') => Cow::Borrowed(module),
            (None, Some(module)) => Cow::Owned(format!("[{module}]")),
            (None, None) => Cow::Borrowed("[unknown]"),
        };
        let kind = match (frame.is_kernel(), frame.inlined) {
            (true, _) => Kind::Kernel,
            (false, true) => Kind::Inlined,
            (false, false) => Kind::User,
        };
        Entry {
            name,
            module: frame.module,
            kind,
        }
    }
}

/// The functions of a stack, innermost first.
fn functions<'a>(source: &Source<'a>, stack: StackId) -> impl Iterator<Item = Entry<'a>> {
    let stacks = source.stacks;
    let functions = (stack != NO_STACK).then(|| stacks.stack(stack).map(Entry::function));
    functions.into_iter().flatten()
}

/// The functions of a place, innermost first: the kernel's, then the user's.
fn inwards_out<'a>(source: &Source<'a>, place: Place) -> impl Iterator<Item = Entry<'a>> {
    functions(source, place.kernel).chain(functions(source, place.user))
}

/// The functions of an interrupt's stack, innermost first, up to where it came upon what the CPU
/// was doing: that has nothing to do with it.
fn interrupt_functions<'a>(source: &Source<'a>, stack: StackId) -> impl Iterator<Item = Entry<'a>> {
    let mut is_inside = true;
    functions(source, stack).take_while(move |entry| {
        let was_inside = is_inside;
        is_inside &= !is_interrupt_entry(&entry.name);
        was_inside
    })
}

/// Whether the kernel enters an interrupt or the softirqs by this function, on x86-64 or arm64.
fn is_interrupt_entry(function: &str) -> bool {
    matches!(
        function,
        "handle_softirqs" | "__do_softirq" | "el0t_64_irq" | "el1h_64_irq"
    ) || function.starts_with("asm_common_interrupt")
        || function.starts_with("asm_sysvec_")
}

/// The functions at a place, outermost first.
pub fn functions_at<'a>(source: &Source<'a>, place: Place) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = inwards_out(source, place).collect();
    entries.reverse();
    entries
}

/// The name of an interrupt that wakes, in brackets.
pub fn context_name(context: u8, vector: u16) -> String {
    match Context::from(context) {
        Context::Softirq => format!("[softirq {}]", softirq(vector)),
        Context::Hardirq => format!("[irq {vector}]"),
        other => format!("[{}]", other.text()),
    }
}

/// A softirq's name.
pub fn softirq(vector: u16) -> Cow<'static, str> {
    const NAMES: [&str; 10] = [
        "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer",
        "rcu",
    ];
    match NAMES.get(usize::from(vector)) {
        Some(&name) => name.into(),
        None => vector.to_string().into(),
    }
}

/// What stands for the functions of a row that has none.
pub fn missing(key: &Key) -> &'static str {
    match key.is_unseen {
        true => UNSEEN_MARK,
        false => NO_STACK_MARK,
    }
}

/// The stack of a row: the thread, then what it did outermost first. A waker's stack stands
/// upside down on the blocked one, as in an off-wake flame graph.
pub fn entries<'a>(source: &Source<'a>, key: &Key) -> Vec<Entry<'a>> {
    let threads = source.threads;
    let mut entries = vec![Entry::thread(threads.thread(key.thread).name())];
    if key.doing == Doing::WaitingForCpu {
        entries.push(Entry::mark(WAITING_MARK));
    }
    let functions = functions_at(source, key.place);
    if functions.is_empty() && key.doing != Doing::WaitingForCpu {
        entries.push(Entry::mark(missing(key)));
    }
    entries.extend(functions);
    let Doing::BlockedUntil(waker) = key.doing else {
        return entries;
    };
    entries.push(Entry::mark(WAKER_MARK));
    match waker {
        Waker::Thread(thread, place) => {
            entries.extend(inwards_out(source, place));
            entries.push(Entry::thread(threads.thread(thread).name()));
        }
        Waker::Interrupt(context, vector, stack) => {
            entries.extend(interrupt_functions(source, stack));
            entries.push(Entry::mark(context_name(context, vector)));
        }
        Waker::Nobody => entries.push(Entry::mark("[not woken]")),
        Waker::Unknown => entries.push(Entry::mark("[unknown waker]")),
    }
    entries
}
