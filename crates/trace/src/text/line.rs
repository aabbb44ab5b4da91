//! The words of a line.

use std::collections::HashMap;

use super::Parsed;

/// The words of a line, taken from the front.
pub(super) struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Words<'a> {
        Words {
            words: line.split_whitespace().collect(),
            at: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    pub(super) fn next(&mut self, what: &str) -> Parsed<&'a str> {
        let word = self.peek().ok_or_else(|| format!("{what} is missing"))?;
        self.at += 1;
        Ok(word)
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self, what: &str) -> Parsed<T> {
        let word = self.next(what)?;
        word.parse()
            .map_err(|_| format!("'{word}' should be {what}, a number"))
    }

    pub(super) fn arrow(&mut self) -> Parsed<()> {
        match self.next("'->'")? {
            "->" => Ok(()),
            other => Err(format!("'{other}' should be '->'")),
        }
    }

    /// Takes the next word if `choose` makes something of it.
    pub(super) fn optional<T>(&mut self, choose: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        let chosen = choose(self.peek()?)?;
        self.at += 1;
        Some(chosen)
    }

    /// The rest as key=value; a word alone has an empty value.
    pub(super) fn options(&mut self, known: &[&str]) -> Parsed<HashMap<&'a str, &'a str>> {
        let mut options = HashMap::new();
        while let Some(word) = self.peek() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            if !known.contains(&key) {
                return Err(format!(
                    "'{word}' is not understood here; known: {}",
                    known.join(", ")
                ));
            }
            options.insert(key, value);
            self.at += 1;
        }
        Ok(options)
    }
}
