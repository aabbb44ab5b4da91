//! What ended a wait on the way down: what was seen, the most likely, or what a user said.

use hangdog_graph::belief::{Belief, beliefs};
use hangdog_graph::ended::ended_by;
use hangdog_graph::owed::{asked_again, may_have_asked, open_request};
use hangdog_graph::{Edge, EdgeKind, Gate, Source, Strength, Wait, WaitKind};
use hangdog_timeline::State;
use hangdog_trace::object::Object;

use super::Walk;
use crate::answers::Answer;
use crate::baseline;
use crate::blame::Doubt;
use crate::owed::{is_home, is_left_open_by};
use crate::shape::{NOBODY, Shape, source_of};
use crate::stretch::Waiting;
use crate::turns;

/// Whoever woke a thread spuriously so often, and more often than all others, is hard to believe.
const OFTEN: usize = 3;

impl Walk<'_, '_> {
    /// What ended a wait: the most likely, or what a user said.
    pub(super) fn believe(&mut self, waiting: &Waiting) -> Belief {
        let wait = &waiting.wait;
        if let Some(edge) = asked_again(self.evidence, wait, waiting.wake, waiting.to) {
            return Belief {
                edge,
                probability: 1.0,
            };
        }
        // Whoever ended such a wait before was no debugger.
        if wait.gate(self.evidence) == Some(Gate::Debugger)
            && let edge = ended_by(self.evidence, wait, waiting.wake)
            && edge.source == Source::Nobody
        {
            return Belief {
                edge,
                probability: 1.0,
            };
        }
        if let Some(edge) = self
            .owed_meanwhile(waiting)
            .or_else(|| self.owed_beside(waiting))
        {
            return Belief {
                edge,
                probability: 1.0,
            };
        }
        if self.only_keeps_open(wait) {
            let edge = Edge {
                kind: EdgeKind::Unknown,
                strength: Strength::Weak,
                reason: "it has the pipe open, and nothing shows that it is to write there"
                    .to_owned(),
                source: Source::Nobody,
                wake: None,
                connection: Object::NONE,
            };
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
        let mut beliefs = beliefs(
            self.evidence,
            wait,
            waiting.wake,
            waiting.in_vain(),
            &self.way,
        );
        if let Some(baseline) = self.setting.baseline
            && is_open(&beliefs[0].edge, wait)
        {
            let mut known = baseline::beliefs(self.evidence, baseline, wait);
            if !known.is_empty() {
                beliefs.retain(|own| own.edge.kind != EdgeKind::Amid);
                let all: f64 = beliefs.iter().map(|own| own.probability).sum();
                beliefs
                    .iter_mut()
                    .for_each(|own| own.probability /= all.max(f64::MIN_POSITIVE));
            }
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
                    reason: "the answer was that none of the known candidates ended it".to_owned(),
                    source: Source::Nobody,
                    wake: None,
                    connection: Object::NONE,
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

    /// Who owes something to a server that is looked at by itself and asked for it, where the request of another ended its
    /// wait.
    fn owed_meanwhile(&self, waiting: &Waiting) -> Option<Edge> {
        let wait = &waiting.wait;
        let is_turn = matches!(wait.kind, WaitKind::Poll | WaitKind::Idle);
        let is_long = waiting.to - waiting.from >= self.weighty;
        if self.way.len() > 1 || !is_turn || !is_long || open_request(self.evidence, wait).is_none()
        {
            return None;
        }
        let own = self.evidence.threads.thread(wait.thread).upid;
        let is_other = |edge: &Edge| match edge.source {
            Source::Thread(by) => self.evidence.threads.thread(by).upid != own,
            ref source => *source == Source::Network,
        };
        turns::began_with_request(self.evidence, wait, None)
            .then(|| ended_by(self.evidence, wait, None))
            .filter(is_other)
    }

    /// Who owes something to a server in its event loop that was asked for an answer, where the one who asked ended
    /// its wait: what that sends meanwhile is another request, and brings the answer no nearer. It is another
    /// program, or the network: which of the server's own threads is to work for it is a guess.
    fn owed_beside(&self, waiting: &Waiting) -> Option<Edge> {
        let wait = &waiting.wait;
        let (before, asked) = self.blame.steps[self.step].reached.as_ref()?;
        if asked.kind != EdgeKind::Peer || !matches!(wait.kind, WaitKind::Poll | WaitKind::Idle) {
            return None;
        }
        let process = |thread| self.evidence.threads.thread(thread).upid;
        let (asker, own) = (process(before.wait.thread), process(wait.thread));
        let source = |edge: &Edge| match edge.source {
            Source::Thread(by) => Some(process(by)),
            _ => None,
        };
        let ended = ended_by(self.evidence, wait, waiting.wake);
        if ended.kind != EdgeKind::Message || source(&ended) != Some(asker) {
            return None;
        }
        let is_other = |edge: &Edge| match source(edge) {
            Some(by) => by != asker && by != own,
            None => edge.source == Source::Network,
        };
        Some(ended_by(self.evidence, wait, None))
            .filter(is_other)
            .or_else(|| may_have_asked(self.evidence, wait).filter(is_other))
    }

    /// Whether a wait is that of a program in the background which has a pipe open that the one before on the way
    /// reads, and waits for whatever comes: it was left behind, and asks nobody for anything.
    fn only_keeps_open(&self, wait: &Wait) -> bool {
        let Some((before, edge)) = &self.blame.steps[self.step].reached else {
            return false;
        };
        matches!(wait.kind, WaitKind::Poll | WaitKind::Idle)
            && is_left_open_by(self.evidence, &before.wait, edge.kind, wait.thread)
            && is_home(self.evidence, wait)
    }

    /// Whether the thread was seen to go on by what ended its wait. After a timeout it may have
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

    /// Which of the possibilities an answer means, or that it is none of them. One that is not
    /// among them is no answer to this wait.
    fn chosen_by(&self, answer: &Answer, beliefs: &[Belief]) -> Option<Option<usize>> {
        if answer.choice == NOBODY {
            return Some(None);
        }
        let meant = |belief: &Belief| source_of(self.evidence, &belief.edge) == answer.choice;
        beliefs.iter().position(meant).map(Some)
    }
}

/// Whether it is open who should have ended a wait: nothing that was seen did, or only a timeout.
fn is_open(edge: &Edge, wait: &Wait) -> bool {
    let is_of_time = matches!(wait.kind, WaitKind::Sleep | WaitKind::Timer);
    let is_guess = matches!(
        edge.kind,
        EdgeKind::Unknown
            | EdgeKind::Timer
            | EdgeKind::Habit
            | EdgeKind::Peer
            | EdgeKind::Asked
            | EdgeKind::Amid
            | EdgeKind::Killed
    );
    is_guess && !is_of_time
}
