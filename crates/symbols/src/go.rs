//! Names of a Go program's functions from its own table of them, which stays where symbols and debug
//! information were stripped: Go's runtime needs it to print stacks. The table also tells where the runtime parks
//! goroutines, and by the code that adds one to the list of all where that list is.
//!
//! The table (`.gopclntab`) begins with a header, whose first word tells the version. It says where
//! the functions are, ascending by their first address, and where their names are. The layouts are
//! those of Go's `src/internal/abi/symtab.go`, `src/runtime/symtab.go` and `src/debug/gosym/pclntab.go`.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

use object::read::ReadCache;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, elf};
use serde::{Deserialize, Serialize};

use crate::name::{Name, Names};

/// A table beyond this is nobody's, bytes.
const MOST: u64 = 512 << 20;
/// No function's name is longer, bytes.
const LONGEST: usize = 4096;
/// Nor is the code of one that is looked at, bytes.
const LONGEST_CODE: u64 = 4096;

const GO_1_2: u32 = 0xffff_fffb;
const GO_1_16: u32 = 0xffff_fffa;
const GO_1_18: u32 = 0xffff_fff0;
const GO_1_20: u32 = 0xffff_fff1;

/// Adds names to places of `file` that have none, given by their addresses by the file's own count.
pub(crate) fn name_rest(file: &File, addresses: &[Option<u64>], names: &mut [Names]) {
    if names.iter().all(|names| !names.is_empty()) {
        return;
    }
    let Some(table) = Table::of(file) else {
        return;
    };
    for (names, address) in names.iter_mut().zip(addresses) {
        if let (true, Some(address)) = (names.is_empty(), *address) {
            names.extend(table.name(address));
        }
    }
}

/// What is known of a Go program's file.
pub(crate) struct Program {
    /// Where in the file the code lies by which a thread leaves the goroutine that it parks for the scheduler's
    /// stack: from where to where, bytes.
    pub parks: Option<(u32, u32)>,
    pub goroutines: Option<Goroutines>,
}

/// Where a Go program keeps the list of its goroutines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goroutines {
    /// How far the variable `runtime.allgs` lies from where offset 0 of the file would be mapped with the code; wraps
    /// around. It is a slice of pointers: their address and their number.
    pub list: u64,
}

/// What a Go program's file tells; `None` for one of another language.
pub(crate) fn program(file: &File) -> Option<Program> {
    const PARKS: &str = "runtime.mcall";
    const ADDS: &str = "runtime.allgadd";
    let table = Table::of(file)?;
    let cache = ReadCache::new(file);
    let image = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let endian = image.endian();
    let in_file = |address: u64| {
        image.elf_program_headers().iter().find_map(|header| {
            let from = address.checked_sub(header.p_vaddr(endian))?;
            let is_in = header.p_type(endian) == elf::PT_LOAD && from <= header.p_filesz(endian);
            is_in.then(|| header.p_offset(endian).checked_add(from))?
        })
    };
    let offset = |address: u64| u32::try_from(in_file(address)?).ok();
    let parks = || {
        let (start, end) = table.find(PARKS)?;
        Some((offset(start)?, offset(end)?)).filter(|(start, end)| start < end)
    };
    let goroutines = || {
        let (start, end) = table.find(ADDS)?;
        let at = in_file(start)?;
        let size = end
            .checked_sub(start)
            .filter(|&size| size <= LONGEST_CODE)?;
        let mut code = vec![0; usize::try_from(size).ok()?];
        file.read_exact_at(&mut code, at).ok()?;
        // How much higher the code is mapped than it lies in the file.
        let raised = start.wrapping_sub(at);
        slice_used_by(&code, start).map(|list| Goroutines {
            list: list.wrapping_sub(raised),
        })
    };
    let is_x86 = image.elf_header().e_machine(endian) == elf::EM_X86_64;
    Some(Program {
        parks: parks(),
        goroutines: is_x86.then(goroutines).flatten(),
    })
}

/// The only slice in memory that code of x86-64 at `address` loads all three words of: address, length, capacity.
fn slice_used_by(code: &[u8], address: u64) -> Option<u64> {
    // `mov disp32(%rip), r64`, with its length.
    const LENGTH: u64 = 7;
    let loads = code.windows(LENGTH as usize).enumerate();
    let loaded: BTreeSet<u64> = loads
        .filter_map(|(at, code)| {
            let &[rex, opcode, operand, a, b, c, d] = code else {
                return None;
            };
            let is_load = rex & 0xfb == 0x48 && opcode == 0x8b && operand & 0xc7 == 0x05;
            let from = address.wrapping_add(at as u64 + LENGTH);
            let to = i64::from(i32::from_le_bytes([a, b, c, d]));
            is_load.then(|| from.wrapping_add_signed(to))
        })
        .collect();
    let has = |address: u64, words: u64| loaded.contains(&address.wrapping_add(8 * words));
    let mut slices = (loaded.iter().copied()).filter(|&it| has(it, 1) && has(it, 2));
    slices.next().filter(|_| slices.next().is_none())
}

/// Where the code begins, which since Go 1.26 the table's header does not say: the runtime has it in its
/// description of the module, which has a section of its own. Where the file can be loaded anywhere, a relocation
/// has the value.
fn module_text<'a>(image: &ElfFile64<'a, Endianness, &'a ReadCache<&'a File>>) -> Option<u64> {
    /// Where the description has it: behind one pointer, six slices and three addresses.
    const AT: u64 = 22 * 8;
    let section = image.section_by_name(".go.module")?;
    let stored = section.data_range(section.address() + AT, 8).ok()??;
    let stored = u64::from_le_bytes(stored.try_into().ok()?);
    let relocated = || {
        let mut all = image.dynamic_relocations()?;
        let (_, own) = all.find(|&(at, _)| at == section.address() + AT)?;
        u64::try_from(own.addend()).ok()
    };
    let text = if stored != 0 { stored } else { relocated()? };
    let code = image.section_by_name(".text")?;
    let is_code = (text.checked_sub(code.address())).is_some_and(|from| from < code.size());
    is_code.then_some(text)
}

/// The same where Go's own linker wrote the file alone: there the section of code begins with it.
fn text_of_go<'a>(image: &ElfFile64<'a, Endianness, &'a ReadCache<&'a File>>) -> Option<u64> {
    let endian = image.endian();
    let headers = image.elf_program_headers();
    let is_interpreted = (headers.iter()).any(|header| header.p_type(endian) == elf::PT_INTERP);
    let text = image.section_by_name(".text")?;
    (!is_interpreted).then(|| text.address())
}

struct Table {
    bytes: Vec<u8>,
    /// Bytes of a number in the list of functions: an address, or an offset from `text`.
    width: usize,
    text: u64,
    functions: usize,
    count: usize,
    /// What a function's description lies behind, and what its name does.
    descriptions: usize,
    names: usize,
}

impl Table {
    fn of(file: &File) -> Option<Table> {
        let cache = ReadCache::new(file);
        let image = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let sections = [".gopclntab", ".data.rel.ro.gopclntab"];
        let section = sections
            .iter()
            .find_map(|name| image.section_by_name(name))?;
        let (start, size) = section.file_range()?;
        let text = || module_text(&image).or_else(|| text_of_go(&image));
        if size > MOST {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        file.read_exact_at(&mut bytes, start).ok()?;
        Table::parse(bytes, text)
    }

    fn parse(bytes: Vec<u8>, text: impl Fn() -> Option<u64>) -> Option<Table> {
        let magic = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        // The size of an address; those of other sizes are not recorded.
        (*bytes.get(7)? == 8).then_some(())?;
        let word = |at: usize| {
            let word = bytes.get(8 + 8 * at..16 + 8 * at)?;
            Some(u64::from_le_bytes(word.try_into().ok()?))
        };
        let place = |at: usize| usize::try_from(word(at)?).ok();
        let count = place(0)?;
        let (width, text, names, functions) = match magic {
            GO_1_2 => (8, 0, 0, 16),
            GO_1_16 => (8, 0, place(2)?, place(6)?),
            GO_1_18 | GO_1_20 => {
                let text = match word(2)? {
                    0 => text()?,
                    text => text,
                };
                (4, text, place(3)?, place(7)?)
            }
            _ => return None,
        };
        let descriptions = if magic == GO_1_2 { 0 } else { functions };
        // Two numbers for each, and the end of the last.
        let list = count.checked_mul(2)?.checked_add(1)?.checked_mul(width)?;
        (functions.checked_add(list)? <= bytes.len()).then_some(Table {
            bytes,
            width,
            text,
            functions,
            count,
            descriptions,
            names,
        })
    }

    /// The number `at` in the list of functions: two for each, the address and where its description is.
    fn number(&self, at: usize) -> Option<u64> {
        let start = self.functions + at * self.width;
        let bytes = self.bytes.get(start..start + self.width)?;
        let mut number = [0; 8];
        number[..self.width].copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    }

    fn name(&self, address: u64) -> Option<Name> {
        let address = address.checked_sub(self.text)?;
        let (mut first, mut count) = (0, self.count);
        while count > 1 {
            let half = count / 2;
            match self.number(2 * (first + half))? <= address {
                true => (first, count) = (first + half, count - half),
                false => count = half,
            }
        }
        let start = self.number(2 * first).filter(|&start| start <= address)?;
        // The next one's start, or the end of all.
        (address < self.number(2 * first + 2)?).then_some(())?;
        let name = self.name_at(first)?;
        let length = name.iter().take(LONGEST).position(|&byte| byte == 0)?;
        let function = str::from_utf8(&name[..length]).ok()?;
        (!function.is_empty()).then(|| Name {
            function: function.to_owned(),
            offset: address - start,
            ..Name::default()
        })
    }

    /// The names from that of the function at a place in the list on; each ends with a 0.
    fn name_at(&self, at: usize) -> Option<&[u8]> {
        let description = usize::try_from(self.number(2 * at + 1)?).ok()?;
        // Its first number is its address again.
        let at = (self.descriptions.checked_add(description)?).checked_add(self.width)?;
        let name = self.bytes.get(at..at.checked_add(4)?)?;
        let name = u32::from_le_bytes(name.try_into().ok()?);
        let name = self.names.checked_add(usize::try_from(name).ok()?)?;
        self.bytes.get(name..)
    }

    /// Where a function begins and ends, by the file's own count.
    fn find(&self, name: &str) -> Option<(u64, u64)> {
        let is_it = |names: &[u8]| {
            let rest = names.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.first() == Some(&0))
        };
        let at = (0..self.count).find(|&at| self.name_at(at).is_some_and(is_it))?;
        let address = |at: usize| self.text.checked_add(self.number(at)?);
        Some((address(2 * at)?, address(2 * at + 2)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: u64 = 0x40_1000;
    /// Functions by where they begin; the last ends at 0x90.
    const FUNCTIONS: [(u64, &str); 3] = [
        (0, "runtime.text"),
        (0x20, "main.(*Shop).Sell"),
        (0x80, "main.main.func1"),
    ];
    const END: u64 = 0x90;

    /// A table as a version of Go writes it.
    fn table(magic: u32, text: u64) -> Vec<u8> {
        let width = match magic {
            GO_1_2 | GO_1_16 => 8,
            _ => 4,
        };
        let words = match magic {
            GO_1_2 => 1,
            GO_1_16 => 7,
            _ => 8,
        };
        let number = |value: u64| value.to_le_bytes()[..width].to_vec();
        let address = |offset: u64| number(if width == 8 { TEXT + offset } else { offset });
        let header = 8 + 8 * words;
        let is_apart = magic != GO_1_2;
        // The names, the list of functions, the descriptions.
        let mut names = vec![0];
        let at: Vec<usize> = (FUNCTIONS.iter())
            .map(|(_, name)| {
                let at = names.len();
                names.extend_from_slice(name.as_bytes());
                names.push(0);
                at
            })
            .collect();
        let list = match is_apart {
            true => header + names.len(),
            false => header,
        };
        let described = list + (2 * FUNCTIONS.len() + 1) * width;
        let names_at = match is_apart {
            true => header,
            false => described + FUNCTIONS.len() * (width + 4),
        };
        let mut bytes = magic.to_le_bytes().to_vec();
        bytes.extend([0, 0, 1, 8]);
        let mut header = vec![0_u64; words];
        header[0] = FUNCTIONS.len() as u64;
        match magic {
            GO_1_2 => {}
            GO_1_16 => (header[2], header[6]) = (names_at as u64, list as u64),
            _ => (header[2], header[3], header[7]) = (text, names_at as u64, list as u64),
        }
        for word in header {
            bytes.extend(word.to_le_bytes());
        }
        if is_apart {
            bytes.extend(&names);
        }
        for (nth, (start, _)) in FUNCTIONS.iter().enumerate() {
            let from = if is_apart { list } else { 0 };
            bytes.extend(address(*start));
            bytes.extend(number((described + nth * (width + 4) - from) as u64));
        }
        bytes.extend(address(END));
        for ((start, _), name) in FUNCTIONS.iter().zip(at) {
            let from = if is_apart { 0 } else { names_at };
            bytes.extend(address(*start));
            bytes.extend(((from + name) as u32).to_le_bytes());
        }
        if !is_apart {
            bytes.extend(&names);
        }
        bytes
    }

    /// Each version's layout; between two functions' starts the first counts, beyond the last none.
    #[test]
    fn functions_have_names() {
        for magic in [GO_1_2, GO_1_16, GO_1_18, GO_1_20] {
            let table = Table::parse(table(magic, TEXT), || None).expect("a table");
            let name = |offset: u64| table.name(TEXT + offset).map(|it| (it.function, it.offset));
            let some = |name: &str, offset| Some((name.to_owned(), offset));
            assert_eq!(name(0), some("runtime.text", 0), "{magic:x}");
            assert_eq!(name(0x1f), some("runtime.text", 0x1f));
            assert_eq!(name(0x20), some("main.(*Shop).Sell", 0));
            assert_eq!(name(END - 1), some("main.main.func1", 0xf));
            assert_eq!(name(END), None);
            assert_eq!(table.name(TEXT - 1).map(|name| name.function), None);
            let found = table.find("main.(*Shop).Sell");
            assert_eq!(found, Some((TEXT + 0x20, TEXT + 0x80)));
            assert_eq!(table.find("main.(*Shop)"), None);
        }
    }

    /// If the header lacks the start of the code, the caller supplies it; without it no function is named.
    #[test]
    fn where_the_code_begins() {
        let told = Table::parse(table(GO_1_20, 0), || Some(TEXT)).expect("a table");
        let name = told.name(TEXT + 0x20).expect("a name");
        assert_eq!(name.function, "main.(*Shop).Sell");
        assert!(Table::parse(table(GO_1_20, 0), || None).is_none());
    }

    /// The slice is that of which all three words are loaded; a variable beside it is none, nor is one of two.
    #[test]
    fn the_list_of_goroutines_is_found() {
        const AT: u64 = 0x44_fbc0;
        const LIST: u64 = 0x98_fca0;
        let code = |loads: &[u64]| {
            let mut code = vec![0x55];
            for (nth, load) in loads.iter().enumerate() {
                let end = AT + code.len() as u64 + 7;
                // Of %rcx and %r9 in turns.
                code.extend(if nth % 2 == 0 {
                    [0x48, 0x8b, 0x0d]
                } else {
                    [0x4c, 0x8b, 0x0d]
                });
                code.extend((load.wrapping_sub(end) as i32).to_le_bytes());
            }
            code
        };
        let all = [LIST + 16, LIST + 8, LIST, LIST - 0x800];
        assert_eq!(slice_used_by(&code(&all), AT), Some(LIST));
        assert_eq!(slice_used_by(&code(&all[1..]), AT), None);
        assert_eq!(
            slice_used_by(&code(&[LIST, LIST + 8, LIST + 16, LIST + 24]), AT),
            None
        );
        assert_eq!(slice_used_by(&[0x48, 0x8b], AT), None);
    }

    /// A file that needs the system's loader, with a table of Go 1.26 and a description of the module that says
    /// `text`: the headers of its sections, which lie behind what they hold.
    fn file_with_module(text: u64) -> Vec<u8> {
        const NAMES: &[u8] = b"\0.text\0.gopclntab\0.go.module\0.shstrtab\0";
        const MODULE: u64 = 0x60_0000;
        let table = table(GO_1_20, 0);
        let mut module = vec![0; 22 * 8];
        module.extend(text.to_le_bytes());
        let name = |name: &[u8]| (0..NAMES.len()).find(|&at| NAMES[at..].starts_with(name));
        let interpreter = 64_u64;
        let first = interpreter + 56;
        // Of each: name, type, address, where it lies, size.
        let parts = [
            (&b""[..], 0, 0, 0, 0),
            (b".text", 8, TEXT, first, END),
            (b".gopclntab", 1, 0x50_0000, first, table.len() as u64),
            (
                b".go.module",
                1,
                MODULE,
                first + table.len() as u64,
                module.len() as u64,
            ),
            (
                b".shstrtab",
                3,
                0,
                first + (table.len() + module.len()) as u64,
                NAMES.len() as u64,
            ),
        ];
        let sections = first + (table.len() + module.len() + NAMES.len()) as u64;
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend([2_u16, 62].iter().flat_map(|it| it.to_le_bytes()));
        file.extend(1_u32.to_le_bytes());
        file.extend(
            [TEXT, interpreter, sections]
                .iter()
                .flat_map(|it| it.to_le_bytes()),
        );
        file.extend(0_u32.to_le_bytes());
        file.extend(
            [64_u16, 56, 1, 64, 5, 4]
                .iter()
                .flat_map(|it| it.to_le_bytes()),
        );
        file.extend([elf::PT_INTERP.0, 4].iter().flat_map(|it| it.to_le_bytes()));
        file.extend([0_u8; 48]);
        file.extend(table);
        file.extend(module);
        file.extend(NAMES);
        for (of, kind, address, at, size) in parts {
            let named = name(of).expect("a name") as u32;
            file.extend([named, kind].iter().flat_map(|it: &u32| it.to_le_bytes()));
            file.extend(
                [2, address, at, size]
                    .iter()
                    .flat_map(|it: &u64| it.to_le_bytes()),
            );
            file.extend([0_u32; 2].iter().flat_map(|it| it.to_le_bytes()));
            file.extend([1_u64, 0].iter().flat_map(|it| it.to_le_bytes()));
        }
        file
    }

    /// Where C is linked in, the module's description says where the code begins; what is no place in it is not
    /// believed.
    #[test]
    fn the_module_says_where_the_code_begins() {
        use std::io::Write;
        let named = |text: u64| {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&file_with_module(text)).expect("written");
            let table = Table::of(&file)?;
            Some(table.name(text + 0x20)?.function)
        };
        assert_eq!(named(TEXT).as_deref(), Some("main.(*Shop).Sell"));
        assert_eq!(named(TEXT + 0x10).as_deref(), Some("main.(*Shop).Sell"));
        assert_eq!(named(TEXT - 0x1000), None);
        assert_eq!(named(u64::MAX), None);
    }

    /// A table that is cut anywhere, or of which any byte is another, leads to no panic.
    #[test]
    fn damage_costs_names() {
        for magic in [GO_1_2, GO_1_16, GO_1_18, GO_1_20] {
            let whole = table(magic, TEXT);
            let ask = |bytes: Vec<u8>| {
                let Some(table) = Table::parse(bytes, || Some(TEXT)) else {
                    return;
                };
                for offset in [0, 0x20, 0x7f, END] {
                    table.name(TEXT + offset);
                    table.name(offset);
                }
            };
            for length in 0..whole.len() {
                ask(whole[..length].to_vec());
            }
            for at in 0..whole.len() {
                for byte in [0, 0x7f, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[at] = byte;
                    ask(damaged);
                }
            }
        }
    }
}
