//! Names of places in ELF files, from their debug information and their symbols.

use std::path::Path;

use blazesym::Pid;
use blazesym::symbolize::source::{Elf, Process, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use super::files::Found;
use super::name::{Name, Names, source_line};

/// Names places in the module that `found` has the names of, given by their offset in the file.
pub(super) fn name(found: &Found, file_offsets: &[u64]) -> Vec<Names> {
    let mut names = vec![Names::new(); file_offsets.len()];
    let (places, addresses): (Vec<usize>, Vec<u64>) = file_offsets
        .iter()
        .enumerate()
        .filter_map(|(place, &offset)| Some((place, found.address(offset)?)))
        .unzip();
    let found = symbolize(&found.names.path, &addresses);
    for (place, found) in places.into_iter().zip(found) {
        names[place] = found;
    }
    names
}

/// Names places in the vdso, which every process has from the kernel, given by their offset.
pub(super) fn name_in_vdso(offsets: &[u64]) -> Vec<Names> {
    // SAFETY: getauxval takes a plain number.
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    if start == 0 {
        return vec![Names::new(); offsets.len()];
    }
    let addresses: Vec<u64> = offsets.iter().map(|offset| start + offset).collect();
    let source = Source::Process(Process::new(Pid::Slf));
    let symbolizer = Symbolizer::builder().build();
    match symbolizer.symbolize(&source, Input::AbsAddr(&addresses)) {
        Ok(found) => found.into_iter().map(names).collect(),
        Err(_) => vec![Names::new(); offsets.len()],
    }
}

/// Debug information that is damaged anywhere fails the whole; the symbols may be good still.
fn symbolize(path: &Path, addresses: &[u64]) -> Vec<Names> {
    let mut elf = Elf::new(path);
    for debug_syms in [true, false] {
        elf.debug_syms = debug_syms;
        let symbolizer = Symbolizer::builder().enable_auto_reload(false).build();
        let input = Input::VirtOffset(addresses);
        if let Ok(found) = symbolizer.symbolize(&Source::Elf(elf.clone()), input) {
            return found.into_iter().map(names).collect();
        }
    }
    vec![Names::new(); addresses.len()]
}

fn names(symbol: Symbolized<'_>) -> Names {
    let Symbolized::Sym(symbol) = symbol else {
        return Names::new();
    };
    // A symbol without a length is the last one in front of the place, whatever lies between.
    if symbol.name.is_empty() || symbol.size.is_none() && symbol.offset > 0 {
        return Names::new();
    }
    let Sym {
        name,
        offset,
        code_info,
        inlined,
        ..
    } = symbol;
    let outermost = Name {
        function: name.into_owned(),
        offset: offset as u64,
        source: code_info.map(|code| line(&code)).unwrap_or_default(),
        kernel_module: String::new(),
    };
    let inlined = inlined.into_vec().into_iter().map(|function| Name {
        function: function.name.into_owned(),
        source: function
            .code_info
            .map(|code| line(&code))
            .unwrap_or_default(),
        ..Name::default()
    });
    std::iter::once(outermost).chain(inlined).collect()
}

fn line(code: &CodeInfo<'_>) -> String {
    source_line(&code.to_path(), code.line)
}
