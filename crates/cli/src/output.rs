//! Where reports go: standard output, with colours where somebody looks at it.

use serde::Serialize;
use std::env;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, StdoutLock, Write};

/// Standard output, locked and buffered; flush it at the end to learn of errors.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Prints an answer as JSON.
pub fn json(answer: &impl Serialize) -> anyhow::Result<()> {
    let mut out = stdout();
    serde_json::to_writer_pretty(&mut out, answer).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// Whether the reader has closed the pipe (`| head`): then it has what it wanted.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// A colour of the terminal, by what it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    Heading,
    Good,
    Warning,
    Bad,
    Quiet,
}

/// Puts colours on text, or does not.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Colours if standard output is a terminal that has them and the user does not mind
    /// (NO_COLOR, <https://no-color.org>).
    pub fn for_stdout() -> Paint {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        Paint {
            on: io::stdout().is_terminal() && !refused && !dumb,
        }
    }

    /// No colours.
    pub fn none() -> Paint {
        Paint { on: false }
    }

    /// Whether there are colours.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// The text, coloured.
    pub fn text(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Heading => "1",
            Colour::Good => "32",
            Colour::Warning => "33",
            Colour::Bad => "31",
            Colour::Quiet => "2",
        };
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without colours a text stays as it is.
    #[test]
    fn paint() {
        assert_eq!(Paint { on: false }.text(Colour::Bad, "x"), "x");
        assert_eq!(
            Paint { on: true }.text(Colour::Bad, "x"),
            "\x1b[31mx\x1b[0m"
        );
    }
}
