//! Objects of CPython 3.11: what a dictionary or an instance has by a name.

use hangdog_symbols::memory::Memory;

use super::frames::read_text;
use crate::session::skeleton::types::python_layout;

/// The most names of a module or a class.
const MOST_NAMES: u64 = 4096;
/// The longest name that is looked for.
const NAME: usize = 32;
/// A text shows its length there.
const TEXT_LENGTH: u64 = 16;
/// In front of an instance: its attributes' values, or the dictionary that has them.
const VALUES: u64 = 32;
const DICTIONARY: u64 = 24;
/// In a class: the names of its instances' attributes.
const CLASS_NAMES: u64 = 872;
/// The kind of a table whose entries have a hash each.
const WITH_HASHES: u8 = 0;

/// What a dictionary has by a name.
pub(super) fn named(
    memory: &impl Memory,
    layout: &python_layout,
    dictionary: u64,
    name: &str,
) -> Option<u64> {
    let [keys, values] = memory.words_at(dictionary.wrapping_add(32))?;
    let (at, value) = find(memory, layout, keys, name)?;
    match values {
        0 => Some(value),
        values => memory.word(values.wrapping_add(8 * at)),
    }
}

/// An attribute of an instance of a class that is written in Python.
pub(super) fn attribute(
    memory: &impl Memory,
    layout: &python_layout,
    object: u64,
    name: &str,
) -> Option<u64> {
    let values = memory.word(object.wrapping_sub(VALUES))?;
    if values == 0 {
        let dictionary = memory.word(object.wrapping_sub(DICTIONARY))?;
        return named(memory, layout, dictionary, name);
    }
    let class = memory.word(object.wrapping_add(8))?;
    let keys = memory.word(class.wrapping_add(CLASS_NAMES))?;
    let (at, _) = find(memory, layout, keys, name)?;
    memory.word(values.wrapping_add(8 * at))
}

/// A whole number of at most 30 bits.
pub(super) fn small_number(memory: &impl Memory, object: u64) -> Option<u32> {
    let [digits, number] = memory.words_at(object.wrapping_add(16))?;
    (digits == 1).then_some(number as u32)
}

/// Where in a table of names one is, and the value beside it.
fn find(memory: &impl Memory, layout: &python_layout, keys: u64, name: &str) -> Option<(u64, u64)> {
    let [_, shape, _, count] = memory.words_at(keys)?;
    let [_, index_bytes, kind, ..] = shape.to_ne_bytes();
    if count > MOST_NAMES || index_bytes > 32 {
        return None;
    }
    let entries = keys.wrapping_add(32 + (1 << index_bytes));
    let (size, at_key) = match kind {
        WITH_HASHES => (24, 8),
        _ => (16, 0),
    };
    for nth in 0..count {
        let entry = entries.wrapping_add(nth * size + at_key);
        let [key, value] = memory.words_at(entry)?;
        let length = || memory.word(key.wrapping_add(TEXT_LENGTH));
        if key != 0
            && length() == Some(name.len() as u64)
            && read_text(memory, layout, key, NAME) == name
        {
            return Some((nth, value));
        }
    }
    None
}
