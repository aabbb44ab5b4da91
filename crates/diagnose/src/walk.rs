//! The walk down from a problem that attributes all of its time to those who took it.
//!
//! The problem's window is cut along its thread's states. Where the thread ran, or was runnable,
//! it is itself to blame. Where it waited, the question goes on to what ended the wait: what did
//! that thread do meanwhile? So the window is handed down, and cut again, until it meets one that
//! did not wait for another thread. This is the critical path backwards from the problem's end,
//! as in Yang and Miller, "Critical path analysis for the execution of parallel and distributed
//! programs" (1988), on waits instead of messages.
//!
//! What is handed down is only the time in which the thread was blocked: where it looked in between
//! and waited on, it ran, and that stays its own. So at every step the blame is what the timeline
//! says, however short the waits.
//!
//! It ends: each step down has a window within that of the step above, and a thread that is
//! already on the way down, waiting, closes a circle, which is reported as a wait cycle.

mod believe;
mod sample;
mod turn;

use hangdog_graph::belief::Belief;
use hangdog_graph::owed::{
    attempt, awaits_time_limit, is_deadlocked, starves_own_pool, unanswered,
};
use hangdog_graph::{Edge, EdgeKind, Evidence, Gate, Source, Strength, Wait, WaitKind};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::ids::{NONE, Utid};
use hangdog_trace::object::Object;
use hangdog_trace::sockets::Role;
use hangdog_trace::words::{Context, Left};
use std::collections::HashMap;
use std::ops::Range;

use crate::blame::{Blame, Piece, Step};
use crate::circle;
use crate::kind::BlameKind;
use crate::last_link;
use crate::owed::is_home;
use crate::problem::Problem;
use crate::relay;
use crate::setting::Setting;
use crate::spin;
use crate::starters;
use crate::stretch::{Stretch, Waiting, each_stretch};
use crate::tasks;
use crate::thinned;
use sample::Thin;

/// Waits shorter than the problem by this factor are not told apart: those that lead to the same
/// thread in the same way are one step, and what they come to are sums.
const RESOLUTION: u64 = 50_000;
/// Of a run as a whole, waits shorter than this are not told apart, ns. A long run may consist of
/// nothing but short waits, for one child after the other.
const FINEST_OF_RUN_NS: u64 = 10_000;
/// Of a run so long that it could have more of these than this, they are longer.
const RESOLUTION_OF_RUN: u64 = 1_000_000;
/// Of a wait that is at least this part of the problem all that may have ended it is looked at.
const WEIGHTY: u64 = 20;
/// No real program has a chain this long; a damaged trace may.
const DEEPEST: usize = 64;

impl Blame {
    /// Lays the time of a problem to those who took it. If it consists of many small waits, each of
    /// them is followed.
    pub(crate) fn of_problem(
        evidence: &Evidence<'_>,
        problem: &Problem,
        setting: Setting<'_>,
    ) -> Blame {
        let (thread, window) = (problem.thread, problem.window.clone());
        match &problem.many {
            Some(_) => Blame::of_run(evidence, thread, window, setting),
            None => Blame::of(evidence, thread, window, setting),
        }
    }

    /// Lays the time of `thread` in `window` to those who took it.
    pub(crate) fn of(
        evidence: &Evidence<'_>,
        thread: Utid,
        window: Range<u64>,
        setting: Setting<'_>,
    ) -> Blame {
        Walk::new(evidence, &window, setting).down_from(thread, window)
    }

    /// The same of a run as a whole. Short waits are distinguished too, however long the run. Where
    /// a wake was seen, the run went on by that, whoever should have come before. And what lies
    /// before the birth of the one who was waited for is attributed to its maker.
    pub(crate) fn of_run(
        evidence: &Evidence<'_>,
        thread: Utid,
        window: Range<u64>,
        setting: Setting<'_>,
    ) -> Blame {
        let walk = Walk::new(evidence, &window, setting);
        let finest = FINEST_OF_RUN_NS.max((window.end - window.start) / RESOLUTION_OF_RUN);
        let walk = Walk {
            finest: walk.finest.min(finest),
            is_run: true,
            ..walk
        };
        walk.down_from(thread, window)
    }
}

/// What the parts of a sum have in common: step, thread, kind, how the CPU was left, kind of wait.
type Alike = (usize, Utid, BlameKind, Option<Left>, Option<WaitKind>);

struct Walk<'a, 'e> {
    evidence: &'a Evidence<'e>,
    setting: Setting<'a>,
    blame: Blame,
    finest: u64,
    weighty: u64,
    /// It is a run as a whole, of which all that led on is followed.
    is_run: bool,
    /// The threads whose waits are being explained, outermost first.
    way: Vec<Utid>,
    /// How many that pass messages on lie on the way besides: a bus may be passed more than once.
    passed: usize,
    /// The step of the last of them.
    step: usize,
    /// Pieces that are sums, by what their parts have in common.
    sums: HashMap<Alike, usize>,
    /// Steps that many short waits share.
    short: HashMap<(usize, Utid, EdgeKind), usize>,
    /// What a sample that is being looked at adds.
    thin: Option<Thin>,
}

impl<'a, 'e> Walk<'a, 'e> {
    fn new(evidence: &'a Evidence<'e>, window: &Range<u64>, setting: Setting<'a>) -> Walk<'a, 'e> {
        let duration = window.end - window.start;
        Walk {
            evidence,
            setting,
            blame: Blame::default(),
            finest: duration / RESOLUTION,
            weighty: duration / WEIGHTY,
            is_run: false,
            way: Vec::new(),
            passed: 0,
            step: 0,
            sums: HashMap::new(),
            short: HashMap::new(),
            thin: None,
        }
    }

    fn down_from(mut self, thread: Utid, window: Range<u64>) -> Blame {
        let life = self.evidence.timeline.life(thread);
        let step = self.step_to(thread, None);
        // A person may pick a window in which the thread does not live all along.
        for gap in [0..life.start, life.end.max(life.start)..u64::MAX] {
            self.piece(Piece {
                step,
                thread,
                parts: within(std::slice::from_ref(&window), gap)
                    .collect::<Vec<_>>()
                    .into(),
                count: 0,
                kind: BlameKind::Unknown,
                wait: None,
                probability: 1.0,
                left: None,
            });
        }
        let parts: Vec<_> = within(std::slice::from_ref(&window), life).collect();
        self.look(step, thread, &parts);
        self.blame.starters = starters::of(self.evidence, &self.blame, &window);
        self.blame
    }

    /// Lays out what `thread` did in `parts` of its life, which are in order and not empty.
    fn look(&mut self, step: usize, thread: Utid, parts: &[Range<u64>]) {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return;
        };
        let timeline = self.evidence.timeline;
        self.way.push(thread);
        let rest = self.explain_flags(step, thread, parts, first.start..last.end);
        let rest = self.explain_spinning(step, thread, rest);
        let (Some(first), Some(last)) = (rest.first(), rest.last()) else {
            self.way.pop();
            return;
        };
        let parts = &rest[..];
        let window = first.start..last.end;
        let looks = match parts.len() == 1 && self.thin.is_none() {
            true => thinned::looks(timeline.intervals(thread), window, self.finest),
            false => thinned::all(window),
        };
        for look in looks {
            if look.is_sample() {
                self.thin = Some(Thin::default());
            }
            each_stretch(
                self.evidence,
                thread,
                look.looked.clone(),
                |stretch| match stretch {
                    Stretch::Busy(interval) => self.busy(step, &interval, thread, parts),
                    Stretch::Waiting(waiting) => {
                        // It looked in between: that time is its own.
                        let during: Vec<_> = within(parts, waiting.from..waiting.to).collect();
                        let blocked = self.blocked_of(step, thread, &during);
                        if !blocked.is_empty() {
                            self.explain(step, thread, waiting, blocked);
                        }
                    }
                },
            );
            if look.is_sample() {
                self.stand_for_all(look);
            }
        }
        self.way.pop();
    }

    /// Lays the time in which a thread waited for a flag, spinning or napping, to whoever wrote it.
    /// Returns the other parts.
    fn explain_flags(
        &mut self,
        step: usize,
        thread: Utid,
        parts: &[Range<u64>],
        window: Range<u64>,
    ) -> Vec<Range<u64>> {
        let mut rest = parts.to_vec();
        for flag in self.evidence.flag_waits(thread, window) {
            // Who is looked at already, or is not known, explains nothing.
            if flag.writer == NONE || self.way.contains(&flag.writer) || self.way.len() >= DEEPEST {
                continue;
            }
            let inside: Vec<_> = within(&rest, flag.from..flag.to).collect();
            if inside.is_empty() {
                continue;
            }
            let before = within(&rest, 0..flag.from);
            rest = before.chain(within(&rest, flag.to..u64::MAX)).collect();
            let waiting = Waiting {
                from: flag.from,
                to: flag.to,
                wait: Wait::of_flag(flag),
                wake: None,
                parts: 1,
                cried_wolf: 0,
                timed_out: 0,
                made_room: 0,
            };
            let belief = Belief {
                edge: Edge::of_flag(self.evidence, flag),
                probability: 1.0,
            };
            self.follow(flag.writer, &inside, (step, waiting, belief));
        }
        rest
    }

    /// Lays the time in which a thread ran and waited all the same to the one that it waited for. Returns the other parts.
    fn explain_spinning(
        &mut self,
        step: usize,
        thread: Utid,
        parts: Vec<Range<u64>>,
    ) -> Vec<Range<u64>> {
        /// Where the time is in pieces they are nearly all of it.
        const NEARLY_ALL: f64 = 0.9;
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return parts;
        };
        let window = &(first.start..last.end);
        let all: u64 = parts.iter().map(|part| part.end - part.start).sum();
        if (all as f64) < NEARLY_ALL * (window.end - window.start) as f64 {
            return parts;
        }
        let awaited = spin::awaited(self.evidence, thread, window);
        let Some((awaited, kind, edge)) = awaited.filter(|(it, ..)| !self.way.contains(it)) else {
            return parts;
        };
        let waiting = Waiting {
            from: window.start,
            to: window.end,
            wait: Wait::of_asking(thread, window, kind),
            wake: None,
            parts: 1,
            cried_wolf: 0,
            timed_out: 0,
            made_room: 0,
        };
        let belief = Belief {
            edge,
            probability: 1.0,
        };
        self.follow(awaited, &parts, (step, waiting, belief));
        Vec::new()
    }

    /// The step that a wait leads to. Waits that are too short to be told apart share one, if they
    /// lead to the same thread in the same way.
    fn step_to(&mut self, thread: Utid, reached: Option<(usize, Waiting, Belief)>) -> usize {
        let next = self.blame.steps.len();
        let Some((above, waiting, Belief { edge, probability })) = reached else {
            self.blame.steps.push(Step {
                above: None,
                thread,
                reached: None,
                until: 0,
                times: 1,
                probability: 1.0,
            });
            return next;
        };
        if waiting.to - waiting.from < self.finest {
            let alike = (above, thread, edge.kind);
            let at = *self.short.entry(alike).or_insert(next);
            if let Some(step) = self.blame.steps.get_mut(at) {
                step.until = step.until.max(waiting.to);
                step.times += waiting.parts;
                if let Some(thin) = &mut self.thin {
                    thin.steps.push((at, waiting.parts));
                }
                return at;
            }
        }
        self.blame.steps.push(Step {
            above: Some(above),
            thread,
            until: waiting.to,
            times: 1,
            reached: Some((waiting, edge)),
            probability,
        });
        next
    }

    /// Lays out the parts of an interval in which `thread` was not blocked.
    fn busy(&mut self, step: usize, interval: &Interval, thread: Utid, parts: &[Range<u64>]) {
        let evidence = self.evidence;
        let kind = match interval.state {
            State::Running if evidence.is_denied(thread, interval.start, interval.end) => {
                BlameKind::Unknown
            }
            State::Running => BlameKind::Run,
            State::Interrupted => BlameKind::Interrupt,
            State::Runnable | State::Preempted | State::Blocked => BlameKind::Runnable,
        };
        let left = match interval.cause {
            Cause::Switch(row) if interval.state.wants_cpu() => {
                Some(Left::from(evidence.switches.left[row as usize]))
            }
            _ => None,
        };
        for part in within(parts, interval.start..interval.end) {
            self.piece(Piece {
                step,
                thread,
                parts: vec![part].into(),
                count: usize::from(left == Some(Left::Yielded)),
                kind,
                wait: None,
                probability: 1.0,
                left,
            });
        }
    }

    fn piece(&mut self, piece: Piece) {
        let ns = piece.ns();
        if ns == 0 {
            return;
        }
        let next = self.blame.pieces.len();
        if ns >= self.finest {
            self.note(next, &piece);
            return self.blame.pieces.push(piece);
        }
        let wait = piece.wait.as_ref().map(|(waiting, _)| waiting.wait.kind);
        let common = (piece.step, piece.thread, piece.kind, piece.left, wait);
        let at = *self.sums.entry(common).or_insert(next);
        self.note(at, &piece);
        match self.blame.pieces.get_mut(at) {
            Some(sum) => {
                sum.count += piece.count;
                sum.parts.extend(&piece.parts);
            }
            None => self.blame.pieces.push(piece),
        }
    }

    /// Lays time to a wait of which nobody knows who kept it up then.
    fn unexplained(
        &mut self,
        (step, waiting): (usize, Waiting),
        parts: Vec<Range<u64>>,
        reason: String,
    ) {
        let edge = Edge {
            kind: EdgeKind::Unknown,
            strength: Strength::Weak,
            reason,
            source: Source::Nobody,
            wake: None,
            connection: Object::NONE,
        };
        self.piece(Piece {
            step,
            thread: waiting.wait.thread,
            parts: parts.into(),
            count: waiting.parts,
            kind: BlameKind::Unknown,
            wait: Some((waiting, edge)),
            probability: 1.0,
            left: None,
        });
    }

    /// Lays the time in which a thread was blocked to who kept it waiting.
    fn explain(
        &mut self,
        step: usize,
        thread: Utid,
        mut waiting: Waiting,
        mut blocked: Vec<Range<u64>>,
    ) {
        self.step = step;
        let (from, to) = (waiting.from, waiting.to);
        let Belief { edge, probability } = self.believe(&waiting);
        let mut is_knot = false;
        let follow = match edge.source {
            // Who was born later did not keep it waiting.
            Source::Thread(next)
                if self.way.len() < DEEPEST && self.evidence.timeline.life(next).start < to =>
            {
                Some(next)
            }
            _ => None,
        };
        if let Some(next) = follow {
            let Some(at) = self.way.iter().position(|&waiter| waiter == next) else {
                let belief = Belief { edge, probability };
                return self.follow(next, &blocked, (step, waiting, belief));
            };
            if to - from >= self.finest
                && !self.is_guessed(at, &waiting, &edge)
                && circle::cannot_act(self.evidence, &edge, to)
                && !circle::asked_for_nothing(self.evidence, &waiting, next)
                && !circle::is_anybody_home(self.evidence, &self.waits_from(at, &waiting))
                && !circle::may_be_under_way(self.evidence, &self.waits_from(at, &waiting))
            {
                is_knot = true;
                let threads = self.way[at..].to_vec();
                self.blame.add_knot(threads, to - from);
            } else if to - from >= self.weighty
                && let Some(edge) = last_link::beyond(self.evidence, (&waiting, &edge), &self.way)
                && let Source::Thread(next) = edge.source
            {
                let belief = Belief { edge, probability };
                return self.follow(next, &blocked, (step, waiting, belief));
            }
        }
        if !is_knot {
            waiting.wait.task = waiting.wait.find_task(self.evidence);
        }
        let kind = match own_kind(self.evidence, &edge, &waiting.wait) {
            // Why one that waits for its child does so is known, if that waits for it.
            BlameKind::Unknown if is_knot => BlameKind::Message,
            kind => kind,
        };
        // While a scheduler's thread has no task, its program is at what the others do.
        if kind == BlameKind::Timer && tasks::is_without(self.evidence, &waiting.wait) {
            blocked = self.others_busy(step, thread, blocked, probability);
        }
        let thread = match kind {
            // One that waits to be asked waits on behalf of who asks.
            BlameKind::Network
                if self.way.len() > 1
                    && is_home(self.evidence, &waiting.wait)
                    && !asks(self.evidence, &waiting.wait) =>
            {
                self.way[self.way.len() - 2]
            }
            BlameKind::Disk | BlameKind::Paging | BlameKind::Network | BlameKind::Timer => {
                self.on_behalf_of(thread, &blocked)
            }
            _ => thread,
        };
        let wait = Some((waiting, edge));
        self.piece(Piece {
            step,
            thread,
            parts: blocked.into(),
            count: waiting.parts,
            kind,
            wait,
            probability,
            left: None,
        });
    }

    /// Goes on to the thread that a wait leads to, for as long as that lived. What lies before is
    /// its maker's; what lies behind is nobody's.
    fn follow(&mut self, next: Utid, parts: &[Range<u64>], reached: (usize, Waiting, Belief)) {
        let life = self.evidence.timeline.life(next);
        let before: Vec<_> = within(parts, 0..life.start).collect();
        let during: Vec<_> = within(parts, life.clone()).collect();
        let behind: Vec<_> = within(parts, life.end.max(life.start)..u64::MAX).collect();
        let (step, waiting, belief) = &reached;
        let (step, waiting, probability) = (*step, *waiting, belief.probability);
        let edge = belief.edge.clone();
        let name = self.evidence.name(next);
        // A maker that only waits meanwhile for what is being explained does not count.
        match maker(self.evidence, next).filter(|maker| !self.way.contains(maker)) {
            _ if before.is_empty() => {}
            Some(maker) => {
                let made = Belief {
                    edge: Edge {
                        kind: EdgeKind::Fork,
                        strength: Strength::Strong,
                        reason: format!(
                            "{} created {name}, which did not exist before",
                            self.evidence.name(maker)
                        ),
                        source: Source::Thread(maker),
                        wake: None,
                        connection: Object::NONE,
                    },
                    probability: belief.probability,
                };
                self.follow(maker, &before, (step, waiting, made));
            }
            None => {
                let reason = format!("{name}, which ended the wait, did not exist yet");
                self.unexplained((step, waiting), before, reason);
            }
        }
        if !during.is_empty() {
            let is_long = waiting.to - waiting.from >= self.weighty;
            let relay = is_long
                .then(|| {
                    let asker = (&waiting, &edge);
                    let relay = relay::of(self.evidence, next, asker, &during);
                    relay.or_else(|| last_link::of(self.evidence, next, asker, &during))
                })
                .flatten()
                .filter(|relay| self.may_hand_on(&relay.edge));
            let step = self.step_to(next, Some(reached));
            let asker = waiting.wait.thread;
            let is_answered = edge.kind == EdgeKind::Message;
            let is_asked = edge.kind == EdgeKind::Peer && !edge.connection.is_none();
            match relay {
                Some(relay) => self.pass_on(step, next, &during, (asker, relay)),
                None if is_long && (is_answered || is_asked) => {
                    self.look_between_turns(step, next, &during, (asker, is_answered));
                }
                None => self.look(step, next, &during),
            }
        }
        if !behind.is_empty() && waiting.wait.kind == WaitKind::Sleep {
            let reason = format!("it kept sleeping although {name} had ended");
            self.piece(Piece {
                step,
                thread: waiting.wait.thread,
                parts: behind.into(),
                count: 1,
                kind: BlameKind::Timer,
                wait: Some((waiting, Edge::of_sleep(reason))),
                probability: 1.0,
                left: None,
            });
        } else if !behind.is_empty()
            && !life.is_empty()
            && matches!(
                edge.kind,
                EdgeKind::Habit | EdgeKind::Holder | EdgeKind::Killed
            )
        {
            self.piece(Piece {
                step,
                thread: next,
                parts: behind.into(),
                count: waiting.parts,
                kind: BlameKind::Gone,
                wait: Some((waiting, edge)),
                probability,
                left: None,
            });
        } else if !behind.is_empty() {
            let reason = format!("{name} had ended, and nothing shows who took over");
            self.unexplained((step, waiting), behind, reason);
        }
    }

    /// Whether one of those on the way from `at` on, or the last, waits for the next as far as is guessed
    /// alone.
    fn is_guessed(&self, at: usize, last: &Waiting, edge: &Edge) -> bool {
        circle::is_guess(self.evidence, last, edge)
            || (self.reached_from(at))
                .any(|(waiting, edge)| circle::is_guess(self.evidence, waiting, edge))
    }

    /// By what each of those on the way from `at` on was reached, the last first.
    fn reached_from(&self, at: usize) -> impl Iterator<Item = &(Waiting, Edge)> {
        // Each step on the way was reached by the wait of the one before.
        let steps = std::iter::successors(Some(self.step), |&step| self.blame.steps[step].above);
        steps
            .take(self.way.len() - 1 - at)
            .filter_map(|step| self.blame.steps[step].reached.as_ref())
    }

    /// The waits of those on the way from `at` on, and the last.
    fn waits_from(&self, at: usize, last: &Waiting) -> Vec<Wait> {
        (self.reached_from(at))
            .map(|(waiting, _)| waiting.wait)
            .chain([last.wait])
            .collect()
    }

    /// A kernel thread that waits for a device does so for the one who waits for it, and was blocked meanwhile.
    fn on_behalf_of(&self, thread: Utid, parts: &[Range<u64>]) -> Utid {
        let is_kernel = |thread: Utid| self.evidence.threads.thread(thread).is_kernel();
        if !is_kernel(thread) {
            return thread;
        }
        let waiter = self.way.iter().rev().copied().find(|&t| !is_kernel(t));
        // A server that another works for may serve others in the meantime.
        let was_blocked = |&waiter: &Utid| {
            parts.iter().all(|part| {
                (self.evidence.timeline.between(waiter, part.start, part.end))
                    .all(|interval| interval.state == State::Blocked)
            })
        };
        waiter.filter(was_blocked).unwrap_or(thread)
    }
}

/// Whether a wait is for a connection that the waiter itself made or makes, or for the answer to its datagram.
fn asks(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    evidence.sockets.role(wait.object(evidence)) == Some(Role::Client)
        || attempt(evidence, wait).is_some()
        || unanswered(evidence, wait).is_some()
}

/// Who made a thread, if the trace shows it.
pub(crate) fn maker(evidence: &Evidence<'_>, thread: Utid) -> Option<Utid> {
    let maker = evidence.threads.thread(thread).parent;
    let life = |thread| evidence.timeline.life(thread);
    let is_older = !life(maker).is_empty() && life(maker).start < life(thread).start;
    is_older.then_some(maker)
}

/// What of `parts`, which are in order, lies within `window`.
fn within(parts: &[Range<u64>], window: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let first = parts.partition_point(|part| part.end <= window.start);
    (parts[first..].iter())
        .take_while(move |part| part.start < window.end)
        .map(move |part| part.start.max(window.start)..part.end.min(window.end))
        .filter(|part| !part.is_empty())
}

/// The kind of a wait that is not followed further.
fn own_kind(evidence: &Evidence<'_>, edge: &Edge, wait: &Wait) -> BlameKind {
    let context = |row: usize| Context::from(evidence.wakes.context[row]);
    match (edge.source, wait.kind) {
        (_, WaitKind::Paging) => BlameKind::Paging,
        (_, WaitKind::Stopped) => BlameKind::Stopped,
        _ if wait.gate(evidence) == Some(Gate::Debugger) => BlameKind::Message,
        (_, WaitKind::Idle | WaitKind::Poll) if tasks::awaits_other(evidence, wait) => {
            BlameKind::Lock
        }
        _ if wait.task.is_some() => BlameKind::Timer,
        // It was stopped, though it was not seen when.
        (Source::Nobody, _) if edge.kind == EdgeKind::Kill && wait.gate(evidence).is_none() => {
            BlameKind::Stopped
        }
        (Source::Timer, _) => BlameKind::Timer,
        (Source::Disk, _) => BlameKind::Disk,
        (Source::Network, _) => BlameKind::Network,
        // A softirq is the kernel's own, and says nothing of what was waited for.
        (Source::Device(_), _) if edge.wake.map(context) == Some(Context::Hardirq) => {
            BlameKind::Message
        }
        (Source::Nobody, WaitKind::Condition) if starves_own_pool(evidence, wait) => {
            BlameKind::Lock
        }
        // Nobody is known who could have signalled it; but it is if nobody is left who could.
        (Source::Nobody, WaitKind::Condition) => {
            let process = evidence.threads.thread(wait.thread).upid;
            match wait.end >= evidence.timeline.end() {
                true if is_deadlocked(evidence, process) => BlameKind::Lock,
                // It waits for whatever comes first, and neither had come.
                true if wait.has_time_limit(evidence) => BlameKind::Timer,
                _ => BlameKind::Unknown,
            }
        }
        (Source::Nobody, WaitKind::Poll) if awaits_time_limit(evidence, wait) => BlameKind::Timer,
        (_, kind) => kind_of(kind),
    }
}

/// The kind of blame that a kind of wait is by itself.
fn kind_of(kind: WaitKind) -> BlameKind {
    match kind {
        WaitKind::Lock | WaitKind::Condition => BlameKind::Lock,
        WaitKind::Message | WaitKind::Device | WaitKind::Poll | WaitKind::Signal => {
            BlameKind::Message
        }
        WaitKind::Sleep | WaitKind::Timer => BlameKind::Timer,
        WaitKind::Flag => BlameKind::Unknown,
        WaitKind::Disk => BlameKind::Disk,
        WaitKind::Paging => BlameKind::Paging,
        WaitKind::Stopped => BlameKind::Stopped,
        WaitKind::Kernel => BlameKind::Kernel,
        WaitKind::Child | WaitKind::Idle | WaitKind::Unknown => BlameKind::Unknown,
    }
}
