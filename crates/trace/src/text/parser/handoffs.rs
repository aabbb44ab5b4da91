//! The lines of handoffs and sockets.

use super::super::Parsed;
use super::super::line::Words;
use super::super::values::{integer, object, word_of};
use super::Parser;
use crate::ids::NONE;
use crate::tables::{Handoff, Socket};
use crate::words::{Context, HandoffKind, HandoffStep};

impl Parser {
    pub(super) fn handoff(&mut self, ts: u64, cpu: u16, words: &mut Words<'_>) -> Parsed<()> {
        let thread = self.thread(words)?;
        let kind = word_of(HandoffKind::ALL, words.next("what was handed over")?)?;
        let step = word_of(HandoffStep::ALL, words.next("the step")?)?;
        let known = ["key", "object", "other", "work", "detail", "in"];
        let options = words.options(&known)?;
        let context = options
            .get("in")
            .map_or(Ok(Context::Task), |w| word_of(Context::ALL, w))?;
        let frame = match options.get("work") {
            Some(function) => self.stacks.kernel_frame(function, &mut self.trace.tables),
            None => NONE,
        };
        self.trace.tables.handoffs.push(Handoff {
            ts,
            cpu,
            thread,
            context: context.into(),
            kind: kind.into(),
            step: step.into(),
            key: options.get("key").map_or(Ok(0), |n| integer(n))?,
            object: object(options.get("object"))?,
            other: options
                .get("other")
                .map_or(Ok(NONE), |name| self.named(name))?,
            frame,
            detail: options.get("detail").map_or(Ok(0), |n| integer(n))?,
        });
        Ok(())
    }

    pub(super) fn socket(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let (process, _) = self.process(words.next("the process")?)?;
        let known = [
            "object",
            "peer",
            "peer-process",
            "namespace",
            "local",
            "remote",
        ];
        let options = words.options(&known)?;
        let text = |name| options.get(name).map_or("", |text| text).to_owned();
        self.trace.tables.sockets.push(Socket {
            ts,
            object: object(options.get("object"))?,
            process,
            peer: object(options.get("peer"))?,
            peer_process: match options.get("peer-process") {
                Some(name) => self.process(name)?.0,
                None => NONE,
            },
            namespace: options.get("namespace").map_or(Ok(0), |n| integer(n))?,
            local: text("local"),
            remote: text("remote"),
        });
        Ok(())
    }
}
