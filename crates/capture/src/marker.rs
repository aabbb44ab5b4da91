//! Marks by the kernel's trace_marker, into which programs write texts.
//!
//! A text that begins as those of Android's atrace do, which perfetto and many programs write, is a region
//! or a number: `B|PID|NAME` and `E` or `E|PID` begin and end a region of the thread, `S|PID|NAME|COOKIE`
//! and `F|PID|NAME|COOKIE` one that may end on another thread, `C|PID|NAME|VALUE` is a point with that
//! argument, `I|PID|NAME` a point. Any other text is a point of that name.

use std::collections::HashMap;

use hangdog_trace::ids::{FIRST_MARK_NAME, Utid};
use hangdog_trace::tables::{MarkName, MarkNames};
use hangdog_trace::words::{MarkKind, Pairing};

/// How long a text is read, bytes (`MARKER_BYTES`).
pub(crate) const LONGEST: usize = 64;
/// The codes of texts begin here: no area of marks has so many names.
const FIRST_TEXT: u32 = FIRST_MARK_NAME + (1 << 24);
/// So many different names are kept.
const MOST_NAMES: usize = 100_000;
/// So many regions of one thread are open at a time.
const MOST_OPEN: usize = 1_000;

/// A mark, without time and thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextMark {
    pub code: u32,
    pub kind: MarkKind,
    pub pairing: Pairing,
    /// The first argument.
    pub argument: i64,
}

/// What was written so far.
#[derive(Default)]
pub(crate) struct TextMarks {
    codes: HashMap<String, u32>,
    /// The regions that each thread has begun by `B`.
    open: HashMap<Utid, Vec<u32>>,
}

impl TextMarks {
    /// The mark that a text of a thread is; none if it is empty or ends what did not begin. A new name gets
    /// a row in `names`.
    pub(crate) fn read(
        &mut self,
        thread: Utid,
        text: &[u8],
        names: &mut MarkNames,
    ) -> Option<TextMark> {
        let end = text.iter().position(|&byte| byte == 0);
        let text = String::from_utf8_lossy(&text[..end.unwrap_or(text.len())]);
        let text = text.trim_end();
        if text.is_empty() {
            return None;
        }
        let mut mark = |kind, pairing, name: &str, argument| {
            Some(TextMark {
                code: self.code(name, names)?,
                kind,
                pairing,
                argument,
            })
        };
        let number = |text: &str| text.parse::<i64>().ok();
        let words: Vec<&str> = text.splitn(4, '|').collect();
        match words[..] {
            ["B", _, ref name @ ..] if !name.is_empty() => {
                let mark = mark(MarkKind::Begin, Pairing::Thread, &name.join("|"), 0)?;
                let open = self.open.entry(thread).or_default();
                if open.len() == MOST_OPEN {
                    open.remove(0);
                }
                open.push(mark.code);
                Some(mark)
            }
            ["E"] | ["E", _] => {
                let code = self.open.get_mut(&thread)?.pop()?;
                Some(TextMark {
                    code,
                    kind: MarkKind::End,
                    pairing: Pairing::Thread,
                    argument: 0,
                })
            }
            [step @ ("S" | "F"), _, name, cookie] if number(cookie).is_some() => {
                let kind = match step {
                    "S" => MarkKind::Begin,
                    _ => MarkKind::End,
                };
                mark(kind, Pairing::Argument, name, number(cookie)?)
            }
            ["C", _, name, value] if number(value).is_some() => {
                mark(MarkKind::Point, Pairing::Thread, name, number(value)?)
            }
            ["I", _, name] => mark(MarkKind::Point, Pairing::Thread, name, 0),
            _ => mark(MarkKind::Point, Pairing::Thread, text, 0),
        }
    }

    fn code(&mut self, name: &str, names: &mut MarkNames) -> Option<u32> {
        if let Some(&code) = self.codes.get(name) {
            return Some(code);
        }
        if self.codes.len() >= MOST_NAMES {
            return None;
        }
        let code = FIRST_TEXT + self.codes.len() as u32;
        self.codes.insert(name.to_owned(), code);
        names.push(MarkName {
            code,
            name: name.to_owned(),
        });
        Some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What texts become: name, kind, pairing, argument.
    fn read(texts: &[(Utid, &str)]) -> Vec<Option<(String, MarkKind, Pairing, i64)>> {
        let (mut marks, mut names) = (TextMarks::default(), MarkNames::default());
        let mut read = |&(thread, text): &(Utid, &str)| {
            let mark = marks.read(thread, text.as_bytes(), &mut names)?;
            let at = names.code.iter().position(|&code| code == mark.code)?;
            let name = names.name[at].clone();
            Some((name, mark.kind, mark.pairing, mark.argument))
        };
        texts.iter().map(&mut read).collect()
    }

    /// Texts as atrace writes them are regions, counters and points.
    #[test]
    fn texts_of_atrace() {
        let found = read(&[
            (1, "B|77|draw\n"),
            (1, "B|77|a|b|c"),
            (2, "E|77"),
            (1, "E|77\n"),
            (1, "E"),
            (1, "E"),
            (1, "S|77|load|-5"),
            (2, "F|77|load|-5\0junk"),
            (1, "C|77|queue|12"),
            (1, "I|77|vsync"),
        ]);
        let mark =
            |name: &str, kind, pairing, argument| Some((name.to_owned(), kind, pairing, argument));
        let (begin, end, point) = (MarkKind::Begin, MarkKind::End, MarkKind::Point);
        let expected = [
            mark("draw", begin, Pairing::Thread, 0),
            mark("a|b|c", begin, Pairing::Thread, 0),
            None,
            mark("a|b|c", end, Pairing::Thread, 0),
            mark("draw", end, Pairing::Thread, 0),
            None,
            mark("load", begin, Pairing::Argument, -5),
            mark("load", end, Pairing::Argument, -5),
            mark("queue", point, Pairing::Thread, 12),
            mark("vsync", point, Pairing::Thread, 0),
        ];
        assert_eq!(found, expected);
    }

    /// Any other text is a point of that name; an empty one is nothing.
    #[test]
    fn other_texts() {
        let texts = [
            "frame 12 done\n",
            "S|77|load|now",
            "B|77",
            "",
            "\n",
            "E|a|b",
        ];
        let names: Vec<Option<String>> = read(&texts.map(|text| (1, text)))
            .into_iter()
            .map(|mark| {
                mark.map(|(name, kind, ..)| {
                    assert_eq!(kind, MarkKind::Point);
                    name
                })
            })
            .collect();
        let point = |name: &str| Some(name.to_owned());
        let expected = [
            point("frame 12 done"),
            point("S|77|load|now"),
            point("B|77"),
            None,
            None,
            point("E|a|b"),
        ];
        assert_eq!(names, expected);
    }

    proptest! {
        /// Whatever is written, a name has one code, and every code has a name.
        #[test]
        fn hostile(texts in proptest::collection::vec((0u32..3, any::<[u8; 12]>()), 0..40)) {
            let (mut marks, mut names) = (TextMarks::default(), MarkNames::default());
            for (thread, text) in &texts {
                if let Some(mark) = marks.read(*thread, text, &mut names) {
                    prop_assert!(names.code.contains(&mark.code));
                }
            }
            let mut known = names.name.clone();
            known.sort();
            known.dedup();
            prop_assert_eq!(known.len(), names.name.len());
        }
    }
}
