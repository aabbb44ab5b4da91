//! Who has what a thread of Python waits for, read from the program's memory: the thread that it joins, or the one that
//! has entered its lock by `with`.
//!
//! A lock that a thread can enter again (RLock) notes who has it. Others do not; but a thread that has entered one by `with`
//! keeps the lock's method for leaving it (`__exit__`) on the stack of the function that does so. And who joins a thread has
//! that thread's object as the first argument of its innermost function, with the number that the kernel gave it.
//!
//! Of CPython 3.11, as its headers have it. A function that runs does not say how high its stack is, so that methods may lie
//! there of locks that were left long ago. Those are freed by then, and have no references, unless another method has taken
//! their place: where two threads seem to have a lock, none is reported.
//!
//! All threads of a program are read once, however many of them wait.

use std::collections::{BTreeSet, HashMap};

use hangdog_symbols::memory::Memory;

use super::frames::{Frame, Runtime, function, threads_of};
use super::objects::{attribute, small_number};

/// The functions that join a thread, the innermost ones.
const JOINS: [&str; 2] = ["Thread._wait_for_tstate_lock", "Thread.join"];
/// The function by which a thread leaves a lock.
const LEAVES: [u8; 9] = *b"__exit__\0";
/// The type of a lock's methods.
const METHOD: [u8; 27] = *b"builtin_function_or_method\0";
/// The type of a lock that a thread can enter again.
const RECURSIVE: [u8; 14] = *b"_thread.RLock\0";
/// In a lock: what the C library has for it, and behind that, in one that can be entered again, its owner.
const LOCK_OF_C: u64 = 16;
/// In a type: its name.
const TYPE_NAME: u64 = 24;
/// In a code object: how many words its functions have, and how many for arguments and variables.
const CODE_STACK: u64 = 68;
const CODE_VARIABLES: u64 = 76;
/// In a frame: its variables, and behind them its stack.
const FRAME_VARIABLES: u64 = 72;
/// So many words of a function are looked through.
const MOST_WORDS: u32 = 256;
/// And of all functions of a program.
const MOST_OBJECTS: usize = 100_000;
/// An object has fewer references.
const MOST_REFERENCES: u64 = 1 << 20;

/// The threads of a program with what they have, and what they join.
pub(crate) struct Locks(Vec<Thread>);

struct Thread {
    /// Where it keeps what is its own.
    pointer: u64,
    tid: u32,
    /// The thread that it joins.
    joins: Option<u32>,
    /// The locks on its functions' stacks that are to be left, by their futexes, each with the method for that.
    entered: BTreeSet<(u64, u64)>,
    /// The locks that its functions have at hand and that note their owner: the futex, and that one's pointer.
    owners: Vec<(u64, u64)>,
}

impl Locks {
    /// Reads those of a process with this `memory`.
    pub(crate) fn read(memory: &impl Memory, runtime: Runtime) -> Locks {
        let mut reader = Reader {
            memory,
            runtime,
            room: MOST_OBJECTS,
            types: HashMap::new(),
            methods: HashMap::new(),
            sizes: HashMap::new(),
            joining: HashMap::new(),
        };
        let threads = threads_of(memory, runtime).into_iter();
        let read = threads.map(|thread| {
            let mut known = Thread {
                pointer: thread.pointer,
                tid: thread.tid,
                joins: thread.frames.first().and_then(|it| reader.joined(it)),
                entered: BTreeSet::new(),
                owners: Vec::new(),
            };
            for frame in &thread.frames {
                // What cannot be read has no locks.
                let _ = reader.look(frame, &mut known);
            }
            known
        });
        Locks(read.collect())
    }

    /// The tid of the thread that has what the one of this `thread_pointer` waits for by the futex at `futex`, for which the
    /// threads of the pointers `waiters` wait, too; it may be one of these itself.
    pub(crate) fn holder(
        &self,
        thread_pointer: u64,
        (futex, waiters): (u64, &[u64]),
    ) -> Option<u32> {
        let threads = &self.0;
        let by_pointer = |pointer: u64| threads.iter().find(|thread| thread.pointer == pointer);
        let own = by_pointer(thread_pointer)?;
        if own.joins.is_some() {
            return own.joins;
        }
        if let Some(&(_, owner)) = own.owners.iter().find(|(of, _)| *of == futex) {
            return by_pointer(owner).map(|thread| thread.tid);
        }
        let has_it = |thread: &&Thread| {
            // A place that is no longer used may show a method again. Who waits to enter it has one on its stack already.
            let methods = thread.entered.range((futex, 0)..=(futex, u64::MAX));
            methods.count() > usize::from(waiters.contains(&thread.pointer))
        };
        let mut having = threads.iter().filter(has_it);
        let only = having.next().filter(|_| having.next().is_none())?;
        Some(only.tid)
    }
}

struct Reader<'a, M> {
    memory: &'a M,
    runtime: Runtime,
    /// So many objects are looked at yet.
    room: usize,
    /// What types are, by their addresses.
    types: HashMap<u64, Type>,
    /// Whether methods leave a lock, by the addresses of their definitions.
    methods: HashMap<u64, bool>,
    /// How many variables and words of stack functions have, by the addresses of their code.
    sizes: HashMap<u64, (usize, usize)>,
    /// Whether functions join a thread, in the same way.
    joining: HashMap<u64, bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Method,
    RecursiveLock,
    Other,
}

impl<M: Memory> Reader<'_, M> {
    /// The thread that a function joins.
    fn joined(&mut self, frame: &Frame) -> Option<u32> {
        let (memory, layout) = (self.memory, &self.runtime.layout);
        let joins = *self.joining.entry(frame.code).or_insert_with(|| {
            let function = function(memory, layout, frame.code).flatten();
            function.is_some_and(|function| JOINS.contains(&function.name.as_str()))
        });
        let object = memory.word(frame.address.wrapping_add(FRAME_VARIABLES));
        let number = attribute(memory, layout, object.filter(|_| joins)?, "_native_id")?;
        small_number(memory, number)
    }

    /// Adds the locks that a function has entered, or has at hand.
    fn look(&mut self, frame: &Frame, thread: &mut Thread) -> Option<()> {
        let (variables, stack) = self.size(frame.code)?;
        let mut bytes = vec![0; 8 * (variables + stack)];
        let from = frame.address.wrapping_add(FRAME_VARIABLES);
        self.memory.read(from, &mut bytes)?;
        let words = bytes.chunks_exact(8).filter_map(|word| word.first_chunk());
        for (at, object) in words.map(|word| u64::from_ne_bytes(*word)).enumerate() {
            if object == 0 || !object.is_multiple_of(8) || self.room == 0 {
                continue;
            }
            self.room -= 1;
            let Some([references, kind, definition, of]) = self.memory.words_at(object) else {
                continue;
            };
            match self.type_at(kind) {
                Type::RecursiveLock => self.add_owner(object, thread),
                Type::Method if (1..MOST_REFERENCES).contains(&references) => {
                    self.add_owner(of, thread);
                    if at >= variables
                        && self.leaves(definition)
                        && let Some(futex) = self.memory.word(of.wrapping_add(LOCK_OF_C))
                    {
                        thread.entered.insert((futex, object));
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    /// How many variables, and how many words of stack, a function has.
    fn size(&mut self, code: u64) -> Option<(usize, usize)> {
        if let Some(&size) = self.sizes.get(&code) {
            return Some(size);
        }
        let count = |from: u64| {
            let count = self.memory.word(code.wrapping_add(from))? as u32;
            Some(count.min(MOST_WORDS) as usize)
        };
        let size = (count(CODE_VARIABLES)?, count(CODE_STACK)?);
        self.sizes.insert(code, size);
        Some(size)
    }

    /// Adds the owner of a lock that notes it.
    fn add_owner(&mut self, lock: u64, thread: &mut Thread) {
        if let Some([kind, futex, owner]) = self.memory.words_at(lock.wrapping_add(8))
            && self.type_at(kind) == Type::RecursiveLock
            && owner != 0
        {
            thread.owners.push((futex, owner));
        }
    }

    fn type_at(&mut self, address: u64) -> Type {
        let memory = self.memory;
        *self.types.entry(address).or_insert_with(|| {
            let text = memory.word(address.wrapping_add(TYPE_NAME));
            match text {
                Some(text) if is_text(memory, text, &METHOD) => Type::Method,
                Some(text) if is_text(memory, text, &RECURSIVE) => Type::RecursiveLock,
                _ => Type::Other,
            }
        })
    }

    /// Whether a method of this definition leaves a lock.
    fn leaves(&mut self, definition: u64) -> bool {
        let memory = self.memory;
        *self.methods.entry(definition).or_insert_with(|| {
            let name = memory.word(definition);
            name.is_some_and(|name| is_text(memory, name, &LEAVES))
        })
    }
}

/// Whether a text lies at an address.
fn is_text<const LENGTH: usize>(memory: &impl Memory, address: u64, text: &[u8; LENGTH]) -> bool {
    let mut there = [0; LENGTH];
    memory.read(address, &mut there).is_some() && there == *text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::tests::{Bytes, STATE_OF_ALL, layout};

    const LOCK: u64 = 0x50_0000;
    const FUTEX: u64 = 0x51_0000;
    /// Threads, by where they keep what is their own.
    const POINTERS: [u64; 3] = [0x7000, 0x8000, 0x9000];
    const TIDS: [u64; 3] = [70, 80, 90];

    fn frame(thread: usize) -> u64 {
        0x10_0000 + thread as u64 * 0x1000
    }

    /// Three threads, each in one function with that name, with one variable and a stack of three words.
    fn threads(name: &str) -> Bytes {
        let mut memory = Bytes::default();
        memory.put_word(STATE_OF_ALL + 40, 0x2_0000);
        let state = |thread: usize| 0x3_0000 + thread as u64 * 0x1000;
        memory.words(0x2_0000, &[0, 1, state(0)]);
        memory.code(0x20_0000, name, "/app/shop.py");
        memory.put_word(0x20_0000 + CODE_STACK, 3);
        memory.put_word(0x20_0000 + CODE_VARIABLES, 1);
        for thread in 0..3 {
            let (own, cframe) = (state(thread), state(thread) + 0x800);
            memory.words(own, &[0; 24]);
            let next = if thread < 2 { state(thread + 1) } else { 0 };
            memory.put_word(own + 8, next);
            memory.put_word(own + 8 * 7, cframe);
            memory.words(own + 8 * 19, &[POINTERS[thread], TIDS[thread]]);
            memory.words(cframe, &[0, frame(thread), 0]);
            memory.words(frame(thread), &[0, 0, 0, 0, 0x20_0000, 0, 0, 0, 0]);
            memory.words(frame(thread) + FRAME_VARIABLES, &[0; 4]);
        }
        memory.object(LOCK, "_thread.lock");
        memory.put_word(LOCK + LOCK_OF_C, FUTEX);
        memory
    }

    /// Puts the nth method for leaving the lock at a place of a thread's stack.
    fn put_method(memory: &mut Bytes, (thread, place): (usize, u64), nth: u64) {
        let method = 0x60_0000 + nth * 0x1_0000;
        memory.object(method, "builtin_function_or_method");
        memory.put_word(method, 1);
        memory.words(method + 16, &[method + 0x800, LOCK]);
        memory.put_word(method + 0x800, method + 0x900);
        memory.put(method + 0x900, &LEAVES);
        memory.put_word(frame(thread) + FRAME_VARIABLES + 8 + 8 * place, method);
    }

    fn holder_for_first(memory: &Bytes) -> Option<u32> {
        let runtime = Runtime {
            state: STATE_OF_ALL,
            layout: layout(),
        };
        Locks::read(memory, runtime).holder(POINTERS[0], (FUTEX, &POINTERS[..2]))
    }

    /// The one that has the method on its stack and does not wait has it; of those that wait one that has two of them. A place
    /// that shows one again, and a method that is freed, say nothing; nor do two that seem to have it.
    #[test]
    fn who_has_entered_a_lock_has_it() {
        let mut memory = threads("serve");
        put_method(&mut memory, (0, 0), 0);
        put_method(&mut memory, (1, 0), 1);
        put_method(&mut memory, (1, 2), 1);
        assert_eq!(holder_for_first(&memory), None);
        put_method(&mut memory, (2, 1), 2);
        assert_eq!(holder_for_first(&memory), Some(90));
        put_method(&mut memory, (1, 2), 3);
        assert_eq!(holder_for_first(&memory), None, "two seem to");
        memory.put_word(0x60_0000 + 2 * 0x1_0000, 0x7f00_0000_0000);
        assert_eq!(holder_for_first(&memory), Some(80), "the other is freed");
    }

    /// A lock that can be entered again names its owner.
    #[test]
    fn a_recursive_lock_names_its_owner() {
        let mut memory = threads("Handler.acquire");
        memory.object(LOCK, "_thread.RLock");
        memory.words(LOCK + LOCK_OF_C, &[FUTEX, POINTERS[1]]);
        memory.put_word(frame(0) + FRAME_VARIABLES + 16, LOCK);
        assert_eq!(holder_for_first(&memory), Some(80));
    }

    /// Who joins a thread waits for that.
    #[test]
    fn a_join_names_its_thread() {
        let mut memory = threads("Thread.join");
        let (thread, values, keys) = (0x70_0100, 0x71_0000, 0x72_0000);
        memory.object(thread, "Thread");
        memory.words(thread - 32, &[values, 0]);
        let class = memory.word(thread + 8).expect("its class");
        memory.put_word(class + 872, keys);
        memory.words(
            keys,
            &[1, u64::from_ne_bytes([0, 3, 2, 0, 0, 0, 0, 0]), 4, 1],
        );
        memory.put_word(keys + 40, keys + 0x200);
        memory.put_word(keys + 48, 0);
        memory.text(keys + 0x200, "_native_id");
        memory.put_word(values, 0x73_0000);
        memory.object(0x73_0000, "int");
        memory.words(0x73_0000 + 16, &[1, 90]);
        memory.put_word(frame(0) + FRAME_VARIABLES, thread);
        assert_eq!(holder_for_first(&memory), Some(90));
    }
}
