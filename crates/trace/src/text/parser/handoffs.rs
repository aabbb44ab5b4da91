//! The lines of handoffs, sockets and what is open.

use super::super::Parsed;
use super::super::line::Words;
use super::super::values::{integer, object, time, word_of};
use super::Parser;
use crate::ids::NONE;
use crate::tables::{Descriptor, Handoff, Socket};
use crate::words::{Context, DescriptorKind, HandoffKind, HandoffStep, LastTransfer};

impl Parser {
    pub(super) fn handoff(&mut self, ts: u64, cpu: u16, words: &mut Words<'_>) -> Parsed<()> {
        let thread = self.thread(words)?;
        let kind = word_of(HandoffKind::ALL, words.next("the kind of async work")?)?;
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
            "connecting",
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
            connecting: options.contains_key("connecting"),
            local: text("local"),
            remote: text("remote"),
        });
        Ok(())
    }

    pub(super) fn open(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let (process, _) = self.process(words.next("the process")?)?;
        let options = words.options(&["object", "kind", "access", "unread", "last", "ago"])?;
        let kind = options
            .get("kind")
            .map_or(Ok(DescriptorKind::Stream), |w| {
                word_of(DescriptorKind::ALL, w)
            })?;
        let last = match options.get("last") {
            Some(word) => word_of(LastTransfer::ALL, word)?.into(),
            None => 0,
        };
        let access = match options.get("access").copied() {
            Some("read") => 1,
            Some("write") => 2,
            None => 3,
            Some(other) => return Err(format!("'{other}' should be read or write")),
        };
        self.trace.tables.descriptors.push(Descriptor {
            ts,
            process,
            object: object(options.get("object"))?,
            kind: kind.into(),
            access,
            unread: options.get("unread").map_or(Ok(0), |n| integer(n))?,
            last,
            ago: options.get("ago").map_or(Ok(0), |n| time(n))?,
        });
        Ok(())
    }
}
