//! Functions by the names that linkers know: as they stand in a file's symbol table, not demangled.

use std::fs;
use std::path::Path;

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

/// Why there are no such names.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {path}: {cause}")]
    Unreadable {
        /// Its path.
        path: String,
        /// What the system says.
        cause: std::io::Error,
    },
    /// It is no ELF file, or a damaged one.
    #[error("{0} is no ELF file, or a damaged one")]
    Damaged(String),
    /// It has another build-id.
    #[error("{0} is not the file that was recorded: its build-id is another")]
    Other(String),
    /// It has no symbols.
    #[error("{0} has no symbol table: do not strip it before the functions are ordered")]
    Stripped(String),
}

struct Function {
    start: u64,
    end: u64,
    name: String,
}

/// The names of the functions that have these offsets in the file, in that order, each once. Offsets in no
/// function are passed over. `build_id`, in hexadecimal, must be the file's, unless it is empty.
///
/// # Errors
/// If the file is not there, not the one that is meant, or has no symbols.
pub fn names(path: &Path, build_id: &str, offsets: &[u64]) -> Result<Vec<String>, Error> {
    let shown = path.display().to_string();
    let data = fs::read(path).map_err(|cause| Error::Unreadable {
        path: shown.clone(),
        cause,
    })?;
    let file = object::File::parse(&*data).map_err(|_| Error::Damaged(shown.clone()))?;
    let own = file.build_id().ok().flatten().map(crate::text::hexadecimal);
    if !build_id.is_empty() && own.as_deref() != Some(build_id) {
        return Err(Error::Other(shown));
    }
    let mut functions: Vec<Function> = (file.symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .filter_map(|symbol| {
            let name = symbol.name().ok()?.to_owned();
            let start = symbol.address();
            Some(Function {
                start,
                end: start.saturating_add(symbol.size()),
                name,
            })
        })
        .collect();
    if functions.is_empty() {
        return Err(Error::Stripped(shown));
    }
    functions.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
    let segments: Vec<(u64, u64, u64)> = (file.segments())
        .map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        })
        .collect();
    let address = |offset: u64| {
        let mut within = segments
            .iter()
            .filter(|(from, size, _)| (*from..from.saturating_add(*size)).contains(&offset));
        within
            .next()
            .map(|(from, _, address)| address.wrapping_add(offset - from))
    };
    let mut names = Vec::new();
    let mut told = std::collections::HashSet::new();
    for address in offsets.iter().filter_map(|&offset| address(offset)) {
        let behind = functions.partition_point(|function| function.start <= address);
        let Some(function) = functions[..behind].last().filter(|it| address < it.end) else {
            continue;
        };
        // Several names of one function: the linker takes any of them.
        let same = functions[..behind].iter().rev();
        for alias in same.take_while(|it| it.start == function.start) {
            if told.insert(alias.name.as_str()) {
                names.push(alias.name.clone());
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This program's own functions have the names that its compiler gave them, in the order that is wanted.
    #[test]
    fn names_are_as_the_linker_has_them() {
        let path = std::env::current_exe().unwrap();
        let data = fs::read(&path).unwrap();
        let file = object::File::parse(&*data).unwrap();
        let offset = |wanted: &str| {
            let symbol = file.symbols().find(|it| it.name() == Ok(wanted)).unwrap();
            let segment = file
                .segments()
                .find(|it| (it.address()..it.address() + it.size()).contains(&symbol.address()));
            let segment = segment.unwrap();
            symbol.address() - segment.address() + segment.file_range().0
        };
        // What nothing uses, the linker may leave out.
        std::hint::black_box(hangdog_last_in_order as extern "C" fn() -> u32);
        let (main, last) = (offset("main"), offset("hangdog_last_in_order"));
        let found = names(&path, "", &[last + 1, main, u64::MAX, last]).unwrap();
        assert!(found[0] == "hangdog_last_in_order", "{found:?}");
        assert!(found.contains(&"main".to_owned()), "{found:?}");
        let again = found.iter().filter(|name| *name == "hangdog_last_in_order");
        assert_eq!(again.count(), 1);
        assert!(matches!(names(&path, "00", &[main]), Err(Error::Other(_))));
    }

    /// What is no ELF file is refused.
    #[test]
    fn other_files_are_refused() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(matches!(names(&source, "", &[1]), Err(Error::Damaged(_))));
        let nowhere = Path::new("/nowhere/at/all");
        assert!(matches!(
            names(nowhere, "", &[1]),
            Err(Error::Unreadable { .. })
        ));
    }

    // Found by its name, in the test above.
    #[unsafe(no_mangle)]
    #[inline(never)]
    pub extern "C" fn hangdog_last_in_order() -> u32 {
        std::hint::black_box(7)
    }
}
