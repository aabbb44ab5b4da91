//! Java's methods in stacks: the machine of each process that has one, and the names of the methods
//! that stacks come through.
//!
//! An interpreted method comes from the kernel side (`bpf/java.h`) or from a copied stack as the address
//! of its description, a compiled one as an address in the machine's code. Both are told by the machine's
//! memory while the process lives ([`hotspot`](hangdog_symbols::hotspot)), as soon as the stack has come.
//! A description that the machine has thrown away since has no name, or that of what came in its place.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hangdog_symbols::hotspot::{Code, HotSpot, Variables};
use hangdog_symbols::memory::ProcessMemory;

use crate::function::{Function, NUMBERED};
use crate::records::{Definition, What};

/// What begins the words that stand for interpreted methods, as `bpf/java.h` has it.
const METHOD: u64 = 1 << 61;
/// So far below where its frame pointer points, an interpreted frame has its method.
const METHOD_BELOW: u64 = 24;
/// So often a machine that is not ready is looked at, so long apart: it starts within a second, or is
/// none that we understand.
const MOST_LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// The method of the frame that was left, if it was interpreted: `to` is where its caller's stack
/// begins, and `word` reads the stack.
pub(crate) fn method_left(
    interpreter: Option<(u64, u64)>,
    address: u64,
    to: u64,
    word: impl Fn(u64) -> Option<u64>,
) -> Option<u64> {
    let (start, end) = interpreter?;
    // The caller's stack begins behind the frame pointer and the return address.
    let at = (start..end)
        .contains(&address)
        .then(|| to.checked_sub(16 + METHOD_BELOW))??;
    word(at)
        .filter(|&method| method < METHOD)
        .map(|method| METHOD | method)
}

fn method_of(word: u64) -> Option<u64> {
    (word >> 61 == METHOD >> 61).then_some(word & (METHOD - 1))
}

/// The machines of all processes.
#[derive(Default)]
pub(crate) struct Machines {
    machines: HashMap<u32, Machine>,
    /// Not ready when they were looked at last.
    awaited: HashMap<u32, Awaited>,
}

struct Machine {
    hotspot: HotSpot<ProcessMemory>,
    /// By the addresses of the methods' descriptions; 0 for one that has no name.
    methods: HashMap<u64, u32>,
    /// The machine's own code, by its name.
    own: HashMap<String, u32>,
}

struct Awaited {
    variables: Variables,
    base: u64,
    looks: u32,
    next: Instant,
}

impl Machines {
    /// A process has a machine, whose library is mapped at `base`.
    pub(crate) fn meet(&mut self, pid: u32, variables: Variables, base: u64) {
        if !self.machines.contains_key(&pid) {
            self.awaited.entry(pid).or_insert(Awaited {
                variables,
                base,
                looks: 0,
                next: Instant::now(),
            });
        }
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
                let machine = Machine {
                    hotspot,
                    methods: HashMap::new(),
                    own: HashMap::new(),
                };
                self.machines.insert(pid, machine);
                ready.push(pid);
            }
        }
        for pid in &ready {
            self.awaited.remove(pid);
        }
        ready
    }

    /// From where to where a process's machine interprets.
    pub(crate) fn interpreter(&self, pid: u32) -> Option<(u64, u64)> {
        self.machines
            .get(&pid)
            .map(|machine| machine.hotspot.interpreter())
    }

    /// The process has ended, or executes another program.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.machines.remove(&pid);
        self.awaited.remove(&pid);
    }

    /// Puts methods into the stacks among `definitions`, and behind them the definitions of those that
    /// were not known. `next` gives a number that no other function has.
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
    /// The number of the function that a word of a stack is of; 0 for one without a name, `None` if
    /// it is none of the machine's.
    fn number(
        &mut self,
        word: u64,
        is_innermost: bool,
        define: &mut impl FnMut(Function) -> u32,
    ) -> Option<u32> {
        let code = match method_of(word) {
            Some(method) => Code::Method(method),
            None if word >= METHOD => return None,
            // A return address may lie behind its function's last instruction.
            None => self
                .hotspot
                .code(word.checked_sub(u64::from(!is_innermost))?)?,
        };
        let method = match code {
            Code::Method(method) => method,
            Code::Own(name) => {
                let function = |name: &String| Function {
                    name: name.clone(),
                    file: "[HotSpot]".into(),
                    line: 0,
                };
                let number = self.own.get(&name).copied();
                return Some(number.unwrap_or_else(|| {
                    let number = define(function(&name));
                    self.own.insert(name, number);
                    number
                }));
            }
        };
        if let Some(&number) = self.methods.get(&method) {
            return Some(number);
        }
        let number = self.hotspot.method(method).map_or(0, |method| {
            define(Function {
                name: method.name,
                file: method.source,
                line: 0,
            })
        });
        self.methods.insert(method, number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a frame of the interpreter has a method, three words below its frame pointer.
    #[test]
    fn a_frame_of_the_interpreter_has_a_method() {
        let interpreter = Some((0x1000, 0x2000));
        let word = |at| (at == 0x7000 - 40).then_some(0x1234);
        assert_eq!(
            method_left(interpreter, 0x1800, 0x7000, word),
            Some(METHOD | 0x1234)
        );
        assert_eq!(method_left(interpreter, 0x2000, 0x7000, word), None);
        assert_eq!(method_left(None, 0x1800, 0x7000, word), None);
        assert_eq!(
            method_left(interpreter, 0x1800, 0x7008, word),
            None,
            "unreadable"
        );
        assert_eq!(method_left(interpreter, 0x1800, 8, word), None);
        let large = |_| Some(u64::MAX);
        assert_eq!(method_left(interpreter, 0x1800, 0x7000, large), None);
    }

    /// A method's word is neither an address nor a numbered function.
    #[test]
    fn words_of_methods_are_told_from_others() {
        assert_eq!(method_of(METHOD | 7), Some(7));
        for word in [0, 0x7fff_ffff_ffff, NUMBERED | 7, 0xffff_ffff_8100_0000] {
            assert_eq!(method_of(word), None);
        }
    }
}
