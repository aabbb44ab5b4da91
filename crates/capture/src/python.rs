//! Python's functions in stacks: what the kernel side (`bpf/python.h`) says of a function that it met,
//! and (in [`frames`]) the functions of a thread that waits, read from outside.

pub(crate) mod frames;
mod text;

use crate::function::{Function, Told};

/// The function that the kernel side has told.
pub(crate) fn told(told: &Told<'_>) -> Function {
    Function {
        line: told.line,
        name: text::decode(told.name_length, told.name_state, told.name),
        file: text::decode(told.file_length, told.file_state, told.file),
    }
}
