//! Whether an ELF file is an interpreter of Ruby, PHP or Perl, and where its state and its loop lie.
//!
//! The state is exported, and so is the function that is the loop or calls it. What a compiler split off
//! as seldom run is found by the jumps that lead into the middle of it.

use std::fs::File;

use hangdog_unwind::Functions;
use object::Endianness;
use object::elf::{PF_W, PF_X, PT_LOAD, R_X86_64_DTPMOD64, RelocationType};
use object::read::elf::{ElfFile64, ElfSymbol64, ProgramHeader, Rela, SectionHeader};
use object::read::{Object, ObjectSymbol, ReadCache, ReadRef};
use serde::{Deserialize, Serialize};

/// A language whose functions are read as `bpf/` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    /// CRuby 3.1 (`bpf/ruby.h`).
    Ruby,
    /// PHP 8.2 without threads (`bpf/php.h`).
    Php,
    /// Perl 5.36 with threads (`bpf/perl.h`).
    Perl,
}

/// An interpreter of a version that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// What it runs.
    pub language: Language,
    /// How far its state lies from where offset 0 of the file would be mapped with the code; wraps
    /// around. Of Ruby: the library's number among those with memory for each thread; of PHP: the
    /// pointer to the innermost frame; of Perl: the pthread key of the threads' interpreters.
    pub state: u64,
    /// Of Ruby: how far in this memory what the thread runs lies.
    pub detail: u64,
}

/// An interpreter and its loop.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// None if it is of a version that is not known.
    pub script: Option<Script>,
    /// Where in the file the loop's code lies: from where to where.
    pub loops: Vec<(u64, u64)>,
}

/// Jumps that must lead into the middle of a function for it to be a part of another.
const LEAST_JUMPS: usize = 3;
/// Largest loop that is looked through, bytes.
const LARGEST_LOOP: u64 = 1 << 20;

/// What PHP says of itself that keeps what it runs as 8.2 without threads does.
const PHP_API: &[u8] = b"\0API20220829,NTS\0";
/// `bpf/php.h` says where these are from: the size of `executor_globals`, and where in it
/// `current_execute_data` is.
const PHP_GLOBALS: u64 = 1800;
const PHP_CURRENT_FRAME: u64 = 488;
/// The size of `struct interpreter` that `bpf/perl.h` knows.
const PERL_INTERPRETER: u16 = 3768;
/// So much of what a file has to read only is looked through, bytes.
const LARGEST_TEXTS: u64 = 64 << 20;

type Elf<'data, R> = ElfFile64<'data, Endianness, R>;

struct Image<'a, 'data, R: ReadRef<'data>> {
    elf: &'a Elf<'data, R>,
    data: R,
    functions: Functions,
    /// Of the code in memory: how far it lies from where it lies in the file.
    shift: u64,
}

/// The interpreter that a file is; `None` if it is none of these.
pub(crate) fn find(file: &File) -> Option<Found> {
    let cache = ReadCache::new(file);
    let elf = Elf::parse(&cache).ok()?;
    let endian = elf.endian();
    let is_code = |header: &&_| {
        let header: &&object::elf::ProgramHeader64<Endianness> = header;
        header.p_type(endian) == PT_LOAD && header.p_flags(endian).0 & PF_X.0 != 0
    };
    let code = elf.elf_program_headers().iter().find(is_code)?;
    let symbol = |name: &str| {
        let mut symbols = elf.dynamic_symbols();
        symbols.find(|symbol| !symbol.is_undefined() && symbol.name() == Ok(name))
    };
    let context = symbol("ruby_current_ec");
    let globals = symbol("executor_globals").filter(|_| symbol("execute_ex").is_some());
    let key = symbol("PL_thr_key");
    if context.is_none() && globals.is_none() && key.is_none() {
        return None;
    }
    let image = Image {
        elf: &elf,
        data: &cache,
        functions: Functions::of(file).ok()?,
        shift: code.p_vaddr(endian).wrapping_sub(code.p_offset(endian)),
    };
    let ruby = context.and_then(|context| image.ruby(&context, &symbol));
    let php = || globals.and_then(|globals| image.php(&globals, &symbol));
    let perl = || key.and_then(|key| image.perl(&key, &symbol));
    let (script, loops) = ruby.or_else(php).or_else(perl).unzip();
    Some(Found {
        script,
        loops: loops.unwrap_or_default(),
    })
}

impl<'data, R: ReadRef<'data>> Image<'_, 'data, R> {
    /// Ruby keeps what a thread runs in the memory that its library has for each thread.
    fn ruby<'e>(
        &self,
        context: &ElfSymbol64<'data, 'e, Endianness, R>,
        symbol: &impl Fn(&str) -> Option<ElfSymbol64<'data, 'e, Endianness, R>>,
    ) -> Option<(Script, Vec<(u64, u64)>)> {
        let version = self.bytes(symbol("ruby_api_version")?.address(), 8)?;
        if version != [3, 0, 0, 0, 1, 0, 0, 0] {
            return None;
        }
        let library = self.relocated(R_X86_64_DTPMOD64, context.index().0)?;
        let outer = self.function(symbol("rb_vm_exec")?.address())?;
        // Of what it calls without a detour through a table, the loop is the largest.
        let called = self.targets(outer, &[&[0xe8]]);
        let called = called.iter().filter_map(|&to| {
            let found = self.functions.find(to);
            found.filter(|&(start, _)| start == to)
        });
        let inner = called.max_by_key(|(start, end)| end - start)?;
        let mut loops = vec![outer, inner];
        loops.extend(self.split_off(outer));
        loops.extend(self.split_off(inner));
        let script = Script {
            language: Language::Ruby,
            state: library.wrapping_sub(self.shift),
            detail: context.address(),
        };
        Some((script, loops))
    }

    /// PHP keeps what it runs in a global variable.
    fn php<'e>(
        &self,
        globals: &ElfSymbol64<'data, 'e, Endianness, R>,
        symbol: &impl Fn(&str) -> Option<ElfSymbol64<'data, 'e, Endianness, R>>,
    ) -> Option<(Script, Vec<(u64, u64)>)> {
        if globals.size() != PHP_GLOBALS || !self.says(PHP_API) {
            return None;
        }
        let outer = self.function(symbol("execute_ex")?.address())?;
        let loops = [Some(outer), self.split_off(outer)];
        let current = globals.address().wrapping_add(PHP_CURRENT_FRAME);
        let script = Script {
            language: Language::Php,
            state: current.wrapping_sub(self.shift),
            detail: 0,
        };
        Some((script, loops.into_iter().flatten().collect()))
    }

    /// Perl keeps what a thread runs in the thread's own storage.
    fn perl<'e>(
        &self,
        key: &ElfSymbol64<'data, 'e, Endianness, R>,
        symbol: &impl Fn(&str) -> Option<ElfSymbol64<'data, 'e, Endianness, R>>,
    ) -> Option<(Script, Vec<(u64, u64)>)> {
        let is = |name: &str, value: &[u8]| {
            let there =
                symbol(name).and_then(|symbol| self.bytes(symbol.address(), value.len() as u64));
            there == Some(value)
        };
        if !is("PL_version", &[36]) || !is("PL_interp_size", &PERL_INTERPRETER.to_le_bytes()) {
            return None;
        }
        let run = self.function(symbol("Perl_runops_standard")?.address())?;
        let script = Script {
            language: Language::Perl,
            state: key.address().wrapping_sub(self.shift),
            detail: 0,
        };
        Some((script, vec![run]))
    }

    /// Whether a text is among what the file has to read only.
    fn says(&self, text: &[u8]) -> bool {
        let endian = self.elf.endian();
        let mut loaded = self.elf.elf_program_headers().iter().filter(|header| {
            let flags = header.p_flags(endian).0;
            header.p_type(endian) == PT_LOAD && flags & (PF_X.0 | PF_W.0) == 0
        });
        loaded.any(|header| {
            let size = header.p_filesz(endian).min(LARGEST_TEXTS);
            let bytes = self.data.read_bytes_at(header.p_offset(endian), size);
            bytes.is_ok_and(|bytes| bytes.windows(text.len()).any(|there| there == text))
        })
    }

    /// The function at an address, by the file's offsets.
    fn function(&self, address: u64) -> Option<(u64, u64)> {
        self.functions.find(address.wrapping_sub(self.shift))
    }

    /// What lies at an address of the loaded file.
    fn bytes(&self, address: u64, count: u64) -> Option<&'data [u8]> {
        let endian = self.elf.endian();
        let mut loaded = (self.elf.elf_program_headers().iter())
            .filter(|header| header.p_type(endian) == PT_LOAD);
        let offset = loaded.find_map(|header| {
            let within = address.checked_sub(header.p_vaddr(endian))?;
            let offset = header.p_offset(endian).checked_add(within);
            offset.filter(|_| within < header.p_filesz(endian))
        })?;
        self.data.read_bytes_at(offset, count).ok()
    }

    /// The address of the word that the loader makes of the dynamic symbol by a relocation of a `kind`.
    fn relocated(&self, kind: RelocationType, symbol: usize) -> Option<u64> {
        let endian = self.elf.endian();
        self.elf.elf_section_table().iter().find_map(|section| {
            let (relocations, _) = section.rela(endian, self.data).ok()??;
            let found = relocations.iter().find(|relocation| {
                relocation.r_type(endian, false) == kind
                    && relocation.symbol(endian, false).map(|it| it.0) == Some(symbol)
            })?;
            Some(found.r_offset.get(endian))
        })
    }

    /// Where instructions in a piece of code lead that begin with one of these bytes and end with a
    /// distance of 4 bytes; and where bytes lead that look like it.
    fn targets(&self, (start, end): (u64, u64), begins: &[&[u8]]) -> Vec<u64> {
        let size = end.saturating_sub(start).min(LARGEST_LOOP);
        let Ok(code) = self.data.read_bytes_at(start, size) else {
            return Vec::new();
        };
        let mut targets = Vec::new();
        for at in 0..code.len() {
            for begin in begins {
                if code[at..].starts_with(begin)
                    && let Some(distance) = code[at + begin.len()..].first_chunk()
                {
                    let from = start + (at + begin.len() + distance.len()) as u64;
                    let distance = i64::from(i32::from_le_bytes(*distance));
                    targets.push(from.wrapping_add_signed(distance));
                }
            }
        }
        targets
    }

    /// The part of a function that a compiler has put elsewhere: what most of the jumps lead into that
    /// do not stay in the function, not to its beginning.
    fn split_off(&self, function: (u64, u64)) -> Option<(u64, u64)> {
        let conditions: Vec<[u8; 2]> = (0x80..0x90).map(|condition| [0x0f, condition]).collect();
        let jumps: Vec<&[u8]> = conditions.iter().map(|begin| &begin[..]).collect();
        let mut targets = self.targets(function, &jumps);
        targets.sort_unstable();
        targets.dedup();
        let mut counts: Vec<((u64, u64), usize)> = Vec::new();
        for target in targets {
            match self.functions.find(target) {
                Some(found) if found != function && found.0 != target => match counts.last_mut() {
                    Some((last, count)) if *last == found => *count += 1,
                    _ => counts.push((found, 1)),
                },
                _ => {}
            }
        }
        let (found, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        (count >= LEAST_JUMPS).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    fn of_file(path: &Path) -> Option<Found> {
        find(&File::open(path).ok()?)
    }

    /// A library with what `source` defines.
    fn library(dir: &Path, name: &str, source: &str) -> PathBuf {
        let (path, from) = (dir.join(name), dir.join(format!("{name}.c")));
        std::fs::write(&from, source).expect("a source");
        let built = Command::new("cc")
            .args(["-O2", "-fno-toplevel-reorder", "-shared", "-fPIC", "-o"])
            .args([&path, &from])
            .status();
        assert!(built.expect("a C compiler (cc)").success());
        path
    }

    /// Like a Ruby: a loop that another function calls, with a part that the compiler puts elsewhere.
    fn ruby(version: &str) -> String {
        format!(
            "__thread long unused; __thread void *ruby_current_ec;
            const int ruby_api_version[3] = {{{version}}};
            void __attribute__((cold, noinline)) slow(long x) {{ asm volatile(\"\" :: \"r\"(x)); }}
            static void __attribute__((noinline)) loop(long *x) {{
                for (long i = 0; x[i]; i++) {{
                    if (x[i] == 7) {{ slow(3 * x[i]); x[i] += 2; }}
                    if (x[i + 1] == 9) {{ slow(5 * x[i]); x[i] += 3; }}
                    if (x[i + 2] == 8) {{ slow(7 * x[i]); x[i] += 5; }}
                    if (x[i + 3] == 6) {{ slow(9 * x[i]); x[i] += 7; }}
                }}
            }}
            void rb_vm_exec(long *x) {{ loop(ruby_current_ec); loop(x); }}"
        )
    }

    /// Of a Ruby 3.1 the loop is found, with both functions and what was split off, and where its state
    /// lies; one of another version is known to be one, and another library is none.
    #[test]
    fn a_ruby_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let of = |name: &str, source: &str| of_file(&library(dir.path(), name, source));
        let found = of("libruby.so", &ruby("3, 1, 0")).expect("a Ruby");
        let script = found.script.expect("a version that is known");
        assert_eq!((script.language, script.detail), (Language::Ruby, 8));
        assert_eq!(found.loops.len(), 3, "{:?}", found.loops);
        for (at, (start, end)) in found.loops.iter().enumerate() {
            assert!(start < end && !found.loops[..at].contains(&(*start, *end)));
        }
        let other = of("other.so", &ruby("3, 2, 0")).expect("a Ruby");
        assert_eq!((other.script, other.loops), (None, Vec::new()));
        assert_eq!(of("none.so", "int f(void) { return 1; }"), None);
        assert_eq!(of_file(&dir.path().join("none.so.c")), None);
    }

    /// Of a PHP 8.2 without threads the loop is found, and where its state lies; one with threads is
    /// known to be one.
    #[test]
    fn a_php_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let php = |api: &str, size: u64| {
            format!(
                "const char api[] = \"x\\0{api}\"; char executor_globals[{size}];
                void execute_ex(void) {{ executor_globals[0] += api[0]; }}"
            )
        };
        let of = |name: &str, source: &str| of_file(&library(dir.path(), name, source));
        let found = of("php.so", &php("API20220829,NTS", 1800)).expect("a PHP");
        let language = found.script.map(|script| script.language);
        assert_eq!((language, found.loops.len()), (Some(Language::Php), 1));
        for (name, api, size) in [
            ("threads.so", "API20220829,TS", 1800),
            ("later.so", "API20230831,NTS", 1800),
            ("other.so", "API20220829,NTS", 1808),
        ] {
            let other = of(name, &php(api, size)).expect("a PHP");
            assert_eq!((other.script, other.loops), (None, Vec::new()));
        }
        assert_eq!(of("none.so", "char executor_globals[1800];"), None);
    }

    /// Of a Perl 5.36 the loop is found, and where its state lies; another is known to be one.
    #[test]
    fn a_perl_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let perl = |version: u8, size: u16| {
            format!(
                "const char PL_version = {version}; const short PL_interp_size = {size};
                int PL_thr_key; int Perl_runops_standard(void) {{ return PL_thr_key; }}"
            )
        };
        let of = |name: &str, source: &str| of_file(&library(dir.path(), name, source));
        let found = of("perl.so", &perl(36, 3768)).expect("a Perl");
        let language = found.script.map(|script| script.language);
        assert_eq!((language, found.loops.len()), (Some(Language::Perl), 1));
        for (name, version, size) in [("later.so", 38, 3768), ("other.so", 36, 3760)] {
            let other = of(name, &perl(version, size)).expect("a Perl");
            assert_eq!((other.script, other.loops), (None, Vec::new()));
        }
    }
}
