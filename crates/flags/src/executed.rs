//! What an instruction that was executed read and wrote: registers, flags and memory. With the
//! registers right before it, each address is known.

use iced_x86::{
    Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

use crate::registers::Step;

/// An instruction that was executed.
pub(crate) struct Executed {
    pub instruction: Instruction,
    /// Values that it makes and of what.
    pub reads: Vec<Register>,
    pub writes: Vec<Register>,
    pub reads_flags: bool,
    pub writes_flags: bool,
    /// Address and bytes.
    pub loads: Vec<(u64, u8)>,
    /// And whether it surely writes there.
    pub stores: Vec<(u64, u8, bool)>,
}

/// Whether two pieces of memory, each an address and bytes, have a byte in common. They may be anybody's numbers.
pub(crate) fn overlap((a, a_bytes): (u64, u8), (b, b_bytes): (u64, u8)) -> bool {
    a < b.saturating_add(b_bytes.into()) && b < a.saturating_add(a_bytes.into())
}

/// Whether only shared memory needs such an instruction.
pub(crate) fn is_atomic(instruction: &Instruction) -> bool {
    let has_memory =
        (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
    instruction.has_lock_prefix() || has_memory && instruction.mnemonic() == Mnemonic::Xchg
}

/// Works it out for an instruction with the registers right before it.
pub(crate) fn execute(
    factory: &mut InstructionInfoFactory,
    instruction: Instruction,
    step: &Step,
) -> Executed {
    let mut executed = Executed {
        instruction,
        reads: Vec::new(),
        writes: Vec::new(),
        reads_flags: instruction.rflags_read() != 0,
        writes_flags: instruction.rflags_modified() != 0,
        loads: Vec::new(),
        stores: Vec::new(),
    };
    if instruction.is_invalid() {
        return executed;
    }
    let info = factory.info(&instruction);
    let is_stack = instruction.is_stack_instruction();
    for used in info.used_registers() {
        let register = used.register().full_register();
        if register.is_segment_register() || is_stack && register == Register::RSP {
            continue;
        }
        if reads(used.access()) && !forms_address_only(&instruction, register) {
            executed.reads.push(register);
        }
        if writes(used.access()) {
            executed.writes.push(register);
        }
    }
    if instruction.code() == Code::Syscall {
        executed.writes.push(Register::RAX);
    }
    for memory in info.used_memory() {
        let Some((address, size)) = place_of(memory, step) else {
            continue;
        };
        if reads(memory.access()) {
            executed.loads.push((address, size));
        }
        if writes(memory.access()) {
            let surely = matches!(memory.access(), OpAccess::Write | OpAccess::ReadWrite);
            executed.stores.push((address, size, surely));
        }
    }
    executed
}

fn reads(access: OpAccess) -> bool {
    use OpAccess::{CondRead, Read, ReadCondWrite, ReadWrite};
    matches!(access, Read | CondRead | ReadWrite | ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// Whether a register only says where the memory is that an instruction uses.
fn forms_address_only(instruction: &Instruction, register: Register) -> bool {
    let forms = [instruction.memory_base(), instruction.memory_index()]
        .iter()
        .any(|part| part.full_register() == register);
    let is_operand = (0..instruction.op_count()).any(|op| {
        instruction.op_kind(op) == OpKind::Register
            && instruction.op_register(op).full_register() == register
    });
    forms && !is_operand && instruction.mnemonic() != Mnemonic::Lea
}

/// Where an instruction uses memory, and how many bytes; more than 8 are no flag.
fn place_of(memory: &UsedMemory, step: &Step) -> Option<(u64, u8)> {
    let address = memory.virtual_address(0, |register, _, _| {
        Some(match register {
            Register::FS => step.fs,
            Register::GS => step.gs,
            register if register.is_segment_register() => 0,
            Register::RIP => step.ip,
            register => {
                let full = register.full_register();
                let whole = step.general.get(full.number()).copied()?;
                match register.size() {
                    8 => whole,
                    4 => whole & 0xffff_ffff,
                    _ => return None,
                }
            }
        })
    })?;
    let size = memory.memory_size().size();
    (1..=8).contains(&size).then_some((address, size as u8))
}
