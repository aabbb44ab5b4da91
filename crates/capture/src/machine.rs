//! Functions of virtual machines in stacks: the machine of each process that has one, and the names of
//! the functions that stacks come through: Java's methods, and JavaScript's functions.
//!
//! Such a function comes from the kernel side (`bpf/machine.h`) or from a copied stack as the address of
//! what describes it. Java's compiled methods come as addresses in the machine's code. All are told by
//! the machine's memory while the process lives ([`hotspot`](hangdog_symbols::hotspot),
//! [`v8`](hangdog_symbols::v8)), as soon as the stack has come. A description that the machine has thrown
//! away since has no name, or that of what came in its place.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hangdog_symbols::hotspot::{self, HotSpot, Variables};
use hangdog_symbols::memory::{Memory, ProcessMemory};
use hangdog_symbols::v8::{Layout, V8};

use crate::function::{Function, NUMBERED};
use crate::records::{Definition, What};

/// What begins the words that stand for functions that are described somewhere, as `bpf/machine.h` has
/// it; and how far below a frame pointer those lie that it reads.
const DESCRIBED: u64 = 1 << 61;
const HOTSPOT_METHOD_BELOW: u64 = 24;
const V8_CONTEXT_BELOW: u64 = 8;
const V8_FUNCTION_BELOW: u64 = 16;
/// So often a machine that is not ready is looked at, so long apart: it starts within a second, or is
/// none that we understand.
const MOST_LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// What the kernel side is told of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frames {
    /// From where to where HotSpot's code lies that interprets methods.
    HotSpot(u64, u64),
    /// How far into a function's object V8 keeps the place that it shares with others.
    V8(u64),
}

impl Frames {
    /// The word of the function whose frame was left, if it is one of the machine's: `to` is where its
    /// caller's stack begins, `stack` reads the stack, and `has_rules` says whether the code at
    /// `address` has unwind rules.
    pub(crate) fn function_left(
        self,
        pid: u32,
        address: u64,
        to: u64,
        stack: impl Fn(u64) -> Option<u64>,
        has_rules: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        // The caller's stack begins behind the frame pointer and the return address.
        let below = |bytes: u64| stack(to.checked_sub(16 + bytes)?);
        let described = match self {
            Frames::HotSpot(start, end) => {
                let is_interpreted = (start..end).contains(&address);
                is_interpreted.then(|| below(HOTSPOT_METHOD_BELOW))??
            }
            Frames::V8(_) if has_rules(address) => return None,
            Frames::V8(shared) => {
                object(below(V8_CONTEXT_BELOW)?)?;
                let function = object(below(V8_FUNCTION_BELOW)?)?;
                object(ProcessMemory(pid).word(function.wrapping_add(shared))?)?
            }
        };
        (described < DESCRIBED).then_some(DESCRIBED | described)
    }
}

/// The object of V8 that a word points to.
fn object(word: u64) -> Option<u64> {
    (word & 3 == 1).then(|| word - 1)
}

fn description_of(word: u64) -> Option<u64> {
    (word >> 61 == DESCRIBED >> 61).then_some(word & (DESCRIBED - 1))
}

/// The machines of all processes.
#[derive(Default)]
pub(crate) struct Machines {
    machines: HashMap<u32, Machine>,
    /// Not ready when they were looked at last.
    awaited: HashMap<u32, Awaited>,
}

struct Machine {
    kind: Kind,
    /// Numbers by the addresses of the functions' descriptions; 0 for one that has no name.
    functions: HashMap<u64, u32>,
    /// Of the machine's own code, by its name.
    own: HashMap<String, u32>,
}

enum Kind {
    HotSpot(HotSpot<ProcessMemory>),
    V8(V8<ProcessMemory>, Layout),
}

struct Awaited {
    variables: Variables,
    base: u64,
    looks: u32,
    next: Instant,
}

impl Machines {
    /// A process has Java's machine, whose library is mapped at `base`.
    pub(crate) fn meet_java(&mut self, pid: u32, variables: Variables, base: u64) {
        if !self.machines.contains_key(&pid) {
            self.awaited.entry(pid).or_insert(Awaited {
                variables,
                base,
                looks: 0,
                next: Instant::now(),
            });
        }
    }

    /// A process has V8.
    pub(crate) fn meet_v8(&mut self, pid: u32, layout: Layout) {
        self.machines
            .entry(pid)
            .or_insert_with(|| Machine::new(Kind::V8(V8::new(ProcessMemory(pid), layout), layout)));
    }

    /// Looks at the machines that were not ready; gives the processes whose are now.
    pub(crate) fn look(&mut self) -> Vec<u32> {
        let now = Instant::now();
        let mut ready = Vec::new();
        for (&pid, awaited) in &mut self.awaited {
            if awaited.next > now || awaited.looks >= MOST_LOOKS {
                continue;
            }
            awaited.looks += 1;
            awaited.next = now + PAUSE;
            let memory = ProcessMemory(pid);
            if let Some(hotspot) = HotSpot::read(memory, &awaited.variables, awaited.base) {
                self.machines
                    .insert(pid, Machine::new(Kind::HotSpot(hotspot)));
                ready.push(pid);
            }
        }
        for pid in &ready {
            self.awaited.remove(pid);
        }
        ready
    }

    /// What the frames of a process's machine are known by.
    pub(crate) fn frames(&self, pid: u32) -> Option<Frames> {
        Some(match &self.machines.get(&pid)?.kind {
            Kind::HotSpot(hotspot) => {
                let (start, end) = hotspot.interpreter();
                Frames::HotSpot(start, end)
            }
            Kind::V8(_, layout) => Frames::V8(layout.shared()),
        })
    }

    /// The process has ended, or executes another program.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.machines.remove(&pid);
        self.awaited.remove(&pid);
    }

    /// Puts functions into the stacks among `definitions`, and behind them the definitions of those
    /// that were not known. `next` gives a number that no other function has.
    pub(crate) fn name(
        &mut self,
        definitions: &mut Vec<Definition>,
        mut next: impl FnMut() -> u32,
    ) {
        if self.machines.is_empty() {
            return;
        }
        let mut functions = Vec::new();
        for definition in definitions.iter_mut() {
            let ts = definition.ts;
            let What::Stack { pid, frames, .. } = &mut definition.what else {
                continue;
            };
            let pid = *pid;
            let Some(machine) = self.machines.get_mut(&pid) else {
                continue;
            };
            let mut define = |function| {
                let number = next();
                let what = What::Function {
                    number,
                    pid,
                    function,
                };
                functions.push(Definition { ts, what });
                number
            };
            for (depth, word) in frames.iter_mut().enumerate() {
                if let Some(number) = machine.number(*word, depth == 0, &mut define) {
                    *word = NUMBERED | u64::from(number);
                }
            }
        }
        definitions.append(&mut functions);
    }
}

impl Machine {
    fn new(kind: Kind) -> Machine {
        Machine {
            kind,
            functions: HashMap::new(),
            own: HashMap::new(),
        }
    }

    /// The number of the function that a word of a stack is of; 0 for one without a name, `None` if
    /// it is none of the machine's.
    fn number(
        &mut self,
        word: u64,
        is_innermost: bool,
        define: &mut impl FnMut(Function) -> u32,
    ) -> Option<u32> {
        let description = match (description_of(word), &self.kind) {
            (Some(description), _) => description,
            (None, Kind::HotSpot(hotspot)) if word < DESCRIBED => {
                // A return address may lie behind its function's last instruction.
                match hotspot.code(word.checked_sub(u64::from(!is_innermost))?)? {
                    hotspot::Code::Method(method) => method,
                    hotspot::Code::Own(name) => {
                        let number = self.own.entry(name).or_insert_with_key(|name| {
                            define(Function {
                                name: name.clone(),
                                file: "[HotSpot]".into(),
                                line: 0,
                            })
                        });
                        return Some(*number);
                    }
                }
            }
            (None, _) => return None,
        };
        let kind = &self.kind;
        let number = self
            .functions
            .entry(description)
            .or_insert_with(|| kind.function(description).map_or(0, define));
        Some(*number)
    }
}

impl Kind {
    fn function(&self, description: u64) -> Option<Function> {
        match self {
            Kind::HotSpot(hotspot) => {
                let method = hotspot.method(description)?;
                Some(Function {
                    name: method.name,
                    file: method.source,
                    line: 0,
                })
            }
            Kind::V8(v8, _) => {
                let script = v8.function(description)?;
                let (name, file) = (script.name, script.file);
                Some(Function {
                    name: if name.is_empty() {
                        "(anonymous)".into()
                    } else {
                        name
                    },
                    file: if file.is_empty() { "[V8]".into() } else { file },
                    line: script.line,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a frame of HotSpot's interpreter has a method, three words below its frame pointer.
    #[test]
    fn a_frame_of_the_interpreter_has_a_method() {
        let stack = |at| (at == 0x7000 - 40).then_some(0x1234);
        let left = |address, to| {
            Frames::HotSpot(0x1000, 0x2000).function_left(1, address, to, stack, |_| true)
        };
        assert_eq!(left(0x1800, 0x7000), Some(DESCRIBED | 0x1234));
        assert_eq!(left(0x2000, 0x7000), None);
        assert_eq!(left(0x1800, 0x7008), None, "unreadable");
        assert_eq!(left(0x1800, 8), None);
        let large = Frames::HotSpot(0x1000, 0x2000);
        let large = large.function_left(1, 0x1800, 0x7000, |_| Some(u64::MAX), |_| true);
        assert_eq!(large, None);
    }

    /// A frame of V8 has a function if its code has no rules and both words point to objects.
    #[test]
    fn a_frame_of_javascript_has_a_function() {
        let shared = 0x5001_u64;
        let function = &raw const shared as u64 + 1;
        let left = |context: u64, has_rules: bool| {
            let stack = move |at| match at {
                0x6fe8 => Some(context),
                0x6fe0 => Some(function),
                _ => None,
            };
            let own = std::process::id();
            Frames::V8(0).function_left(own, 0x1800, 0x7000, stack, move |_| has_rules)
        };
        assert_eq!(left(0x9001, false), Some(DESCRIBED | 0x5000));
        assert_eq!(left(0x9001, true), None);
        assert_eq!(left(13 << 1, false), None, "the machine's own frame");
    }

    /// A described function's word is neither an address nor a numbered function.
    #[test]
    fn words_of_described_functions_are_told_from_others() {
        assert_eq!(description_of(DESCRIBED | 7), Some(7));
        for word in [0, 0x7fff_ffff_ffff, NUMBERED | 7, 0xffff_ffff_8100_0000] {
            assert_eq!(description_of(word), None);
        }
    }
}
