//! What a wake tells by itself: whether a timer, a debugger or the thread's death was behind it.

use hangdog_trace::calls::Call;
use hangdog_trace::ids::Utid;
use hangdog_trace::object::Object;
use hangdog_trace::words::{Context, HandoffStep};

use crate::evidence::Evidence;
use crate::wait::{Wait, WaitKind};

/// How soon after a wake a thread must die for the wake to have been its death.
pub(crate) const DEATH_NS: u64 = 5_000_000;

/// Whether a wake is a timer's.
pub(crate) fn by_timer(evidence: &Evidence<'_>, wake: usize) -> bool {
    Context::from(evidence.wakes.context[wake]).is_timer()
}

/// Whether a thread was running or runnable for most of a wait.
pub(crate) fn is_busy(evidence: &Evidence<'_>, thread: Utid, wait: &Wait) -> bool {
    let parts = evidence.timeline.between(thread, wait.start, wait.end);
    let busy: u64 = parts
        .filter(|part| part.state.is_on_cpu() || part.state.wants_cpu())
        .map(|part| (part.end.min(wait.end)).saturating_sub(part.start.max(wait.start)))
        .sum();
    busy >= wait.duration() / 2
}

/// Whether a wake made some room for what a thread writes, which left its CPU by `row` of `switches`: somebody read
/// what it had written before. It writes on, and may wait for room once more.
pub fn makes_room(evidence: &Evidence<'_>, row: usize, wake: usize) -> bool {
    let (switches, wakes) = (evidence.switches, evidence.wakes);
    let written = Object(switches.object[row]);
    let is_read = matches!(evidence.call(wakes.call[wake]), Call::Read | Call::Receive);
    is_read
        && evidence.call(switches.call[row]) == Call::Write
        && Context::from(wakes.context[wake]) == Context::Task
        && (!written.is_pipe() || wakes.object[wake] == written.0)
}

/// The debugger that let a thread go on.
pub fn tracer(evidence: &Evidence<'_>, wake: usize) -> Option<Utid> {
    let wakes = evidence.wakes;
    let is_trace = Context::from(wakes.context[wake]) == Context::Task
        && evidence.call(wakes.call[wake]) == Call::Trace;
    is_trace.then_some(wakes.waker[wake])
}

/// Whether the wake only made the thread die. The exit of another process ends a whole process where it
/// ends anything, by a signal: a thread that ends alone, or a process that then exits, for instance at the end of a
/// pipe that it read, did so by itself.
pub fn was_death(evidence: &Evidence<'_>, wait: &Wait, wake: usize) -> bool {
    let timeline = evidence.timeline;
    let is_soon = |end: u64| end < timeline.end() && end - wait.end.min(end) < DEATH_NS;
    let process = evidence.threads.process_of(wait.thread);
    let is_of_another = || evidence.threads.thread(evidence.wakes.waker[wake]).upid != process.upid;
    let all_end = || {
        let mut threads = (process.threads.iter()).map(|&thread| evidence.threads.thread(thread));
        threads.all(|thread| is_soon(timeline.life(thread.utid).end) && !thread.exited())
    };
    // The alarm that a program had set for itself; who gives up on a lock in time goes on.
    let by_timer = matches!(
        Context::from(evidence.wakes.context[wake]),
        Context::Hrtimer | Context::Timer
    );
    if by_timer {
        return wait.kind == WaitKind::Lock && is_soon(timeline.life(wait.thread).end);
    }
    is_soon(timeline.life(wait.thread).end)
        && !matches!(wait.kind, WaitKind::Child | WaitKind::Signal)
        && match evidence.call(evidence.wakes.call[wake]) {
            Call::Kill => true,
            Call::Exit if gave_back(evidence, wait, wake) => false,
            Call::Exit => !is_of_another() || all_end(),
            _ => false,
        }
}

/// Whether the waker gave back the lock of the file that was waited for, as one that ends does.
fn gave_back(evidence: &Evidence<'_>, wait: &Wait, wake: usize) -> bool {
    const SOON_NS: u64 = 1_000_000;
    let wakes = evidence.wakes;
    let (file, at) = (wait.object(evidence), wakes.ts[wake]);
    wait.kind == WaitKind::Lock
        && (evidence.file_lock_steps(wakes.waker[wake], at.saturating_sub(SOON_NS), at)).any(
            |row| {
                let step = HandoffStep::from(evidence.handoffs.step[row]);
                step == HandoffStep::Released && evidence.handoffs.object[row] == file.0
            },
        )
}
