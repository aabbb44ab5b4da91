//! Threads, calls and wakers in words, the same in every format.

use hangdog_trace::calls::{Call, FutexOp};
use hangdog_trace::ids::Utid;

use crate::Source;
use crate::fold::Waker;
use crate::stack::context_name;

/// `process/thread (tid)`.
pub(crate) fn thread_name(source: &Source<'_>, thread: Utid) -> String {
    let process = &source.threads.process_of(thread).name;
    let thread = source.threads.thread(thread);
    format!("{process}/{} ({})", thread.name(), thread.tid)
}

/// The call of a switch, with a futex's operation; a kernel thread makes none.
pub(crate) fn call_name(source: &Source<'_>, row: usize) -> String {
    let switches = source.switches;
    let call = switches.call[row];
    let name = source.calls.name(call);
    match source.calls.kind(call) {
        Call::Futex => format!("{name} {}", FutexOp::of(switches.arg[row]).text()),
        Call::KernelThread => "wait".into(),
        _ => name.into_owned(),
    }
}

/// Who ended a wait; none if nobody did.
pub(crate) fn waker_name(source: &Source<'_>, waker: Waker) -> Option<String> {
    match waker {
        Waker::Nobody | Waker::Unknown => None,
        Waker::Thread(thread, _) => Some(thread_name(source, thread)),
        Waker::Interrupt(context, vector, _) => Some(context_name(context, vector)),
    }
}
