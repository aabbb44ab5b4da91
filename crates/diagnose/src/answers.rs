//! What a user told hangdog, as a text file beside a trace: replayed at every diagnosis, kept
//! word for word, and taken back by number.
//!
//! An answer holds for every wait of the same [`Shape`], in this trace and in any other that the
//! file is given to.

use serde::{Deserialize, Serialize};
use std::fmt;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use crate::shape::Shape;

/// The version of the file's form that is written and read.
const VERSION: i64 = 1;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Its number, by which it can be taken back.
    pub number: u32,
    /// What was asked, for the reader.
    #[serde(default)]
    pub question: String,
    /// Who ended such a wait: a role, or [`NOBODY`](crate::shape::NOBODY).
    pub choice: String,
    /// The waits that it holds for.
    pub wait: Shape,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: i64,
    #[serde(default, rename = "answer")]
    answers: Vec<Answer>,
}

/// All answers, with the text that they were read from.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    answers: Vec<Answer>,
    text: String,
}

/// What is wrong with a file of answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswersError {
    /// The line, from 1, if it is one that is wrong.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for AnswersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for AnswersError {}

impl Answers {
    /// Reads a file's text.
    ///
    /// # Errors
    /// The line that is wrong, and how.
    pub fn parse(text: &str) -> Result<Answers, AnswersError> {
        let document: Document = toml_edit::de::from_str(text).map_err(|error| AnswersError {
            line: error.span().map(|span| line_at(text, span.start)),
            what: error.message().trim().replace('\n', "; "),
        })?;
        if document.version != VERSION {
            return Err(AnswersError {
                line: line_of(text, "version"),
                what: format!(
                    "version {} is not known, only {VERSION} is",
                    document.version
                ),
            });
        }
        let answers = document.answers;
        for (at, answer) in answers.iter().enumerate() {
            if answers[..at].iter().any(|a| a.number == answer.number) {
                let what = format!("two answers have the number {}", answer.number);
                return Err(AnswersError { line: None, what });
            }
        }
        Ok(Answers {
            answers,
            text: text.to_owned(),
        })
    }

    /// The file's text: what was read, with what was added and taken back since.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All answers, in the order in which they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Answer> {
        self.answers.iter()
    }

    /// The answer that holds for a wait of this shape: the last given.
    pub fn to(&self, shape: &Shape) -> Option<&Answer> {
        self.answers.iter().rev().find(|a| a.wait == *shape)
    }

    /// The same with one more answer, in place of an earlier one for the same shape: for a
    /// diagnosis, without a text.
    pub(crate) fn supposing(&self, wait: Shape, choice: String) -> Answers {
        let mut answers = self.answers.clone();
        answers.push(Answer {
            number: 0,
            question: String::new(),
            choice,
            wait,
        });
        Answers {
            answers,
            text: String::new(),
        }
    }

    /// Adds an answer and gives its number.
    ///
    /// # Errors
    /// If the text cannot be edited, which only one that was not read by [`Answers::parse`] can
    /// cause; if an answer has the largest number.
    pub fn add(&mut self, question: &str, wait: Shape, choice: &str) -> Result<u32, AnswersError> {
        let last = self.answers.iter().map(|a| a.number).max().unwrap_or(0);
        let number = last.checked_add(1).ok_or_else(|| AnswersError {
            line: None,
            what: format!("no number comes after {last}: give that answer a smaller one"),
        })?;
        let mut document = self.document()?;
        document.entry("version").or_insert(value(VERSION));
        let mut table = Table::new();
        table["number"] = value(i64::from(number));
        table["question"] = value(question);
        table["choice"] = value(choice);
        let mut place = Table::new();
        place["waiter"] = value(&wait.waiter);
        place["call"] = value(&wait.call);
        place["at"] = value(wait.at.iter().collect::<toml_edit::Array>());
        table["wait"] = Item::Table(place);
        let list = document
            .entry("answer")
            .or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        match list.as_array_of_tables_mut() {
            Some(list) => list.push(table),
            None => return Err(self.no_list()),
        }
        self.text = document.to_string();
        self.answers.push(Answer {
            number,
            question: question.to_owned(),
            choice: choice.to_owned(),
            wait,
        });
        Ok(number)
    }

    /// Takes an answer back. Whether there was one of this number.
    ///
    /// # Errors
    /// As [`Answers::add`].
    pub fn forget(&mut self, number: u32) -> Result<bool, AnswersError> {
        let Some(at) = self.answers.iter().position(|a| a.number == number) else {
            return Ok(false);
        };
        let mut document = self.document()?;
        match document
            .get_mut("answer")
            .and_then(Item::as_array_of_tables_mut)
        {
            Some(list) => {
                list.remove(at);
            }
            None => return Err(self.no_list()),
        }
        self.text = document.to_string();
        self.answers.remove(at);
        Ok(true)
    }

    fn no_list(&self) -> AnswersError {
        AnswersError {
            line: line_of(&self.text, "answer"),
            what: "write answers as [[answer]]".to_owned(),
        }
    }

    fn document(&self) -> Result<DocumentMut, AnswersError> {
        self.text
            .parse()
            .map_err(|error: toml_edit::TomlError| AnswersError {
                line: error.span().map(|span| line_at(&self.text, span.start)),
                what: error.message().to_owned(),
            })
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset)
        .filter(|&byte| byte == b'\n')
        .count()
}

fn line_of(text: &str, start: &str) -> Option<usize> {
    let line = text
        .lines()
        .position(|line| line.trim_start().starts_with(start))?;
    Some(line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(waiter: &str) -> Shape {
        Shape {
            waiter: waiter.to_owned(),
            call: "futex".to_owned(),
            at: vec!["pthread_cond_wait".to_owned(), "next_job".to_owned()],
        }
    }

    /// What was added reads back the same, and is found by its shape alone.
    #[test]
    fn answers_read_back() {
        let mut answers = Answers::default();
        answers.add("Who?", shape("a/b"), "a/c").expect("added");
        let read = Answers::parse(answers.text()).expect("its own text");
        assert_eq!(
            read.to(&shape("a/b")).map(|a| a.choice.as_str()),
            Some("a/c")
        );
        assert_eq!(read.to(&shape("a/x")), None);
    }

    /// Taking an answer back leaves the others, their numbers, and what a person wrote beside them.
    #[test]
    fn forgetting_keeps_the_rest() {
        let mut answers = Answers::parse("# mine\nversion = 1\n").expect("an empty file");
        for name in ["a/a", "b/b", "c/c"] {
            answers.add("Who?", shape(name), "x/y").expect("added");
        }
        assert_eq!(answers.forget(2), Ok(true));
        assert_eq!(answers.forget(2), Ok(false));
        let read = Answers::parse(answers.text()).expect("its own text");
        assert_eq!(read.iter().map(|a| a.number).collect::<Vec<_>>(), [1, 3]);
        assert!(read.text().starts_with("# mine\n"));
        assert_eq!(answers.add("Who?", shape("d/d"), "x/y"), Ok(4));
    }

    /// No number comes after the largest that an answer can have: a further answer is refused in a sentence.
    #[test]
    fn the_last_number_is_taken() {
        let text = "version = 1\n[[answer]]\nnumber = 4294967295\nchoice = \"a/b\"\n\
                    [answer.wait]\nwaiter = \"a/a\"\ncall = \"futex\"\nat = []\n";
        let mut answers = Answers::parse(text).expect("a file");
        let refused = answers.add("Who?", shape("b/b"), "x/y").unwrap_err();
        assert!(refused.what.contains("4294967295"), "{refused}");
        assert_eq!((answers.text(), answers.iter().len()), (text, 1));
        assert_eq!(answers.forget(u32::MAX), Ok(true));
        assert_eq!(answers.add("Who?", shape("b/b"), "x/y"), Ok(1));
    }

    /// A damaged file is refused with the line that is wrong.
    #[test]
    fn damage_is_told_by_its_line() {
        let mut answers = Answers::default();
        answers.add("Who?", shape("a/b"), "a/c").expect("added");
        let good = answers.text().to_owned();
        let at = |text: &str| Answers::parse(text).expect_err("damaged").line;
        let lines: Vec<&str> = good.lines().collect();
        let number = lines
            .iter()
            .position(|l| l.starts_with("number"))
            .expect("a number");
        assert_eq!(
            at(&good.replace("number = 1", "number = one")),
            Some(number + 1)
        );
        assert_eq!(
            at(&good.replace("number = 1", "number = \"1\"")),
            Some(number + 1)
        );
        assert_eq!(at("version = 1\n[[answer]\n"), Some(2));
        assert_eq!(at("# note\nversion = 7\n"), Some(2));
        assert_eq!(at("version = 1\nanswers = 3\n"), Some(2));
    }

    /// Two answers of one number could not be taken back: refused.
    #[test]
    fn numbers_are_unique() {
        let mut answers = Answers::default();
        answers.add("Who?", shape("a/b"), "a/c").expect("added");
        let twice = answers.text().replace("version = 1\n", "");
        let text = format!("{}{twice}", answers.text());
        let error = Answers::parse(&text).expect_err("two numbers 1");
        assert!(error.what.contains("number 1"), "{error}");
    }
}
