//! Variables of programs: where one lies in the memory of a process, by its name, and the other way
//! round.

use std::collections::HashSet;

use crate::image::Segment;
use crate::maps::{self, Mapping};
use crate::place::{Place, Terms};
use crate::reader::{PATIENCE, Reader};
use crate::request::{Request, Response};
use crate::symbol_table::Sought;

/// A variable in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name, demangled.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// Its size in bytes; 0 if the symbol does not tell.
    pub size: u64,
    /// The file that it is of.
    pub file: String,
}

/// Where in memory the file's own count begins, for a file that is mapped so.
fn bias(mapping: &Mapping, code: &[Segment]) -> Option<u64> {
    let segment = code.iter().find(|segment| {
        let end = segment.file_offset.saturating_add(segment.file_size);
        mapping.file_offset < end
            && segment.file_offset < mapping.file_offset + (mapping.end - mapping.start)
    })?;
    let of_start =
        (segment.address.wrapping_sub(segment.file_offset)).wrapping_add(mapping.file_offset);
    Some(mapping.start.wrapping_sub(of_start))
}

fn ask(reader: &mut Reader, pid: u32, mapping: &Mapping, sought: Sought) -> Vec<Variable> {
    let place = Place::Mapped {
        pid,
        start: mapping.start,
        end: mapping.end,
    };
    let files = [(place, Terms::elf())];
    let request = Request::Symbols(sought);
    let Response::Symbols { found, code } = reader.ask(&mapping.path, &files, &request, PATIENCE)
    else {
        return Vec::new();
    };
    let Some(bias) = bias(mapping, &code) else {
        return Vec::new();
    };
    let found = found.into_iter().map(|symbol| Variable {
        name: symbol.name,
        address: symbol.address.wrapping_add(bias),
        size: symbol.size,
        file: mapping.path.clone(),
    });
    found.collect()
}

/// The files that a process runs code of, each once.
fn files(pid: u32) -> Vec<Mapping> {
    let mut seen = HashSet::new();
    let mapped = maps::executable(pid).into_iter();
    mapped
        .filter(|mapping| mapping.path.starts_with('/') && seen.insert(mapping.path.clone()))
        .collect()
}

/// The variables of a process that have this name, those of its program first.
pub fn named(pid: u32, name: &str) -> Vec<Variable> {
    let mut reader = Reader::default();
    let files = files(pid).into_iter();
    files
        .flat_map(|mapping| {
            ask(
                &mut reader,
                pid,
                &mapping,
                Sought::Variable(name.to_owned()),
            )
        })
        .collect()
}

/// The variable of a process that lies at an address, if it has a name.
pub fn at(pid: u32, address: u64) -> Option<Variable> {
    let mut reader = Reader::default();
    let path = path_at(pid, address)?;
    let mapping = files(pid)
        .into_iter()
        .find(|mapping| mapping.path == path)?;
    // Where the file's own count begins is told only with an answer.
    let place = Place::Mapped {
        pid,
        start: mapping.start,
        end: mapping.end,
    };
    let own = address.wrapping_sub(bias_of(&mut reader, place, &mapping)?);
    ask(&mut reader, pid, &mapping, Sought::VariableAt(own))
        .into_iter()
        .next()
}

/// The variable of a file at an address of a process that may be gone, with its name and where in it the address is;
/// `mapping` is one of the file's code there.
pub fn in_mapping(mapping: &Mapping, address: u64) -> Option<(String, u64)> {
    let mut reader = Reader::default();
    let place = Place::Linked(mapping.path.clone().into());
    let own = address.wrapping_sub(bias_of(&mut reader, place.clone(), mapping)?);
    let request = Request::Symbols(Sought::VariableAt(own));
    let answer = reader.ask(&mapping.path, &[(place, Terms::elf())], &request, PATIENCE);
    let Response::Symbols { found, .. } = answer else {
        return None;
    };
    let symbol = found.into_iter().next()?;
    Some((symbol.name, own.wrapping_sub(symbol.address)))
}

/// Where in memory the own count of a mapped file begins, which is at `place`.
fn bias_of(reader: &mut Reader, place: Place, mapping: &Mapping) -> Option<u64> {
    let request = Request::Describe {
        build_id: String::new(),
    };
    let answer = reader.ask(&mapping.path, &[(place, Terms::elf())], &request, PATIENCE);
    let Response::Image(_, image) = answer else {
        return None;
    };
    bias(mapping, &image.code)
}

/// The file that lies at an address, or right before memory that belongs to it and has no file (.bss).
fn path_at(pid: u32, address: u64) -> Option<String> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut last = (0, String::new());
    for line in text.lines() {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        let path = words.nth(4).unwrap_or("").trim_start();
        let path = match path {
            "" if last.0 == start => last.1.clone(),
            path => path.to_owned(),
        };
        if (start..end).contains(&address) {
            return path.starts_with('/').then_some(path);
        }
        last = (end, path);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    static WATCHED_BY_A_TEST: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(7);

    /// A variable of this very process is found by its name, at its address and with its size; and at
    /// its address, its name.
    #[test]
    fn a_variable_of_this_process_is_found() {
        let address = &raw const WATCHED_BY_A_TEST as u64;
        let pid = std::process::id();
        let found = named(pid, "WATCHED_BY_A_TEST");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].address, found[0].size), (address, 4));
        assert!(found[0].name.ends_with("::WATCHED_BY_A_TEST"), "{found:?}");
        assert_eq!(at(pid, address + 2), Some(found[0].clone()));
        assert_eq!(named(pid, "BY_A_TEST"), []);
    }
}
