//! A server that serves others while it is looked at for one client: what it waited for on behalf of that one.

use hangdog_graph::belief::Belief;
use hangdog_graph::{Edge, Source};
use hangdog_timeline::State;
use hangdog_trace::ids::Utid;
use std::ops::Range;

use super::{DEEPEST, Walk, own_kind, within};
use crate::blame::Piece;
use crate::relay::Relay;
use crate::stretch::Waiting;
use crate::tasks;
use crate::turns::{self, Turns};

impl Walk<'_, '_> {
    /// Lays out the parts of a server's time in which another worked for the answer that it gave: that one's
    /// time instead of its own.
    pub(super) fn pass_on(
        &mut self,
        step: usize,
        server: Utid,
        parts: &[Range<u64>],
        (asker, relay): (Utid, Relay),
    ) {
        let of = |window: Range<u64>| within(parts, window).collect::<Vec<_>>();
        let window = relay.window;
        self.look_between_turns(step, server, &of(0..window.start), (asker, true));
        self.hand_on(
            step,
            server,
            &of(window.clone()),
            (relay.waiting, relay.edge),
        );
        self.look(step, server, &of(window.end..u64::MAX));
    }

    /// Lays out the parts of a server's time, but those in which it waited for what other clients sent: that time is of
    /// what it waits for on behalf of `asker`, whom it has answered by then or not.
    pub(super) fn look_between_turns(
        &mut self,
        step: usize,
        server: Utid,
        parts: &[Range<u64>],
        (asker, is_answered): (Utid, bool),
    ) {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return;
        };
        let during = first.start..last.end;
        let turns = turns::for_others(self.evidence, server, asker, during, is_answered);
        let may_hand_on = |turns: &Turns| {
            turns.edge.source != Source::Thread(server) && self.may_hand_on(&turns.edge)
        };
        let Some(turns) = turns.filter(may_hand_on) else {
            return self.look(step, server, parts);
        };
        let (mut rest, mut taken) = (Vec::new(), Vec::new());
        let mut from = 0;
        for turn in turns.parts {
            rest.extend(within(parts, from..turn.start));
            taken.extend(within(parts, turn.clone()));
            from = turn.end;
        }
        rest.extend(within(parts, from..u64::MAX));
        // Of the threads of a pool each does some of the work.
        let process = |thread: Utid| self.evidence.threads.thread(thread).upid;
        if matches!(turns.edge.source, Source::Thread(by) if process(by) == process(server)) {
            taken = self.others_busy(step, server, taken, 1.0);
        }
        self.hand_on(step, server, &taken, (turns.waiting, turns.edge));
        self.look(step, server, &rest);
    }

    /// Lays parts of the time in which a thread waited to those of its process that were busy meanwhile. Returns the
    /// others.
    pub(super) fn others_busy(
        &mut self,
        step: usize,
        thread: Utid,
        parts: Vec<Range<u64>>,
        probability: f64,
    ) -> Vec<Range<u64>> {
        let (busy, rest) = tasks::elsewhere(self.evidence, thread, parts);
        for tasks::Busy { thread, kind, part } in busy {
            self.piece(Piece {
                step,
                thread,
                parts: vec![part].into(),
                count: 0,
                kind,
                wait: None,
                probability,
                left: None,
            });
        }
        rest
    }

    /// Whether the time of a server may be attributed to whom an edge leads to: not back to who waits for it, and not without end,
    /// which two could do that pass messages on to each other.
    pub(super) fn may_hand_on(&self, edge: &Edge) -> bool {
        match edge.source {
            Source::Thread(by) => self.way.len() + self.passed < DEEPEST && !self.way.contains(&by),
            _ => true,
        }
    }

    /// Lays parts of a server's time to what it waited for.
    fn hand_on(
        &mut self,
        step: usize,
        server: Utid,
        parts: &[Range<u64>],
        (mut waiting, edge): (Waiting, Edge),
    ) {
        let process = self.evidence.threads.thread(server).upid;
        let passes_on = self.evidence.passes_on(process);
        let on_way = self.way.len();
        match passes_on {
            true => self.passed += 1,
            false => self.way.push(server),
        }
        // A helper of the server's that asked for it waits for it, too.
        if waiting.wait.thread != server {
            self.way.push(waiting.wait.thread);
        }
        self.step = step;
        match edge.source {
            Source::Thread(by) => {
                let belief = Belief {
                    edge,
                    probability: 1.0,
                };
                self.follow(by, parts, (step, waiting, belief));
            }
            _ => {
                waiting.wait.task = waiting.wait.find_task(self.evidence);
                let blocked = self.blocked_of(step, server, parts);
                self.piece(Piece {
                    step,
                    thread: server,
                    kind: own_kind(self.evidence, &edge, &waiting.wait),
                    parts: blocked.into(),
                    count: waiting.parts,
                    wait: Some((waiting, edge)),
                    probability: 1.0,
                    left: None,
                });
            }
        }
        self.way.truncate(on_way);
        if passes_on {
            self.passed -= 1;
        }
    }

    /// The parts of a thread's time in which it was blocked. The others are its own, and are laid out as such.
    pub(super) fn blocked_of(
        &mut self,
        step: usize,
        thread: Utid,
        parts: &[Range<u64>],
    ) -> Vec<Range<u64>> {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return Vec::new();
        };
        let mut blocked = Vec::new();
        for interval in self
            .evidence
            .timeline
            .between(thread, first.start, last.end)
        {
            match interval.state {
                State::Blocked => blocked.extend(within(parts, interval.start..interval.end)),
                _ => self.busy(step, &interval, thread, parts),
            }
        }
        blocked
    }
}
