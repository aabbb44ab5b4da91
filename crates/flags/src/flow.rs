//! What decides whether a loop goes on: from its branches back to the loads.
//!
//! The trace is a straight line of instructions that were executed, so that calls, pointers and
//! position-independent code need no thought: each address is known. A branch that went both ways is
//! an inner loop's or says nothing; one that always went the same way may be the one that ends the
//! loop. From its flags the way goes back to what it was decided by ([`slice`](crate::slice)).

use std::collections::{BTreeMap, HashMap, HashSet};

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpKind, Register,
};

use crate::executed::{Executed, execute, is_atomic, overlap};
use crate::registers::Step;
use crate::slice::{Source, sources};

/// The longest instruction.
pub const INSTRUCTION_BYTES: usize = 15;
/// Rounds that must have been seen.
const ROUNDS: usize = 2;

/// A load that decides a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Its address and size in bytes.
    pub address: u64,
    /// Bytes.
    pub size: u8,
    /// The instruction that loads it.
    pub instruction: u64,
    /// The branch that it decides.
    pub branch: u64,
    /// Whether the instruction is an atomic one: only shared memory needs these.
    pub atomic: bool,
    /// Whether it lies in what is the thread's own (fs).
    pub own: bool,
    /// Where the branch compares it with a constant: what ends the loop.
    pub until: Option<Until>,
}

/// What a value must become for the loop to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// Of the value these bits.
    pub mask: u64,
    /// Are compared with this.
    pub with: u64,
    /// Whether they are to be equal, or not.
    pub equal: bool,
}

impl Until {
    /// Whether a value ends the loop.
    pub fn holds(&self, value: u64) -> bool {
        (value & self.mask == self.with) == self.equal
    }
}

/// What the rounds of a loop tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// How many there were.
    pub count: usize,
    /// The loads that may decide, each address once, those of the branch that is nearest to the loop's
    /// beginning first.
    pub loads: Vec<Load>,
    /// The system calls of which a result may decide, by number.
    pub calls: Vec<u64>,
    /// The system calls of a round, by number.
    pub naps: Vec<u64>,
}

/// Works it out of `steps`; `code` gives the bytes at an address, at most [`INSTRUCTION_BYTES`].
/// `None` where the steps are no loop: too few rounds, or code that cannot be read.
pub fn rounds(steps: &[Step], mut code: impl FnMut(u64) -> Vec<u8>) -> Option<Rounds> {
    let mut decoded: HashMap<u64, Instruction> = HashMap::new();
    let mut factory = InstructionInfoFactory::new();
    let executed: Vec<Executed> = steps
        .iter()
        .map(|step| {
            let instruction = *decoded.entry(step.ip).or_insert_with(|| {
                Decoder::with_ip(64, &code(step.ip), step.ip, DecoderOptions::NONE).decode()
            });
            execute(&mut factory, instruction, step)
        })
        .collect();
    let heads = heads(steps)?;
    let (first, last) = (*heads.first()?, *heads.last()?);
    let mut found = Rounds {
        count: heads.len() - 1,
        ..Rounds::default()
    };
    let last_round = heads[heads.len() - 2];
    for at in last_round..last {
        if executed[at].instruction.code() == Code::Syscall {
            found.naps.push(steps[at].general[0]);
        }
    }
    for branch in one_way(steps, &executed, first, last) {
        // Of the last round: what it was made of may lie in the rounds before.
        let Some(at) = (last_round..last).rev().find(|&at| steps[at].ip == branch) else {
            continue;
        };
        let compare = compared(steps, &executed, at);
        for source in sources(steps, &executed, at, |_| false) {
            match source {
                Source::Call { number, .. } if !found.calls.contains(&number) => {
                    found.calls.push(number);
                }
                Source::Load {
                    at: load,
                    address,
                    size,
                } => {
                    let load = load_at(steps, &executed, (load, at), (address, size), compare);
                    let place = |load: &Load| (load.address, load.size);
                    if !found
                        .loads
                        .iter()
                        .any(|known| overlap(place(known), place(&load)))
                    {
                        found.loads.push(load);
                    }
                }
                _ => {}
            }
        }
    }
    Some(found)
}

/// The steps at which a round begins: those at one instruction of the outermost function that comes back
/// to it, also late in what was seen: the thread may just have come into its loop. What an inner loop
/// repeats is there more often, so of the instructions that come again the rarest is taken.
fn heads(steps: &[Step]) -> Option<Vec<usize>> {
    // A function's own instructions are where its stack pointer is; a call's arguments may lie below.
    let mut frames: BTreeMap<u64, BTreeMap<u64, Vec<usize>>> = BTreeMap::new();
    for (place, step) in steps.iter().enumerate() {
        let frame = frames.entry(step.sp()).or_default();
        frame.entry(step.ip).or_default().push(place);
    }
    let comes_back = |places: &Vec<usize>| {
        places.len() > ROUNDS && places.last().is_some_and(|&last| last >= steps.len() / 2)
    };
    frames.into_values().rev().find_map(|frame| {
        let repeated = frame.into_values().filter(comes_back);
        repeated.min_by_key(|places| (places.len(), places[0]))
    })
}

/// The conditional branches in `first..last` that went one way only, each once, in order.
fn one_way(steps: &[Step], executed: &[Executed], first: usize, last: usize) -> Vec<u64> {
    let mut ways: HashMap<u64, HashSet<bool>> = HashMap::new();
    let mut order = Vec::new();
    for at in first..last {
        let instruction = &executed[at].instruction;
        if instruction.flow_control() != FlowControl::ConditionalBranch {
            continue;
        }
        let taken = steps
            .get(at + 1)
            .is_some_and(|next| next.ip == instruction.near_branch_target());
        let known = ways.entry(steps[at].ip).or_default();
        if known.is_empty() {
            order.push(steps[at].ip);
        }
        known.insert(taken);
    }
    order.retain(|ip| ways[ip].len() == 1);
    order
}

fn load_at(
    steps: &[Step],
    executed: &[Executed],
    (at, branch): (usize, usize),
    (address, size): (u64, u8),
    compare: Option<(usize, Until)>,
) -> Load {
    let instruction = &executed[at].instruction;
    let until = compare
        .filter(|&(from, _)| from == at)
        .map(|(_, until)| until);
    Load {
        address,
        size,
        instruction: steps[at].ip,
        branch: steps[branch].ip,
        atomic: is_atomic(instruction),
        own: instruction.memory_segment() == Register::FS,
        until,
    }
}

/// Where the branch compares a value that was loaded as it is with a constant: the step of the load,
/// and what ends the loop.
fn compared(steps: &[Step], executed: &[Executed], branch: usize) -> Option<(usize, Until)> {
    let taken = steps.get(branch + 1)?.ip == executed[branch].instruction.near_branch_target();
    let jumps_if_equal = match executed[branch].instruction.mnemonic() {
        Mnemonic::Je => true,
        Mnemonic::Jne => false,
        _ => return None,
    };
    // It goes on as long as it goes the way that was seen.
    let equal = jumps_if_equal != taken;
    let at = (0..branch).rev().find(|&at| executed[at].writes_flags)?;
    let compare = &executed[at].instruction;
    let bits = |bytes: u8| u64::MAX >> (64 - 8 * u32::from(bytes.clamp(1, 8)));
    let is_immediate = |kind: OpKind| {
        !matches!(
            kind,
            OpKind::Register | OpKind::Memory | OpKind::NearBranch64
        )
    };
    let (place, until_of): (OpKind, Box<dyn Fn(u8) -> Until>) = match compare.mnemonic() {
        Mnemonic::Test
            if compare.op1_kind() == OpKind::Register
                && compare.op0_kind() == OpKind::Register
                && compare.op0_register() == compare.op1_register() =>
        {
            (
                compare.op0_kind(),
                Box::new(move |bytes| Until {
                    mask: bits(bytes),
                    with: 0,
                    equal,
                }),
            )
        }
        Mnemonic::Test if is_immediate(compare.op1_kind()) => {
            let mask = compare.immediate(1);
            (
                compare.op0_kind(),
                Box::new(move |bytes| Until {
                    mask: mask & bits(bytes),
                    with: 0,
                    equal,
                }),
            )
        }
        Mnemonic::Cmp if is_immediate(compare.op1_kind()) => {
            let with = compare.immediate(1);
            (
                compare.op0_kind(),
                Box::new(move |bytes| Until {
                    mask: bits(bytes),
                    with: with & bits(bytes),
                    equal,
                }),
            )
        }
        // What an `and` leaves decides.
        Mnemonic::And if is_immediate(compare.op1_kind()) => {
            let mask = compare.immediate(1);
            (
                compare.op0_kind(),
                Box::new(move |bytes| Until {
                    mask: mask & bits(bytes),
                    with: 0,
                    equal,
                }),
            )
        }
        _ => return None,
    };
    if place == OpKind::Memory {
        let &(_, size) = executed[at].loads.first()?;
        return Some((at, until_of(size)));
    }
    let mut register = compare.op0_register().full_register();
    // Through copies back to the load.
    for at in (0..at).rev() {
        let step = &executed[at];
        if !step.writes.contains(&register) {
            continue;
        }
        let is_move = matches!(step.instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx);
        match (is_move, step.loads.first()) {
            (true, Some(&(_, size))) => {
                let width = compare.op0_register().size() as u8;
                return Some((at, until_of(size.min(width))));
            }
            (true, None) if step.reads.len() == 1 => register = step.reads[0],
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x1000;
    const DATA: u64 = 0x7000;

    /// The rounds of code that lies at [`START`], of which these instructions were executed.
    fn rounds_of(code: &[u8], executed: &[u64]) -> Option<Rounds> {
        let mut general = [0; 16];
        general[4] = 0x8000;
        // rdi
        general[7] = DATA;
        let steps: Vec<Step> = (executed.iter())
            .map(|at| Step {
                ip: START + at,
                general,
                fs: 0x9000,
                ..Step::default()
            })
            .collect();
        rounds(&steps, |address| {
            let at = (address - START) as usize;
            code[at..].iter().take(INSTRUCTION_BYTES).copied().collect()
        })
    }

    /// A flag that is loaded and tested is found, and what ends the loop.
    #[test]
    fn a_load_that_is_tested() {
        // mov eax,[rip+0xffa]; test eax,eax; je 0
        let code = [0x8b, 0x05, 0xfa, 0x0f, 0, 0, 0x85, 0xc0, 0x74, 0xf6];
        let found = rounds_of(&code, &[0, 6, 8].repeat(4)).unwrap();
        let until = Until {
            mask: 0xffff_ffff,
            with: 0,
            equal: false,
        };
        let expected = Load {
            address: 0x2000,
            size: 4,
            instruction: START,
            branch: START + 8,
            atomic: false,
            own: false,
            until: Some(until),
        };
        assert_eq!(found.loads, [expected]);
        assert_eq!(found.count, 3);
        assert!(!until.holds(0) && until.holds(3));
    }

    /// What came before the loop, further out, is none of it.
    #[test]
    fn a_loop_that_was_just_entered() {
        // mov eax,[rip+0xffa]; test eax,eax; je 0
        let code = [0x8b, 0x05, 0xfa, 0x0f, 0, 0, 0x85, 0xc0, 0x74, 0xf6];
        let step = |ip: u64, sp: u64| {
            let mut general = [0; 16];
            general[4] = sp;
            Step {
                ip,
                general,
                ..Step::default()
            }
        };
        let mut steps = vec![
            step(START + 6, 0x9000),
            step(START, 0x9000),
            step(START + 6, 0x9000),
        ];
        steps.extend(
            [0, 6, 8]
                .repeat(4)
                .into_iter()
                .map(|at| step(START + at, 0x8000)),
        );
        let code = |address: u64| code[(address - START) as usize..].to_vec();
        assert_eq!(rounds(&steps, code).unwrap().loads.len(), 1);
    }

    /// A loop inside, which counts in a register, decides nothing.
    #[test]
    fn an_inner_loop_is_passed_over() {
        // mov ecx,2; dec ecx; jne 5; mov eax,[rip+0xff1]; test eax,eax; je 0
        let code = [
            0xb9, 2, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0x8b, 0x05, 0xf1, 0x0f, 0, 0, 0x85, 0xc0,
            0x74, 0xed,
        ];
        let found = rounds_of(&code, &[0, 5, 7, 5, 7, 9, 15, 17].repeat(4)).unwrap();
        let addresses: Vec<u64> = found.loads.iter().map(|load| load.address).collect();
        assert_eq!(addresses, [0x2000]);
    }

    /// What the thread writes itself in each round is no flag.
    #[test]
    fn what_it_writes_itself() {
        // mov [rip+0xffa],edi; cmp dword [rip+0xff3],0; je 0
        let code = [
            0x89, 0x3d, 0xfa, 0x0f, 0, 0, 0x83, 0x3d, 0xf3, 0x0f, 0, 0, 0, 0x74, 0xf1,
        ];
        let found = rounds_of(&code, &[0, 6, 13].repeat(4)).unwrap();
        assert_eq!(found.loads, []);
    }

    /// A bit of memory that a register points to: the pointer is no part of it.
    #[test]
    fn a_bit_behind_a_pointer() {
        // test byte [rdi+8],4; je 0
        let code = [0xf6, 0x47, 0x08, 0x04, 0x74, 0xfa];
        let found = rounds_of(&code, &[0, 4].repeat(4)).unwrap();
        let [load] = &found.loads[..] else {
            panic!("{found:?}")
        };
        assert_eq!((load.address, load.size), (DATA + 8, 1));
        let until = load.until.unwrap();
        assert_eq!((until.mask, until.with, until.equal), (4, 0, false));
    }

    /// A lock that is tried by an exchange is shared memory, though the thread writes it in each round.
    #[test]
    fn an_exchange() {
        // mov eax,1; xchg [rip+0xff5],eax; test eax,eax; jne 0
        let code = [
            0xb8, 1, 0, 0, 0, 0x87, 0x05, 0xf5, 0x0f, 0, 0, 0x85, 0xc0, 0x75, 0xf1,
        ];
        let found = rounds_of(&code, &[0, 5, 11, 13].repeat(4)).unwrap();
        let [load] = &found.loads[..] else {
            panic!("{found:?}")
        };
        assert_eq!((load.address, load.atomic), (0x2000, true));
    }

    /// What is the thread's own is told, and so is the result of a system call.
    #[test]
    fn own_memory_and_calls() {
        // cmp dword fs:[0x28],0; jne 0; syscall; test eax,eax; je 0
        let code = [
            0x64, 0x83, 0x3c, 0x25, 0x28, 0, 0, 0, 0, 0x75, 0xf5, 0x0f, 0x05, 0x85, 0xc0, 0x74,
            0xef,
        ];
        let found = rounds_of(&code, &[0, 9, 11, 13, 15].repeat(4)).unwrap();
        let own: Vec<_> = found
            .loads
            .iter()
            .map(|load| (load.address, load.own))
            .collect();
        assert_eq!(own, [(0x9028, true)]);
        assert_eq!((found.calls, found.naps), (vec![0], vec![0]));
    }

    /// Straight code is no loop; code that cannot be read is none of a loop either, and no panic.
    #[test]
    fn no_loop() {
        let code = [0x90; 32];
        assert_eq!(rounds_of(&code, &[0, 1, 2, 3, 4]), None);
        assert_eq!(rounds_of(&code, &[]), None);
        let found = rounds(&[Step::default(); 9], |_| Vec::new()).unwrap();
        assert_eq!(found.loads, []);
    }
}
