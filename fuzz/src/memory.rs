//! The memory of processes that are hostile.

use hangdog_symbols::memory::Memory;

/// Memory whose bytes repeat, so that most pointers lead somewhere; some of it cannot be read.
#[derive(Clone, Copy)]
struct Repeated<'a>(&'a [u8]);

/// Addresses with this bit cannot be read.
const UNREADABLE: u64 = 1 << 60;

impl Memory for Repeated<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let length = self.0.len();
        if length == 0 || address & UNREADABLE != 0 {
            return None;
        }
        let start = (address % length as u64) as usize;
        for (byte, at) in into.iter_mut().zip(start..) {
            *byte = self.0[at % length];
        }
        Some(())
    }
}

/// Interpreters of every language, and both virtual machines.
pub fn interpreters(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk::<16>() else {
        return;
    };
    let (low, high) = head.split_at(8);
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    let (state, thread) = (word(low), word(high) >> 8);
    match head[15] % 3 {
        0 => hangdog_capture::fuzz::interpreters(&Repeated(rest), state, thread),
        1 => {
            let numbers = numbers(rest, |word| word);
            hangdog_symbols::fuzz::java(Repeated(rest), &numbers, state);
        }
        _ => {
            let small = |word: u64| (word as i32) >> (word >> 32 & 31);
            let numbers = numbers(rest, small);
            hangdog_symbols::fuzz::javascript(Repeated(rest), &numbers, state);
        }
    }
}

/// The first words, as a program's own description of itself.
fn numbers<T: Default + Copy>(bytes: &[u8], of: impl Fn(u64) -> T) -> [T; 18] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| {
        words
            .get(at)
            .map_or(T::default(), |word| of(u64::from_ne_bytes(*word)))
    })
}
