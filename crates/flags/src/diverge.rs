//! Where two calls of a function part, and what decided it.
//!
//! What is compared are the instructions of the function's own file; what libraries do in between is
//! their affair, and often differs for no reason that matters (addresses, alignment, how full a buffer
//! is). Both runs begin with the same instruction. Where the next one differs, the branch before it
//! went two ways, and what it was decided by is found in each run by itself ([`slice`](crate::slice)).
//! Then the runs are taken up again where they meet: at the nearest instruction that both come to in
//! the same frame. That is execution indexing (Xin, Sumner and Zhang, 2008) with the depth of calls in
//! place of the program's regions.

use std::collections::HashMap;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Register,
};

use crate::call::{Call, End};
use crate::executed::{Executed, execute};
use crate::registers::Step;
use crate::slice::{Source, sources};

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file.
    pub path: String,
    /// Bytes from its beginning.
    pub offset: u64,
}

/// What two calls of a function have in common, and what not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// So many instructions of the function's file they executed alike before they parted.
    pub common: usize,
    /// Where they parted, in order.
    pub partings: Vec<Parting>,
    /// Why each was followed no further.
    pub ends: [End; 2],
}

/// A place where they part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parting {
    /// The instruction that led two ways.
    pub branch: Place,
    /// Whether it is a branch or a jump to a computed address; otherwise a library came back to different
    /// places.
    pub is_branch: bool,
    /// Where each goes on; `None` where it is followed no further.
    pub to: [Option<Place>; 2],
    /// What it was decided by, that which differs if anything does.
    pub decided_by: Vec<Datum>,
    /// So many instructions of the file each executed before they met again; to the end if they did not.
    pub apart: [usize; 2],
    /// Whether they met again.
    pub meets: bool,
}

/// Something that a branch was decided by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datum {
    /// What it is.
    pub what: What,
    /// The instruction that used it first.
    pub at: Place,
    /// What it was in each run.
    pub values: [u64; 2],
}

/// What a value was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Memory that the function did not write in these calls, at these addresses.
    Memory {
        /// In each run.
        addresses: [u64; 2],
        /// Bytes.
        size: u8,
    },
    /// A register as it was when the function was called; the first six integer arguments have numbers
    /// from 1.
    Argument {
        /// The register's name.
        register: String,
        /// Which argument.
        number: Option<usize>,
    },
    /// What a system call returned.
    SystemCall {
        /// Its number.
        number: u64,
    },
    /// What a function of another file returned, of which this is an instruction.
    Returned {
        /// Where it returned.
        from: Place,
    },
}

/// Why two calls cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// One has no steps, or none of a file.
    #[error("the {0} run has no instruction of a file")]
    Nothing(&'static str),
    /// They are of different functions.
    #[error("the runs are of different functions: {0} and {1}")]
    Different(String, String),
    /// They are of different files.
    #[error("the runs are of different versions of {0}: its code differs")]
    Versions(String),
}

/// Partings that are listed.
const MOST_PARTINGS: usize = 100;
/// So many instructions further on it is looked where they meet.
const FURTHEST: usize = 100_000;

/// Lays two calls side by side: one that goes well and one that does not.
///
/// # Errors
/// If they are not of the same function.
pub fn compare(good: &Call, bad: &Call) -> Result<Compared, Error> {
    let runs = [
        Run::of(good).ok_or(Error::Nothing("good"))?,
        Run::of(bad).ok_or(Error::Nothing("bad"))?,
    ];
    let [a, b] = &runs;
    if a.keys[0].0 != b.keys[0].0 || a.file != b.file {
        let name = |run: &Run<'_>| format!("{}+{:#x}", run.file, run.keys[0].0);
        return Err(Error::Different(name(a), name(b)));
    }
    let (mut at, mut common, mut partings) = ([0, 0], None, Vec::new());
    while at[0] < a.own.len() && at[1] < b.own.len() {
        let [p, q] = at;
        if a.keys[p] == b.keys[q] {
            if a.code(a.own[p]) != b.code(b.own[q]) {
                return Err(Error::Versions(a.file.clone()));
            }
            at = [p + 1, q + 1];
            continue;
        }
        common.get_or_insert(p);
        let meeting = meet(&runs, at);
        partings.push(parting(&runs, at, meeting));
        match meeting {
            Some(there) if partings.len() < MOST_PARTINGS => at = there,
            _ => break,
        }
    }
    Ok(Compared {
        common: common.unwrap_or(at[0]),
        partings,
        ends: [good.end, bad.end],
    })
}

/// A call, as far as it is the function's own file's.
struct Run<'a> {
    call: &'a Call,
    file: String,
    steps: Vec<Step>,
    executed: Vec<Executed>,
    /// The steps that are the file's.
    own: Vec<usize>,
    /// Of each of these where in the file it is, and how deep in calls.
    keys: Vec<(u64, usize)>,
}

impl<'a> Run<'a> {
    fn of(call: &'a Call) -> Option<Run<'a>> {
        let steps: Vec<Step> = call.steps.iter().map(|seen| seen.step).collect();
        let file = place(call, steps.first()?.ip)?.path;
        let mut factory = InstructionInfoFactory::new();
        let mut decoded: HashMap<u64, Instruction> = HashMap::new();
        let mut executed = Vec::with_capacity(steps.len());
        let (mut own, mut keys, mut frames) = (Vec::new(), Vec::new(), Vec::<u64>::new());
        for (at, step) in steps.iter().enumerate() {
            let instruction = *decoded.entry(step.ip).or_insert_with(|| {
                let bytes = call.code.get(&step.ip).map_or(&[][..], Vec::as_slice);
                Decoder::with_ip(64, bytes, step.ip, DecoderOptions::NONE).decode()
            });
            while frames.last().is_some_and(|&sp| sp <= step.sp()) {
                frames.pop();
            }
            // What repeats an instruction is one of it.
            let repeats = at > 0 && steps[at - 1].ip == step.ip && has_repetition(&instruction);
            let here = place(call, step.ip).filter(|place| place.path == file);
            if let Some(place) = here.filter(|_| !repeats) {
                own.push(at);
                keys.push((place.offset, frames.len()));
            }
            let is_call = [FlowControl::Call, FlowControl::IndirectCall];
            if is_call.contains(&instruction.flow_control()) {
                frames.push(step.sp());
            }
            executed.push(execute(&mut factory, instruction, step));
        }
        Some(Run {
            call,
            file,
            steps,
            executed,
            own,
            keys,
        })
    }

    fn code(&self, step: usize) -> Option<&[u8]> {
        let length = self.executed[step].instruction.len();
        self.call.code.get(&self.steps[step].ip)?.get(..length)
    }

    /// Where in the file the `nth` own step is.
    fn own_place(&self, nth: usize) -> Option<Place> {
        self.own.get(nth)?;
        Some(Place {
            path: self.file.clone(),
            offset: self.keys[nth].0,
        })
    }

    fn place(&self, step: usize) -> Place {
        place(self.call, self.steps[step].ip).unwrap_or_else(|| Place {
            path: String::new(),
            offset: self.steps[step].ip,
        })
    }

    /// What the branch at a step was decided by.
    fn sources(&self, branch: usize) -> Vec<Source> {
        let foreign = |at: usize| self.own.binary_search(&at).is_err();
        sources(&self.steps, &self.executed, branch, foreign)
    }

    fn value(&self, source: Source) -> u64 {
        const RAX: usize = 0;
        let result = |at: usize| self.steps.get(at + 1).map_or(0, |step| step.general[RAX]);
        match source {
            Source::Load { at, address, .. } => {
                let mut loads = self.call.steps[at].loads.iter();
                loads
                    .find(|load| load.address == address)
                    .map_or(0, |load| load.value)
            }
            Source::Call { at, .. } => result(at),
            Source::Entry(register) => {
                let number = register.full_register().number();
                self.steps[0].general.get(number).copied().unwrap_or(0)
            }
            Source::Foreign { at } => result(self.last_of_foreign(at)),
        }
    }

    /// The last step of the foreign code that a step is in: there it returns.
    fn last_of_foreign(&self, at: usize) -> usize {
        let next = self.own.partition_point(|&own| own <= at);
        self.own.get(next).map_or(self.steps.len(), |&own| own) - 1
    }

    /// What tells a source of one run from others, for its like in the other run.
    fn likeness(&self, source: Source) -> (u8, Place) {
        match source {
            Source::Load { at, .. } => (0, self.place(at)),
            Source::Call { at, .. } => (1, self.place(at)),
            Source::Entry(register) => (
                2,
                Place {
                    path: String::new(),
                    offset: register.number() as u64,
                },
            ),
            // The own instruction that it returns to.
            Source::Foreign { at } => (3, self.place(self.returns_to(at))),
        }
    }

    fn returns_to(&self, at: usize) -> usize {
        (self.last_of_foreign(at) + 1).min(self.steps.len() - 1)
    }
}

fn has_repetition(instruction: &Instruction) -> bool {
    instruction.has_rep_prefix() || instruction.has_repne_prefix()
}

fn place(call: &Call, address: u64) -> Option<Place> {
    let map = (call.maps.iter()).find(|map| (map.start..map.end).contains(&address))?;
    map.path.starts_with('/').then(|| Place {
        path: map.path.clone(),
        offset: (address - map.start).wrapping_add(map.offset),
    })
}

/// Where two runs that have parted meet again: with the fewest instructions of both, in a frame that is no
/// deeper than where they parted.
fn meet(runs: &[Run<'_>; 2], at: [usize; 2]) -> Option<[usize; 2]> {
    let [a, b] = runs;
    let depth = a.keys[at[0] - 1].1;
    let mut first: HashMap<(u64, usize), usize> = HashMap::new();
    for q in (at[1]..b.keys.len()).take(FURTHEST) {
        first.entry(b.keys[q]).or_insert(q);
    }
    let mut best: Option<[usize; 2]> = None;
    let length = |[p, q]: [usize; 2]| p - at[0] + q - at[1];
    for p in (at[0]..a.keys.len()).take(FURTHEST) {
        if best.is_some_and(|best| p - at[0] >= length(best)) {
            break;
        }
        if a.keys[p].1 > depth {
            continue;
        }
        if let Some(&q) = first.get(&a.keys[p])
            && best.is_none_or(|best| length([p, q]) < length(best))
        {
            best = Some([p, q]);
        }
    }
    best
}

fn parting(runs: &[Run<'_>; 2], at: [usize; 2], meeting: Option<[usize; 2]>) -> Parting {
    let [a, b] = runs;
    let branches = [a.own[at[0] - 1], b.own[at[1] - 1]];
    let flow = a.executed[branches[0]].instruction.flow_control();
    let kinds = [
        FlowControl::ConditionalBranch,
        FlowControl::IndirectBranch,
        FlowControl::IndirectCall,
    ];
    let is_branch = kinds.contains(&flow);
    let ends = meeting.unwrap_or([a.own.len(), b.own.len()]);
    Parting {
        branch: a.place(branches[0]),
        is_branch,
        to: [a.own_place(at[0]), b.own_place(at[1])],
        decided_by: match is_branch {
            true => decided_by(runs, branches),
            false => Vec::new(),
        },
        apart: [ends[0] - at[0], ends[1] - at[1]],
        meets: meeting.is_some(),
    }
}

/// What a branch was decided by in both runs, that which differs if anything does.
fn decided_by([a, b]: &[Run<'_>; 2], branches: [usize; 2]) -> Vec<Datum> {
    let mut others = b.sources(branches[1]);
    let mut data: Vec<Datum> = Vec::new();
    for source in a.sources(branches[0]) {
        let likeness = a.likeness(source);
        let Some(at) = (others.iter()).position(|&other| b.likeness(other) == likeness) else {
            continue;
        };
        let other = others.swap_remove(at);
        let datum = Datum {
            what: what(a, source, other),
            at: match source {
                Source::Load { at, .. } | Source::Call { at, .. } => a.place(at),
                Source::Entry(_) => a.place(0),
                Source::Foreign { at } => a.place(a.returns_to(at)),
            },
            values: [a.value(source), b.value(other)],
        };
        if !data.contains(&datum) {
            data.push(datum);
        }
    }
    if data.iter().any(|datum| datum.values[0] != datum.values[1]) {
        data.retain(|datum| datum.values[0] != datum.values[1]);
    }
    data
}

fn what(run: &Run<'_>, source: Source, other: Source) -> What {
    /// In the order of integer arguments.
    const ARGUMENTS: [Register; 6] = [
        Register::RDI,
        Register::RSI,
        Register::RDX,
        Register::RCX,
        Register::R8,
        Register::R9,
    ];
    match source {
        Source::Load { address, size, .. } => {
            let there = match other {
                Source::Load { address, .. } => address,
                _ => address,
            };
            What::Memory {
                addresses: [address, there],
                size,
            }
        }
        Source::Call { number, .. } => What::SystemCall { number },
        Source::Entry(register) => What::Argument {
            register: format!("{register:?}").to_lowercase(),
            number: (ARGUMENTS.iter().position(|&it| it == register)).map(|at| at + 1),
        },
        Source::Foreign { at } => What::Returned {
            from: run.place(run.last_of_foreign(at)),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::address_space::Map;
    use crate::call::{Loaded, Seen};

    /// cmp dword [rdi],0; je 7; inc eax; nop; ret
    const CODE: [u8; 9] = [0x83, 0x3f, 0x00, 0x74, 0x02, 0xff, 0xc0, 0x90, 0xc3];
    const WITH_INC: [u64; 5] = [0, 3, 5, 7, 8];
    const WITHOUT: [u64; 4] = [0, 3, 7, 8];

    /// A call of the code at `start`, of which these instructions were executed, with what `data` points to.
    fn call(code: &[u8], start: u64, data: u64, value: u64, executed: &[u64]) -> Call {
        let seen = |&at: &u64| {
            let mut general = [0; 16];
            general[4] = 0x8000;
            // rdi
            general[7] = data;
            let step = Step {
                ip: start.wrapping_add(at),
                general,
                ..Step::default()
            };
            let loaded = Loaded {
                address: data,
                size: 4,
                value,
            };
            Seen {
                step,
                loads: if at == 0 { vec![loaded] } else { Vec::new() },
            }
        };
        let map = Map {
            start,
            end: start.saturating_add(0x1000),
            permissions: "r-xp".into(),
            offset: 0x400,
            path: "/bin/shop".into(),
        };
        let bytes = |&at: &u64| (start.wrapping_add(at), code[at as usize..].to_vec());
        Call {
            tid: 1,
            end: End::Returned,
            maps: vec![map],
            code: executed.iter().map(bytes).collect::<BTreeMap<_, _>>(),
            steps: executed.iter().map(seen).collect(),
        }
    }

    /// The branch that went two ways, the memory that decided it with both values, and where they meet, though
    /// neither code nor data lie at one place.
    #[test]
    fn memory_that_decides() {
        let good = call(&CODE, 0x1000, 0x5000, 0, &WITHOUT);
        let bad = call(&CODE, 0x7000, 0x6000, 3, &WITH_INC);
        let compared = compare(&good, &bad).unwrap();
        let [parting] = &compared.partings[..] else {
            panic!("{compared:?}")
        };
        assert_eq!(compared.common, 2);
        assert_eq!(parting.branch.offset, 0x403);
        assert_eq!((parting.apart, parting.meets), ([0, 1], true));
        let [datum] = &parting.decided_by[..] else {
            panic!("{parting:?}")
        };
        let what = What::Memory {
            addresses: [0x5000, 0x6000],
            size: 4,
        };
        assert_eq!((&datum.what, datum.values), (&what, [0, 3]));
        assert_eq!(compare(&good, &good).unwrap().partings, []);
    }

    /// Calls of other functions, of another version, and of no file are not compared.
    #[test]
    fn what_cannot_be_compared() {
        let good = call(&CODE, 0x1000, 0x5000, 0, &WITHOUT);
        let other = call(&CODE, 0x1000, 0x5000, 0, &WITHOUT[1..]);
        assert!(matches!(compare(&good, &other), Err(Error::Different(..))));
        let mut code = CODE;
        code[2] = 1;
        let version = call(&code, 0x1000, 0x5000, 0, &WITHOUT);
        assert!(matches!(compare(&good, &version), Err(Error::Versions(_))));
        let none = call(&CODE, 0x1000, 0x5000, 0, &[]);
        assert!(matches!(compare(&none, &good), Err(Error::Nothing("good"))));
        assert!(matches!(compare(&good, &none), Err(Error::Nothing("bad"))));
    }

    /// A file may have any numbers: addresses at the end of memory, code that is cut, data that wraps around.
    #[test]
    fn numbers_from_outside() {
        let far = u64::MAX - 0x10;
        for executed in [&WITHOUT[..], &WITH_INC, &[0, 0, 0], &[8, 7, 3, 0]] {
            for (start, data) in [(far, 0x5000), (0x1000, u64::MAX), (far, u64::MAX - 1)] {
                let mut hostile = call(&CODE, start, data, u64::MAX, executed);
                hostile.maps[0].offset = u64::MAX - 1;
                let plain = call(&CODE, 0x1000, 0x5000, 0, &WITHOUT);
                let _ = compare(&plain, &hostile);
                let _ = compare(&hostile, &plain);
                let _ = compare(&hostile, &hostile);
                hostile
                    .code
                    .values_mut()
                    .for_each(|bytes| bytes.truncate(1));
                let _ = compare(&hostile, &hostile);
                hostile.maps.clear();
                assert!(compare(&hostile, &plain).is_err());
            }
        }
    }
}
