//! Which code each process has, as the kernel side is to know it.
//!
//! A shape is a list of code ranges that do not overlap. Forked processes share their parent's
//! until one of them maps something; then the shape is copied for it. Each shape that was told to
//! the kernel side has a block of ranges there.

use std::collections::{HashMap, HashSet};

use super::arrays::{Block, CodeRange, Runs, Shared};
use crate::records::RawMapping;
use hangdog_symbols::interpreter::Interpreter;

/// What the rules of a piece of code are found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Code {
    /// Made at run time, by a compiler that keeps frame pointers, it is to be hoped.
    Anonymous,
    /// A file of the library.
    File(u32),
}

/// Executable memory and where its rules are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub start: u64,
    pub end: u64,
    pub file_offset: u64,
    pub code: Code,
}

/// The code at an address and the offset there; `ranges` are sorted.
pub(super) fn find(ranges: &[Range], address: u64) -> Option<(Code, u64)> {
    let at = ranges.partition_point(|range| range.start <= address);
    let range = ranges[..at].last().filter(|range| address < range.end)?;
    Some((range.code, address - range.start + range.file_offset))
}

#[derive(Default)]
struct Shape {
    ranges: Vec<Range>,
    /// How many processes have it; 0 for a free place.
    users: usize,
    block: Option<Block>,
}

impl Shape {
    fn interpreter(
        &self,
        interpreter: impl Fn(Code) -> Option<Interpreter>,
    ) -> Option<(Interpreter, u64)> {
        let found = self.ranges.iter().filter_map(|range| {
            let known = interpreter(range.code)?;
            Some((known, range.start.wrapping_sub(range.file_offset)))
        });
        // A library in Go may be loaded by a program of another language, whose functions say more.
        found.min_by_key(|(known, _)| matches!(known, Interpreter::Go(_)))
    }
}

struct Process {
    shape: usize,
    epoch: u32,
    threads: usize,
}

/// The layouts of all processes.
pub(super) struct Layouts {
    ranges: Shared<CodeRange>,
    runs: Runs,
    shapes: Vec<Shape>,
    free: Vec<usize>,
    processes: HashMap<u32, Process>,
    changed: HashSet<u32>,
}

impl Layouts {
    pub(super) fn new(ranges: Shared<CodeRange>) -> Layouts {
        Layouts {
            runs: Runs::new(ranges.count()),
            ranges,
            shapes: Vec::new(),
            free: Vec::new(),
            processes: HashMap::new(),
            changed: HashSet::new(),
        }
    }

    /// The code of a process; none if it is not known.
    pub(super) fn code(&self, pid: u32) -> &[Range] {
        self.processes
            .get(&pid)
            .map_or(&[], |process| &self.shapes[process.shape].ranges)
    }

    pub(super) fn epoch(&self, pid: u32) -> Option<u32> {
        self.processes.get(&pid).map(|process| process.epoch)
    }

    pub(super) fn set_epoch(&mut self, pid: u32, epoch: u32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.epoch = epoch;
        }
    }

    /// The processes whose layout the kernel side does not know yet.
    pub(super) fn take_changed(&mut self) -> HashSet<u32> {
        std::mem::take(&mut self.changed)
    }

    /// A process without code.
    pub(super) fn begin(&mut self, pid: u32, threads: usize, epoch: u32) {
        self.forget(pid);
        let shape = self.new_shape(Vec::new());
        self.insert(pid, shape, threads, epoch);
    }

    /// A process that has its parent's code, and, if the kernel side knew it, its parent's epoch. Of code that
    /// the parent got shortly before, the kernel side had not been told when the child inherited what it knew.
    pub(super) fn fork(&mut self, parent: u32, pid: u32, epoch: u32) {
        self.forget(pid);
        let (shape, known) = match self.processes.get(&parent) {
            Some(parent) => (parent.shape, parent.epoch),
            None => (self.new_shape(Vec::new()), 0),
        };
        if self.processes.contains_key(&parent) {
            self.shapes[shape].users += 1;
        }
        self.insert(pid, shape, 1, epoch);
        if epoch == 0 || epoch != known || self.changed.contains(&parent) {
            self.changed.insert(pid);
        }
    }

    /// The process executes a program: the kernel side has given it `epoch`.
    pub(super) fn renew(&mut self, pid: u32, epoch: u32) {
        if !self.processes.contains_key(&pid) {
            self.begin(pid, 1, epoch);
        }
        self.set_epoch(pid, epoch);
        self.changed.insert(pid);
    }

    pub(super) fn add_thread(&mut self, pid: u32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads += 1;
        }
    }

    /// Whether it was the last of its process, which is forgotten then.
    pub(super) fn remove_thread(&mut self, pid: u32) -> bool {
        let Some(process) = self.processes.get_mut(&pid) else {
            return false;
        };
        process.threads = process.threads.saturating_sub(1);
        let over = process.threads == 0;
        if over {
            self.forget(pid);
        }
        over
    }

    /// The process's code is gone.
    pub(super) fn clear(&mut self, pid: u32) {
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        let old = process.shape;
        let shape = self.new_shape(Vec::new());
        self.processes.entry(pid).and_modify(|p| p.shape = shape);
        self.leave(old);
        self.changed.insert(pid);
    }

    /// Adds code to a process, in the place of what it covers.
    pub(super) fn map(&mut self, pid: u32, mapping: &RawMapping, code: Code) {
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        let old = process.shape;
        let mut ranges = self.shapes[old].ranges.clone();
        ranges.retain(|range| range.end <= mapping.start || range.start >= mapping.end);
        let at = ranges.partition_point(|range| range.start < mapping.start);
        ranges.insert(
            at,
            Range {
                start: mapping.start,
                end: mapping.end,
                file_offset: mapping.file_offset,
                code,
            },
        );
        let shape = self.new_shape(ranges);
        self.processes.entry(pid).and_modify(|p| p.shape = shape);
        self.leave(old);
        self.changed.insert(pid);
    }

    /// The processes whose code is known, ascending.
    pub(super) fn processes(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = self.processes.keys().copied().collect();
        pids.sort_unstable();
        pids
    }

    /// The interpreter that a process has, and where offset 0 of its file would be mapped with the
    /// code.
    pub(super) fn interpreter(
        &self,
        pid: u32,
        interpreter: impl Fn(Code) -> Option<Interpreter>,
    ) -> Option<(Interpreter, u64)> {
        let process = self.processes.get(&pid)?;
        self.shapes[process.shape].interpreter(interpreter)
    }

    /// Sees to it that the process's ranges are on the kernel side; where, if there is room.
    /// `interpreter` tells of the process's interpreter.
    pub(super) fn write(
        &mut self,
        pid: u32,
        rows: impl Fn(Code) -> u64,
        interpreter: Option<CodeRange>,
    ) -> Option<Block> {
        let shape = &mut self.shapes[self.processes.get(&pid)?.shape];
        if shape.block.is_none() {
            let count = u32::try_from(shape.ranges.len())
                .ok()
                .filter(|&count| count <= u32::from(u16::MAX))?;
            let first = match count + u32::from(interpreter.is_some()) {
                0 => 0,
                count => self.runs.take(count)?,
            };
            if let Some(interpreter) = interpreter {
                self.ranges.set((first + count) as usize, interpreter);
            }
            for (at, range) in shape.ranges.iter().enumerate() {
                let range = CodeRange {
                    start: range.start,
                    end: range.end,
                    file_offset: range.file_offset,
                    rows: rows(range.code),
                    used: 0,
                };
                self.ranges.set(first as usize + at, range);
            }
            shape.block = Some(Block {
                first,
                count,
                interpreter: interpreter.is_some(),
            });
        }
        shape.block
    }

    /// Writes the rules' places anew in every range of the `changed` code.
    pub(super) fn rewrite(&mut self, changed: &HashSet<Code>, rows: impl Fn(Code) -> u64) {
        for shape in &self.shapes {
            let Some(Block { first, .. }) = shape.block else {
                continue;
            };
            for (at, range) in shape.ranges.iter().enumerate() {
                if changed.contains(&range.code) {
                    let index = first as usize + at;
                    let before = self.ranges.get(index);
                    let rows = rows(range.code);
                    self.ranges.set(index, CodeRange { rows, ..before });
                }
            }
        }
    }

    /// Has the processes that have any of the `found` interpreters told of anew; whether there are
    /// such.
    pub(super) fn write_anew(&mut self, found: &HashSet<Code>) -> bool {
        let has_it = |shape: &Shape| shape.ranges.iter().any(|range| found.contains(&range.code));
        let places = (0..self.shapes.len()).filter(|&place| has_it(&self.shapes[place]));
        let affected: HashSet<usize> = places.collect();
        self.tell_anew(&affected);
        !affected.is_empty()
    }

    /// The same for a process, of whose interpreter more is known now.
    pub(super) fn write_process_anew(&mut self, pid: u32) {
        if let Some(process) = self.processes.get(&pid) {
            self.tell_anew(&HashSet::from([process.shape]));
        }
    }

    fn tell_anew(&mut self, shapes: &HashSet<usize>) {
        for &place in shapes {
            retire(&mut self.runs, self.shapes[place].block.take());
        }
        let has_it = |process: &Process| shapes.contains(&process.shape);
        let pids = self.processes.iter().filter(|(_, p)| has_it(p));
        self.changed.extend(pids.map(|(&pid, _)| pid));
    }

    /// When the rules of each code were last looked up, in the kernel side's units; code that no
    /// process has is not in it.
    pub(super) fn last_uses(&self) -> HashMap<Code, u64> {
        let mut uses = HashMap::new();
        for shape in self.shapes.iter().filter(|shape| shape.users > 0) {
            for (at, range) in shape.ranges.iter().enumerate() {
                let used = shape
                    .block
                    .map_or(0, |block| self.ranges.get(block.first as usize + at).used);
                let latest: &mut u64 = uses.entry(range.code).or_default();
                *latest = used.max(*latest);
            }
        }
        uses
    }

    /// Lets time go on: what was given back may be reused some ticks later.
    pub(super) fn tick(&mut self) {
        self.runs.tick();
    }

    fn insert(&mut self, pid: u32, shape: usize, threads: usize, epoch: u32) {
        let process = Process {
            shape,
            epoch,
            threads,
        };
        self.processes.insert(pid, process);
    }

    fn forget(&mut self, pid: u32) {
        if let Some(process) = self.processes.remove(&pid) {
            self.leave(process.shape);
        }
        self.changed.remove(&pid);
    }

    fn new_shape(&mut self, ranges: Vec<Range>) -> usize {
        let shape = Shape {
            ranges,
            users: 1,
            block: None,
        };
        match self.free.pop() {
            Some(place) => {
                self.shapes[place] = shape;
                place
            }
            None => {
                self.shapes.push(shape);
                self.shapes.len() - 1
            }
        }
    }

    fn leave(&mut self, place: usize) {
        let shape = &mut self.shapes[place];
        shape.users -= 1;
        if shape.users == 0 {
            retire(&mut self.runs, shape.block);
            *shape = Shape::default();
            self.free.push(place);
        }
    }
}

fn retire(runs: &mut Runs, block: Option<Block>) {
    if let Some(block) = block {
        runs.retire(block.first, block.count + u32::from(block.interpreter));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};

    /// Layouts on memory of their own.
    fn layouts() -> (Layouts, Shared<CodeRange>) {
        let size = 100 * size_of::<CodeRange>();
        // SAFETY: plain calls; the descriptor is fresh and nobody else's.
        let memory = unsafe {
            let fd = libc::memfd_create(c"ranges".as_ptr(), 0);
            assert!(fd >= 0 && libc::ftruncate(fd, size as libc::off_t) == 0);
            OwnedFd::from_raw_fd(fd)
        };
        let map = || Shared::map(memory.as_fd(), 100).expect("a mapping");
        (Layouts::new(map()), map())
    }

    fn mapping(start: u64, file_offset: u64) -> RawMapping {
        RawMapping {
            start,
            end: start + 0x1000,
            file_offset,
            path: String::new(),
            build_id: String::new(),
        }
    }

    /// A child inherits what the kernel side knew of its parent's code. If that was told of anew since, so is the
    /// child's: the block that it inherited may be another process's soon.
    #[test]
    fn a_child_of_a_parent_with_new_code_is_told_of() {
        let (mut layouts, _) = layouts();
        layouts.begin(10, 1, 3);
        layouts.map(10, &mapping(0x5000, 0), Code::File(0));
        layouts.take_changed();
        layouts.fork(10, 11, 3);
        assert!(layouts.take_changed().is_empty(), "it has what is known");
        layouts.map(10, &mapping(0x9000, 0), Code::File(1));
        layouts.fork(10, 12, 3);
        assert_eq!(layouts.take_changed(), HashSet::from([10, 12]));
    }

    /// A process has no interpreter until its file is found to be one; then its ranges are told
    /// anew, and behind them what is known of the interpreter. Its place is told from offset 0 of its
    /// file.
    #[test]
    fn an_interpreter_found_late_is_told() {
        let (mut layouts, told) = layouts();
        let python = Code::File(1);
        for pid in [10, 11] {
            layouts.begin(pid, 1, 0);
        }
        layouts.map(10, &mapping(0x5000, 0), Code::File(0));
        layouts.map(10, &mapping(0x9000, 0x2000), python);
        layouts.map(11, &mapping(0x5000, 0), Code::File(0));
        layouts.take_changed();
        let before = layouts.write(10, |_| 7, None).expect("room");
        assert_eq!((before.count, before.interpreter), (2, false));

        assert!(layouts.write_anew(&HashSet::from([python])));
        assert_eq!(layouts.take_changed(), HashSet::from([10]));
        let known = |code| (code == python).then_some(Interpreter::Unknown);
        let base = layouts.interpreter(10, known).map(|(_, base)| base);
        assert_eq!(base, Some(0x7000));
        let told_of = CodeRange {
            start: 0x30_7000,
            end: 12,
            ..CodeRange::default()
        };
        let after = layouts.write(10, |_| 7, Some(told_of)).expect("room");
        assert_eq!((after.count, after.interpreter), (2, true));
        assert!(after.first >= before.first + before.count);
        let there = told.get(after.first as usize + 2);
        assert_eq!((there.start, there.end), (0x30_7000, 12));
        assert!(!layouts.write_anew(&HashSet::from([Code::File(9)])));
    }
}
