//! The functions of an interpreted language that a thread is in, to be put into its stack in place of the
//! interpreter's loop.
//!
//! `bpf/chain.h` says how, and does it for a thread that is on the CPU. Here they are read from outside,
//! of a thread at rest: a list of words, the chain, has for each call of the loop, the innermost first, a
//! mark and what stands for its functions. A thread that goes on meanwhile may lead nowhere; then its
//! stack shows the interpreter's own functions.

use std::collections::HashMap;

use hangdog_symbols::memory::Memory;

use crate::function::{Function, NUMBERED, number_of};

/// The mark of a call of a loop that is known by its code; others are addresses on the stack.
pub(crate) const LOOP_MARK: u64 = 1;
/// No more words of a thread are told.
pub(crate) const MOST: usize = 127;
/// Nor are more frames looked at for them.
pub(crate) const MOST_FRAMES: usize = 256;
/// Nor more bytes of a text than the kernel side sends.
pub(crate) const NAME_BYTES: usize = 128;
pub(crate) const FILE_BYTES: usize = 256;

/// `bpf/chain.h` says where these are from.
const PTHREAD_FIRST_VALUES: u64 = 784;
const PTHREAD_VALUES: u64 = 1296;
const VALUES_OF_BLOCK: u64 = 32;

/// Numbers of the functions of a process, by the addresses of what describes them; 0 for one that the
/// interpreter made up for itself.
pub(crate) type Numbers = HashMap<u64, u32>;

/// A chain of functions that is being read, of a loop that is known by its code.
pub(crate) struct Collected<'a, F> {
    words: Vec<u64>,
    numbers: &'a mut Numbers,
    define: F,
}

impl<F: FnMut(Function) -> u32> Collected<'_, F> {
    /// `define` is told of each function that has none of the `numbers` yet and gives it one.
    pub(crate) fn new(numbers: &mut Numbers, define: F) -> Collected<'_, F> {
        Collected {
            words: vec![LOOP_MARK],
            numbers,
            define,
        }
    }

    /// Whether no more are told.
    pub(crate) fn is_full(&self) -> bool {
        self.words.len() >= MOST
    }

    /// Adds the function that what is at `address` describes; none if it cannot be read.
    pub(crate) fn add(
        &mut self,
        address: u64,
        describe: impl FnOnce() -> Option<Function>,
    ) -> Option<()> {
        let number = match self.numbers.get(&address) {
            Some(&number) => number,
            None => {
                let number = (self.define)(describe()?);
                self.numbers.insert(address, number);
                number
            }
        };
        self.words.push(NUMBERED | u64::from(number));
        Some(())
    }

    /// The function that was added last is the outermost of a call of the loop.
    pub(crate) fn end_call(&mut self) {
        self.words.push(LOOP_MARK);
    }

    /// How many words there are.
    pub(crate) fn count(&self) -> usize {
        self.words.len()
    }

    /// One more call of the loop begins with the word at `at`; the call that it was in so far goes on
    /// there.
    pub(crate) fn begin_call_at(&mut self, at: usize) {
        self.words.insert(at.min(self.words.len()), LOOP_MARK);
    }

    /// The chain; empty if there are no functions.
    pub(crate) fn words(self) -> Vec<u64> {
        match self.words[..] {
            [LOOP_MARK] => Vec::new(),
            _ => self.words,
        }
    }
}

/// What a thread has of its own by a pthread key; none for nothing.
pub(crate) fn thread_value(memory: &impl Memory, thread_pointer: u64, key: u32) -> Option<u64> {
    let key = u64::from(key);
    let block = match key / VALUES_OF_BLOCK {
        0 => thread_pointer.wrapping_add(PTHREAD_FIRST_VALUES),
        block => memory.word(thread_pointer.wrapping_add(PTHREAD_VALUES + 8 * block))?,
    };
    // A value lies behind the number of its key's use.
    let value = memory.word(block.wrapping_add(16 * (key % VALUES_OF_BLOCK) + 8))?;
    (value != 0).then_some(value)
}

/// Of a chain, the calls whose marks lie on the stack from `sp` on, or are known by their code: a thread that
/// runs has made and left others since its stack was copied.
pub(crate) fn on_stack_from(sp: u64, words: Vec<u64>) -> Vec<u64> {
    let is_there = |word: &u64| {
        number_of(*word).is_none() && (*word == LOOP_MARK || *word >= sp || *word == 0)
    };
    let first = words.iter().position(is_there).unwrap_or(words.len());
    words[first..].to_vec()
}

/// Puts functions into a stack that is walked outwards, in place of the interpreter's loop.
pub(crate) struct Weaver<'a> {
    words: &'a [u64],
    /// The frame before was a loop's, and its functions stand in its place.
    in_loop: bool,
}

impl<'a> Weaver<'a> {
    /// Of what [`language::read`](crate::language::read) gave.
    pub(crate) fn new(words: &'a [u64]) -> Weaver<'a> {
        Weaver {
            words,
            in_loop: false,
        }
    }

    /// The functions that have not been put in.
    pub(crate) fn rest(self) -> impl Iterator<Item = u64> + 'a {
        let words = self.words.iter().copied();
        words.filter(|&word| number_of(word).is_some())
    }

    /// What comes in place of the frame that had the stack from `from` to `to`; `is_loop` says whether
    /// its code is an interpreter's loop. None if the frame stays.
    pub(crate) fn leave(&mut self, from: u64, to: u64, is_loop: bool) -> Option<&'a [u64]> {
        // Ruby's loop consists of two functions, of which one calls the other.
        if std::mem::take(&mut self.in_loop) && is_loop {
            return Some(&[]);
        }
        let (&mark, rest) = self.words.split_first()?;
        let is_left = match mark {
            LOOP_MARK => is_loop,
            mark => (from..to).contains(&mark),
        };
        if !is_left {
            return None;
        }
        let is_function = |word: &&u64| number_of(**word).is_some();
        let count = rest.iter().take_while(is_function).count();
        let (functions, rest) = rest.split_at(count);
        self.words = rest;
        self.in_loop = is_loop;
        (count > 0).then_some(functions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The functions of a call of the loop come where its mark lies, and once.
    #[test]
    fn functions_come_in_place_of_the_loop() {
        let (inner, outer) = (NUMBERED | 7, NUMBERED | 8);
        let words = [0x1010, inner, outer, 0x2010, NUMBERED | 9, 0];
        let mut weaver = Weaver::new(&words);
        assert_eq!(weaver.leave(0x0f00, 0x1000, false), None);
        assert_eq!(
            weaver.leave(0x1000, 0x1100, false),
            Some(&[inner, outer][..])
        );
        assert_eq!(weaver.leave(0x1000, 0x1100, false), None);
        assert_eq!(
            weaver.leave(0x2000, 0x2100, false),
            Some(&[NUMBERED | 9][..])
        );
        assert_eq!(weaver.leave(0, 0x3000, false), None, "the end is no mark");

        let mut cut = Weaver::new(&words);
        assert!(cut.leave(0x1000, 0x1100, false).is_some());
        assert!(cut.rest().eq([NUMBERED | 9]));
    }

    /// Calls that a thread made after its stack was copied do not keep the others from their places.
    #[test]
    fn calls_of_later_are_left_out() {
        let (new, old) = (NUMBERED | 7, NUMBERED | 8);
        let words = vec![0x0f00, new, new, 0x1010, old, 0];
        assert_eq!(on_stack_from(0x1000, words), [0x1010, old, 0]);
        let by_code = vec![LOOP_MARK, old, LOOP_MARK];
        assert_eq!(on_stack_from(0x1000, by_code.clone()), by_code);
        assert!(on_stack_from(0x1000, vec![0x0f00, new]).is_empty());
    }

    /// A loop that is known by its code takes the functions of one call, wherever it lies; of two frames
    /// of it that follow each other the second goes without, but not a third.
    #[test]
    fn functions_come_in_place_of_a_loops_code() {
        let (inner, middle, outer) = (NUMBERED | 7, NUMBERED | 8, NUMBERED | 9);
        let words = [LOOP_MARK, inner, middle, LOOP_MARK, outer, LOOP_MARK];
        let mut weaver = Weaver::new(&words);
        assert_eq!(weaver.leave(0, 0x10, false), None, "not the loop");
        assert_eq!(weaver.leave(0x10, 0x20, true), Some(&[inner, middle][..]));
        assert_eq!(weaver.leave(0x20, 0x30, true), Some(&[][..]));
        assert_eq!(weaver.leave(0x30, 0x40, true), Some(&[outer][..]));
        assert_eq!(weaver.leave(0x40, 0x50, false), None);
        assert_eq!(weaver.leave(0x50, 0x60, true), None, "no functions");
        assert_eq!(Weaver::new(&[]).leave(0, 0x10, true), None);
    }
}
