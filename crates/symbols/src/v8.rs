//! V8, the virtual machine of node, read from outside: what a JavaScript function is called, and where
//! it is written. It needs no option.
//!
//! A program with V8 exports numbers that say how V8 keeps its objects, for debuggers that look at a
//! core dump (`v8dbg_*`, `gen-postmortem-metadata.py` of V8). With that the way from a function to a
//! name is `SharedFunctionInfo`, its name or its `ScopeInfo`, and its `Script`. Objects are pointed to
//! with their lowest bit set; numbers have it clear ("Smi"). A function's own object moves when garbage
//! is collected, so that the address of its `SharedFunctionInfo` is what stands for it: those are old,
//! and old objects seldom move.

use serde::{Deserialize, Serialize};

use crate::memory::Memory;

/// Numbers by which V8 describes itself. The second name is that of other versions.
const NUMBERS: [(&str, &str); 18] = [
    ("class_JSFunction__shared__SharedFunctionInfo", ""),
    ("class_HeapObject__map__Map", ""),
    (
        "class_Map__instance_type__uint16_t",
        "class_Map__instance_attributes__int",
    ),
    ("class_SharedFunctionInfo__name_or_scope_info__Object", ""),
    (
        "class_SharedFunctionInfo__script_or_debug_info__HeapObject",
        "class_SharedFunctionInfo__script__HeapObject",
    ),
    ("class_Script__name__Object", ""),
    ("class_Script__source__Object", ""),
    ("class_String__length__int32_t", ""),
    ("class_SeqOneByteString__chars__char", ""),
    ("class_SeqTwoByteString__chars__char", ""),
    ("class_ExternalString__resource__Object", ""),
    ("class_ThinString__actual__String", ""),
    ("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", ""),
    ("type_ScopeInfo__SCOPE_INFO_TYPE", ""),
    ("type_Script__SCRIPT_TYPE", ""),
    ("type_Map__MAP_TYPE", ""),
    ("scopeinfo_idx_ncontextlocals", ""),
    ("scopeinfo_idx_first_vars", ""),
];
/// A function lies here, from a frame's frame pointer, and the number that says where.
const FUNCTION: (&str, i32) = ("off_fp_function", -16);

/// Longer names are cut, characters.
const LONGEST: usize = 512;
/// Of a source no more is read to find a line, characters.
const MOST_SOURCE: u64 = 16 << 20;
/// A scope has no more variables that closures use, or it is damaged.
const MOST_LOCALS: u64 = 10_000;
/// What is looked for in a scope comes so many words behind its variables at most.
const MOST_WORDS: usize = 10;

/// How a V8 keeps its objects, offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    numbers: [i32; NUMBERS.len()],
}

impl Layout {
    /// `number` reads one that the program exports; `None` if one is missing, or if frames are not as
    /// `bpf/machine.h` expects.
    pub(crate) fn find(number: impl Fn(&str) -> Option<i32>) -> Option<Layout> {
        let number = |name: &str| number(&format!("v8dbg_{name}"));
        if number(FUNCTION.0)? != FUNCTION.1 {
            return None;
        }
        let mut numbers = [0; NUMBERS.len()];
        for (at, (name, other)) in numbers.iter_mut().zip(NUMBERS) {
            *at = number(name).or_else(|| number(other))?;
        }
        Some(Layout { numbers })
    }

    /// One of any numbers, for the fuzzer.
    #[cfg(fuzzing)]
    pub(crate) fn fuzzed(numbers: [i32; NUMBERS.len()]) -> Layout {
        Layout { numbers }
    }

    fn number(&self, name: &str) -> i32 {
        let at = NUMBERS.iter().position(|(known, _)| *known == name);
        at.map_or(0, |at| self.numbers[at])
    }

    /// From a function's object, where its `SharedFunctionInfo` is pointed to.
    pub fn shared(&self) -> u64 {
        self.offset("class_JSFunction__shared__SharedFunctionInfo")
    }

    fn offset(&self, name: &str) -> u64 {
        u64::from(self.number(name).unsigned_abs())
    }
}

/// A JavaScript function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Its name, or what V8 inferred from what it was assigned to; empty where it has none.
    pub name: String,
    /// The file that it is written in: `/srv/app.js`, `node:internal/timers`; empty for one of V8's
    /// own.
    pub file: String,
    /// Where it begins; 0 where that is not known.
    pub line: u32,
}

/// The objects of a process.
pub struct V8<M> {
    memory: M,
    layout: Layout,
}

/// A string as V8 keeps it.
struct Text {
    /// Where its characters lie.
    characters: u64,
    length: u64,
    /// Bytes of a character.
    size: u64,
}

impl<M: Memory> V8<M> {
    /// Those that `memory` holds.
    pub fn new(memory: M, layout: Layout) -> V8<M> {
        V8 { memory, layout }
    }

    /// The function whose `SharedFunctionInfo` lies at an address; `None` if none does.
    pub fn function(&self, shared: u64) -> Option<Script> {
        let is_one = self.is_of(shared, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")?;
        let about = self.pointer(
            shared,
            "class_SharedFunctionInfo__name_or_scope_info__Object",
        );
        let about = is_one.then_some(about).flatten();
        let script = self
            .pointer(shared, NUMBERS[4].0)
            .filter(|&script| self.is_of(script, "type_Script__SCRIPT_TYPE") == Some(true));
        let (mut name, mut start) = (String::new(), None);
        if is_one && let Some(about) = about {
            match self.is_of(about, "type_ScopeInfo__SCOPE_INFO_TYPE")? {
                true => (name, start) = self.scope(about)?,
                false => name = self.string(about)?,
            }
        }
        let file = script.and_then(|script| self.pointer(script, "class_Script__name__Object"));
        let file = file.and_then(|file| self.string(file)).unwrap_or_default();
        let line = script.zip(start).and_then(|(script, start)| {
            let source = self.pointer(script, "class_Script__source__Object")?;
            self.line(source, start)
        });
        is_one.then(|| Script {
            name,
            file: file
                .strip_prefix("file://")
                .map_or(file.clone(), str::to_owned),
            line: line.unwrap_or(0),
        })
    }

    /// The name in a scope, and where in the source its function begins, characters.
    ///
    /// Behind the variables come the function's name with a number, the name that V8 inferred, and
    /// the begin and end of the function's text; each but the last may be missing. Since V8 12 the
    /// text's place comes before the variables.
    fn scope(&self, scope: u64) -> Option<(String, Option<u64>)> {
        const WORD: u64 = 8;
        let slot = |at: u64| self.memory.word(scope.wrapping_add(WORD * (at + 1)));
        let count_at = self.offset("scopeinfo_idx_ncontextlocals");
        let first = self.offset("scopeinfo_idx_first_vars");
        let locals = number(slot(count_at)?).filter(|&count| count <= MOST_LOCALS)?;
        let words: Vec<u64> = (0..MOST_WORDS as u64)
            .map_while(|at| slot(first + 2 * locals + at))
            // There the next object begins.
            .take_while(|&word| !object(word).is_some_and(|at| self.is_map(at)))
            .collect();
        let texts = words.iter().filter_map(|&word| self.string(object(word)?));
        let name = { texts }.find(|text| !text.is_empty()).unwrap_or_default();
        let start = match first.saturating_sub(count_at) > 2 {
            true => number(slot(count_at + 1)?),
            false => last_pair(&words)
                .filter(|(start, end)| start < end)
                .map(|(start, _)| start),
        };
        Some((name, start))
    }

    /// The line of the character at `start` of a source.
    fn line(&self, source: u64, start: u64) -> Option<u32> {
        const PIECE: u64 = 1 << 16;
        let text = self.text(source)?;
        let end = start.min(text.length).min(MOST_SOURCE) * text.size;
        let mut lines = 1;
        let mut from = 0;
        while from < end {
            let mut bytes = vec![0; (end - from).min(PIECE) as usize];
            self.memory
                .read(text.characters.wrapping_add(from), &mut bytes)?;
            let is_end =
                |character: &&[u8]| character[0] == b'\n' && character[1..].iter().all(|&b| b == 0);
            lines += bytes
                .chunks_exact(text.size as usize)
                .filter(is_end)
                .count() as u32;
            from += PIECE;
        }
        Some(lines)
    }

    /// Whether the object at an address is of a type.
    fn is_of(&self, object: u64, kind: &str) -> Option<bool> {
        Some(i32::from(self.kind(object)?) == self.layout.number(kind))
    }

    fn is_map(&self, at: u64) -> bool {
        self.is_of(at, "type_Map__MAP_TYPE") == Some(true)
    }

    fn kind(&self, at: u64) -> Option<u16> {
        let map = self.pointer(at, "class_HeapObject__map__Map")?;
        let mut bytes = [0; 2];
        let kind = map.wrapping_add(self.layout.offset("class_Map__instance_type__uint16_t"));
        self.memory.read(kind, &mut bytes)?;
        Some(u16::from_ne_bytes(bytes))
    }

    /// The object that a field points to.
    fn pointer(&self, at: u64, field: &str) -> Option<u64> {
        object(self.memory.word(at.wrapping_add(self.offset(field)))?)
    }

    fn offset(&self, name: &str) -> u64 {
        self.layout.offset(name)
    }

    fn string(&self, at: u64) -> Option<String> {
        let text = self.text(at)?;
        let length = text.length.min(LONGEST as u64) as usize;
        let mut bytes = vec![0; length * text.size as usize];
        self.memory.read(text.characters, &mut bytes)?;
        let text: String = match text.size {
            1 => bytes.iter().copied().map(char::from).collect(),
            _ => {
                let units = bytes
                    .chunks_exact(2)
                    .map(|b| u16::from_ne_bytes([b[0], b[1]]));
                char::decode_utf16(units)
                    .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect()
            }
        };
        Some(crate::text::text(text.as_bytes()))
    }

    /// A string by its type (`instance-type.h` of V8): its lower three bits say how it is kept, the
    /// fourth that its characters have one byte; what is no string has a higher bit set.
    fn text(&self, at: u64) -> Option<Text> {
        const NO_STRING: u16 = !0x7f;
        const ONE_BYTE: u16 = 8;
        let kind = self.kind(at).filter(|kind| kind & NO_STRING == 0)?;
        let length = at.wrapping_add(self.offset("class_String__length__int32_t"));
        let mut bytes = [0; 4];
        self.memory.read(length, &mut bytes)?;
        let size = if kind & ONE_BYTE != 0 { 1 } else { 2 };
        let characters = match kind & 7 {
            0 if size == 1 => at.wrapping_add(self.offset("class_SeqOneByteString__chars__char")),
            0 => at.wrapping_add(self.offset("class_SeqTwoByteString__chars__char")),
            // Behind the object that keeps the characters comes where they lie.
            2 => {
                let field = self.offset("class_ExternalString__resource__Object") + 8;
                self.memory.word(at.wrapping_add(field))?
            }
            5 => {
                let actual = self.pointer(at, "class_ThinString__actual__String")?;
                let is_thin = |at| self.kind(at).is_some_and(|kind| kind & 7 == 5);
                return (!is_thin(actual)).then(|| self.text(actual)).flatten();
            }
            // Put together of others.
            _ => return None,
        };
        Some(Text {
            characters,
            length: u32::from_ne_bytes(bytes).into(),
            size,
        })
    }
}

/// The object that a word points to.
fn object(word: u64) -> Option<u64> {
    (word & 3 == 1).then(|| word - 1)
}

/// The number that a word is: its upper half.
fn number(word: u64) -> Option<u64> {
    (word as u32 == 0).then_some(word >> 32)
}

/// The last two of the first run of at least two numbers.
fn last_pair(words: &[u64]) -> Option<(u64, u64)> {
    let mut runs = words.split(|&word| number(word).is_none());
    let run = runs.find(|run| run.len() >= 2)?;
    let &[start, end] = run.last_chunk()?;
    Some((number(start)?, number(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Memory that holds what was put there.
    #[derive(Clone, Default)]
    struct Fake(HashMap<u64, u8>);

    impl Memory for Fake {
        fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
            for (at, byte) in (address..).zip(into) {
                *byte = *self.0.get(&at)?;
            }
            Some(())
        }
    }

    const STRING: u16 = 8;
    const SHARED: u16 = 262;
    const SCOPE: u16 = 261;
    const SCRIPT: u16 = 167;

    impl Fake {
        fn put(&mut self, at: u64, bytes: &[u8]) {
            self.0.extend((at..).zip(bytes.iter().copied()));
        }

        fn words(&mut self, at: u64, words: &[u64]) {
            for (at, word) in (at..).step_by(8).zip(words) {
                self.put(at, &word.to_ne_bytes());
            }
        }

        /// An object of a type, with these words behind its map.
        fn object(&mut self, at: u64, kind: u16, words: &[u64]) {
            let map = 0x100_0000 + u64::from(kind) * 64;
            self.put(map + 12, &kind.to_ne_bytes());
            // A map's own map.
            self.words(map, &[0x200_0001]);
            self.put(0x200_000c, &255u16.to_ne_bytes());
            self.words(at, &[map + 1]);
            self.words(at + 8, words);
        }

        fn string(&mut self, at: u64, text: &str) {
            self.object(at, STRING, &[(text.len() as u64) << 32]);
            self.put(at + 16, text.as_bytes());
        }
    }

    /// As node 20 has it.
    fn layout() -> Layout {
        let numbers = [
            24, 0, 12, 16, 32, 16, 8, 12, 16, 16, 16, 16, 262, 261, 167, 255, 2, 3,
        ];
        Layout { numbers }
    }

    const fn small(number: u64) -> u64 {
        number << 32
    }

    /// A function `sort` at line 3 of /srv/shop.js, with one variable that a closure uses.
    fn shop() -> Fake {
        let mut fake = Fake::default();
        fake.string(0x1000, "sort");
        fake.string(0x1100, "file:///srv/shop.js");
        fake.string(0x1200, "let a;\n\nfunction sort() {}");
        fake.string(0x1300, "orders");
        fake.string(0x1400, "");
        fake.object(0x2000, SCRIPT, &[0x1201, 0x1101]);
        let scope = [
            small(7),
            small(0),
            small(1),
            0x1301,
            small(9),
            0x1001,
            small(0),
            0x1401,
            small(8),
            small(26),
            0x3001,
        ];
        fake.object(0x3000, SCOPE, &scope);
        // The next object.
        fake.string(0x3060, "orders");
        fake.object(0x4000, SHARED, &[0, 0x3001, 0, 0x2001]);
        fake
    }

    fn function(fake: Fake) -> Option<Script> {
        V8::new(fake, layout()).function(0x4000)
    }

    /// A program that says that a scope's variables come before their count has functions without a
    /// place.
    #[test]
    fn numbers_may_be_of_any_order() {
        let mut layout = layout();
        // The count is taken to be behind the first variable.
        layout.numbers[16] = 4;
        let script = V8::new(shop(), layout).function(0x4000).unwrap();
        assert_eq!((&*script.file, script.line), ("/srv/shop.js", 0));
    }

    /// A function has the name of its scope, not that of a variable, its file without a scheme, and the
    /// line at which its text begins.
    #[test]
    fn a_function_has_name_file_and_line() {
        let found = function(shop()).expect("a function");
        assert_eq!(found.name, "sort");
        assert_eq!((found.file.as_str(), found.line), ("/srv/shop.js", 3));
    }

    /// One that was assigned to something has the name that V8 inferred; one without any, none.
    #[test]
    fn a_function_without_a_name_has_what_was_inferred() {
        let mut fake = shop();
        fake.words(0x3000 + 8 * 6, &[0x1401]);
        fake.string(0x1400, "");
        assert_eq!(function(fake.clone()).expect("a function").name, "");
        fake.words(0x3000 + 8 * 8, &[0x1001]);
        assert_eq!(function(fake).expect("a function").name, "sort");
    }

    /// A function of V8's own has its name in place of a scope, and no script.
    #[test]
    fn a_function_of_the_machine_has_its_name() {
        let mut fake = shop();
        fake.object(0x4000, SHARED, &[0, 0x1001, 0, 0x1401]);
        let found = function(fake).expect("a function");
        assert_eq!(
            (found.name.as_str(), found.file.as_str(), found.line),
            ("sort", "", 0)
        );
    }

    /// What is no function, a scope that claims more variables than there can be, and memory that is
    /// not there, name nothing.
    #[test]
    fn what_makes_no_sense_names_nothing() {
        let mut other = shop();
        other.object(0x4000, SCOPE, &[0, 0x3001, 0, 0x2001]);
        assert_eq!(function(other), None);
        let mut many = shop();
        many.words(0x3000 + 8 * 3, &[small(1 << 20)]);
        assert_eq!(function(many), None);
        assert_eq!(V8::new(Fake::default(), layout()).function(0x4000), None);
    }

    /// The numbers of a program are found by their names, and frames must be as expected.
    #[test]
    fn a_layout_is_found_by_its_names() {
        let number = |name: &str| {
            (name == "v8dbg_off_fp_function")
                .then_some(-16)
                .or(Some(24))
        };
        assert_eq!(Layout::find(number).expect("all there").shared(), 24);
        assert_eq!(Layout::find(|_| Some(-8)), None);
        assert_eq!(
            Layout::find(|name| (name.contains("off_fp")).then_some(-16)),
            None
        );
    }
}
