//! Functions that an interpreter or a virtual machine runs, in the place of its own ones in stacks:
//! Python's, Ruby's, PHP's, Perl's, Java's and JavaScript's.
//!
//! In a stack as the kernel side sends it, such a function is a word that is no address. A function of
//! an interpreted language is a number, which the kernel side tells once, by a definition of its own
//! (`bpf/chain.h`). One of a virtual machine is the address of its description, which
//! [`machine`](crate::machine) turns into such a number. A function becomes a frame of its source file,
//! and is named at once.

use std::ops::Range;

use crate::{perl, php, python, ruby};

/// What begins the words that stand for functions with a number: no address does.
pub(crate) const NUMBERED: u64 = 1 << 62;

/// The number of the function that a word of a stack stands for; 0 for one that could not be told,
/// `None` if it is an address.
pub(crate) fn number_of(word: u64) -> Option<u32> {
    (word >> 62 == NUMBERED >> 62).then_some(word as u32)
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// As its language writes it: `Worker.serve`, `main.<locals>.<genexpr>`, `shop.Parcels.weigh`.
    pub name: String,
    /// The source file as the interpreter was told it.
    pub file: String,
    /// Where its definition begins; 0 where that is not known.
    pub line: u32,
}

impl Function {
    /// What tells it apart in its file: the line, and a hash of the name (FNV-1a) above.
    pub(crate) fn offset(&self) -> u64 {
        let hash = self.name.bytes().fold(0x811c_9dc5u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        u64::from(hash) << 32 | u64::from(self.line)
    }

    /// Where it is defined, as traces have it: `file:line`.
    pub(crate) fn source(&self) -> String {
        match self.line {
            0 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        }
    }
}

/// What the kernel side sends first of a function (`struct function_definition`), by its language.
const PYTHON: u32 = 8;
const RUBY: u32 = 10;
const PHP: u32 = 11;
const PERL: u32 = 12;
/// Bytes of it.
const SIZE: usize = 560;
const NAME: Range<usize> = 40..168;
const FILE: Range<usize> = 168..424;
const SCOPE: Range<usize> = 432..560;

/// What a name's state says in other languages than Python (`bpf/records.h`).
pub(crate) const SCOPE_IS_OBJECT: u32 = 1;

/// A function as the kernel side tells it: the end of each text, as far as it had room.
pub(crate) struct Told<'a> {
    pub line: u32,
    pub name: &'a [u8],
    pub name_length: u32,
    pub name_state: u32,
    pub file: &'a [u8],
    pub file_length: u32,
    pub file_state: u32,
    pub scope: &'a [u8],
    pub scope_length: u32,
}

/// Reads what the kernel side sent; `None` if it is cut, or tells of something else.
pub(crate) fn parse(kind: u32, bytes: &[u8]) -> Option<Function> {
    let bytes: &[u8; SIZE] = bytes.first_chunk()?;
    let u32_at = |at: usize| {
        let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        u32::from_ne_bytes(word)
    };
    let told = Told {
        line: u32_at(20),
        name: &bytes[NAME],
        name_length: u32_at(24),
        name_state: u32_at(28),
        file: &bytes[FILE],
        file_length: u32_at(32),
        file_state: u32_at(36),
        scope: &bytes[SCOPE],
        scope_length: u32_at(424),
    };
    Some(match kind {
        PYTHON => python::told(&told),
        RUBY => ruby::told(&told),
        PHP => php::told(&told),
        PERL => perl::told(&told),
        _ => return None,
    })
}

/// The text of `length` bytes in `bytes`.
pub(crate) fn text(bytes: &[u8], length: u32) -> String {
    let length = (length as usize).min(bytes.len());
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    use crate::session::skeleton::types;

    /// A definition is read from where the C compiler put it, and by its language; one that is cut, or
    /// tells no function, is none.
    #[test]
    fn a_definition_is_read() {
        type Told = types::function_definition;
        assert_eq!(size_of::<Told>(), SIZE);
        assert_eq!(offset_of!(Told, name), NAME.start);
        assert_eq!(offset_of!(Told, file), FILE.start);
        assert_eq!(offset_of!(Told, scope_length), 424);
        assert_eq!(offset_of!(Told, scope), SCOPE.start);
        let mut bytes = vec![0u8; SIZE];
        let ascii = 1 << 2 | 1 << 5 | 1 << 6;
        for (at, value) in [
            (20, 17u32),
            (24, 3),
            (28, ascii),
            (32, 4),
            (36, ascii),
            (424, 4),
        ] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[40..43].copy_from_slice(b"f.g");
        bytes[168..172].copy_from_slice(b"/a.p");
        bytes[432..436].copy_from_slice(b"Shop");
        let function = |name: &str| {
            Some(Function {
                name: name.into(),
                file: "/a.p".into(),
                line: 17,
            })
        };
        assert_eq!(parse(PYTHON, &bytes), function("f.g"));
        bytes[28..32].copy_from_slice(&[0; 4]);
        assert_eq!(parse(RUBY, &bytes), function("Shop#f.g"));
        assert_eq!(parse(PHP, &bytes), function("Shop->f.g"));
        assert_eq!(parse(PERL, &bytes), function("Shop::f.g"));
        assert_eq!(parse(RUBY, &bytes[..SIZE - 1]), None);
        assert_eq!(parse(1, &bytes), None);
    }

    /// Two functions on one line of a file are two; the line is in the lower half, FNV-1a of the
    /// name in the upper ("a": 0xe40c292c, by its authors' table).
    #[test]
    fn an_offset_tells_functions_apart() {
        let function = |name: &str| Function {
            name: name.into(),
            file: String::new(),
            line: 7,
        };
        assert_eq!(function("a").offset(), 0xe40c_292c_0000_0007);
        assert_ne!(function("a").offset(), function("b").offset());
    }

    /// Addresses of either half are no functions, the numbers behind the mark are.
    #[test]
    fn words_are_told_from_addresses() {
        for address in [0, 0x7fff_ffff_ffff, 0xffff_ffff_ff60_0000] {
            assert_eq!(number_of(address), None);
        }
        assert_eq!(number_of(NUMBERED | 5), Some(5));
        assert_eq!(number_of(NUMBERED), Some(0));
    }
}
