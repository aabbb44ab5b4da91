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
        Ok(found) => (found.into_iter())
            .map(|symbol| Told::of(symbol).sure())
            .collect(),
        Err(_) => vec![Names::new(); offsets.len()],
    }
}

/// Debug information that is damaged anywhere fails the whole; the symbols may be good still.
fn symbolize(path: &Path, addresses: &[u64]) -> Vec<Names> {
    let Some(told) = told(path, addresses, true) else {
        let plain = self::told(path, addresses, false).unwrap_or_default();
        let mut names: Vec<Names> = plain.into_iter().map(Told::sure).collect();
        names.resize(addresses.len(), Names::new());
        return names;
    };
    // Of a function that the compiler has split in a hot and a cold part debug information tells no length:
    // then its symbol says whether the place is in it.
    let unsure: Vec<usize> = (0..told.len()).filter(|&at| told[at].is_unsure()).collect();
    let places: Vec<u64> = unsure.iter().map(|&at| addresses[at]).collect();
    let symbols = match places.is_empty() {
        true => Vec::new(),
        false => self::told(path, &places, false).unwrap_or_default(),
    };
    let mut symbols = unsure.into_iter().zip(symbols).peekable();
    (told.into_iter().enumerate())
        .map(|(at, told)| match symbols.next_if(|(of, _)| *of == at) {
            Some((_, symbol)) if symbol.is_unsure() || symbol.names.is_empty() => Names::new(),
            Some((_, symbol)) if symbol.name == told.name => told.names,
            Some((_, symbol)) => symbol.names,
            None => told.sure(),
        })
        .collect()
}

/// What a file tells of a place.
#[derive(Default)]
struct Told {
    /// The function's name as the file has it.
    name: String,
    /// Whether the function is as long as to reach there.
    is_within: bool,
    names: Names,
}

impl Told {
    fn of(symbol: Symbolized<'_>) -> Told {
        let Symbolized::Sym(symbol) = symbol else {
            return Told::default();
        };
        if symbol.name.is_empty() {
            return Told::default();
        }
        Told {
            name: symbol.name.to_string(),
            is_within: symbol.size.is_some() || symbol.offset == 0,
            names: names(symbol),
        }
    }

    /// A symbol without a length is the last one in front of the place, whatever lies between.
    fn is_unsure(&self) -> bool {
        !self.names.is_empty() && !self.is_within
    }

    fn sure(self) -> Names {
        match self.is_within {
            true => self.names,
            false => Names::new(),
        }
    }
}

/// What a file tells of places, by its symbols and, if `debug`, its debug information.
fn told(path: &Path, addresses: &[u64], debug: bool) -> Option<Vec<Told>> {
    let mut elf = Elf::new(path);
    elf.debug_syms = debug;
    let symbolizer = Symbolizer::builder()
        .enable_auto_reload(false)
        .enable_demangling(false)
        // Whoever asks has found the debug information already, by its build-id.
        .set_debug_dirs(Some([] as [&Path; 0]))
        .build();
    let input = Input::VirtOffset(addresses);
    let found = symbolizer.symbolize(&Source::Elf(elf), input).ok()?;
    Some(found.into_iter().map(Told::of).collect())
}

fn names(symbol: Sym<'_>) -> Names {
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

    /// A function of which the compiler has put a part elsewhere has its name at each of its places, and what
    /// lies behind it has another or none.
    #[test]
    fn a_function_in_two_parts_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (path, source) = (dir.path().join("split.so"), dir.path().join("split.c"));
        let text = "
            void __attribute__((cold, noinline)) seldom(long x) { asm volatile(\"\" :: \"r\"(x)); }
            void __attribute__((noinline)) split(long *x) {
                for (long i = 0; x[i]; i++) {
                    if (x[i] == 7) { seldom(3 * x[i]); x[i] += 2; }
                    if (x[i + 1] == 9) { seldom(5 * x[i]); x[i] += 3; }
                }
            }
            void behind(long *x) { split(x); split(x); }";
        fs::write(&source, text).unwrap();
        let built = std::process::Command::new("cc")
            .args(["-O2", "-g", "-shared", "-fPIC", "-o"])
            .args([&path, &source])
            .status();
        assert!(built.expect("a C compiler (cc)").success());
        let addresses: Vec<Option<u64>> = (0x1000..0x1400).map(Some).collect();
        let (named, _) = name(&File::open(&path).unwrap(), &addresses);
        let functions = named
            .iter()
            .map(|names| names.first().map_or("", |it| &it.function));
        let functions: Vec<&str> = functions.collect();
        let count = |name: &str| functions.iter().filter(|it| **it == name).count();
        assert!(count("split") > 40, "{functions:?}");
        assert!(
            count("split.cold") > 4 && count("behind") > 8,
            "{functions:?}"
        );
        let last = functions.iter().rposition(|it| *it == "split").unwrap();
        let first = functions.iter().position(|it| *it == "split").unwrap();
        assert!(functions[first..=last].iter().all(|it| *it == "split"));
    }

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
