//! The part of a verdict's text that says what a thread did while it ran.
//!
//! Shares are rounded to whole percents: samples do not tell more.

use crate::output::{Colour, Paint};
use hangdog_diagnose::verdict::{Common, EarlyEnds, FunctionShare, Ran};
use hangdog_report::format;
use std::io::{self, Write};

/// So many functions are shown, those with a share of their own first; JSON has more.
const MOST_ROWS: usize = 8;
/// So many are shown however small their own share is.
const FEWEST_ROWS: usize = 3;
/// A function's own share that is worth a row.
const ROW: f64 = 0.01;
/// Stacks that end early are told of from this share on.
const RELEVANT: f64 = 0.01;

/// Writes it, under a heading of its own.
pub fn print(out: &mut impl Write, paint: &Paint, ran: &Ran) -> io::Result<()> {
    writeln!(out, "\n{}", paint.text(Colour::Heading, "What ran"))?;
    let others = match ran.threads.saturating_sub(1) {
        0 => String::new(),
        others => {
            let others = format::things(others as u64, "other thread", "other threads");
            format!(" and {others} of its process")
        }
    };
    let name = super::name::name(&ran.who) + &others;
    let time = format::duration(ran.ns);
    match (&ran.common, ran.samples) {
        (_, 0) => writeln!(
            out,
            "  {name} ran {time}; no samples show in which functions"
        )?,
        (None, _) => {
            let what = match generated(ran) {
                Some(share) => format!(
                    "{} of it is code made while the program ran (by a just-in-time compiler, say), without names",
                    percent(share)
                ),
                None => "no function is in most of the samples".to_owned(),
            };
            writeln!(out, "  {name} ran {time}; {what}")?
        }
        (Some(common), _) => writeln!(out, "  {name} ran {time}: {}", in_common(common))?,
    }
    if let Some(begun) = &ran.begun {
        let at = format::moment(begun.at_ns);
        writeln!(out, "  started at {at}: {}", format::printable(&begun.text))?;
    }
    let Some(error) = ran.share_error else {
        return Ok(());
    };
    writeln!(
        out,
        "  {}: shares are off by at most {:.0} points (95 % sure)",
        format::things(ran.samples, "sample", "samples"),
        (error * 100.0).ceil()
    )?;
    print_functions(out, ran)?;
    if let Some(text) = early_ends(&ran.early_ends) {
        writeln!(out, "  {text}")?;
    }
    Ok(())
}

/// The share of code that is in no file, where that is most of what ran.
fn generated(ran: &Ran) -> Option<f64> {
    const MOST: f64 = 0.5;
    let in_no_file = |name: &str| name.starts_with("[anonymous]");
    let functions = (ran.functions.iter()).filter(|function| in_no_file(&function.function));
    let share = functions.map(|function| function.own).sum::<f64>();
    (share >= MOST).then_some(share)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// `97 % in resize_all (image.c:214) -> 61 % scale_row, 30 % memcpy@libc.so.6`
fn in_common(common: &Common) -> String {
    let function = &common.function;
    let mut place: Vec<String> = place_of(function).into_iter().map(str::to_owned).collect();
    if let Some(outer) = &function.inlined_into {
        place.push(format!("inlined into {outer}"));
    }
    let hot: Vec<String> = common
        .hot
        .iter()
        .filter(|hot| hot.share >= 0.005)
        .map(|hot| {
            let is_itself = (&hot.function, &hot.module) == (&function.function, &function.module);
            let name = match &hot.module {
                _ if is_itself => "itself".to_owned(),
                Some(module) if Some(module) != function.module.as_ref() => {
                    format!("{}@{module}", hot.function)
                }
                _ => hot.function.clone(),
            };
            format!("{} {name}", percent(hot.share))
        })
        .collect();
    let text = format!(
        "{} in {} ({}) -> {}",
        percent(function.total),
        function.function,
        place.join(", "),
        hot.join(", ")
    );
    format::printable(&text).into_owned()
}

fn print_functions(out: &mut impl Write, ran: &Ran) -> io::Result<()> {
    writeln!(out, "  {:>7}  {:>7}  function", "self", "total")?;
    let mut row = |own: &str, total: &str, text: &str| {
        let line = format!("  {own:>7}  {total:>7}  {text}");
        writeln!(out, "{}", line.trim_end())
    };
    let worth_a_row = ran.functions.partition_point(|f| f.own >= ROW);
    let shown = worth_a_row
        .clamp(FEWEST_ROWS, MOST_ROWS)
        .min(ran.functions.len());
    for function in &ran.functions[..shown] {
        let text = format::printable(&placed(function)).into_owned();
        row(&percent(function.own), &percent(function.total), &text)?;
    }
    let more = &ran.functions[shown..];
    let others: f64 = ran.others + more.iter().map(|function| function.own).sum::<f64>();
    if !more.is_empty() || others >= 0.005 {
        row(&percent(others), "", "other functions")?;
    }
    if ran.unknown > 0.0 {
        row(&percent(ran.unknown), "", "unknown: no stack, or no module")?;
    }
    Ok(())
}

/// The line, without folders, or the module.
fn place_of(function: &FunctionShare) -> Option<&str> {
    let place = function.source.as_deref().or(function.module.as_deref())?;
    place.rsplit('/').next()
}

fn placed(function: &FunctionShare) -> String {
    let mut text = function.function.clone();
    if let Some(place) = place_of(function) {
        text += &format!("  {place}");
    }
    if let Some(outer) = &function.inlined_into {
        text += &format!(", inlined into {outer}");
    }
    text
}

/// How many stacks do not tell it all, where that matters.
fn early_ends(ends: &[EarlyEnds]) -> Option<String> {
    let share: f64 = ends.iter().map(|end| end.share).sum();
    if share < RELEVANT {
        return None;
    }
    let kinds: Vec<String> = ends
        .iter()
        .map(|end| match end.why {
            "unknown" => format!("{} not recorded why", percent(end.share)),
            why => format!("{} {why}", percent(end.share)),
        })
        .collect();
    Some(format!(
        "{} of the stacks may lack outer functions ({}): totals may be higher than shown",
        percent(share),
        kinds.join(", ")
    ))
}
