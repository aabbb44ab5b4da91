//! Where functions lie, by their FDEs: each expectation is read off the source.

#![cfg(target_arch = "x86_64")]

mod common;

use common::{Built, build};
use hangdog_unwind::{Error, Functions};

const SOURCE: &str = "
    .text
    .globl _start
    _start: .zero 16, 0x90
    g:  .cfi_startproc
        .zero 8, 0x90
    g1: .cfi_def_cfa_offset 16
        .zero 8, 0x90
        .cfi_endproc
    h:  .cfi_startproc
        .cfi_escape 0x0b
        .zero 4, 0x90
        .cfi_endproc
    h1: .zero 16, 0x90
    .section .text.unlikely, \"ax\"
    f:  .cfi_startproc
        .zero 4, 0x90
        .cfi_endproc
    f1: .zero 4, 0x90
";

fn assemble(source: &str) -> Built {
    let bare = [
        "-nostdlib",
        "-static",
        "-Wl,--build-id=none",
        "-Wl,-z,noexecstack",
    ];
    build("source.s", source, &bare)
}

fn check(built: &Built) {
    let at = |symbol| built.offset(symbol);
    for functions in [
        Functions::from_elf(&built.bytes),
        Functions::from_file(&built.path),
    ] {
        let functions = functions.expect("functions");
        for (start, end) in [("f", "f1"), ("g", "h"), ("h", "h1")] {
            let function = Some((at(start), at(end)));
            for offset in at(start)..at(end) {
                assert_eq!(functions.find(offset), function, "{start}");
            }
        }
        let outside = [0, at("_start"), at("g") - 1, at("f1"), at("h1"), u64::MAX];
        for offset in outside {
            assert_eq!(functions.find(offset), None, "{offset:#x}");
        }
    }
}

/// Every place of a function leads to its start and end, in whatever order the FDEs are, also where
/// what the FDE says is damaged (h restores a state that nobody remembered); what is between two
/// functions, before the first and after the last is no function's.
#[test]
fn places_of_functions() {
    check(&assemble(SOURCE));
}

/// `.debug_frame` serves where there is no `.eh_frame`.
#[test]
fn of_debug_information() {
    check(&assemble(&format!(".cfi_sections .debug_frame\n{SOURCE}")));
}

/// A function that reaches into the next ends where that begins.
#[test]
fn overlapping_functions() {
    let built = assemble(
        "
        .text
        .globl _start
        _start: .cfi_startproc
            .zero 8, 0x90
        inner: .zero 4, 0x90
        behind: .zero 4, 0x90
            .cfi_endproc
        .section .eh_frame, \"a\", @progbits
        cie: .long cie_end - . - 4
            .long 0
            .byte 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1
            .balign 4
        cie_end:
        fde: .long fde_end - . - 4
            .long . - cie
            .quad inner, 4
        fde_end:
        ",
    );
    let (start, inner, behind) = (
        built.offset("_start"),
        built.offset("inner"),
        built.offset("behind"),
    );
    let functions = Functions::from_elf(&built.bytes).expect("functions");
    assert_eq!(functions.find(inner - 1), Some((start, inner)));
    assert_eq!(functions.find(behind - 1), Some((inner, behind)));
    assert_eq!(functions.find(behind), None);
}

/// A file whose code nothing describes has no functions, and says so.
#[test]
fn no_information() {
    let built = assemble(".text\n.globl _start\n_start: nop\n");
    let functions = Functions::from_elf(&built.bytes);
    assert!(matches!(functions, Err(Error::NoInformation)));
}
