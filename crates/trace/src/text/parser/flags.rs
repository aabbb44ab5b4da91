//! The lines of flags that are watched, and of who used them.

use super::super::Parsed;
use super::super::line::Words;
use super::super::values::{integer, word_of};
use super::Parser;
use crate::ids::NO_STACK;
use crate::tables::{Flag, FlagAccess};
use crate::words::Access;

impl Parser {
    pub(super) fn flag(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        let name = words.next("the flag's name")?;
        let (process, _) = self.process(words.next("the process")?)?;
        let address = integer(words.next("the address")?)?;
        let options = words.options(&["size", "reads", "memory"])?;
        let flags = &mut self.trace.tables.flags;
        if flags.name.iter().any(|known| known == name) {
            return Err(format!("there are two flags {name}"));
        }
        let number = flags.len() as u32;
        let memory = match options.get("memory") {
            Some(first) => (flags.name.iter().position(|known| known == first))
                .ok_or_else(|| format!("there is no flag '{first}'"))?
                as u32,
            None => number,
        };
        flags.push(Flag {
            flag: number,
            memory,
            ts: 0,
            process,
            address,
            size: options.get("size").map_or(Ok(4), |n| integer(n))?,
            reads: options.get("reads") != Some(&"no"),
            name: name.into(),
        });
        Ok(())
    }

    pub(super) fn access(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let thread = self.thread(words)?;
        let name = words.next("the flag")?;
        let names = &self.trace.tables.flags.name;
        let flag = (names.iter().position(|known| known == name))
            .ok_or_else(|| format!("there is no flag '{name}'; declare it above with: flag"))?;
        let access = word_of(Access::ALL, words.next("the access")?)?;
        let value = words.number("the value")?;
        let options = words.options(&["stack"])?;
        let (user_stack, _) = self.both_stacks(&options, thread)?;
        // The made-up addresses of a text are those of its stacks.
        let stacks = &self.trace.tables.stacks;
        let innermost = match user_stack {
            NO_STACK => None,
            stack => (stacks.stack.iter().position(|&known| known == stack))
                .and_then(|row| stacks.frames[row].first()),
        };
        let frames = &self.trace.tables.frames;
        let instruction = innermost.map_or(0, |&frame| frames.offset[frame as usize]);
        self.trace.tables.flag_accesses.push(FlagAccess {
            ts,
            thread,
            flag: flag as u32,
            access: access.into(),
            value,
            instruction,
            user_stack,
        });
        Ok(())
    }
}
