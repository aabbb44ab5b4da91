//! Which interpreted language a function or a process is of, and who reads it.
//!
//! The kernel side tells functions with a number of their language, and the interpreter of a process is
//! known by what it exports; from here each goes to the language's own file.

use std::ops::Range;

use hangdog_symbols::memory::Memory;

use crate::chain::Numbers;
use crate::function::{Function, Told};
use crate::{perl, php, python, ruby};

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

/// The interpreter of a process, and where its state lies.
#[derive(Clone, Copy)]
pub(crate) enum Runtime {
    Python(python::frames::Runtime),
    Ruby(ruby::Runtime),
    Php(php::Runtime),
    Perl(perl::Runtime),
}

/// The chain of a thread. `define` is called for each function that has no number yet, and returns one.
/// Empty where the thread has nothing to do with the language.
pub(crate) fn read(
    memory: &impl Memory,
    runtime: Runtime,
    thread_pointer: u64,
    numbers: &mut Numbers,
    define: impl FnMut(Function) -> u32,
) -> Vec<u64> {
    match runtime {
        Runtime::Python(runtime) => {
            python::frames::read(memory, runtime, thread_pointer, numbers, define)
        }
        Runtime::Ruby(runtime) => ruby::read(memory, runtime, thread_pointer, numbers, define),
        Runtime::Php(runtime) => php::read(memory, runtime, numbers, define),
        Runtime::Perl(runtime) => perl::read(memory, runtime, thread_pointer, numbers, define),
    }
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
}
