//! `hangdog diverge`: where a run that goes well and one that does not part, and what decided it.

use super::step::ended;
use crate::args::DivergeArgs;
use crate::commands::NOTHING_FOUND;
use crate::output::{self, Colour, Paint};
use anyhow::{Context, Result};
use hangdog_flags::Map;
use hangdog_flags::call::{Call, End};
use hangdog_flags::call_file::Recorded;
use hangdog_flags::diverge::{self, Compared, Datum, Parting, Place, What};
use hangdog_report::format;
use hangdog_symbols::functions::{self, Within};
use hangdog_symbols::maps::Mapping;
use hangdog_symbols::variables;
use hangdog_trace::calls::Calls;
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Partings that are shown unless all are asked for.
const SHOWN: usize = 5;

/// The answer.
#[derive(Serialize)]
struct Answer {
    function: String,
    good: RunAnswer,
    bad: RunAnswer,
    /// Instructions of the function's file that both executed before they parted.
    common: usize,
    partings: Vec<PartingAnswer>,
}

#[derive(Serialize)]
struct RunAnswer {
    process: String,
    pid: u32,
    tid: u32,
    instructions: usize,
    returned: bool,
}

/// A place where they part.
#[derive(Serialize)]
struct PartingAnswer {
    at: PlaceAnswer,
    good_goes_to: Option<PlaceAnswer>,
    bad_goes_to: Option<PlaceAnswer>,
    /// Whether a branch of the file parts them; otherwise a library came back to different places.
    is_branch: bool,
    decided_by: Vec<DatumAnswer>,
    /// Instructions of the file before they meet again.
    good_alone: usize,
    bad_alone: usize,
    meet_again: bool,
}

#[derive(Clone, Serialize)]
struct PlaceAnswer {
    file: String,
    offset: String,
    function: Option<String>,
    source: Option<String>,
}

/// What a branch was decided by.
#[derive(Serialize)]
struct DatumAnswer {
    what: String,
    at: PlaceAnswer,
    good: String,
    bad: String,
    differs: bool,
}

/// Compares.
pub fn run(args: &DivergeArgs) -> Result<ExitCode> {
    let load = |path: &Path| {
        Recorded::load(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (good, bad) = (load(&args.good)?, load(&args.bad)?);
    let compared = diverge::compare(&good.call, &bad.call)?;
    let answer = answer(&good, &bad, &compared);
    match args.json {
        true => output::json(&answer)?,
        false => tell(&answer, [&good.call, &bad.call], args.all)?,
    }
    Ok(match answer.partings.is_empty() {
        true => NOTHING_FOUND.into(),
        false => ExitCode::SUCCESS,
    })
}

fn answer(good: &Recorded, bad: &Recorded, compared: &Compared) -> Answer {
    let names = Names::of(compared);
    let calls = Calls::new(std::env::consts::ARCH);
    let run = |recorded: &Recorded| RunAnswer {
        process: recorded.process.clone(),
        pid: recorded.pid,
        tid: recorded.call.tid,
        instructions: recorded.call.steps.len(),
        returned: recorded.call.end == End::Returned,
    };
    let datum = |datum: &Datum| DatumAnswer {
        what: what(datum, &good.call, &names, &calls),
        at: names.place(&datum.at),
        good: value(datum, 0),
        bad: value(datum, 1),
        differs: datum.values[0] != datum.values[1],
    };
    let parting = |parting: &Parting| PartingAnswer {
        at: names.place(&parting.branch),
        good_goes_to: parting.to[0].as_ref().map(|place| names.place(place)),
        bad_goes_to: parting.to[1].as_ref().map(|place| names.place(place)),
        is_branch: parting.is_branch,
        decided_by: parting.decided_by.iter().map(datum).collect(),
        good_alone: parting.apart[0],
        bad_alone: parting.apart[1],
        meet_again: parting.meets,
    };
    Answer {
        function: good.function.clone(),
        good: run(good),
        bad: run(bad),
        common: compared.common,
        partings: compared.partings.iter().map(parting).collect(),
    }
}

/// The functions that places are in.
struct Names(HashMap<Place, Within>);

impl Names {
    fn of(compared: &Compared) -> Names {
        let mut places: Vec<&Place> = Vec::new();
        for parting in &compared.partings {
            places.push(&parting.branch);
            places.extend(parting.to.iter().flatten());
            for datum in &parting.decided_by {
                places.push(&datum.at);
                if let What::Returned { from } = &datum.what {
                    places.push(from);
                }
            }
        }
        let mut by_file: HashMap<&str, Vec<u64>> = HashMap::new();
        for place in places {
            by_file.entry(&place.path).or_default().push(place.offset);
        }
        let mut known = HashMap::new();
        for (path, offsets) in by_file {
            let within = functions::at(Path::new(path), &offsets);
            let named = offsets.into_iter().zip(within);
            known.extend(named.filter_map(|(offset, within)| {
                let path = path.to_owned();
                Some((Place { path, offset }, within?))
            }));
        }
        Names(known)
    }

    fn place(&self, place: &Place) -> PlaceAnswer {
        let within = self.0.get(place);
        PlaceAnswer {
            file: place.path.clone(),
            offset: format!("{:#x}", place.offset),
            function: within.map(|it| it.function.clone()),
            source: within
                .map(|it| it.source.clone())
                .filter(|it| !it.is_empty()),
        }
    }
}

/// What decided, in words.
fn what(datum: &Datum, good: &Call, names: &Names, calls: &Calls) -> String {
    match &datum.what {
        What::Memory { addresses, size } => {
            let bytes = format::things(u64::from(*size), "byte", "bytes");
            let [address, other] = *addresses;
            match memory(good, address) {
                Some(place) => format!("{place}, {bytes}"),
                None if address == other => format!("memory at {address:#x}, {bytes}"),
                None => format!("memory at {address:#x} and {other:#x}, {bytes}"),
            }
        }
        What::Argument {
            register,
            number: Some(number),
        } => format!("argument {number} of the function ({register})"),
        What::Argument { register, .. } => format!("{register} as the function was called"),
        What::SystemCall { number } => {
            let name = i16::try_from(*number).ok().map(|number| calls.name(number));
            format!("the result of {}", name.unwrap_or("a system call".into()))
        }
        What::Returned { from } => match names.place(from).function {
            Some(function) => format!("what {function} returned"),
            None => format!("what a function of {} returned", from.path),
        },
    }
}

/// The variable at an address, or what kind of memory it is.
fn memory(call: &Call, address: u64) -> Option<String> {
    let at = (call.maps.iter()).position(|map| (map.start..map.end).contains(&address))?;
    let map = &call.maps[at];
    match map.path.as_str() {
        "[stack]" => return Some("the stack".to_owned()),
        "[heap]" => return Some(format!("the heap at {address:#x}")),
        _ => {}
    }
    // What has no file and follows a file's without a gap is the file's zeroed data.
    let mut start = map.start;
    let owner = call.maps[..=at].iter().rev().find_map(|before| {
        let is_next = before.end == start || before.start == start;
        start = before.start;
        Some(before.path.clone()).filter(|path| is_next && path.starts_with('/'))
    })?;
    let is_code = |map: &&Map| map.path == owner && map.permissions.contains('x');
    let code = call.maps.iter().find(is_code)?;
    let mapping = Mapping {
        start: code.start,
        end: code.end,
        file_offset: code.offset,
        path: code.path.clone(),
    };
    let (name, offset) = variables::in_mapping(&mapping, address)?;
    Some(match offset {
        0 => name,
        offset => format!("{name}+{offset}"),
    })
}

fn value(datum: &Datum, run: usize) -> String {
    let value = datum.values[run];
    // Small ones, also negative ones, as people count.
    let size = match datum.what {
        What::Memory { size, .. } => u32::from(size),
        // An int in a register leaves the upper half 0.
        _ if value <= u32::MAX.into() => 4,
        _ => 8,
    };
    let shift = 64 - 8 * size.clamp(1, 8);
    let signed = (value << shift).cast_signed() >> shift;
    let letter = u8::try_from(value).ok().filter(u8::is_ascii_graphic);
    match signed.unsigned_abs() {
        _ if let (1, Some(letter)) = (size, letter) => {
            format!("{signed} ('{}')", char::from(letter))
        }
        0..10_000 => signed.to_string(),
        _ => format!("{value:#x}"),
    }
}

fn place(place: &PlaceAnswer) -> String {
    let function = place.function.as_deref().unwrap_or(&place.offset);
    match &place.source {
        Some(source) => format!("{function} ({source})"),
        None => format!("{function}, {}+{}", place.file, place.offset),
    }
}

fn tell(answer: &Answer, calls: [&Call; 2], all: bool) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let instructions = |count: usize| format::things(count as u64, "instruction", "instructions");
    let function = format::printable(&answer.function);
    let Some(first) = answer.partings.first() else {
        writeln!(
            out,
            "The runs of {function} do not part in {} of its file.",
            instructions(answer.common)
        )?;
        for (name, call) in [("good", calls[0]), ("bad", calls[1])] {
            writeln!(
                out,
                "The {name} run was followed for {}, {}.",
                instructions(call.steps.len()),
                ended(call.end)
            )?;
        }
        return Ok(out.flush()?);
    };
    let cause = first.decided_by.iter().find(|datum| datum.differs);
    let cause = match cause {
        Some(datum) => format!(
            ": {} is {} in the good run and {} in the bad one",
            datum.what, datum.good, datum.bad
        ),
        None => String::new(),
    };
    writeln!(
        out,
        "{}",
        format::printable(&format!(
            "The runs of {function} part in {}{cause}.",
            place(&first.at)
        ))
    )?;
    let shown = if all { answer.partings.len() } else { SHOWN };
    let mut common = Some(answer.common);
    for (number, parting) in answer.partings.iter().enumerate().take(shown) {
        let heading = format!("Parting {}", number + 1);
        writeln!(out, "\n{}", paint.text(Colour::Heading, &heading))?;
        if let Some(common) = common.take() {
            writeln!(
                out,
                "  after {} of the file that are the same in both",
                instructions(common)
            )?;
        }
        let line = |name: &str, text: &str| format!("  {name:<9}{}", format::printable(text));
        writeln!(out, "{}", line("at", &place(&parting.at)))?;
        let goes = |to: &Option<PlaceAnswer>, alone: usize| match to {
            Some(to) if alone == 0 && parting.meet_again => {
                format!("goes on at {}, where they meet again", place(to))
            }
            Some(to) => format!("goes on at {}, {} alone", place(to), instructions(alone)),
            None => "is followed no further".to_owned(),
        };
        writeln!(
            out,
            "{}",
            line("good", &goes(&parting.good_goes_to, parting.good_alone))
        )?;
        writeln!(
            out,
            "{}",
            line("bad", &goes(&parting.bad_goes_to, parting.bad_alone))
        )?;
        if !parting.is_branch {
            writeln!(
                out,
                "  a library came back to different places: a callback, or an error that unwinds"
            )?;
        } else if parting.decided_by.is_empty() {
            writeln!(out, "  what decided it is not known")?;
        }
        for datum in &parting.decided_by {
            let values = match datum.differs {
                true => format!("{}: good {}, bad {}", datum.what, datum.good, datum.bad),
                false => format!("{}: {} in both", datum.what, datum.good),
            };
            writeln!(
                out,
                "{}",
                line(
                    "decided",
                    &format!("{values}; used at {}", place(&datum.at))
                )
            )?;
        }
        if !parting.meet_again {
            writeln!(out, "  they do not meet again")?;
        }
    }
    if answer.partings.len() > shown {
        writeln!(
            out,
            "\n{} more partings (--all)",
            answer.partings.len() - shown
        )?;
    }
    Ok(out.flush()?)
}
