//! A chain of pointers through memory, one in each line, that leads once through all of them and
//! back: each load needs the one before, so the CPU can neither overlap nor foresee them.

use std::ptr::NonNull;

use super::LINE;
use super::order::Order;
use super::pages::Memory;

/// How the chain leads through its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Each line once, in no order that could be foreseen.
    Random,
    /// From one line to the next.
    Sequential,
}

/// A chain laid into the first bytes of a memory.
#[derive(Debug)]
pub(crate) struct Chain<'a> {
    _memory: &'a mut Memory,
    at: NonNull<u8>,
    /// Lines in the chain.
    pub lines: u64,
}

impl<'a> Chain<'a> {
    /// Lays it into the first `bytes` of the memory, at least two lines and at most all of it.
    pub fn lay(memory: &'a mut Memory, bytes: usize, path: Path, salt: u64) -> Chain<'a> {
        let start = memory.start();
        let lines = (bytes.min(memory.bytes()) / LINE).max(2) as u64;
        let order = Order::random(lines, salt);
        let line = |index: u64| {
            let place = match path {
                Path::Random => order.place(index),
                Path::Sequential => index,
            };
            // SAFETY: a place is below the number of lines, which fit into the memory.
            unsafe { start.add(place as usize * LINE).cast::<NonNull<u8>>() }
        };
        let first = line(0);
        let mut last = first;
        for index in 1..lines {
            let next = line(index);
            // SAFETY: `last` is a line of this memory, aligned to 64 bytes.
            unsafe { last.write(next.cast()) };
            last = next;
        }
        // SAFETY: as above.
        unsafe { last.write(first.cast()) };
        Chain {
            _memory: memory,
            at: first.cast(),
            lines,
        }
    }

    /// Follows it for so many loads, in eights, from where it was left.
    pub fn follow(&mut self, loads: u64) {
        let mut at = self.at;
        for _ in 0..loads.div_ceil(8) {
            for _ in 0..8 {
                // SAFETY: `lay` left in each line the address of another; volatile, so that no load
                // is left out.
                at = unsafe { at.cast::<NonNull<u8>>().read_volatile() };
            }
        }
        self.at = at;
    }
}

#[cfg(test)]
mod tests {
    use super::super::pages::Pages;
    use super::*;

    /// The offsets of the lines in the order in which loads meet them, until one comes again.
    fn visited(chain: &mut Chain) -> Vec<usize> {
        let start = chain._memory.start();
        let first = chain.at;
        let mut visited = Vec::new();
        let mut at = first;
        loop {
            // SAFETY: both lie in the memory; each line holds the address of another.
            unsafe {
                visited.push(at.offset_from(start) as usize);
                at = at.cast::<NonNull<u8>>().read();
            }
            if at == first || visited.len() as u64 > chain.lines {
                return visited;
            }
        }
    }

    /// One cycle over all lines: it comes back after as many loads as there are lines, and not one
    /// line is left out. For sizes that are powers of two and ones that are not.
    #[test]
    fn a_chain_is_one_cycle_over_all_lines() {
        let mut memory = Memory::map(3 << 20, Pages::Small).unwrap();
        for path in [Path::Random, Path::Sequential] {
            for bytes in [4096, 5 * 4096, 1 << 20, (1 << 20) + 77 * 4096] {
                let mut chain = Chain::lay(&mut memory, bytes, path, 1);
                let mut visited = visited(&mut chain);
                visited.sort_unstable();
                assert!(
                    visited.into_iter().eq((0..bytes).step_by(LINE)),
                    "{bytes} {path:?}"
                );
            }
        }
    }

    /// The random path is not sequential: a next line is as rare as chance has it. The sequential
    /// one is.
    #[test]
    fn a_random_chain_does_not_go_to_the_next_line() {
        let mut memory = Memory::map(1 << 20, Pages::Small).unwrap();
        let mut neighbours = |path| {
            let visited = visited(&mut Chain::lay(&mut memory, 1 << 20, path, 1));
            let near = |pair: &&[usize]| pair[0].abs_diff(pair[1]) <= 2 * LINE;
            visited.windows(2).filter(near).count()
        };
        // By chance: 4 of the 16383 other lines are so near, for each of 16384 steps.
        assert!(neighbours(Path::Random) < 40);
        assert_eq!(neighbours(Path::Sequential), (1 << 20) / LINE - 1);
    }

    /// As many loads as asked for: a whole round leads back to where it began, one more does not.
    #[test]
    fn following_goes_as_far_as_it_says() {
        let mut memory = Memory::map(1 << 16, Pages::Small).unwrap();
        let mut chain = Chain::lay(&mut memory, 1 << 16, Path::Random, 1);
        let begin = chain.at;
        chain.follow(chain.lines - 8);
        assert_ne!(chain.at, begin);
        chain.follow(8);
        assert_eq!(chain.at, begin);
    }
}
