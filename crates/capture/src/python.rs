//! Python's functions in stacks: what the kernel side (`bpf/python.h`) says of a function that it met,
//! and (in [`chain`]) the functions of a thread that waits, read from outside.

pub(crate) mod chain;
mod text;

use crate::function::Function;

/// Bytes of `struct python_definition`.
const SIZE: usize = 424;
const NAME: usize = 40;
const FILE: usize = 168;

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
        let function = parse(&bytes).expect("whole");
        assert_eq!(
            (
                function.name.as_str(),
                function.file.as_str(),
                function.line
            ),
            ("f.g", "/a.p", 17)
        );
        assert_eq!(parse(&bytes[..SIZE - 1]), None);
    }
}
