//! Who has what a thread of Python waits for, read from the program's memory: the thread that it joins, or the one that
//! has entered its lock by `with`.
//!
//! A lock that a thread can enter again (RLock) notes who has it. Others do not; but a thread that has entered it by `with` keeps the lock's method for
//! leaving it (`__exit__`) on the stack of the function that does so. And who joins a thread has that thread's object as the
//! first argument of its innermost function, with the number that the kernel gave it.
//!
//! Of CPython 3.11, as its headers have it. A function that runs does not say how high its stack is, so that methods may lie
//! there of locks that were left long ago. Those are freed by then, and have no references, unless another method has taken
//! their place: where two threads seem to have a lock, none is reported.

use std::collections::BTreeSet;

use hangdog_symbols::memory::Memory;

use super::frames::{Frame, Runtime, Thread, function, threads_of};
use super::objects::{attribute, small_number};

/// The functions that join a thread, the innermost ones.
const JOINS: [&str; 2] = ["Thread._wait_for_tstate_lock", "Thread.join"];
/// The function by which a thread leaves a lock.
const LEAVES: [u8; 9] = *b"__exit__\0";
/// The type of a lock's methods.
const METHOD: [u8; 27] = *b"builtin_function_or_method\0";
/// In such a method: the object that it is of.
const METHOD_OF: u64 = 24;
/// The type of a lock that a thread can enter again, which notes who has it.
const RECURSIVE: [u8; 14] = *b"_thread.RLock\0";
/// In a lock: what the C library has for it.
const LOCK_OF_C: u64 = 16;
/// In a code object: how many words its functions have, and how many for arguments and variables.
const CODE_STACK: u64 = 68;
const CODE_VARIABLES: u64 = 76;
/// In a frame: its variables, and behind them its stack.
const FRAME_VARIABLES: u64 = 72;
/// So many words of a function are looked through.
const MOST_WORDS: u32 = 256;
/// An object has fewer references.
const MOST_REFERENCES: u64 = 1 << 20;

/// The tid of the thread that has what the one of this `thread_pointer` waits for by the futex at `futex`, for which the threads of
/// the pointers `waiters` wait, too; it may be one of these itself.
pub(crate) fn holder(
    memory: &impl Memory,
    runtime: Runtime,
    thread_pointer: u64,
    (futex, waiters): (u64, &[u64]),
) -> Option<u32> {
    let threads = threads_of(memory, runtime);
    let own = (threads.iter()).find(|thread| thread.pointer == thread_pointer)?;
    let innermost = own.frames.first()?;
    let layout = &runtime.layout;
    let name = function(memory, layout, innermost.code)??.name;
    if JOINS.contains(&name.as_str()) {
        let joined = memory.word(innermost.address.wrapping_add(FRAME_VARIABLES))?;
        let number = attribute(memory, layout, joined, "_native_id")?;
        return small_number(memory, number);
    }
    if let Some(owner) = owner(memory, innermost, futex) {
        let by = threads.iter().find(|thread| thread.pointer == owner);
        return by.map(|thread| thread.tid);
    }
    let has_it = |thread: &&Thread| -> bool {
        let frames = thread.frames.iter();
        let methods = frames.flat_map(|frame| left_later(memory, frame, futex));
        // A place that is no longer used may show one of them again.
        let methods: BTreeSet<u64> = methods.collect();
        // Who waits to enter it has the method on its stack already.
        methods.len() > usize::from(waiters.contains(&thread.pointer))
    };
    let mut having = threads.iter().filter(has_it);
    let only = having.next().filter(|_| having.next().is_none())?;
    Some(only.tid)
}

/// The methods that a function has on its stack to leave the lock of this `futex`.
fn left_later(memory: &impl Memory, frame: &Frame, futex: u64) -> Vec<u64> {
    (words(memory, frame).unwrap_or_default().1.into_iter())
        .filter(|&object| leaves(memory, object, futex) == Some(true))
        .collect()
}

/// The variables of a function, and what may lie on its stack.
fn words(memory: &impl Memory, frame: &Frame) -> Option<(Vec<u64>, Vec<u64>)> {
    let count = |from: u64| {
        let count = memory.word(frame.code.wrapping_add(from))? as u32;
        Some(count.min(MOST_WORDS) as usize)
    };
    let (stack, variables) = (count(CODE_STACK)?, count(CODE_VARIABLES)?);
    let mut bytes = vec![0; 8 * (variables + stack)];
    memory.read(frame.address.wrapping_add(FRAME_VARIABLES), &mut bytes)?;
    let words = bytes.chunks_exact(8).filter_map(|word| word.first_chunk());
    let mut variables_first: Vec<u64> = words.map(|word| u64::from_ne_bytes(*word)).collect();
    let stack = variables_first.split_off(variables);
    Some((variables_first, stack))
}

/// The pointer of the thread that has the lock of this `futex`, if a function works on that and it notes its owner (RLock).
fn owner(memory: &impl Memory, frame: &Frame, futex: u64) -> Option<u64> {
    let owner_of = |lock: u64| {
        let [kind, of_c, owner] = memory.words_at(lock.wrapping_add(8))?;
        let mut name = [0; RECURSIVE.len()];
        if of_c != futex || owner == 0 {
            return None;
        }
        memory.read(memory.word(kind.wrapping_add(24))?, &mut name)?;
        (name == RECURSIVE).then_some(owner)
    };
    let (variables, stack) = words(memory, frame)?;
    let mut objects = variables.into_iter().chain(stack);
    objects.find_map(|object| {
        let of = || owner_of(memory.word(object.wrapping_add(METHOD_OF))?);
        owner_of(object).or_else(of)
    })
}

/// Whether an object is the method by which the lock of this `futex` is left.
fn leaves(memory: &impl Memory, object: u64, futex: u64) -> Option<bool> {
    if object == 0 || !object.is_multiple_of(8) {
        return None;
    }
    let [references, kind, definition, of] = memory.words_at(object)?;
    if !(1..MOST_REFERENCES).contains(&references)
        || memory.word(of.wrapping_add(LOCK_OF_C))? != futex
    {
        return None;
    }
    let mut name = [0; METHOD.len()];
    memory.read(memory.word(kind.wrapping_add(24))?, &mut name)?;
    let mut method = [0; LEAVES.len()];
    memory.read(memory.word(definition)?, &mut method)?;
    Some(name == METHOD && method == LEAVES)
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
        holder(memory, runtime, POINTERS[0], (FUTEX, &POINTERS[..2]))
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
