//! Functions of files: where in the file one lies, by its name, and the other way round.

use std::path::Path;

use hangdog_trace::ids::NONE;
use hangdog_trace::tables::{Frame, Frames, Module, Modules, Symbols};
use hangdog_trace::words::ModuleKind;

use crate::place::{Place, Terms};
use crate::reader::{PATIENCE, Reader};
use crate::request::{Request, Response};
use crate::symbol_table::Sought;
use crate::{Namer, Origin};

/// A function of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, demangled.
    pub name: String,
    /// Where its code begins in the file, bytes.
    pub offset: u64,
    /// How long its code is, bytes; 0 if the symbol does not tell.
    pub size: u64,
}

/// The functions of an ELF file that a person may mean by a name: the whole name or its end behind `::`, with or
/// without parameters. Several, if they differ in these or in what they are templates of; none also if the file
/// cannot be read.
pub fn named(path: &Path, name: &str) -> Vec<Function> {
    let files = [(Place::Linked(path.to_owned()), Terms::elf())];
    let request = Request::Symbols(Sought::Function(name.to_owned()));
    let label = path.display().to_string();
    let answer = Reader::default().ask(&label, &files, &request, PATIENCE);
    let Response::Symbols { found, code } = answer else {
        return Vec::new();
    };
    let of_symbol = found.into_iter().filter_map(|symbol| {
        let segment = (code.iter()).find(|it| {
            let end = it.address.saturating_add(it.file_size);
            (it.address..end).contains(&symbol.address)
        })?;
        Some(Function {
            name: symbol.name,
            offset: symbol.address - segment.address + segment.file_offset,
            size: symbol.size,
        })
    });
    of_symbol.collect()
}

/// The function that a place of a file is in, the innermost if it was inlined there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Within {
    /// The function, demangled.
    pub function: String,
    /// File and line of the source, as file:line; empty where no debug information tells.
    pub source: String,
}

/// In which functions places of a file are, given by where they are in it; `None` where the file tells nothing. A
/// function that nobody names is called after its place.
pub fn at(path: &Path, offsets: &[u64]) -> Vec<Option<Within>> {
    let (mut modules, mut frames, mut symbols) =
        (Modules::default(), Frames::default(), Symbols::default());
    modules.push(Module {
        module: 0,
        kind: ModuleKind::File.into(),
        path: path.to_string_lossy().into_owned(),
        build_id: String::new(),
        process: NONE,
    });
    for (frame, &offset) in offsets.iter().enumerate() {
        frames.push(Frame {
            frame: frame as u32,
            module: 0,
            offset,
        });
    }
    let origin = Origin {
        same_boot: true,
        process: &|_| None,
        mapped_from: &|_| None,
    };
    Namer::default().name(&modules, &frames, &origin, &mut symbols, |_, _| {});
    let mut found: Vec<Option<(u16, Within)>> = vec![None; offsets.len()];
    for row in 0..symbols.len() {
        let place = &mut found[symbols.frame[row] as usize];
        let depth = symbols.inline_depth[row];
        if place.as_ref().is_none_or(|(known, _)| *known <= depth) {
            let within = Within {
                function: symbols.function[row].clone(),
                source: symbols.source[row].clone(),
            };
            *place = Some((depth, within));
        }
    }
    found
        .into_iter()
        .map(|it| it.map(|(_, within)| within))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of this very program lies where the file has it.
    #[test]
    fn a_function_of_this_program_is_found() {
        let program = std::env::current_exe().unwrap();
        let found = named(&program, "functions::named");
        assert_eq!(found.len(), 1, "{found:?}");
        let mapping = crate::maps::executable(std::process::id()).into_iter();
        let address = named as *const () as u64;
        let mapping = { mapping }.find(|it| (it.start..it.end).contains(&address));
        let mapping = mapping.unwrap();
        assert_eq!(
            found[0].offset,
            address - mapping.start + mapping.file_offset
        );
        assert!(found[0].size > 0);
        let within = at(&program, &[found[0].offset]);
        let function = &within[0].as_ref().unwrap().function;
        assert!(function.ends_with("named"), "{within:?}");
    }

    /// Of a file that is none, and of a name that nobody has, there are none.
    #[test]
    fn what_is_not_there() {
        assert_eq!(named(Path::new("/nowhere"), "main"), []);
        assert_eq!(named(Path::new("/proc/self/exe"), "no_such_function"), []);
    }
}
