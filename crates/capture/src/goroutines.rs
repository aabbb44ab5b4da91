//! The goroutines of a Go program that wait, read from its memory without stopping it.
//!
//! Go's runtime keeps a list of all goroutines (`runtime.allgs`) and in the description of each (`g` in Go's
//! `src/runtime/runtime2.go`) its stack, its state, its number and, while it waits, its registers. Where state and number lie
//! differs between versions of Go, and nothing in a program says it; so they are looked for in the first one's
//! description, whose number is always 1. A goroutine that goes on meanwhile is left out.
//!
//! Stacks are copied, and walked later. Any program can have as many goroutines with stacks as deep as it likes, or look as
//! if it had: so there are bounds for one program, and for all of a look (`tasks.rs`).

use std::ops::{Range, RangeInclusive};

use hangdog_symbols::memory::Memory;
use hangdog_unwind::Registers;

/// The most goroutines of a process that are looked at; of more a sample, spread evenly over the list.
const MOST: u64 = 1000;
/// As much of a stack is copied as few goroutines have there, bytes.
const STACK_BYTES: u64 = 16 << 10;
/// The most bytes of stacks that are copied of a process; those behind in its list are left out.
const PROCESS_BYTES: usize = 4 << 20;
/// No list is longer: what says so is something else.
const LONGEST_LIST: u64 = 1 << 26;
/// Words of a description that are read: all that is needed lies among the first in every version.
const WORDS: usize = 24;
/// Where the number may be, in words: it is at 19 in Go 1.19 and 1.26, and at 20 in 1.23 (by its source; not tried).
const NUMBERS: Range<usize> = 15..WORDS;
/// A number beyond is none.
const HIGHEST: u64 = 1 << 48;
/// States of a goroutine: those that there are; the one that waits; and what is added while the garbage collector looks
/// at its stack.
const STATES: RangeInclusive<u64> = 1..=10;
const WAITING: u64 = 4;
const SCANNED: u64 = 0x1000;

/// A goroutine that waits.
pub(crate) struct Parked {
    /// Its `goid`.
    pub number: u64,
    pub registers: Registers,
    /// What lies on its stack from the stack pointer on.
    pub stack: Vec<u8>,
}

/// The goroutines that wait in a process with this `memory`, whose list is at `list`. `copy` reads what lies on a stack
/// between two addresses.
pub(crate) fn parked(
    memory: &impl Memory,
    list: u64,
    copy: impl Fn(Range<u64>) -> Vec<u8>,
) -> Vec<Parked> {
    let address = |first: u64, at: u64| memory.word(first.wrapping_add(8 * at));
    let found = || {
        let [first, count] = memory.words_at(list)?;
        (count <= LONGEST_LIST).then_some(())?;
        let number_at = number_at(&memory.words_at(address(first, 0)?)?)?;
        let step = usize::try_from(count.div_ceil(MOST)).ok()?;
        let each = (0..count).step_by(step.max(1));
        let mut copied = 0;
        let read = |at| {
            let address = address(first, at)?;
            let (number, registers, end) = look(memory, address, number_at)?;
            let end_of_copy = end.min(registers.sp.saturating_add(STACK_BYTES));
            let stack = copy(registers.sp..end_of_copy);
            let is_still = look(memory, address, number_at)? == (number, registers, end);
            is_still.then_some(Parked {
                number,
                registers,
                stack,
            })
        };
        let has_room = |parked: &Parked| {
            copied += parked.stack.len();
            copied <= PROCESS_BYTES
        };
        Some(each.filter_map(read).take_while(has_room).collect())
    };
    found().unwrap_or_default()
}

/// Which word of a description has the goroutine's number, by that of the first: the one in front is its state.
fn number_at(main: &[u64; WORDS]) -> Option<usize> {
    let is_state = |word: u64| STATES.contains(&state(word));
    let mut places = NUMBERS.filter(|&at| main[at] == 1 && is_state(main[at - 1]));
    places.next_back()
}

/// The state in its word, the other half of which is a lock.
fn state(word: u64) -> u64 {
    word & 0xffff_ffff & !SCANNED
}

/// The number, the registers and the end of the stack of the goroutine whose description is at `address`, if it waits.
fn look(memory: &impl Memory, address: u64, number_at: usize) -> Option<(u64, Registers, u64)> {
    let words: [u64; WORDS] = memory.words_at(address)?;
    let number = words[number_at];
    let waits = state(words[number_at - 1]) == WAITING && (1..HIGHEST).contains(&number);
    let word = |at: u64| {
        let at = usize::try_from(at.checked_sub(address)? / 8).ok()?;
        words.get(at).copied()
    };
    let registers = Registers::of_goroutine(address, word).filter(|_| waits)?;
    let [start, end, ..] = words;
    let is_on_stack = (start..end).contains(&registers.sp);
    is_on_stack.then_some((number, registers, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::HashMap;

    const LIST: u64 = 0x1000;

    /// Words by their addresses; a read of the stack at `moves` makes its goroutine go on. Stacks have `deep` bytes, if there
    /// is room for so many.
    #[derive(Default)]
    struct Words {
        words: HashMap<u64, Cell<u64>>,
        moves: u64,
        deep: usize,
    }

    impl Words {
        fn put(&mut self, address: u64, value: u64) {
            self.words.insert(address, Cell::new(value));
        }

        /// A description whose number lies at word `at`, with its registers as that version of Go has them.
        fn goroutine(&mut self, nth: u64, (number, state): (u64, u64), at: u64) {
            let address = 0x1_0000 + nth * 0x400;
            self.put(LIST + 0x1000 + 8 * nth, address);
            for word in 0..WORDS as u64 {
                self.put(address + 8 * word, 0);
            }
            let frame = if at == 19 { 104 } else { 96 };
            for (offset, value) in [
                (0, 0x8000 + nth * 0x100),
                (8, 0x8100 + nth * 0x100),
                (56, 0x8080 + nth * 0x100),
                (64, 0x40_0000 + nth),
                (72, address),
                (frame, 0x8090 + nth * 0x100),
                (8 * at - 8, 1 << 32 | state),
                (8 * at, number),
            ] {
                self.put(address + offset, value);
            }
        }

        fn of(goroutines: &[(u64, u64)], at: u64) -> Words {
            let mut words = Words::default();
            words.put(LIST, LIST + 0x1000);
            words.put(LIST + 8, goroutines.len() as u64);
            for (nth, &goroutine) in goroutines.iter().enumerate() {
                words.goroutine(nth as u64, goroutine, at);
            }
            words
        }

        fn parked(&self) -> Vec<Parked> {
            let copy = |addresses: Range<u64>| {
                let from = addresses.start;
                if from == self.moves {
                    let state = &self.words[&(0x1_0000 + (from >> 8 & 0xf) * 0x400 + 8 * 18)];
                    state.set(2);
                }
                vec![0; self.deep.min((addresses.end - from) as usize)]
            };
            parked(self, LIST, copy)
        }

        fn found(&self) -> Vec<(u64, Registers)> {
            let found = self.parked().into_iter();
            found.map(|it| (it.number, it.registers)).collect()
        }

        /// Bytes of each stack.
        fn copied(&self) -> Vec<usize> {
            let found = self.parked().into_iter();
            found.map(|it| it.stack.len()).collect()
        }
    }

    impl Memory for Words {
        fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
            for (at, word) in (address..).step_by(8).zip(into.chunks_exact_mut(8)) {
                word.copy_from_slice(&self.words.get(&at)?.get().to_ne_bytes());
            }
            Some(())
        }
    }

    fn registers(nth: u64) -> Registers {
        Registers {
            ip: 0x40_0000 + nth,
            sp: 0x8080 + nth * 0x100,
            fp: 0x8090 + nth * 0x100,
        }
    }

    /// Those that wait are found, wherever the version has their state, also while their stacks are scanned; those that
    /// run, call the system, are dead or go on meanwhile are not.
    #[test]
    fn waiting_goroutines_are_found() {
        let all = [(1, 4), (17, 0x1004), (18, 2), (34, 3), (35, 6), (36, 4)];
        for at in [19, 20] {
            let words = Words::of(&all, at);
            let expected = [(1, registers(0)), (17, registers(1)), (36, registers(5))];
            assert_eq!(words.found(), expected, "{at}");
        }
        let mut words = Words::of(&all, 19);
        words.moves = registers(1).sp;
        assert_eq!(words.found(), [(1, registers(0)), (36, registers(5))]);
    }

    /// Of a long list a sample is read, and of one that cannot be none.
    #[test]
    fn a_long_list_is_sampled() {
        let all: Vec<(u64, u64)> = (1..=2 * MOST).map(|number| (number, 4)).collect();
        let found = Words::of(&all, 19).found();
        assert_eq!(found.len(), MOST as usize);
        assert_eq!(found[1].0, 3);
        let mut words = Words::of(&all, 19);
        words.put(LIST + 8, u64::MAX);
        assert_eq!(words.found(), []);
    }

    /// Of stacks that are too large together some are left out, and of a large one the end.
    #[test]
    fn what_is_copied_is_bounded() {
        let all: Vec<(u64, u64)> = (1..=600).map(|number| (number, 4)).collect();
        let mut words = Words::of(&all, 19);
        for nth in 0..600 {
            words.put(0x1_0000 + nth * 0x400 + 8, 1 << 40);
        }
        words.deep = 1 << 30;
        let copied = words.copied();
        assert!(copied.iter().all(|&bytes| bytes as u64 == STACK_BYTES));
        assert_eq!(copied.iter().sum::<usize>(), PROCESS_BYTES);
    }

    /// What is not a description, or whose stack is elsewhere, is none.
    #[test]
    fn what_is_no_goroutine_is_left_out() {
        let mut words = Words::of(&[(1, 4), (17, 4), (18, 4)], 19);
        words.put(0x1_0000 + 0x400 + 72, 7);
        words.put(0x1_0000 + 0x800 + 56, 0x10);
        assert_eq!(words.found(), [(1, registers(0))]);
        // The first one's number is not 1.
        assert_eq!(Words::of(&[(2, 4)], 19).found(), []);
        assert_eq!(Words::default().found(), []);
    }
}
