//! Asking the user, at the terminal, what only the user may know.

use crate::output::{Colour, Paint};
use anyhow::Result;
use hangdog_diagnose::verdict::Question;
use hangdog_report::format;
use std::io::{BufRead, Write};

/// So many frames are shown of where a thread waited.
const FRAMES: usize = 6;

/// What a user said to a question.
pub enum Said {
    /// Nothing: the default will do.
    Default,
    /// This possibility.
    Chosen(usize),
    /// Ask no more.
    Enough,
}

/// Shows a question with its evidence and asks. An empty line takes the default.
pub fn ask(
    question: &Question,
    input: &mut impl BufRead,
    out: &mut impl Write,
    paint: &Paint,
) -> Result<Said> {
    writeln!(
        out,
        "{}",
        paint.text(Colour::Heading, &format::printable(&question.text))
    )?;
    writeln!(
        out,
        "  from {} for {}",
        format::moment(question.from_ns),
        format::duration(question.to_ns - question.from_ns)
    )?;
    if !question.at.is_empty() {
        let frames: Vec<&str> = question
            .at
            .iter()
            .map(String::as_str)
            .take(FRAMES)
            .collect();
        let line = format!("at {}", frames.join(" < "));
        let line = format::printable(&line);
        writeln!(out, "  {}", paint.text(Colour::Quiet, &line))?;
    }
    let default = question
        .possibilities
        .iter()
        .position(|possibility| possibility.chosen)
        .unwrap_or(0);
    for (at, possibility) in question.possibilities.iter().enumerate() {
        writeln!(
            out,
            "  {}. {} ({:.0} %): {}",
            at + 1,
            format::printable(&possibility.text),
            possibility.probability * 100.0,
            format::printable(&possibility.because)
        )?;
        let root = format!("the root is then: {}", format::printable(&possibility.root));
        writeln!(out, "     {}", paint.text(Colour::Quiet, &root))?;
    }
    loop {
        write!(out, "Which? [{}; q: ask no more] ", default + 1)?;
        out.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(out)?;
            return Ok(Said::Enough);
        }
        match line.trim() {
            "" => return Ok(Said::Default),
            "q" => return Ok(Said::Enough),
            number => match number.parse::<usize>() {
                Ok(number) if (1..=question.possibilities.len()).contains(&number) => {
                    return Ok(Said::Chosen(number - 1));
                }
                _ => writeln!(out, "a number from 1 to {}", question.possibilities.len())?,
            },
        }
    }
}
