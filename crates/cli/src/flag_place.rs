//! A flag to watch, as people type it: `server:ready`, `4711:app::READY`, `4711:0x7f12:4`.

use anyhow::{Context, Result, bail};
use hangdog_capture::flag::{Flag, with_sharers};
use hangdog_symbols::variables;
use std::fs;
use std::str::FromStr;

/// Where a flag is in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A variable.
    Symbol(String),
    /// An address.
    Address(u64),
}

/// A flag of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagPlace {
    /// Pid or name.
    pub process: String,
    pub place: Place,
    /// Bytes, where they are said.
    pub size: Option<u8>,
}

impl FromStr for FlagPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<FlagPlace, String> {
        let wrong = || "give PROCESS:SYMBOL or PROCESS:0xADDRESS:SIZE, as 4711:ready".to_owned();
        let (process, rest) = text.split_once(':').ok_or_else(wrong)?;
        // `a::b` is one name.
        let (place, size) = match rest.rsplit_once(':') {
            Some((place, size)) if !place.ends_with(':') => match size.parse() {
                Ok(size) => (place, Some(size)),
                Err(_) => (rest, None),
            },
            _ => (rest, None),
        };
        if process.is_empty() || place.is_empty() {
            return Err(wrong());
        }
        let place = match place.strip_prefix("0x") {
            Some(digits) => Place::Address(u64::from_str_radix(digits, 16).map_err(|_| wrong())?),
            None => Place::Symbol(place.to_owned()),
        };
        Ok(FlagPlace {
            process: process.to_owned(),
            place,
            size,
        })
    }
}

/// What they are in the processes that run now, with those of processes that share their memory.
///
/// # Errors
/// If there is no such process or variable, or it cannot be watched.
pub fn flags(places: &[FlagPlace]) -> Result<Vec<Flag>> {
    let flags: Vec<Flag> = places.iter().map(flag).collect::<Result<_>>()?;
    with_sharers(flags).map_err(anyhow::Error::msg)
}

fn flag(wanted: &FlagPlace) -> Result<Flag> {
    let pid = process(&wanted.process)?;
    let (address, size, name) = match &wanted.place {
        Place::Address(address) => {
            let name = (variables::at(pid, *address))
                .map_or_else(|| format!("{address:#x}"), |it| it.name);
            (*address, wanted.size.unwrap_or(4), name)
        }
        Place::Symbol(name) => {
            let found = variables::named(pid, name);
            let variable = match &found[..] {
                [] => bail!(
                    "process {pid} has no variable {name} in its symbol tables; give its address with \
                     its size (gdb -p {pid} -ex 'print &{name}')"
                ),
                [only] => only,
                several => {
                    let places: Vec<String> = (several.iter())
                        .map(|it| format!("{:#x} {} in {}", it.address, it.name, it.file))
                        .collect();
                    bail!(
                        "{name} is several variables, give the address of one: {}",
                        places.join("; ")
                    )
                }
            };
            let size = match (wanted.size, variable.size) {
                (Some(size), _) => size,
                (None, size @ (1 | 2 | 4 | 8)) => size as u8,
                (None, size) => bail!(
                    "{name} has {size} bytes, at {:#x}; give the address of the part to watch, and 1, \
                     2, 4 or 8 bytes",
                    variable.address
                ),
            };
            (variable.address, size, variable.name.clone())
        }
    };
    Ok(Flag {
        pid,
        address,
        size,
        name,
        memory: 0,
    })
}

/// The process with this pid or name.
///
/// # Errors
/// If there is none, or there are several with the name.
pub fn process(selector: &str) -> Result<u32> {
    if let Ok(pid) = selector.parse() {
        let is_there = fs::exists(format!("/proc/{pid}")).unwrap_or(false);
        return is_there
            .then_some(pid)
            .with_context(|| format!("there is no process {pid}"));
    }
    let entries = fs::read_dir("/proc").context("cannot read /proc")?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let named = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end_matches('\n') == selector
    };
    let found: Vec<u32> = pids.filter(named).collect();
    match found[..] {
        [only] => Ok(only),
        [] => bail!("no process is called {selector}"),
        _ => {
            let pids: Vec<String> = found.iter().map(u32::to_string).collect();
            bail!(
                "several processes are called {selector}, give a pid: {}",
                pids.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symbols may hold colons; sizes are numbers behind the last one; an error names what is missing.
    #[test]
    fn forms() {
        let place = |text: &str| text.parse::<FlagPlace>();
        let flag = |process: &str, place, size| FlagPlace {
            process: process.into(),
            place,
            size,
        };
        let symbol = |name: &str| Place::Symbol(name.into());
        assert_eq!(place("7:ready"), Ok(flag("7", symbol("ready"), None)));
        assert_eq!(place("srv:a::b"), Ok(flag("srv", symbol("a::b"), None)));
        assert_eq!(
            place("srv:a::b:8"),
            Ok(flag("srv", symbol("a::b"), Some(8)))
        );
        let address = Place::Address(0x7f12);
        assert_eq!(place("7:0x7f12:2"), Ok(flag("7", address, Some(2))));
        for text in ["", "ready", ":ready", "7:", "7:0xzz"] {
            assert!(place(text).is_err(), "{text}");
        }
    }
}
