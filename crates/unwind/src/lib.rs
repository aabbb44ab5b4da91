//! How to get from a stack frame to its caller, when nothing keeps frame pointers.
//!
//! Compilers describe it in `.eh_frame`, as a program for a small machine. Here that program is run
//! once, when a file is first seen: [`Table`] holds what it says for every address of the file, as
//! rows of a place and a [`Rule`] of 32 bits. So little suffices for x86-64 because a walk needs
//! only three registers (instruction, stack and frame pointer), and because compilers use few of
//! the forms that the machine offers; what does not fit is marked, never guessed.
//!
//! The same rows serve the kernel side (`bpf/unwind.h`) and [`walk`], for copied stacks. Where a
//! file's functions lie, [`Functions`] tells: nothing else does in stripped code.

mod cfi;
mod elf;
mod error;
mod functions;
mod rule;
mod sections;
mod table;
mod walk;

pub use error::{Error, Result};
pub use functions::Functions;
pub use rule::{Kind, Row, Rule};
pub use table::Table;
pub use walk::{End, Registers, walk, walk_with};
