//! Python's functions in stacks: where the interpreter is, what the kernel side (`bpf/python.h`)
//! says of a function that it met, and the frame that it becomes.
//!
//! In a stack as the kernel side sends it, a Python function stands in the place of the
//! interpreter's loop that runs it, as a word that is no address. A function is told once, by a
//! definition of its own.

pub(crate) mod chain;
mod text;

pub(crate) use hangdog_symbols::interpreter::{Interpreter, Known};

/// What begins the words that stand for Python functions: no address does.
const FRAME: u64 = 1 << 62;

/// The number of the Python function that a word of a stack stands for; 0 for one that could not be
/// told, `None` if it is an address.
pub(crate) fn code_of(word: u64) -> Option<u32> {
    (word >> 62 == FRAME >> 62).then_some(word as u32)
}

/// A Python function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its qualified name: `Worker.serve`, `main.<locals>.<genexpr>`.
    pub name: String,
    /// As the interpreter was told it.
    pub file: String,
    /// Where its definition begins.
    pub line: u32,
}

/// Bytes of `struct python_definition`.
const SIZE: usize = 424;
const NAME: usize = 40;
const FILE: usize = 168;

impl Function {
    /// Reads what the kernel side sent; `None` if it is cut.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Function> {
        let bytes: &[u8; SIZE] = bytes.first_chunk()?;
        let u32_at = |at: usize| {
            let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            u32::from_ne_bytes(word)
        };
        Some(Function {
            line: u32_at(20),
            name: text::decode(u32_at(24), u32_at(28), &bytes[NAME..FILE]),
            file: text::decode(u32_at(32), u32_at(36), &bytes[FILE..]),
        })
    }

    /// What tells it apart in its file: the line, and a hash of the name (FNV-1a) above.
    pub(crate) fn offset(&self) -> u64 {
        let hash = self.name.bytes().fold(0x811c_9dc5u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        u64::from(hash) << 32 | u64::from(self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::skeleton::types;

    /// A definition is read from where the C compiler put it.
    #[test]
    fn a_definition_is_read() {
        assert_eq!(size_of::<types::python_definition>(), SIZE);
        let mut bytes = vec![0u8; SIZE];
        let ascii = 1 << 2 | 1 << 5 | 1 << 6;
        for (at, value) in [(20, 17u32), (24, 3), (28, ascii), (32, 4), (36, ascii)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[40..43].copy_from_slice(b"f.g");
        bytes[168..172].copy_from_slice(b"/a.p");
        let function = Function::parse(&bytes).expect("whole");
        assert_eq!(
            (
                function.name.as_str(),
                function.file.as_str(),
                function.line
            ),
            ("f.g", "/a.p", 17)
        );
        assert_eq!(Function::parse(&bytes[..SIZE - 1]), None);
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
            assert_eq!(code_of(address), None);
        }
        assert_eq!(code_of(FRAME | 5), Some(5));
        assert_eq!(code_of(FRAME), Some(0));
    }
}
