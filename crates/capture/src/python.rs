//! Python's functions in stacks: what the kernel side (`bpf/python.h`) says of a function that it met,
//! and, read from outside, the functions of a thread that waits
//! ([`frames`]), who has what it waits for ([`locks`]), and the tasks of asyncio that wait ([`tasks`]).

pub(crate) mod frames;
pub(crate) mod locks;
mod objects;
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

#[cfg(test)]
pub(crate) mod tests {
    //! Memory of a program that looks like that of CPython 3.11.

    use hangdog_symbols::memory::Memory;
    use std::collections::HashMap;

    use crate::session::skeleton::types::python_layout;

    /// Where the state of the interpreters is.
    pub(super) const STATE_OF_ALL: u64 = 0x1_0000;
    /// The longest name of a type.
    const NAME: usize = 32;

    /// Bytes by their addresses.
    #[derive(Default)]
    pub(super) struct Bytes(HashMap<u64, u8>);

    impl Bytes {
        pub(super) fn put(&mut self, address: u64, bytes: &[u8]) {
            self.0.extend((address..).zip(bytes.iter().copied()));
        }

        pub(super) fn put_word(&mut self, address: u64, value: u64) {
            self.put(address, &value.to_ne_bytes());
        }

        pub(super) fn words(&mut self, address: u64, values: &[u64]) {
            for (at, &value) in (address..).step_by(8).zip(values) {
                self.put_word(at, value);
            }
        }

        /// An object of a type with that name, and zeroes behind.
        pub(super) fn object(&mut self, address: u64, name: &str) {
            self.put(address, &[0; 256]);
            let kind = address + 0x4000;
            self.put_word(address + 8, kind);
            self.put_word(kind + 24, kind + 64);
            self.put(kind + 64, &[0; NAME]);
            self.put(kind + 64, name.as_bytes());
        }

        pub(super) fn text(&mut self, address: u64, text: &str) {
            self.object(address, "str");
            self.put_word(address + 16, text.len() as u64);
            self.put_word(address + 32, 1 << 2 | 1 << 5 | 1 << 6);
            self.put(address + 48, text.as_bytes());
        }

        /// A dictionary with one name, whose texts and value lie in it.
        pub(super) fn dictionary(&mut self, address: u64, name: &str, value: u64) {
            self.object(address, "dict");
            let keys = address + 0x800;
            self.words(address + 32, &[keys, 0]);
            self.words(
                keys,
                &[1, u64::from_ne_bytes([0, 3, 1, 0, 0, 0, 0, 0]), 4, 1],
            );
            self.words(keys + 40, &[keys + 0x200, value]);
            self.text(keys + 0x200, name);
        }

        pub(super) fn code(&mut self, address: u64, name: &str, file: &str) {
            self.object(address, "code");
            self.words(
                address + 112,
                &[address + 0x400, address + 0x600, address + 0x600],
            );
            self.text(address + 0x400, file);
            self.text(address + 0x600, name);
        }
    }

    impl Memory for Bytes {
        fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
            for (at, byte) in (address..).zip(into) {
                *byte = *self.0.get(&at)?;
            }
            Some(())
        }
    }

    /// Where 3.11 has what, as `bpf/python.h` says.
    pub(super) fn layout() -> python_layout {
        python_layout {
            key: 592,
            thread_head: 7,
            thread_id: 19,
            has_cframes: 1,
            cframe_frame: 1,
            cframe_previous: 2,
            frame_code: 4,
            frame_previous: 6,
            frame_entry: 68,
            entry_value: 1,
            entry_is_own: 0,
            late_line: 1,
            ascii_data: 48,
            compact_data: 72,
            interpreters: 40,
        }
    }
}
