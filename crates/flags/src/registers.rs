//! What a thread's registers held before an instruction.

use serde::{Deserialize, Serialize};

/// A thread right before an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// General registers, in the order of their encoding: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8-r15.
    pub general: [u64; 16],
    /// The instruction.
    pub ip: u64,
    /// rflags.
    pub flags: u64,
    /// Where fs begins: what is the thread's own.
    pub fs: u64,
    /// Where gs begins.
    pub gs: u64,
}

/// The number of rsp among the general registers.
pub(crate) const SP: usize = 4;

impl Step {
    /// The stack pointer.
    pub fn sp(&self) -> u64 {
        self.general[SP]
    }
}
