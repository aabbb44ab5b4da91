//! Any bytes, taken for an ELF file: no panic, no endless loop, no memory without bound, and a
//! table and functions that keep their word.

use hangdog_unwind::{Functions, Registers, Rule, Table, walk};

const DEPTH: usize = 127;

/// Takes the bytes for a file and for an image in memory.
pub fn any_file(bytes: &[u8]) {
    for table in [Table::from_elf(bytes), Table::from_image(bytes)] {
        let Ok(table) = table else { continue };
        check(&table, bytes);
    }
    if let Ok(functions) = Functions::from_elf(bytes) {
        check_functions(&functions, bytes.len() as u64);
    }
}

/// They lie in the file, have a byte at least, and all bytes of one lead to it.
fn check_functions(functions: &Functions, size: u64) {
    assert_eq!(functions.find(size), None);
    for offset in 0..size {
        if let Some((start, end)) = functions.find(offset) {
            assert!((start..end).contains(&offset) && end <= size);
            assert_eq!(functions.find(start), Some((start, end)));
            assert_eq!(functions.find(end - 1), Some((start, end)));
        }
    }
}

fn check(table: &Table, bytes: &[u8]) {
    let rows = table.rows();
    assert!(
        rows.len() <= bytes.len(),
        "each row is worth a byte at least"
    );
    assert_ne!(rows[0].rule, Rule::NONE);
    for pair in rows.windows(2) {
        assert!(pair[0].pc < pair[1].pc);
        assert_ne!(pair[0].rule, pair[1].rule);
    }
    for row in rows {
        assert_eq!(table.rule(row.pc.into()), row.rule);
    }
    assert_eq!(table.rule(u64::MAX), rows[rows.len() - 1].rule);
    for offset in [0, 1, u64::from(u32::MAX), u64::from(u32::MAX) + 1] {
        table.rule(offset);
    }

    // The bytes are the stack too, from some address on that they choose.
    let word = |at: u64| {
        let at = usize::try_from(at).ok()?;
        let bytes = bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let start = word(bytes.len() as u64 - 8).unwrap_or(0);
    let memory = |address: u64| word(address.wrapping_sub(start));
    let mut addresses = Vec::new();
    for row in rows.iter().take(64) {
        let registers = Registers {
            ip: row.pc.into(),
            sp: start,
            fp: start.wrapping_add(64),
        };
        addresses.clear();
        walk(
            registers,
            |at| table.rule(at),
            memory,
            DEPTH,
            &mut addresses,
        );
        assert!((1..=DEPTH).contains(&addresses.len()));
    }
}
