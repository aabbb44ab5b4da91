//! PHP's functions and methods in stacks: what the kernel side (`bpf/php.h`) says of one that it met, and
//! those of a process that waits, read from outside in the same way.

use hangdog_symbols::memory::Memory;

use crate::chain::{Collected, FILE_BYTES, MOST_FRAMES, NAME_BYTES, Numbers};
use crate::function::{self, Function, SCOPE_IS_OBJECT, Told};

/// Where a process keeps what it runs: the address of the pointer to its innermost frame.
#[derive(Clone, Copy)]
pub(crate) struct Runtime(pub u64);

/// `bpf/php.h` has these, and says where they are from.
const CALL_TOP: u64 = 1 << 17;
const USER_FUNCTION: u64 = 2;
const EVALUATED: u64 = 4;
const STATIC: u64 = 16;
const FUNCTION_CODE: u64 = 88;
const FUNCTION_FILE: u64 = 152;
const CLASS_NAME: u64 = 8;
const TEXT_LENGTH: u64 = 16;
const TEXT: u64 = 24;

/// The function that the kernel side has told.
pub(crate) fn told(told: &Told<'_>) -> Function {
    Function {
        name: name(
            function::text(told.name, told.name_length),
            &function::text(told.scope, told.scope_length),
            told.name_state == SCOPE_IS_OBJECT,
        ),
        file: function::text(told.file, told.file_length),
        line: told.line,
    }
}

/// A function as PHP's own stack traces call it: `Shop->sell`, `Shop::open`, `sell`; `{main}` for what a
/// file does outside of all functions.
fn name(name: String, scope: &str, is_static: bool) -> String {
    match (name.as_str(), scope) {
        ("", _) => "{main}".into(),
        (_, "") => name,
        _ if is_static => format!("{scope}::{name}"),
        _ => format!("{scope}->{name}"),
    }
}

/// The chain of a process, as [`language::read`](crate::language::read) gives it.
pub(crate) fn read<M: Memory>(
    memory: &M,
    runtime: Runtime,
    numbers: &mut Numbers,
    define: impl FnMut(Function) -> u32,
) -> Vec<u64> {
    let mut collected = Collected::new(numbers, define);
    let mut collect = || -> Option<()> {
        let mut frame = memory.word(runtime.0)?;
        for _ in 0..MOST_FRAMES {
            if frame == 0 || collected.is_full() {
                break;
            }
            let [_, _, _, function, _, info, previous] = memory.words_at(frame)?;
            frame = previous;
            if function == 0 {
                continue;
            }
            let [kind, called, class] = memory.words_at(function)?;
            if !matches!(kind & 0xff, USER_FUNCTION | EVALUATED) {
                continue;
            }
            let is_static = kind >> 32 & STATIC != 0;
            // Each object that is a closure has a copy of the function.
            let code = memory.word(function.wrapping_add(FUNCTION_CODE))?;
            collected.add(code, || {
                let [file, line] = memory.words_at(function.wrapping_add(FUNCTION_FILE))?;
                let read = |object, most| text(memory, object, most).unwrap_or_default();
                let scope = match class {
                    0 => String::new(),
                    class => read(memory.word(class.wrapping_add(CLASS_NAME))?, NAME_BYTES),
                };
                Some(Function {
                    name: name(read(called, NAME_BYTES), &scope, is_static),
                    file: read(file, FILE_BYTES),
                    line: line as u32,
                })
            })?;
            if info & CALL_TOP != 0 {
                collected.end_call();
            }
        }
        Some(())
    };
    // What was read before it led nowhere is as it was.
    let _ = collect();
    collected.words()
}

/// The text of an object, or the end of a long one.
fn text(memory: &impl Memory, object: u64, most: usize) -> Option<String> {
    let size = memory.word(object.wrapping_add(TEXT_LENGTH))?;
    let kept = size.min(most as u64);
    let mut bytes = vec![0; kept as usize];
    let from = object.wrapping_add(TEXT).wrapping_add(size - kept);
    memory.read(from, &mut bytes)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::MOST;

    /// Names are written as PHP writes them.
    #[test]
    fn names_have_their_class() {
        for (own, scope, is_static, expected) in [
            ("sell", "Shop", false, "Shop->sell"),
            ("open", "Shop", true, "Shop::open"),
            ("sell", "", true, "sell"),
            ("{closure}", "Shop", false, "Shop->{closure}"),
            ("", "", false, "{main}"),
        ] {
            assert_eq!(name(own.into(), scope, is_static), expected);
        }
    }

    /// Memory in which every word is the same, or that cannot be read.
    struct Same(Option<u64>);

    impl Memory for Same {
        fn read(&self, _: u64, into: &mut [u8]) -> Option<()> {
            let word = self.0?.to_ne_bytes();
            for (at, byte) in into.iter_mut().enumerate() {
                *byte = word[at % 8];
            }
            Some(())
        }
    }

    /// Frames that lead to each other in a circle come to an end; memory that cannot be read gives none.
    #[test]
    fn hostile_memory_comes_to_an_end() {
        let of = |word| read(&Same(word), Runtime(8), &mut Numbers::new(), |_| 1);
        assert!(of(None).is_empty() && of(Some(0)).is_empty());
        for word in [1, 2, 4, 0x2_0002, u64::MAX - 253, u64::MAX] {
            assert!(of(Some(word)).len() <= MOST + 1);
        }
        assert!(of(Some(0x2_0002)).len() >= MOST);
    }
}
