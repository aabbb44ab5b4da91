//! What may have ended a wait, each possibility with its probability, the one to believe first.
//!
//! The edge that [`ended_by`] makes is certain where it is strong and did not cry wolf. Elsewhere
//! the history of the place speaks: a thread that ended many such waits, and brought the waiter on
//! by that, is likely to be who was waited for this time too. The probabilities are the counts of
//! such ends, with one for the edge itself (Laplace's rule of succession), less for a waker that
//! had just woken spuriously.

use hangdog_timeline::State;
use hangdog_trace::ids::Utid;
use hangdog_trace::object::ObjectKind;

use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::ended::ended_by;
use crate::evidence::Evidence;
use crate::history::{Ended, History};
use crate::marks::Mark;
use crate::owed;
use crate::wait::{Wait, WaitKind};
use crate::wake::by_timer;

/// One thing that may have ended a wait.
#[derive(Clone, PartialEq, Debug)]
pub struct Belief {
    /// What.
    pub edge: Edge,
    /// How likely it is, 0 to 1; those of a wait are 1 together at most.
    pub probability: f64,
}

/// The wakes that a wait saw spuriously before it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InVain {
    /// Those by the one who ended it at last.
    pub by_last: usize,
    /// How often it ended by its timeout, and the thread looked and waited on.
    pub timed_out: usize,
}

/// Fewer would not change what is believed.
const LEAST: f64 = 0.05;

/// What may have ended `wait`, the most likely first; `wake` is the row of `wakes` that made the
/// thread runnable, if there is one. `dependent` are threads that wait for this very wait to end: they
/// did not end it, whatever they do otherwise.
pub fn beliefs(
    evidence: &Evidence<'_>,
    wait: &Wait,
    wake: Option<usize>,
    in_vain: InVain,
    dependent: &[Utid],
) -> Vec<Belief> {
    let middle = wait.start + wait.duration() / 2;
    let edge = match ended_by(evidence, wait, wake) {
        guess if owed::waits_for_it(evidence, wait, &guess, dependent) => Edge::nobody(),
        // Who gives up on a pool that waits for itself interrupts it, and brought it nothing.
        edge if is_by(&edge, dependent) && owed::starves_own_pool(evidence, wait) => Edge::nobody(),
        // Who waits for its answer and asks once more has brought it none.
        edge if is_by(&edge, dependent)
            && let Some(lost) = owed::unanswered(evidence, wait) =>
        {
            lost
        }
        // Nor has it if somebody else was asked.
        edge if is_by(&edge, dependent) && asked_on(evidence, wait, dependent) => Edge::nobody(),
        edge => owed::still_at_work(evidence, wait, &edge)
            .filter(|owing| !is_by(owing, dependent))
            .unwrap_or(edge),
    };
    if is_certain(evidence, &edge, wait, in_vain) {
        return vec![Belief {
            edge,
            probability: 1.0,
        }];
    }
    let history = History::of(evidence, wait);
    let mut all: Vec<(f64, Edge)> = Vec::new();
    let woken_by = match edge.source {
        Source::Thread(waker) => Some(waker),
        _ => None,
    };
    let was_dead = |other: Utid| evidence.timeline.life(other).end <= middle;
    let is_recorder = |other: Utid| Some(evidence.threads.thread(other).pid) == evidence.recorder;
    let is_candidate =
        |other: Utid| Some(other) != woken_by && !dependent.contains(&other) && !is_recorder(other);
    // The threads of a language's scheduler hand each other whatever there is to run: which of them woke
    // which says nothing of what is waited for.
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    let is_mate =
        |other: Utid| wait.kind == WaitKind::Idle && process(other) == process(wait.thread);
    // Another process can only have interrupted it, unless both have the same eventfd.
    let is_own =
        wait.is_within_process(evidence) && wait.object(evidence).kind() != ObjectKind::Eventfd;
    let is_stranger = |other: Utid| is_own && process(other) != process(wait.thread);
    // Who was dead for most of it did not keep it up, unless it is the one who always came: then it is
    // missed.
    if let Some((other, ended)) = missing(evidence, wait, &history)
        && is_candidate(other)
    {
        all.push((ended.brought_on as f64, gone(evidence, other, ended.times)));
    }
    // A child that was killed just then, a thread that exited, or a task that cannot end, says more than all who
    // used to come.
    if woken_by.is_none()
        && let Some(gone) = owed::killed(evidence, wait)
            .or_else(|| owed::exited_mate(evidence, wait))
            .or_else(|| owed::starved_worker_of(evidence, wait))
    {
        all.push(((history.total() + SEEN) as f64, gone));
    }
    // A thread that was idle during the whole wait did not end it.
    let had_nothing_to_do =
        |other: Utid| woken_by.is_some() && owed::idles_throughout(evidence, other, wait);
    let awaits_program = matches!(
        wait.kind,
        WaitKind::Poll | WaitKind::Condition | WaitKind::Message | WaitKind::Device
    );
    for (&other, ended) in &history.by_thread {
        // The kernel hands on what others do.
        let is_kernels = awaits_program && evidence.threads.thread(other).is_kernel();
        if is_kernels
            || was_dead(other)
            || !is_candidate(other)
            || is_mate(other)
            || is_stranger(other)
            || had_nothing_to_do(other)
        {
            continue;
        }
        let last = if history.last == Some(other) {
            LAST
        } else {
            0.0
        };
        let weight = match ended.brought_on {
            0 => IN_VAIN,
            // One that mostly wakes it spuriously is not who it waits for, however often it does.
            times => (times as f64 + last) * (times as f64 / ended.times as f64).powi(2),
        };
        all.push((weight, habit(evidence, &edge, other, ended.times)));
    }
    // A lock is not asked for, nor is the other end of a FIFO.
    let asks = wait.kind != WaitKind::Lock
        && !evidence.shows(wait.kernel_stack(evidence), Mark::OpensFifo);
    let asked = asks.then(|| owed::asked(evidence, wait));
    for asked in asked.into_iter().flatten() {
        let is_dead = |other: Utid| evidence.timeline.life(other).end <= middle;
        match asked.source {
            Source::Thread(other) if woken_by == Some(other) || is_dead(other) => continue,
            _ => {}
        }
        match all
            .iter_mut()
            .find(|(_, other)| other.source == asked.source)
        {
            Some((weight, _)) => *weight += ASKED,
            None => all.push((ASKED, asked)),
        }
    }
    // Where nothing is known of such waits, it counts who is there: also where the last wake came from
    // a thread whose wakes had all been spurious.
    if (woken_by.is_none() || in_vain.by_last >= OFTEN)
        && all.is_empty()
        && let Some(guess) = owed::asked_as_it_began(evidence, wait)
            .or_else(|| owed::amid_something(evidence, wait))
            .or_else(|| owed::likely_holder(evidence, wait))
            .filter(|guess| !owed::waits_for_it(evidence, wait, guess, dependent))
            .or_else(|| owed::relative(evidence, wait))
            .or_else(|| owed::only_other(evidence, wait, dependent))
    {
        all.push((GUESS, guess));
    }
    let weight = own_weight(evidence, (&edge, wait), in_vain, &history);
    all.push((weight, edge));
    // Who had woken it spuriously so often may have done so once more, while what it waited for
    // came from one whom no wake shows.
    let unseen = if in_vain.by_last > 0 { UNSEEN } else { 0.0 };
    let total: f64 = all.iter().map(|(weight, _)| weight).sum::<f64>() + unseen;
    let mut beliefs: Vec<Belief> = all
        .into_iter()
        .map(|(weight, edge)| Belief {
            edge,
            probability: weight / total,
        })
        .collect();
    beliefs.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let first = beliefs.len().min(1);
    let likely = |belief: &Belief| belief.probability >= LEAST;
    let keep = first + beliefs[first..].iter().take_while(|b| likely(b)).count();
    beliefs.truncate(keep);
    beliefs
}

/// Whether one of these threads is the source of an edge.
fn is_by(edge: &Edge, threads: &[Utid]) -> bool {
    matches!(edge.source, Source::Thread(source) if threads.contains(&source))
}

/// Whether a thread that waits for a message has asked somebody of another program than those that wait for it.
fn asked_on(evidence: &Evidence<'_>, wait: &Wait, dependent: &[Utid]) -> bool {
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    let is_further = |edge: Edge| match edge.source {
        Source::Thread(asked) => !dependent
            .iter()
            .chain([&wait.thread])
            .any(|&other| process(other) == process(asked)),
        _ => false,
    };
    let receives = matches!(
        wait.kind,
        WaitKind::Message | WaitKind::Poll | WaitKind::Idle
    );
    receives && owed::asked(evidence, wait).into_iter().any(is_further)
}

/// Whether nothing else need be considered.
fn is_certain(evidence: &Evidence<'_>, edge: &Edge, wait: &Wait, in_vain: InVain) -> bool {
    // A sleep, a disk, a holder that the lock names: no history can say better.
    let waits_for_somebody = matches!(
        wait.kind,
        WaitKind::Condition
            | WaitKind::Message
            | WaitKind::Poll
            | WaitKind::Idle
            | WaitKind::Signal
            | WaitKind::Lock
            | WaitKind::Unknown
    ) || wait.system_v(evidence).is_some();
    // Who gives a lock back need not have had it all the time, but its own waits then lead on.
    let by_lock = matches!(edge.kind, EdgeKind::Unlock | EdgeKind::Holder);
    let timed_out = edge.kind == EdgeKind::Timer;
    // Whoever woke it so that it went on is the one; a habit says less. But of one that had woken it
    // spuriously, again and again, this may have been once more.
    let is_wolf = match wait.kind {
        WaitKind::Condition | WaitKind::Lock => in_vain.by_last > 0,
        _ => in_vain.by_last >= OFTEN,
    };
    match edge.source {
        _ if !waits_for_somebody || by_lock => true,
        // Nobody was seen to end it: that one alone is left says less than who used to come.
        Source::Thread(_) if matches!(edge.kind, EdgeKind::Asked | EdgeKind::Amid) => false,
        Source::Thread(_) => !is_wolf,
        // What the network has not brought is not known by who woke it.
        Source::Network if edge.wake.is_none() => edge.strength == Strength::Strong,
        _ => edge.strength == Strength::Strong && !timed_out && !is_wolf,
    }
}

/// So many spurious wakeups by one make it hard to believe.
const OFTEN: usize = 3;

/// The weight of what was seen to end the wait, beside the counts of earlier ends.
fn own_weight(
    evidence: &Evidence<'_>,
    (edge, wait): (&Edge, &Wait),
    in_vain: InVain,
    history: &History,
) -> f64 {
    let is_pipe = wait.object(evidence).is_pipe();
    match edge.source {
        Source::Thread(waker) => {
            let before = history.by_thread.get(&waker).copied().unwrap_or_default();
            // Each wake spuriously speaks against the waker as much as one that brought on for it.
            let seen = (before.brought_on + SEEN) as f64;
            seen / (1 + in_vain.by_last.pow(2)) as f64
        }
        // It looks again and again for what somebody is to bring.
        Source::Timer if wait.kind == WaitKind::Condition && in_vain.timed_out >= OFTEN => LOOKED,
        // Where waits end by their timeouts, this one did as usual; where they do not, one that
        // lasted no longer than usual says nothing either.
        Source::Timer => {
            let usual = history.lengths.get(history.lengths.len() / 2).copied();
            let is_long = usual.is_some_and(|usual| wait.duration() > usual.saturating_mul(3));
            match is_long {
                true => (history.by_timer + 2) as f64,
                false => (history.by_timer + history.total() + 1) as f64,
            }
        }
        // Nobody outside writes to a pipe: somebody on this machine should have.
        Source::Nobody if is_pipe => 0.5,
        _ => (history.by_others as f64).max(0.5),
    }
}

/// Who ended the last one is this much more likely than another who ended as many.
const LAST: f64 = 0.5;
/// The weight of one that woke it before and always spuriously.
const IN_VAIN: f64 = 0.3;
/// The weight of a timeout where a thread waits on after each.
const LOOKED: f64 = 0.3;
/// The weight of nobody that is known, where the last wake was as others that were spuriously.
const UNSEEN: f64 = 0.3;
/// The weight of one that was woken right before the wait.
const ASKED: f64 = 1.0;
/// The weight of one that may be it by what it does, or by whose child it is.
const GUESS: f64 = 1.5;
/// What was seen counts as so many earlier ends.
const SEEN: usize = 2;

/// Who used to end such waits, and hardly anybody else did, and who had exited before half of this one
/// was over.
fn missing(evidence: &Evidence<'_>, wait: &Wait, history: &History) -> Option<(Utid, Ended)> {
    const OFTEN: usize = 3;
    let middle = wait.start + wait.duration() / 2;
    let (&other, &ended) = (history.by_thread.iter()).max_by_key(|(_, ended)| ended.brought_on)?;
    let always_came = ended.brought_on >= OFTEN && ended.brought_on * 4 >= history.total() * 3;
    let is_missing = always_came && evidence.timeline.life(other).end <= middle;
    // A server does not wait for a client that has disconnected.
    let is_client = || {
        let process = |thread: Utid| evidence.threads.thread(thread).upid;
        let sockets = evidence.sockets;
        let mut asks = sockets.asks(process(other));
        asks.any(|object| sockets.peer_process(object) == Some(process(wait.thread)))
    };
    (is_missing && !(wait.kind == WaitKind::Poll && is_client())).then_some((other, ended))
}

/// Whether the one who used to end such waits had exited.
pub fn is_missed(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    missing(evidence, wait, &History::of(evidence, wait)).is_some()
}

/// Whether a thread that its timeout woke had never needed that, and had never waited for nearly as long.
pub fn gave_up(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    const FEWEST: usize = 3;
    const LONGER: u64 = 10;
    let history = History::of(evidence, wait);
    let longest = history.lengths.iter().copied().max().unwrap_or(0);
    history.by_timer == 0
        && history.total() >= FEWEST
        && wait.duration() >= longest.saturating_mul(LONGER)
        && !goes_on_timing_out(evidence, wait)
}

/// Whether a thread has further waits at the same place end by their timeouts: that is what it is there for, as a thread for timers
/// that had some set when its program began.
fn goes_on_timing_out(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    /// So many intervals are looked at, and so many such waits are enough.
    const MOST: usize = 256;
    const OFTEN: usize = 3;
    let Some(row) = wait.row else {
        return false;
    };
    let intervals = evidence.timeline.intervals(wait.thread);
    let Some(at) = intervals.index_at(wait.end) else {
        return false;
    };
    let is_timed_out = |at: usize| {
        let (here, next) = (intervals.get(at)?, intervals.get(at + 1)?);
        let there = Wait::new(evidence, wait.thread, &here);
        let is_same = evidence.site(there.row?) == evidence.site(row);
        Some(here.state == State::Blocked && is_same && by_timer(evidence, next.wake()?))
    };
    let later = (at..intervals.len()).take(MOST);
    later
        .filter_map(is_timed_out)
        .filter(|&it| it)
        .take(OFTEN)
        .count()
        == OFTEN
}

fn gone(evidence: &Evidence<'_>, other: Utid, times: usize) -> Edge {
    let name = evidence.name(other);
    let at = evidence.timeline.life(other).end as f64 / 1e9;
    let reason = format!("{name} had ended {times} such waits, and exited at {at:.3} s");
    Edge::new(
        EdgeKind::Habit,
        Strength::Weak,
        Source::Thread(other),
        reason,
    )
}

fn habit(evidence: &Evidence<'_>, seen: &Edge, other: Utid, times: usize) -> Edge {
    let name = evidence.name(other);
    let times = match times {
        1 => "one such wait".to_owned(),
        times => format!("{times} such waits"),
    };
    let reason = match seen.source {
        Source::Thread(waker) => format!(
            "{name} has ended {times} before; the wakeup by {} may have been spurious",
            evidence.name(waker)
        ),
        Source::Timer => {
            format!("{name} has ended {times} before; this time a timeout did")
        }
        _ => format!("{name} has ended {times} before; this time nobody did"),
    };
    Edge::new(
        EdgeKind::Habit,
        Strength::Weak,
        Source::Thread(other),
        reason,
    )
}
