//! Perl's subroutines in stacks: what the kernel side (`bpf/perl.h`) says of one that it met, and those
//! of a thread that waits, read from outside in the same way.

use hangdog_symbols::memory::Memory;

use crate::chain::{Collected, FILE_BYTES, MOST_FRAMES, NAME_BYTES, Numbers, thread_value};
use crate::function::{self, Function, Told};

/// Where a process keeps what its threads run: the address of the pthread key of their interpreters.
#[derive(Clone, Copy)]
pub(crate) struct Runtime(pub u64);

/// `bpf/perl.h` has these, and says where they are from.
const STACK_INFO: u64 = 224;
const CONTEXTS: u64 = 8;
const CONTEXT_BYTES: u64 = 104;
const KIND: u64 = 15;
const NOTHING: u64 = 0;
const SUBROUTINE: u64 = 9;
const EVAL: u64 = 11;
const TRY: u64 = 64;
const REPEATED: u64 = 16;
const CODE: u64 = 32;
const CODE_NAMED: u64 = 0x8000;
const GLOB: u64 = 32;
const FLAGS: u64 = 8;
const HAS_MORE: u64 = 0x200_0000;
const MORE: u64 = 32;
const NAME_LENGTH: u64 = 4;
const NAME: u64 = 8;
const OPERATION: u64 = 32;
const OPERATION_KIND: u64 = 511;
const STATEMENTS: [u64; 2] = [195, 196];

/// The function that the kernel side has told.
pub(crate) fn told(told: &Told<'_>) -> Function {
    Function {
        name: name(
            function::text(told.name, told.name_length),
            &function::text(told.scope, told.scope_length),
        ),
        file: function::text(told.file, told.file_length),
        line: told.line,
    }
}

/// A subroutine as Perl calls it, `Shop::sell`; of the package `main`, which goes without saying, `sell`.
fn name(name: String, package: &str) -> String {
    match package {
        "" | "main" => name,
        package => format!("{package}::{name}"),
    }
}

/// What was read of a call of the loop.
#[derive(Default)]
struct Call {
    /// Where in the chain another call begins, if this one was begun by code that catches no exception.
    outermost_eval: Option<usize>,
    /// All its subroutines are there.
    is_whole: bool,
    /// It may be that of a sort's block.
    is_open: bool,
}

/// The chain of a thread, as [`language::read`](crate::language::read) gives it.
pub(crate) fn read<M: Memory>(
    memory: &M,
    runtime: Runtime,
    thread_pointer: u64,
    numbers: &mut Numbers,
    define: impl FnMut(Function) -> u32,
) -> Vec<u64> {
    let mut collected = Collected::new(numbers, define);
    let mut collect = || -> Option<()> {
        let key = memory.word(runtime.0)? as u32;
        let interpreter = thread_value(memory, thread_pointer, key)?;
        let mut stack = memory.word(interpreter.wrapping_add(STACK_INFO))?;
        let (mut contexts, mut index) = (0, -1);
        let mut call = Call::default();
        for _ in 0..MOST_FRAMES {
            if collected.is_full() {
                break;
            }
            if index < 0 {
                if let (true, Some(at)) = (call.is_whole, call.outermost_eval) {
                    collected.begin_call_at(at);
                }
                call = Call::default();
                if stack == 0 {
                    break;
                }
                let [there, previous, _, last] = memory.words_at(stack.wrapping_add(CONTEXTS))?;
                (contexts, stack, index) = (there, previous, i64::from(last as u32 as i32));
                continue;
            }
            let at = contexts.wrapping_add(index as u64 * CONTEXT_BYTES);
            let context: [u64; 13] = memory.words_at(at)?;
            index -= 1;
            let (kind, subroutine) = (context[0] & KIND, context[9]);
            let ends = context[6] == 0;
            let catches = kind == EVAL && context[0] & TRY != 0 && ends;
            let was_open = call.is_open;
            if call.is_whole {
                if let (false, Some(at)) = (catches, call.outermost_eval) {
                    collected.begin_call_at(at);
                }
                call = Call::default();
            }
            match kind {
                SUBROUTINE => {
                    let body = memory.word(subroutine)?;
                    let code: [u64; 8] = memory.words_at(body.wrapping_add(CODE))?;
                    let [_, start, ..] = code;
                    // A closure has one for each time that it is made.
                    collected.add(start, || describe(memory, code))?;
                    if ends {
                        collected.end_call();
                        call.is_whole = true;
                        call.is_open = context[0] & REPEATED == 0;
                    }
                }
                EVAL if catches => {}
                EVAL if ends => {
                    collected.end_call();
                    call = Call::default();
                }
                EVAL => call.outermost_eval = Some(collected.count()),
                NOTHING => {
                    if !was_open {
                        collected.end_call();
                    }
                    call.is_whole = true;
                }
                _ => {}
            }
        }
        Some(())
    };
    // What was read before it led nowhere is as it was.
    let _ = collect();
    collected.words()
}

/// The subroutine whose body has these words.
fn describe(memory: &impl Memory, code: [u64; 8]) -> Option<Function> {
    let [own_package, start, _, called, file, _, _, flags] = code;
    let operation = memory.word(start.wrapping_add(OPERATION));
    let line = operation.filter(|word| STATEMENTS.contains(&(word & OPERATION_KIND)));
    let (own, package) = match flags >> 32 & CODE_NAMED {
        0 => {
            let body = memory.word(called)?;
            let [own, package] = memory.words_at(body.wrapping_add(GLOB))?;
            (own, package)
        }
        _ => (called, own_package),
    };
    let package = package_name(memory, package).unwrap_or_default();
    Some(Function {
        name: name(text(memory, own)?, &package),
        file: file_name(memory, file),
        // That of the first statement: the definition's is not kept.
        line: line.map_or(0, |word| (word >> 32) as u32),
    })
}

/// The name of a package, which is a hash.
fn package_name(memory: &impl Memory, package: u64) -> Option<String> {
    let flags = memory.word(package.wrapping_add(FLAGS))? >> 32;
    if flags & HAS_MORE == 0 {
        return None;
    }
    let body = memory.word(package)?;
    let [name, _, _, names] = memory.words_at(body.wrapping_add(MORE))?;
    let name = match names >> 32 {
        0 => name,
        _ => memory.word(name)?,
    };
    text(memory, name)
}

/// A name, or the end of a long one.
fn text(memory: &impl Memory, object: u64) -> Option<String> {
    let mut length = [0; 4];
    memory.read(object.wrapping_add(NAME_LENGTH), &mut length)?;
    let size = u64::from(u32::from_ne_bytes(length));
    let kept = size.min(NAME_BYTES as u64);
    let mut bytes = vec![0; kept as usize];
    let from = object.wrapping_add(NAME).wrapping_add(size - kept);
    memory.read(from, &mut bytes)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A text that ends with 0, or the beginning of a long one. It may lie at the end of readable memory.
fn file_name(memory: &impl Memory, at: u64) -> String {
    let mut name = Vec::new();
    while name.len() < FILE_BYTES {
        let mut bytes = [0; 8];
        let from = at.wrapping_add(name.len() as u64);
        // A word at a time does not go beyond its page.
        let size = 8 - (from % 8) as usize;
        if memory.read(from, &mut bytes[..size]).is_none() {
            break;
        }
        let end = bytes[..size].iter().position(|&byte| byte == 0);
        name.extend_from_slice(&bytes[..end.unwrap_or(size)]);
        if end.is_some() {
            break;
        }
    }
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::MOST;

    /// Names have their package, if it is not the main one.
    #[test]
    fn names_have_their_package() {
        assert_eq!(name("sell".into(), "Shop::Till"), "Shop::Till::sell");
        assert_eq!(name("sell".into(), "main"), "sell");
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

    /// Stacks that lead to each other in a circle come to an end; memory that cannot be read gives none.
    #[test]
    fn hostile_memory_comes_to_an_end() {
        let of = |word| {
            let define = |_| 1;
            read(
                &Same(word),
                Runtime(8),
                1 << 40,
                &mut Numbers::new(),
                define,
            )
        };
        assert!(of(None).is_empty() && of(Some(0)).is_empty());
        for word in [1, 9, 11, 0x4b, 0x7fff_fff9, 0xffff_ffff, u64::MAX - 6] {
            assert!(of(Some(word)).len() <= MOST + 1);
        }
        assert!(of(Some(9)).len() >= MOST);
    }

    /// The words at addresses.
    #[derive(Default)]
    struct Words(std::collections::HashMap<u64, u64>);

    impl Memory for Words {
        fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
            for (at, bytes) in into.chunks_mut(8).enumerate() {
                let word = self.0.get(&(address + 8 * at as u64)).copied().unwrap_or(0);
                bytes.copy_from_slice(&word.to_ne_bytes()[..bytes.len()]);
            }
            Some(())
        }
    }

    /// A context: its kind, whether it has an operation to return to, and its subroutine's number.
    type Context = (u64, bool, u32);

    /// The chain of a thread with these stacks, the innermost first, of contexts, the outermost first:
    /// of each call of the loop the numbers of its subroutines.
    fn calls(stacks: &[&[Context]]) -> Vec<Vec<u64>> {
        let mut words = Words::default();
        let mut numbers = Numbers::new();
        let mut put = |at, word| words.0.insert(at, word);
        let stack_at = |at: usize| 0x10_0000 + 0x1_0000 * at as u64;
        put(0x1000 + 784 + 8, 0x8000);
        put(0x8000 + STACK_INFO, stack_at(0));
        for (at, contexts) in stacks.iter().enumerate() {
            let stack = stack_at(at);
            put(stack + CONTEXTS, stack + 0x100);
            if at + 1 < stacks.len() {
                put(stack + CONTEXTS + 8, stack_at(at + 1));
            }
            put(stack + CONTEXTS + 24, contexts.len() as u64 - 1);
            for (index, &(kind, returns, number)) in contexts.iter().enumerate() {
                let context = stack + 0x100 + CONTEXT_BYTES * index as u64;
                put(context, kind);
                put(context + 48, u64::from(returns));
                if kind & KIND == SUBROUTINE {
                    let subroutine = 0x200_0000 + 0x1000 * u64::from(number);
                    put(context + 72, subroutine);
                    put(subroutine, subroutine + 0x100);
                    put(subroutine + 0x100 + CODE + 8, subroutine + 0x200);
                    numbers.insert(subroutine + 0x200, number);
                }
            }
        }
        let define = |_| panic!("all are known");
        let chain = read(&words, Runtime(8), 0x1000, &mut numbers, define);
        assert_eq!(chain[0], crate::chain::LOOP_MARK);
        let calls = chain[1..].split(|&word| word == crate::chain::LOOP_MARK);
        calls
            .map(|words| words.iter().map(|word| word & 0xffff).collect())
            .collect()
    }

    /// Subroutines belong to the calls of the loop that run them, whatever began these.
    #[test]
    fn calls_of_the_loop_are_told_apart() {
        let main: &[Context] = &[(SUBROUTINE, true, 1), (SUBROUTINE, true, 2)];
        let eval = (EVAL | TRY, true, 0);
        assert_eq!(calls(&[main]), [[2, 1]]);
        // An overloaded operator; with an eval, which begins a call, and one within that.
        let operator: &[Context] = &[(SUBROUTINE, false, 3)];
        assert_eq!(calls(&[operator, main]), [vec![3], vec![2, 1]]);
        let tries: &[Context] = &[(SUBROUTINE, false, 3), eval, (SUBROUTINE, true, 4), eval];
        assert_eq!(calls(&[tries, main]), [vec![4], vec![3], vec![2, 1]]);
        // Evals of the program itself, and of a subroutine whose caller catches, begin none.
        assert_eq!(calls(&[&[eval, (SUBROUTINE, true, 1), eval]]), [[1]]);
        let caught: &[Context] = &[
            (SUBROUTINE, true, 1),
            (EVAL | TRY, false, 0),
            (SUBROUTINE, false, 3),
            eval,
        ];
        assert_eq!(calls(&[caught]), [[3], [1]]);
        // A sort's block, with a subroutine as its last operation, and with one that C repeats.
        let last: &[Context] = &[(NOTHING, true, 0), (SUBROUTINE, false, 3)];
        assert_eq!(calls(&[last, main]), [vec![3], vec![2, 1]]);
        let repeated: &[Context] = &[(NOTHING, true, 0), (SUBROUTINE | REPEATED, false, 3)];
        assert_eq!(calls(&[repeated, main]), [vec![3], vec![], vec![2, 1]]);
    }

    #[test]
    fn a_file_is_read_to_its_end() {
        let zero = u64::from_ne_bytes(*b"/a/b.pl\0");
        assert_eq!(file_name(&Same(Some(zero)), 16), "/a/b.pl");
        let endless = u64::from_ne_bytes(*b"abcdefgh");
        assert_eq!(file_name(&Same(Some(endless)), 16).len(), FILE_BYTES);
        assert_eq!(file_name(&Same(None), 16), "");
    }
}
