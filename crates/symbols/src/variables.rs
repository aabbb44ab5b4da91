//! Variables of programs: where one lies in the memory of a process, by its name, and the other way
//! round.

use std::collections::HashSet;
use std::fs::File;

use object::read::ReadCache;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, SymbolKind};
use serde::{Deserialize, Serialize};

use crate::image::{Image, Segment};
use crate::maps::{self, Mapping};
use crate::name::demangled;
use crate::place::{Place, Terms};
use crate::reader::{PATIENCE, Reader};
use crate::request::{Request, Response};

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

/// What is looked for in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Sought {
    /// Variables of this name.
    Named(String),
    /// The variable at an address, by the file's own count.
    At(u64),
}

/// A variable as its file has it, by the file's own count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Symbol {
    pub name: String,
    pub address: u64,
    pub size: u64,
}

/// So many symbols are told; more have one name only in a damaged file.
const MOST: usize = 64;

/// Looks into a file.
pub(crate) fn answer(file: &File, sought: &Sought) -> Option<(Vec<Symbol>, Vec<Segment>)> {
    let code = Image::of(file)?.code;
    let cache = ReadCache::new(file);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let mut found: Vec<Symbol> = Vec::new();
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        if symbol.kind() != SymbolKind::Data || symbol.is_undefined() {
            continue;
        }
        let (Ok(raw), address, size) = (symbol.name(), symbol.address(), symbol.size()) else {
            continue;
        };
        let is_it = match sought {
            Sought::Named(wanted) => is_named(raw, wanted),
            Sought::At(place) => (address..address.saturating_add(size.max(1))).contains(place),
        };
        if is_it && !found.iter().any(|known| known.address == address) {
            let name = demangled(raw);
            found.push(Symbol {
                name,
                address,
                size,
            });
        }
        if found.len() == MOST {
            break;
        }
    }
    Some((found, code))
}

/// Whether a user may mean a symbol by a name: the whole, or its end behind `::`; and a variable of a
/// function, which C compilers give a number.
fn is_named(raw: &str, wanted: &str) -> bool {
    let ends = |name: &str| {
        let rest = name.strip_suffix(wanted);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
    };
    let without_number = raw.split_once('.').filter(|(_, number)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let last = wanted.rsplit("::").next().unwrap_or(wanted);
    raw == wanted
        || without_number.is_some_and(|(name, _)| name == wanted)
        || raw.contains(last) && ends(&demangled(raw))
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
    let request = Request::Variables(sought);
    let Response::Variables { found, code } = reader.ask(&mapping.path, &files, &request, PATIENCE)
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
        .flat_map(|mapping| ask(&mut reader, pid, &mapping, Sought::Named(name.to_owned())))
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
    let request = Request::Describe {
        build_id: String::new(),
    };
    let answer = reader.ask(&path, &[(place, Terms::elf())], &request, PATIENCE);
    let Response::Image(_, image) = answer else {
        return None;
    };
    let own = address.wrapping_sub(bias(&mapping, &image.code)?);
    ask(&mut reader, pid, &mapping, Sought::At(own))
        .into_iter()
        .next()
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

    /// What a user calls a variable: the symbol, its end behind `::`, or a function's without its number.
    #[test]
    fn names_are_ends() {
        assert!(is_named("ready", "ready"));
        assert!(is_named("ready.0", "ready"));
        assert!(!is_named("already", "ready"));
        assert!(is_named("_ZN3app5ready17h0123456789abcdefE", "ready"));
        assert!(is_named("_ZN3app5readyE", "app::ready"));
        assert!(!is_named("_ZN3app5readyE", "p::ready"));
    }
}
