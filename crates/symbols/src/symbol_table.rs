//! Symbols of files, by name or address.

use std::fs::File;

use object::read::ReadCache;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, SymbolKind};
use serde::{Deserialize, Serialize};

use crate::image::{Image, Segment};
use crate::name::demangled;

/// What is looked for in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Sought {
    /// Variables of this name.
    Variable(String),
    /// The variable at an address, by the file's own count.
    VariableAt(u64),
    /// Functions of this name.
    Function(String),
}

impl Sought {
    fn kind(&self) -> SymbolKind {
        match self {
            Sought::Variable(_) | Sought::VariableAt(_) => SymbolKind::Data,
            Sought::Function(_) => SymbolKind::Text,
        }
    }
}

/// A symbol as its file has it, by the file's own count.
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
        if symbol.kind() != sought.kind() || symbol.is_undefined() {
            continue;
        }
        let (Ok(raw), address, size) = (symbol.name(), symbol.address(), symbol.size()) else {
            continue;
        };
        let is_it = match sought {
            Sought::Variable(wanted) | Sought::Function(wanted) => is_named(raw, wanted),
            Sought::VariableAt(place) => {
                (address..address.saturating_add(size.max(1))).contains(place)
            }
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

/// Whether a user may mean a symbol by a name: the whole, or its end behind `::`, with the parameters of a
/// function or without; and a variable of a function, which C compilers give a number.
fn is_named(raw: &str, wanted: &str) -> bool {
    let ends = |name: &str| {
        let rest = name.strip_suffix(wanted);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
    };
    let without_number = raw.split_once('.').filter(|(_, number)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let plain = without_parameters(wanted);
    let last = plain.rsplit("::").next().unwrap_or(plain);
    let is_it = |name: &str| ends(name) || ends(without_parameters(name));
    raw == wanted
        || without_number.is_some_and(|(name, _)| name == wanted)
        || raw.contains(last) && is_it(&demangled(raw))
}

/// A C++ function's name without the parameters behind it.
fn without_parameters(name: &str) -> &str {
    let bare = name.strip_suffix(" const").unwrap_or(name);
    let mut depth = 0;
    for (at, letter) in bare.char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' if depth == 1 => return &bare[..at],
            '(' => depth -= 1,
            _ if depth == 0 => return name,
            _ => {}
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a user calls a symbol: its name, the end of it behind `::`, with parameters or without, or a variable of a function without its number.
    #[test]
    fn names_are_ends() {
        assert!(is_named("ready", "ready"));
        assert!(is_named("ready.0", "ready"));
        assert!(!is_named("already", "ready"));
        assert!(is_named("_ZN3app5ready17h0123456789abcdefE", "ready"));
        assert!(is_named("_ZN3app5readyE", "app::ready"));
        assert!(!is_named("_ZN3app5readyE", "p::ready"));
        for name in ["app::open", "open", "app::open(int)"] {
            assert!(is_named("_ZN3app4openEi", name), "{name}");
        }
        assert!(!is_named("_ZN3app4openEi", "app::open(long)"));
        assert!(is_named("_ZN12_GLOBAL__N_14workEPFivE", "work"));
    }
}
