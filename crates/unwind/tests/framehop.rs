//! Every row of the tables of what this machine runs, against framehop: one step from each, over a
//! stack on which each word tells where it is.
//!
//! The two may differ only where one of them cannot know, and then in one of the ways that
//! [`explained`] lists.

#![cfg(target_arch = "x86_64")]

mod common;
#[path = "common/reference.rs"]
mod reference;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hangdog_unwind::{Kind, Registers, Rule, Table};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSegment};
use reference::{Reference, Said};

/// Where the file is loaded.
const BASE: u64 = 0x5555_0000_0000;
/// The stack pointer; the frame pointer is above.
const SP: u64 = 0x7ffc_0000_0000;
const FP: u64 = SP + 0x1_0000;

/// Each word differs, is an address above the stack and fits a return address.
fn word(address: u64) -> u64 {
    0x7ffd_0000_0000 + (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) * 8
}

fn memory(address: u64) -> Option<u64> {
    Some(word(address))
}

/// Why the two differ, if that is known.
fn explained(rule: Rule, at: Registers, first: Said, later: Said) -> Option<&'static str> {
    let by = |rule: Rule| at.caller(rule, memory).map_or(Said::Failed, Said::Caller);
    let by_frame_pointer = first == by(Rule::FRAME_POINTER) && later == first;
    // framehop guesses where no FDE is: that the innermost frame has none, the others frame
    // pointers. A rule of its own would not depend on that.
    let nothing = at
        .caller(Rule::new(Kind::Sp, 1, 0)?, memory)
        .map(Said::Caller);
    match rule.kind() {
        Kind::None if Some(first) == nothing && later == by(Rule::FRAME_POINTER) => {
            Some("both: nothing covers it")
        }
        Kind::Signal | Kind::Realigned | Kind::Stored if by_frame_pointer => {
            Some("framehop evaluates no dereference, and guesses by frame pointer")
        }
        Kind::Unsupported if by_frame_pointer => {
            Some("both: unsupported; framehop guesses by frame pointer")
        }
        // Such as a return address in a register (vfork; framehop takes what lies below the CFA
        // for it), a frame of half a megabyte, one of 45 bytes, the caller's frame pointer at *fp
        // beside a CFA by sp.
        Kind::Unsupported => Some("we say unsupported, framehop has an answer"),
        _ => None,
    }
}

/// Compares one file. Counts each outcome.
fn compare(path: &Path, outcomes: &mut BTreeMap<&'static str, u64>) {
    let bytes = fs::read(path).expect("the file");
    let table = Table::from_elf(&bytes).expect("a table");
    let elf: ElfFile64 = ElfFile64::parse(&*bytes).expect("an ELF file");
    let loaded: Vec<(u64, u64, u64)> = elf
        .segments()
        .map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        })
        .collect();
    let size = elf.segments().map(|s| s.address() + s.size()).max();
    let mut reference = Reference::default();
    reference.add(&bytes, BASE, size.expect("segments"));

    let rows = table.rows();
    for (row, next) in rows.iter().zip(&rows[1..]) {
        let (start, end) = (u64::from(row.pc), u64::from(next.pc));
        let mut places = vec![start, start + (end - start) / 2, end - 1];
        places.dedup();
        for place in places {
            let Some((offset, _, address)) = loaded
                .iter()
                .find(|(offset, size, _)| (*offset..offset + size).contains(&place))
            else {
                continue;
            };
            let ip = BASE + place - offset + address;
            let at = Registers { ip, sp: SP, fp: FP };
            let first = reference.caller(at, true, memory);
            // The same place, as that of a call one byte before its return address.
            let after = Registers { ip: ip + 1, ..at };
            let later = reference.caller(after, false, memory);
            let rule = table.rule(place);
            let ours = |at: Registers| match rule.kind() {
                Kind::End => Some(Said::Root),
                _ => at.caller(rule, memory).map(Said::Caller),
            };
            let outcome = if ours(at) == Some(first) && ours(after) == Some(later) {
                "equal"
            } else {
                explained(rule, at, first, later).unwrap_or_else(|| {
                    println!("{path:?} {place:#x} {rule:?}: framehop {first:x?}, {later:x?}");
                    "unexplained"
                })
            };
            *outcomes.entry(outcome).or_default() += 1;
        }
    }
}

/// At least 99.5 % of what is covered is stepped from as framehop does; every difference is one of
/// those listed.
#[test]
fn every_row_leads_where_framehop_goes() {
    let libraries = Path::new("/usr/lib/x86_64-linux-gnu");
    let mut paths: Vec<_> = [
        "/bin/bash",
        "/usr/bin/python3",
        "/usr/bin/gcc",
        "/lib64/ld-linux-x86-64.so.2",
    ]
    .map(Into::into)
    .into();
    let names = [
        "libc.so.6",
        "libm.so.6",
        "libstdc++.so.6",
        "libcrypto.so.3",
        "libglib-2.0.so.0",
    ];
    paths.extend(names.map(|name| libraries.join(name)));
    paths.retain(|path| path.exists());
    assert!(paths.len() >= 3, "{paths:?}");

    let mut outcomes = BTreeMap::new();
    for path in &paths {
        compare(path, &mut outcomes);
    }
    println!("{paths:?}");
    for (outcome, places) in &outcomes {
        println!("{places:8} {outcome}");
    }
    let of = |outcome| outcomes.get(outcome).copied().unwrap_or(0);
    let covered = outcomes.values().sum::<u64>() - of("both: nothing covers it");
    assert_eq!(of("unexplained"), 0);
    assert!(of("equal") * 1000 >= covered * 995, "{outcomes:?}");
}
