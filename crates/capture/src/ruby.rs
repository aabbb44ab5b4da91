//! Ruby's methods and blocks in stacks: what the kernel side (`bpf/ruby.h`) says of one that it met, and
//! those of a thread that waits, read from outside in the same way.

use hangdog_symbols::memory::Memory;

use crate::chain::{Collected, FILE_BYTES, MOST_FRAMES, NAME_BYTES, Numbers};
use crate::function::{self, Function, SCOPE_IS_OBJECT, Told};

/// Where a process keeps what its threads run.
#[derive(Clone, Copy)]
pub(crate) struct Runtime {
    /// Where the number of Ruby's library lies, among those with memory for each thread.
    pub library: u64,
    /// How far in this memory the thread's execution context lies.
    pub context: u64,
}

/// `bpf/ruby.h` has these, and says where they are from.
const TCB_VECTOR: u64 = 8;
const VECTOR_ENTRY: u64 = 16;
const MOST_LIBRARIES: u64 = 4096;
const FRAME_FINISH: u64 = 0x20;
const FRAME_C: u64 = 0x80;
const FRAME_BYTES: u64 = 64;
const ENVIRONMENT_METHODS: u64 = 2;
const ISEQ_BODY: u64 = 16;
const BODY_LOCATION: u64 = 64;
const TYPE: u64 = 31;
const CLASS: u64 = 2;
const MODULE: u64 = 3;
const STRING: u64 = 5;
const ARRAY: u64 = 7;
const INTERNAL: u64 = 26;
const FROZEN: u64 = 1 << 11;
const STRING_APART: u64 = 1 << 13;
const ARRAY_WITHIN: u64 = 1 << 13;
const SINGLETON: u64 = 1 << 12;
const METHOD_ENTRY: u64 = 6;
const VARIABLES_OF_METHOD: u64 = 2;
const CLASS_MORE: u64 = 24;
const MORE_VARIABLES: u64 = 8;
const TABLE_PLACE: u64 = 32;
const ENTRIES: usize = 4;
/// So many blocks within each other are gone through for their method.
const MOST_BLOCKS: usize = 16;

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

/// A method or block as Ruby 3.4 and later call it: `Shop#sell`, `Shop.open`, `block in Shop#sell`. What
/// is defined outside of all classes belongs to `Object`, which goes without saying.
fn name(label: String, scope: &str, is_object: bool) -> String {
    if scope.is_empty() || (scope == "Object" && !is_object) {
        return label;
    }
    let dot = if is_object { '.' } else { '#' };
    match label.rsplit_once(" in ") {
        Some((what, method)) => format!("{what} in {scope}{dot}{method}"),
        None => format!("{scope}{dot}{label}"),
    }
}

/// The chain of a thread, as [`language::read`](crate::language::read) gives it.
pub(crate) fn read<M: Memory>(
    memory: &M,
    runtime: Runtime,
    thread_pointer: u64,
    numbers: &mut Numbers,
    define: impl FnMut(Function) -> u32,
) -> Vec<u64> {
    let objects = Objects(memory);
    let mut collected = Collected::new(numbers, define);
    let mut collect = || -> Option<()> {
        let context = objects.context(runtime, thread_pointer)?;
        let [stack, size, mut frame] = memory.words_at(context)?;
        let end = stack.wrapping_add(size.wrapping_mul(8));
        for _ in 0..MOST_FRAMES {
            if frame >= end || collected.is_full() {
                break;
            }
            let [_, _, code, _, environment] = memory.words_at(frame)?;
            let flags = memory.word(environment)?;
            frame = frame.wrapping_add(FRAME_BYTES);
            if flags & FRAME_C != 0 || code == 0 {
                continue;
            }
            collected.add(code, || objects.function(code, environment))?;
            if flags & FRAME_FINISH != 0 {
                collected.end_call();
            }
        }
        Some(())
    };
    // What was read before it led nowhere is as it was.
    let _ = collect();
    collected.words()
}

/// Ruby's objects in a process's memory.
struct Objects<'a, M>(&'a M);

impl<M: Memory> Objects<'_, M> {
    /// Where the execution context of a thread is.
    fn context(&self, runtime: Runtime, thread_pointer: u64) -> Option<u64> {
        let library = self.0.word(runtime.library)?;
        if library == 0 || library > MOST_LIBRARIES {
            return None;
        }
        let vector = self.0.word(thread_pointer.wrapping_add(TCB_VECTOR))?;
        let block = self.0.word(vector.wrapping_add(library * VECTOR_ENTRY))?;
        let context = self.0.word(block.wrapping_add(runtime.context))?;
        (context != 0).then_some(context)
    }

    /// The method or block of these instructions, which runs with an `environment`.
    fn function(&self, code: u64, environment: u64) -> Option<Function> {
        let body = self.0.word(code.wrapping_add(ISEQ_BODY))?;
        let [path, _, label, line] = self.0.words_at(body.wrapping_add(BODY_LOCATION))?;
        let (scope, is_object) = self
            .owner(environment)
            .and_then(|class| self.scope(class))
            .unwrap_or_default();
        let label = self.text(label, NAME_BYTES).unwrap_or_default();
        Some(Function {
            name: name(label, &scope, is_object),
            file: self.path(path).unwrap_or_default(),
            // A number has a bit that says so.
            line: (line >> 1) as u32,
        })
    }

    /// The class of the method that an environment belongs to.
    fn owner(&self, environment: u64) -> Option<u64> {
        let mut at = environment;
        let mut entry = None;
        for _ in 0..MOST_BLOCKS {
            let [method, outer, flags] = self.0.words_at(at.wrapping_sub(16))?;
            if flags & ENVIRONMENT_METHODS != 0 {
                entry = Some(method);
                break;
            }
            at = outer & !3;
        }
        let [flags, variables_of, _, _, class] = self.0.words_at(entry?)?;
        let kind = |flags: u64| (flags & TYPE == INTERNAL).then_some(flags >> 12 & 15);
        match kind(flags)? {
            METHOD_ENTRY => Some(class),
            VARIABLES_OF_METHOD => {
                let [flags, _, _, _, class] = self.0.words_at(variables_of)?;
                (kind(flags)? == METHOD_ENTRY).then_some(class)
            }
            _ => None,
        }
    }

    /// The name of a class: the first of its variables that is a frozen text; or that of the class whose
    /// singleton class it is, and whether it is one.
    fn scope(&self, class: u64) -> Option<(String, bool)> {
        let (mut class, mut is_object) = (class, false);
        for _ in 0..2 {
            let flags = self.flags(class)?;
            if !matches!(flags & TYPE, CLASS | MODULE) {
                return None;
            }
            let more = self.0.word(class.wrapping_add(CLASS_MORE))?;
            let variables = self.0.word(more.wrapping_add(MORE_VARIABLES))?;
            let [start, end, entries] = self.0.words_at(variables.wrapping_add(TABLE_PLACE))?;
            if start >= end {
                return None;
            }
            let entries: [u64; 3 * ENTRIES] = self.0.words_at(entries)?;
            let (entries, _) = entries.as_chunks::<3>();
            if flags & SINGLETON != 0 {
                (class, is_object) = (entries[0][2], true);
                continue;
            }
            let used = entries.iter().take(end as usize);
            let name = used.map(|entry| entry[2]).find(|&value| {
                let flags = self.flags(value).unwrap_or_default();
                flags & TYPE == STRING && flags & FROZEN != 0
            });
            return Some((self.text(name?, NAME_BYTES)?, is_object));
        }
        None
    }

    /// What an object says of itself; none of a number, a symbol and the like.
    fn flags(&self, object: u64) -> Option<u64> {
        let is_pointer = object != 0 && object & 7 == 0;
        is_pointer.then(|| self.0.word(object))?
    }

    /// The text of a string, or the end of a long one.
    fn text(&self, object: u64, most: usize) -> Option<String> {
        let [flags, _, length, apart] = self.0.words_at(object)?;
        if flags & TYPE != STRING {
            return None;
        }
        let (size, data) = match flags & STRING_APART {
            0 => (flags >> 14 & 31, object.wrapping_add(16)),
            _ => (length, apart),
        };
        let kept = size.min(most as u64);
        let mut bytes = vec![0; kept as usize];
        let from = data.wrapping_add(size - kept);
        self.0.read(from, &mut bytes)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file is a string, or an array of the path as it was given and the absolute one.
    fn path(&self, object: u64) -> Option<String> {
        let [flags, _, given, absolute] = self.0.words_at(object)?;
        if flags & TYPE != ARRAY || flags & ARRAY_WITHIN == 0 {
            return self.text(object, FILE_BYTES);
        }
        let absolute = self.text(absolute, FILE_BYTES);
        absolute.or_else(|| self.text(given, FILE_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::MOST;

    /// Names are written as Ruby writes them.
    #[test]
    fn names_have_their_class() {
        for (label, scope, is_object, expected) in [
            ("sell", "Shop", false, "Shop#sell"),
            ("open", "Shop", true, "Shop.open"),
            ("open", "Object", true, "Object.open"),
            ("block in sell", "Shop", false, "block in Shop#sell"),
            ("sell", "Object", false, "sell"),
            ("<main>", "", false, "<main>"),
            (
                "rescue in block in a",
                "A::B",
                true,
                "rescue in block in A::B.a",
            ),
        ] {
            assert_eq!(name(label.into(), scope, is_object), expected);
        }
    }

    /// Memory that answers every question with the same word, or none.
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

    /// Memory that cannot be read gives no functions, and any other an end.
    #[test]
    fn hostile_memory_comes_to_an_end() {
        let runtime = Runtime {
            library: 1 << 40,
            context: 8,
        };
        let of = |word| {
            let define = |_| 1;
            read(&Same(word), runtime, 1 << 41, &mut Numbers::new(), define)
        };
        assert!(of(None).is_empty() && of(Some(0)).is_empty());
        for word in [1, 2, 5, 0x20, 0x22, 26, 0x601a, 4096, u64::MAX] {
            assert!(of(Some(word)).len() <= MOST + 1);
        }
    }
}
