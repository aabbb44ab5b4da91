//! Python's functions in stacks: what the kernel side (`bpf/python.h`) says of a function that it met,
//! and, read from outside, the functions of a thread that waits ([`frames`]) and the tasks of asyncio that wait ([`tasks`]).

pub(crate) mod frames;
pub(crate) mod tasks;
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
