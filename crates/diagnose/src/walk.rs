//! The walk down from a problem that lays all of its time to those who took it.
//!
//! The problem's window is cut along its thread's states. Where the thread ran, or wanted a CPU,
//! it is itself to blame. Where it waited, the question goes on to what ended the wait: what did
//! that thread do meanwhile? So the window is handed down, and cut again, until it meets one that
//! did not wait for another thread. This is the critical path backwards from the problem's end,
//! as in Yang and Miller, "Critical path analysis for the execution of parallel and distributed
//! programs" (1988), on waits instead of messages.
//!
//! It ends: each step down has a window within that of the step above, and a thread that is
//! already on the way down, waiting, closes a circle, which is reported as a knot.

use hangdog_graph::belief::{Belief, InVain, beliefs};
use hangdog_graph::edge::ended_by;
use hangdog_graph::owed::file_lock;
use hangdog_graph::{Edge, EdgeKind, Evidence, Source, Strength, Wait, WaitKind};
use hangdog_timeline::{Cause, State};
use hangdog_trace::ids::Utid;
use hangdog_trace::object::ObjectKind;
use hangdog_trace::words::Left;
use std::collections::HashMap;
use std::ops::Range;

use crate::answers::Answer;
use crate::baseline;
use crate::blame::{Blame, BlameKind, Doubt, Knot, Piece, Step};
use crate::judge::Setting;
use crate::owed::is_home;
use crate::shape::{NOBODY, Shape, source_of};
use crate::stretch::{Stretch, Waiting, each_stretch};

/// Waits shorter than the problem by this factor are not followed: they are laid to their own kind.
const RESOLUTION: u64 = 50_000;
/// Of a run as a whole, waits shorter than this are not followed, ns. A long run may consist of
/// nothing but short waits, for one child after the other.
const FINEST_OF_RUN_NS: u64 = 10_000;
/// Of a wait that is at least this part of the problem all that may have ended it is looked at.
const WEIGHTY: u64 = 20;
/// Whoever woke a thread in vain so often, and more often than all others, is hard to believe.
const OFTEN: usize = 3;
/// What is usual is told by so many waits.
const USUAL: usize = 16;
/// No real program has a chain this long; a damaged trace may.
const DEEPEST: usize = 64;

impl Blame {
    /// Lays the time of `thread` in `window` to those who took it.
    pub(crate) fn of(
        evidence: &Evidence<'_>,
        thread: Utid,
        window: Range<u64>,
        setting: Setting<'_>,
    ) -> Blame {
        Walk::new(evidence, &window, setting).down_from(thread, window)
    }

    /// The same of a run as a whole. Short waits are followed too, however long the run. Where a
    /// wake was seen, the run went on by that, whoever should have come before. And what lies
    /// before the birth of the one who was waited for is laid to its maker.
    pub(crate) fn of_run(
        evidence: &Evidence<'_>,
        thread: Utid,
        window: Range<u64>,
        setting: Setting<'_>,
    ) -> Blame {
        let walk = Walk::new(evidence, &window, setting);
        let walk = Walk {
            finest: walk.finest.min(FINEST_OF_RUN_NS),
            is_run: true,
            ..walk
        };
        walk.down_from(thread, window)
    }
}

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
    /// The step of the last of them.
    step: usize,
    /// Pieces that are sums, by what their parts have in common.
    sums: HashMap<(usize, Utid, BlameKind, Option<Left>), usize>,
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
            step: 0,
            sums: HashMap::new(),
        }
    }

    fn down_from(mut self, thread: Utid, window: Range<u64>) -> Blame {
        self.look(thread, window, None);
        self.blame
    }

    fn look(
        &mut self,
        thread: Utid,
        window: Range<u64>,
        reached: Option<(usize, Waiting, Belief)>,
    ) {
        let step = self.blame.steps.len();
        self.blame.steps.push(match reached {
            None => Step {
                above: None,
                thread,
                reached: None,
                probability: 1.0,
            },
            Some((above, waiting, belief)) => Step {
                above: Some(above),
                thread,
                reached: Some((waiting, belief.edge)),
                probability: belief.probability,
            },
        });
        self.way.push(thread);
        let mut seen = window.start;
        each_stretch(
            self.evidence,
            thread,
            window.clone(),
            |stretch| match stretch {
                Stretch::Busy(interval) => {
                    self.gap(step, thread, seen, interval.start);
                    seen = interval.end;
                    let kind = match interval.state {
                        State::Running
                            if self
                                .evidence
                                .is_denied(thread, interval.start, interval.end) =>
                        {
                            BlameKind::Unknown
                        }
                        State::Running => BlameKind::Run,
                        State::Interrupted => BlameKind::Interrupt,
                        State::Runnable | State::Preempted | State::Blocked => BlameKind::Runnable,
                    };
                    let left = match interval.cause {
                        Cause::Switch(row) if interval.state.wants_cpu() => {
                            Some(Left::from(self.evidence.switches.left[row as usize]))
                        }
                        _ => None,
                    };
                    self.piece(Piece {
                        step,
                        thread,
                        from: interval.start,
                        to: interval.end,
                        ns: interval.duration(),
                        count: usize::from(left == Some(Left::Yielded)),
                        kind,
                        wait: None,
                        left,
                    });
                }
                Stretch::Waiting(waiting) => {
                    self.gap(step, thread, seen, waiting.from);
                    seen = waiting.to;
                    self.explain(step, thread, waiting);
                }
            },
        );
        // Before a thread's birth and behind its death.
        self.gap(step, thread, seen, window.end);
        self.way.pop();
    }

    fn piece(&mut self, piece: Piece) {
        if piece.ns == 0 {
            return;
        }
        if piece.ns >= self.finest {
            return self.blame.pieces.push(piece);
        }
        let next = self.blame.pieces.len();
        let common = (piece.step, piece.thread, piece.kind, piece.left);
        match *self.sums.entry(common).or_insert(next) {
            at if at == next => self.blame.pieces.push(piece),
            at => {
                let sum = &mut self.blame.pieces[at];
                sum.from = sum.from.min(piece.from);
                sum.to = sum.to.max(piece.to);
                sum.ns += piece.ns;
                sum.count += piece.count;
            }
        }
    }

    fn gap(&mut self, step: usize, thread: Utid, from: u64, to: u64) {
        let kind = BlameKind::Unknown;
        self.piece(Piece {
            step,
            thread,
            from,
            to,
            ns: to.saturating_sub(from),
            count: 0,
            kind,
            wait: None,
            left: None,
        });
    }

    fn explain(&mut self, step: usize, thread: Utid, waiting: Waiting) {
        self.step = step;
        let (from, to) = (waiting.from, waiting.to);
        if to - from < self.finest {
            return self.piece(Piece {
                step,
                thread,
                from,
                to,
                ns: to - from,
                count: waiting.parts,
                kind: kind_of(waiting.wait.kind),
                wait: None,
                left: None,
            });
        }
        let Belief { edge, probability } = self.believe(&waiting);
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
                return self.follow(next, from..to, (step, waiting, belief));
            };
            if self.is_circle(&edge, to)
                && !self.is_idle(&waiting, next)
                && !self.is_anybody_home(at, &waiting)
            {
                let threads = self.way[at..].to_vec();
                self.blame.knots.push(Knot {
                    threads,
                    duration: to - from,
                });
            }
        }
        let kind = own_kind(&edge, &waiting.wait);
        let thread = match kind {
            BlameKind::Disk | BlameKind::Paging | BlameKind::Network | BlameKind::Timer => {
                self.on_behalf_of(thread)
            }
            _ => thread,
        };
        let wait = Some((waiting, edge));
        self.piece(Piece {
            step,
            thread,
            from,
            to,
            ns: to - from,
            count: waiting.parts,
            kind,
            wait,
            left: None,
        });
    }

    /// Goes on to the thread that a wait leads to.
    fn follow(&mut self, next: Utid, window: Range<u64>, reached: (usize, Waiting, Belief)) {
        let born = self.evidence.timeline.life(next).start;
        let maker = match window.start < born {
            true => self.maker(next),
            false => None,
        };
        let Some(maker) = maker else {
            return self.look(next, window, Some(reached));
        };
        let (step, waiting, belief) = &reached;
        let made = Belief {
            edge: Edge {
                kind: EdgeKind::Fork,
                strength: Strength::Strong,
                reason: format!("it made {}, which came later", self.evidence.name(next)),
                source: Source::Thread(maker),
                wake: None,
            },
            probability: belief.probability,
        };
        self.follow(maker, window.start..born, (*step, *waiting, made));
        self.look(next, born..window.end, Some(reached));
    }

    /// Who made a thread, and did not only wait meanwhile for what is being explained.
    fn maker(&self, thread: Utid) -> Option<Utid> {
        let maker = self.evidence.threads.thread(thread).parent;
        let life = |thread| self.evidence.timeline.life(thread);
        let is_older = !life(maker).is_empty() && life(maker).start < life(thread).start;
        (is_older && !self.way.contains(&maker)).then_some(maker)
    }

    /// What ended a wait: the most likely, or what a user said.
    fn believe(&mut self, waiting: &Waiting) -> Belief {
        let wait = &waiting.wait;
        if let Some(edge) = self.file_lock(waiting) {
            return Belief {
                edge,
                probability: 1.0,
            };
        }
        // Of many small waits, those alone whose waker is hard to believe.
        let is_wolf = waiting.cried_wolf >= OFTEN && waiting.cried_wolf * 2 > waiting.parts;
        let is_clear = waiting.to - waiting.from < self.weighty && !is_wolf;
        if is_clear || self.is_run {
            let edge = ended_by(self.evidence, wait, waiting.wake);
            if is_clear || self.led_on(wait, &edge) {
                return Belief {
                    edge,
                    probability: 1.0,
                };
            }
        }
        let in_vain = InVain {
            wakes: waiting.parts - 1,
            by_last: waiting.cried_wolf,
        };
        let mut beliefs = beliefs(self.evidence, wait, waiting.wake, in_vain);
        if let Some(baseline) = self.setting.baseline
            && is_open(&beliefs[0].edge, wait)
        {
            let mut known = baseline::beliefs(self.evidence, baseline, wait);
            let left = 1.0 - known.iter().map(|belief| belief.probability).sum::<f64>();
            beliefs.iter_mut().for_each(|own| own.probability *= left);
            for own in beliefs {
                let is_same = |belief: &&mut Belief| belief.edge.source == own.edge.source;
                match known.iter_mut().find(is_same) {
                    Some(known) => known.probability += own.probability,
                    None => known.push(own),
                }
            }
            known.sort_by(|a, b| b.probability.total_cmp(&a.probability));
            beliefs = known;
        }
        if beliefs.len() == 1 && beliefs[0].probability == 1.0 {
            return beliefs.remove(0);
        }
        let shape = Shape::of(self.evidence, wait);
        let answered = self.setting.answers.to(&shape);
        let answered =
            answered.and_then(|answer| Some((answer, self.chosen_by(answer, &beliefs)?)));
        let (answer, chosen) = match answered {
            Some((answer, chosen)) => (Some(answer), chosen),
            None => (None, Some(0)),
        };
        let believed = match (chosen.and_then(|at| beliefs.get(at)), answer) {
            (Some(belief), None) => belief.clone(),
            (Some(belief), Some(_)) => Belief {
                probability: 1.0,
                ..belief.clone()
            },
            (None, _) => Belief {
                edge: Edge {
                    kind: EdgeKind::Unknown,
                    strength: Strength::Weak,
                    reason: "the answer was that none of those that are known ended it".to_owned(),
                    source: Source::Nobody,
                    wake: None,
                },
                probability: 1.0,
            },
        };
        self.blame.doubts.push(Doubt {
            waiting: *waiting,
            shape,
            answer: answer.map(|answer| answer.number),
            chosen,
            beliefs,
        });
        believed
    }

    /// Whether the thread was seen to go on by what ended its wait. After a time-out it may have
    /// looked and found nothing: that led on only if the thread then woke somebody.
    fn led_on(&self, wait: &Wait, edge: &Edge) -> bool {
        let acted = || {
            let intervals = self.evidence.timeline.intervals(wait.thread);
            let next = intervals.index_at(wait.end).and_then(|at| {
                let mut behind = (at..intervals.len()).filter_map(|at| intervals.get(at));
                behind.find(|interval| interval.state == State::Blocked)
            });
            let until = next.map_or(self.evidence.timeline.end(), |next| next.start);
            let mut woken = self.evidence.wakes_by(wait.thread, wait.end, until);
            woken.next().is_some()
        };
        match edge.source {
            Source::Nobody => false,
            Source::Timer => edge.wake.is_some() && acted(),
            _ => edge.wake.is_some(),
        }
    }

    /// Who has the lock of a file that the thread is after: whether it waits for it, or asks again
    /// and again and sleeps in between.
    fn file_lock(&self, waiting: &Waiting) -> Option<Edge> {
        let wait = &waiting.wait;
        // Who woke a thread that waited for the lock is the one that gave it back.
        let is_kept_out = match wait.kind {
            WaitKind::Sleep => true,
            WaitKind::Lock => {
                waiting.wake.is_none() && wait.object(self.evidence).kind() == ObjectKind::File
            }
            _ => false,
        };
        is_kept_out
            .then(|| file_lock(self.evidence, wait, waiting.to))
            .flatten()
    }

    /// Which of the possibilities an answer means, or that it is none of them. One that is not
    /// among them is no answer to this wait.
    fn chosen_by(&self, answer: &Answer, beliefs: &[Belief]) -> Option<Option<usize>> {
        if answer.choice == NOBODY {
            return Some(None);
        }
        let meant = |belief: &Belief| source_of(self.evidence, &belief.edge) == answer.choice;
        beliefs.iter().position(meant).map(Some)
    }

    /// Whether the edge leads to a thread that could not act, since it waited itself: either it did
    /// not act, or only after the window.
    fn is_circle(&self, edge: &Edge, to: u64) -> bool {
        match edge.wake {
            Some(wake) => self.evidence.wakes.ts[wake] >= to,
            None => edge.kind != EdgeKind::Habit,
        }
    }

    /// Whether one of those on the way from `at` on, or the one that waits now, waits as a server
    /// that nobody asks for anything: it keeps the others waiting, and they do not keep it.
    fn is_anybody_home(&self, at: usize, last: &Waiting) -> bool {
        // Each step on the way was reached by the wait of the one before.
        let steps = std::iter::successors(Some(self.step), |&step| self.blame.steps[step].above);
        let above = steps
            .take(self.way.len() - 1 - at)
            .filter_map(|step| self.blame.steps[step].reached.as_ref());
        above
            .map(|(waiting, _)| waiting)
            .chain([last])
            .any(|waiting| is_home(self.evidence, &waiting.wait))
    }

    /// Whether a thread waits for `other` without having asked it for anything, though it usually
    /// does before such a wait: one that serves `other` and did not answer this time is not kept
    /// waiting by it.
    fn is_idle(&self, waiting: &Waiting, other: Utid) -> bool {
        let wait = &waiting.wait;
        if matches!(wait.kind, WaitKind::Lock) || wait.holder.is_some() {
            return false;
        }
        let Some(row) = wait.row else {
            return false;
        };
        let evidence = self.evidence;
        let intervals = evidence.timeline.intervals(wait.thread);
        let here = intervals.index_at(wait.start).unwrap_or(0);
        // Since the wait before, it woke the other.
        let asked = |at: usize| {
            let until = intervals.get(at).map_or(0, |wait| wait.start);
            let since = (0..at)
                .rev()
                .filter_map(|before| intervals.get(before))
                .find(|before| before.state == State::Blocked)
                .map_or(0, |before| before.end);
            let mut woken = evidence.wakes_by(wait.thread, since, until);
            woken.any(|wake| evidence.wakes.wakee[wake] == other)
        };
        let site = evidence.site(row);
        let is_there = |at: &usize| match intervals.get(*at).map(|it| (it.state, it.cause)) {
            Some((State::Blocked, Cause::Switch(row))) => evidence.site(row as usize) == site,
            _ => false,
        };
        let earlier: Vec<bool> = (0..here)
            .rev()
            .filter(is_there)
            .take(USUAL)
            .map(asked)
            .collect();
        let usually = earlier.iter().filter(|&&asked| asked).count();
        usually > 0 && usually * 2 >= earlier.len() && !asked(here)
    }

    /// A kernel thread that waits for a device does so for the one who waits for it.
    fn on_behalf_of(&self, thread: Utid) -> Utid {
        let is_kernel = |thread: Utid| self.evidence.threads.thread(thread).is_kernel();
        match is_kernel(thread) {
            true => self
                .way
                .iter()
                .rev()
                .copied()
                .find(|&t| !is_kernel(t))
                .unwrap_or(thread),
            false => thread,
        }
    }
}

/// Whether it is open who should have ended a wait: nothing that was seen did, or only a time-out.
fn is_open(edge: &Edge, wait: &Wait) -> bool {
    let is_of_time = matches!(wait.kind, WaitKind::Sleep | WaitKind::Timer);
    let is_guess = matches!(
        edge.kind,
        EdgeKind::Unknown | EdgeKind::Timer | EdgeKind::Habit | EdgeKind::Peer | EdgeKind::Asked
    );
    is_guess && !is_of_time
}

/// The kind of a wait that is not followed further.
fn own_kind(edge: &Edge, wait: &Wait) -> BlameKind {
    match (edge.source, wait.kind) {
        (_, WaitKind::Paging) => BlameKind::Paging,
        (_, WaitKind::Stopped) => BlameKind::Stopped,
        // It was stopped, though it was not seen when.
        (Source::Nobody, _) if edge.kind == EdgeKind::Kill => BlameKind::Stopped,
        (Source::Timer, _) => BlameKind::Timer,
        (Source::Disk, _) => BlameKind::Disk,
        (Source::Network, _) => BlameKind::Network,
        (Source::Device(_), _) => BlameKind::Interrupt,
        // Nobody is known who could have signalled it.
        (Source::Nobody, WaitKind::Condition) => BlameKind::Unknown,
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
        WaitKind::Disk => BlameKind::Disk,
        WaitKind::Paging => BlameKind::Paging,
        WaitKind::Stopped => BlameKind::Stopped,
        WaitKind::Child | WaitKind::Idle | WaitKind::Kernel | WaitKind::Unknown => {
            BlameKind::Unknown
        }
    }
}
