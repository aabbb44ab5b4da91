//! The lines of marks.

use super::super::Parsed;
use super::super::line::Words;
use super::super::values::{integer, word_of};
use super::Parser;
use crate::ids::FIRST_MARK_NAME;
use crate::tables::{Mark, MarkName};
use crate::words::{Colour, MarkKind, Pairing};

impl Parser {
    pub(super) fn mark(&mut self, ts: u64, words: &mut Words<'_>) -> Parsed<()> {
        let thread = self.thread(words)?;
        let kind = word_of(MarkKind::ALL, words.next("point, begin or end")?)?;
        let name = words.next("the code or name")?;
        let code = self.mark_code(name)?;
        let mut args = [0i64; 4];
        for arg in &mut args {
            match words.optional(|word| word.parse().ok()) {
                Some(value) => *arg = value,
                None => break,
            }
        }
        let options = words.options(&["pair", "colour"])?;
        let pairing = options
            .get("pair")
            .map_or(Ok(Pairing::Thread), |w| word_of(Pairing::ALL, w))?;
        let colour = options
            .get("colour")
            .map_or(Ok(Colour::None), |w| word_of(Colour::ALL, w))?;
        let [arg0, arg1, arg2, arg3] = args;
        self.trace.tables.marks.push(Mark {
            ts,
            thread,
            code,
            kind: kind.into(),
            pairing: pairing.into(),
            colour: colour.into(),
            arg0,
            arg1,
            arg2,
            arg3,
        });
        Ok(())
    }

    /// What stands for a code or a name.
    fn mark_code(&mut self, name: &str) -> Parsed<u32> {
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            let code = integer(name).ok().filter(|&code| code < FIRST_MARK_NAME);
            return code.ok_or_else(|| format!("'{name}' is no code: those are 0 to 16383"));
        }
        let names = &mut self.trace.tables.mark_names;
        let known = names.name.iter().position(|known| known == name);
        let at = known.unwrap_or(names.len()) as u32;
        if known.is_none() {
            names.push(MarkName {
                code: FIRST_MARK_NAME + at,
                name: name.to_owned(),
            });
        }
        Ok(FIRST_MARK_NAME + at)
    }
}
