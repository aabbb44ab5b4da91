//! Names of places in ELF files, from their debug information and their symbols.

use std::fs::File;
use std::path::Path;

use blazesym::Pid;
use blazesym::symbolize::source::{Elf, Process, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use crate::copy::Copy;
use crate::name::{Name, Names, demangled, source_line};

/// Names places in a file, given by their address by the file's own count; also whether debug
/// information had to be left out. Of addresses that are `None` nothing is known.
pub(crate) fn name(file: &File, addresses: &[Option<u64>]) -> (Vec<Names>, bool) {
    let mut names = vec![Names::new(); addresses.len()];
    let (places, addresses): (Vec<usize>, Vec<u64>) = addresses
        .iter()
        .enumerate()
        .filter_map(|(place, &address)| Some((place, address?)))
        .unzip();
    let Ok((copy, cut)) = Copy::of(file) else {
        return (names, false);
    };
    let found = symbolize(&copy.path(), &addresses);
    for (place, found) in places.into_iter().zip(found) {
        names[place] = found;
    }
    (names, cut)
}

/// Names places in the vdso, which every process has from the kernel, given by their offset.
pub(crate) fn name_in_vdso(offsets: &[u64]) -> Vec<Names> {
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
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_demangling(false)
            // Whoever asks has found the debug information already, by its build-id.
            .set_debug_dirs(Some([] as [&Path; 0]))
            .build();
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
        function: demangled(&name),
        offset: offset as u64,
        source: code_info.map(|code| line(&code)).unwrap_or_default(),
        kernel_module: String::new(),
    };
    let inlined = inlined.into_vec().into_iter().map(|function| Name {
        function: demangled(&function.name),
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use crate::image::Image;
    use crate::maps;

    /// A file that is cut and grows again while names are sought in it costs names. If it were mapped,
    /// SIGBUS would end this process.
    #[test]
    fn a_file_may_shrink_meanwhile() {
        let program = fs::read("/proc/self/exe").unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&program).unwrap();
        let here = a_file_may_shrink_meanwhile as *const () as u64;
        let own = maps::executable(std::process::id());
        let code = own
            .iter()
            .find(|code| (code.start..code.end).contains(&here));
        let code = code.expect("our own code");
        let image = Image::of(file.as_file()).unwrap();
        let places = (0..1000).map(|at| here - code.start + code.file_offset + at * 64);
        let addresses: Vec<_> = places.map(|place| image.address(place)).collect();
        let (named, _) = name(file.as_file(), &addresses);
        assert!(named.iter().any(|names| !names.is_empty()));
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    for length in [64, program.len() as u64] {
                        file.as_file().set_len(length).unwrap();
                    }
                }
            });
            for _ in 0..20 {
                name(file.as_file(), &addresses);
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}
