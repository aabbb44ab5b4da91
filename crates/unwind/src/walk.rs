//! A walk up one stack, by the rules of its places.

use crate::rule::{GO_TASK, Kind, Rule};

/// What a walk needs of a thread's registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Registers {
    /// Instruction pointer (rip).
    pub ip: u64,
    /// Stack pointer (rsp).
    pub sp: u64,
    /// Frame pointer (rbp), whatever the code uses it for.
    pub fp: u64,
}

/// Why a walk ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// At the outermost frame.
    Root,
    /// At the most frames asked for; there are more.
    Depth,
    /// In code that no unwind information covers.
    NoRule,
    /// In code whose unwind information a rule cannot hold.
    Unsupported,
    /// At a word that is not there, or cannot be what the rule says: callers lie above, so a CFA
    /// at or below the stack pointer is none.
    Unreadable,
}

/// No code lies in the first page, so a return address in it is none.
const FIRST_PAGE: u64 = 4096;

/// Where the kernel's `ucontext` keeps rbp, in bytes.
pub(crate) const CONTEXT_FP: u64 = 120;
/// Where it keeps rsp.
pub(crate) const CONTEXT_SP: u64 = 160;
/// Where it keeps rip.
pub(crate) const CONTEXT_IP: u64 = 168;

/// Walks from `registers` outwards and pushes the addresses, innermost first: `registers.ip`, then
/// return addresses; at most `most`.
///
/// `rule` is asked for the rule at an address: the instruction pointer itself in the innermost
/// frame and in one that a signal interrupted, elsewhere one less than the return address, which
/// is in the call. `memory` reads the word at an address, if it is there.
///
/// Ends for any answers, for each frame takes one of `most`. A frame that a signal interrupted may
/// lie anywhere: handlers run on stacks of their own, and so do tasks.
pub fn walk(
    registers: Registers,
    rule: impl FnMut(u64) -> Rule,
    memory: impl FnMut(u64) -> Option<u64>,
    most: usize,
    addresses: &mut Vec<u64>,
) -> End {
    walk_with(registers, rule, memory, most, addresses, |_, _, _, _| ())
}

/// The same. `left` is told of each frame that is left, by its piece of the stack (from and to where
/// the stack pointer was) and the rule, and may put something else in place of its address, the last
/// of `addresses`.
pub fn walk_with(
    registers: Registers,
    mut rule: impl FnMut(u64) -> Rule,
    mut memory: impl FnMut(u64) -> Option<u64>,
    most: usize,
    addresses: &mut Vec<u64>,
    mut left: impl FnMut(u64, u64, Rule, &mut Vec<u64>),
) -> End {
    let mut registers = registers;
    let mut place = registers.ip;
    for _ in 0..most {
        addresses.push(registers.ip);
        let rule = rule(place);
        match rule.kind() {
            Kind::None => return End::NoRule,
            Kind::Unsupported => return End::Unsupported,
            Kind::End => return End::Root,
            // So the ABI marks the outermost frame.
            Kind::Fp if registers.fp == 0 => return End::Root,
            _ => {}
        }
        let Some(caller) = registers.caller(rule, &mut memory) else {
            return match rule.kind() {
                // It has parked none: so its own stack ends here.
                Kind::Task => End::Root,
                _ => End::Unreadable,
            };
        };
        left(registers.sp, caller.sp, rule, addresses);
        registers = caller;
        place = match rule.kind() {
            Kind::Signal => caller.ip,
            _ if caller.ip < FIRST_PAGE => return End::Root,
            _ => caller.ip - 1,
        };
    }
    End::Depth
}

impl Registers {
    /// Those that Go's runtime keeps for a goroutine that it has parked, whose description lies at `address` in
    /// `memory`; none where that does not look like one.
    pub fn of_goroutine(
        address: u64,
        mut memory: impl FnMut(u64) -> Option<u64>,
    ) -> Option<Registers> {
        let mut at = |offset| memory(address.wrapping_add(offset));
        (at(GO_TASK.own)? == address).then_some(())?;
        Some(Registers {
            ip: at(GO_TASK.ip)?,
            sp: at(GO_TASK.sp)?,
            fp: match at(GO_TASK.fp)? {
                0 => at(GO_TASK.newer_fp)?,
                fp => fp,
            },
        })
    }

    /// The registers in the calling frame, if `rule` leads to one and `memory` has what it says; a
    /// CFA at or below the stack pointer leads nowhere.
    pub fn caller(
        self,
        rule: Rule,
        mut memory: impl FnMut(u64) -> Option<u64>,
    ) -> Option<Registers> {
        let Registers { ip, sp, fp } = self;
        let words = 8 * u64::from(rule.cfa());
        let cfa = match rule.kind() {
            Kind::Signal => {
                let context = sp.wrapping_add(words);
                let mut at = |offset| memory(context.wrapping_add(offset));
                return Some(Registers {
                    fp: at(CONTEXT_FP)?,
                    sp: at(CONTEXT_SP)?,
                    ip: at(CONTEXT_IP)?,
                });
            }
            Kind::Task => {
                let task = memory(sp.wrapping_add(words))?;
                return Registers::of_goroutine(task, memory);
            }
            Kind::Sp => sp.wrapping_add(words),
            Kind::Fp => fp.wrapping_add(words),
            Kind::Realigned => memory(fp.wrapping_sub(words))?,
            Kind::Plt => {
                let pushed = ip & 15 >= u64::from(rule.cfa());
                sp.wrapping_add(if pushed { 16 } else { 8 })
            }
            Kind::Stored => {
                let (at, above) = rule.stored_at();
                let before = memory(sp.wrapping_add_signed(8 * at))?;
                before.wrapping_add(8 * u64::from(above))
            }
            Kind::None | Kind::End | Kind::Unsupported => return None,
        };
        if cfa <= sp {
            return None;
        }
        let fp = match (rule.kind(), rule.saved()) {
            (Kind::Realigned, _) => memory(fp)?,
            (_, 0) => fp,
            (_, saved) => memory(cfa.wrapping_sub(8 * u64::from(saved)))?,
        };
        let ip = memory(cfa.wrapping_sub(8))?;
        Some(Registers { ip, sp: cfa, fp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a scheduler's own stack a walk goes on in the task that the thread parked, on whose stack the callers may
    /// lie below; a word that points to no task ends it, as if there was none.
    #[test]
    fn goes_on_in_a_task() {
        const TASK: u64 = 0xc000_1000;
        const STACK: u64 = 0x9000;
        let walked = |own: u64, [older, newer]: [u64; 2]| {
            let memory = move |address: u64| {
                Some(match address {
                    0xf000 => TASK,
                    _ if address == TASK + 56 => STACK,
                    _ if address == TASK + 64 => 0x40_2001,
                    _ if address == TASK + 72 => own,
                    _ if address == TASK + 104 => older,
                    _ if address == TASK + 96 => newer,
                    _ if address == STACK + 0x20 => 0,
                    _ if address == STACK + 0x28 => 0x40_3001,
                    _ => return None,
                })
            };
            let rule = |ip: u64| match ip {
                0x40_1000 => Rule::TASK,
                _ => Rule::FRAME_POINTER,
            };
            let mut addresses = Vec::new();
            let registers = Registers {
                ip: 0x40_1000,
                sp: 0xf000,
                fp: 0,
            };
            let end = walk(registers, rule, memory, 9, &mut addresses);
            (addresses, end)
        };
        let through = vec![0x40_1000, 0x40_2001, 0x40_3001];
        for pointers in [[STACK + 0x20, 0], [0, STACK + 0x20]] {
            assert_eq!(walked(TASK, pointers), (through.clone(), End::Root));
        }
        assert_eq!(walked(TASK + 8, [0, 0]), (vec![0x40_1000], End::Root));
    }
}
