//! Writes a trace's text form as a trace: `from_text IN.trace OUT.hang`. Tests of other languages
//! make their traces with it.

use hangdog_trace::{Meta, text};
use std::error::Error;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let (Some(from), Some(to)) = (args.next(), args.next()) else {
        return Err("usage: from_text IN.trace OUT.hang".into());
    };
    text::parse(&fs::read_to_string(from)?)?.write_to(to, Meta::default())?;
    Ok(())
}
