//! Assembly whose directives say what the rules must be: each expectation is read off the source.

#![cfg(target_arch = "x86_64")]

mod common;

use common::{Built, build};
use hangdog_unwind::{Error, Kind, Rule, Table};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSegment, ObjectSymbol};

const BARE: &[&str] = &[
    "-nostdlib",
    "-static",
    "-Wl,--build-id=none",
    "-z",
    "noexecstack",
];

fn assemble(source: &str) -> (Built, Table) {
    let text = format!(".text\n.globl _start\n_start: .zero 16, 0x90\n{source}");
    let built = build("source.s", &text, BARE);
    let table = Table::from_elf(&built.bytes).expect("a table");
    for pair in table.rows().windows(2) {
        assert!(pair[0].pc < pair[1].pc, "sorted: {pair:x?}");
        assert_ne!(pair[0].rule, pair[1].rule, "no row without need");
    }
    (built, table)
}

fn rule(kind: Kind, cfa: u16, saved: u16) -> Rule {
    Rule::new(kind, cfa, saved).expect("small enough")
}

/// Offsets of the stack and the frame pointer become words; a state comes back as remembered; what
/// is between two functions, before the first and after the last is covered by nothing.
#[test]
fn a_function_with_a_frame() {
    let (built, table) = assemble(
        "
        f:  .cfi_startproc
            .zero 4, 0x90
        f1: .cfi_def_cfa_offset 16
            .cfi_offset rbp, -16
            .zero 4, 0x90
        f2: .cfi_def_cfa_register rbp
            .zero 4, 0x90
        f3: .cfi_remember_state
            .cfi_def_cfa rsp, 8
            .cfi_restore rbp
            .zero 1, 0x90
        f4: .cfi_restore_state
            .zero 4, 0x90
            .cfi_endproc
        f5: .zero 16, 0x90
        g:  .cfi_startproc
            .zero 8, 0x90
        g1: .cfi_def_cfa_offset 4104
            .cfi_offset rbp, -32
            .zero 8, 0x90
            .cfi_endproc
        g2: .zero 8, 0x90
        ",
    );
    let at = |symbol| table.rule(built.offset(symbol));
    assert_eq!(at("_start"), Rule::NONE);
    assert_eq!(at("f"), rule(Kind::Sp, 1, 0));
    assert_eq!(table.rule(built.offset("f1") - 1), rule(Kind::Sp, 1, 0));
    assert_eq!(at("f1"), rule(Kind::Sp, 2, 2));
    assert_eq!(at("f2"), Rule::FRAME_POINTER);
    assert_eq!(at("f3"), rule(Kind::Sp, 1, 0));
    assert_eq!(at("f4"), rule(Kind::Fp, 2, 2));
    assert_eq!(at("f5"), Rule::NONE);
    assert_eq!(table.rule(built.offset("g") - 1), Rule::NONE);
    assert_eq!(at("g"), rule(Kind::Sp, 1, 0));
    assert_eq!(at("g1"), rule(Kind::Sp, 513, 4));
    assert_eq!(at("g2"), Rule::NONE);
    let places = ["f", "f1", "f2", "f3", "f4", "f5", "g", "g1", "g2"];
    let places: Vec<u64> = places.iter().map(|place| built.offset(place)).collect();
    let rows: Vec<u64> = table.rows().iter().map(|row| row.pc.into()).collect();
    assert_eq!(rows, places, "one row for each change and none besides");
    assert_eq!(table.skipped(), 0);
}

/// Directives that change nothing that a walk needs make no row: rbx is none of its registers.
#[test]
fn what_changes_no_rule_makes_no_row() {
    let (built, table) = assemble(
        "
        f:  .cfi_startproc
            .zero 4, 0x90
            .cfi_offset rbx, -16
            .zero 4, 0x90
            .cfi_def_cfa_offset 8
            .zero 4, 0x90
            .cfi_endproc
        g:  .cfi_startproc
            .zero 4, 0x90
            .cfi_endproc
        end: .zero 4, 0x90
        ",
    );
    let rows: Vec<(u64, Rule)> = table
        .rows()
        .iter()
        .map(|row| (row.pc.into(), row.rule))
        .collect();
    let expected = [
        (built.offset("f"), rule(Kind::Sp, 1, 0)),
        (built.offset("end"), Rule::NONE),
    ];
    assert_eq!(rows, expected);
}

/// A return address that is declared undefined is the stack's end.
#[test]
fn the_outermost_frame() {
    let (built, table) = assemble(
        "
        f:  .cfi_startproc
            .cfi_undefined rip
            .zero 8, 0x90
            .cfi_endproc
        ",
    );
    assert_eq!(table.rule(built.offset("f")), Rule::END);
}

/// What 32 bits cannot hold is marked: another register, half words, a return address elsewhere, a
/// frame pointer in a register, offsets beyond 16 and 12 bits. The largest that fit do fit.
#[test]
fn what_does_not_fit() {
    let (built, table) = assemble(
        "
        f:  .cfi_startproc
            .cfi_def_cfa r10, 0
            .zero 1, 0x90
        f1: .cfi_def_cfa rsp, 12
            .zero 1, 0x90
        f2: .cfi_def_cfa rsp, -8
            .zero 1, 0x90
        f3: .cfi_def_cfa rsp, 8
            .cfi_offset rip, -16
            .zero 1, 0x90
        f4: .cfi_offset rip, -8
            .cfi_register rbp, rax
            .zero 1, 0x90
        f5: .cfi_same_value rbp
            .cfi_def_cfa_offset 65535 * 8
            .zero 1, 0x90
        f6: .cfi_def_cfa_offset 65536 * 8
            .zero 1, 0x90
        f7: .cfi_def_cfa_offset 8
            .cfi_offset rbp, -4095 * 8
            .zero 1, 0x90
        f8: .cfi_offset rbp, -4096 * 8
            .zero 1, 0x90
        f9: .cfi_offset rbp, 0
            .zero 1, 0x90
            .cfi_endproc
        ",
    );
    let at = |symbol| table.rule(built.offset(symbol));
    for symbol in ["f", "f1", "f2", "f3", "f4", "f6", "f8", "f9"] {
        assert_eq!(at(symbol), Rule::UNSUPPORTED, "{symbol}");
    }
    assert_eq!(at("f5"), rule(Kind::Sp, 65535, 0));
    assert_eq!(at("f7"), rule(Kind::Sp, 1, 4095));
}

/// What gcc writes for a function that realigns its stack: the CFA in a slot below the frame
/// pointer (`DW_CFA_def_cfa_expression: breg6 -8; deref`, also -24), the caller's frame pointer at
/// it (`DW_CFA_expression: r6, breg6 0`). Any other offset of the latter is another thing.
#[test]
fn a_realigned_stack() {
    let (built, table) = assemble(
        "
        f:  .cfi_startproc
            .cfi_escape 0x10, 6, 2, 0x76, 0
            .cfi_escape 0x0f, 3, 0x76, 0x78, 6
            .zero 8, 0x90
        f1: .cfi_escape 0x0f, 3, 0x76, 0x68, 6
            .zero 8, 0x90
        f2: .cfi_escape 0x10, 6, 2, 0x76, 8
            .zero 8, 0x90
            .cfi_endproc
        ",
    );
    let at = |symbol| table.rule(built.offset(symbol));
    assert_eq!(at("f"), rule(Kind::Realigned, 1, 0));
    assert_eq!(at("f1"), rule(Kind::Realigned, 3, 0));
    assert_eq!(at("f2"), Rule::UNSUPPORTED);
}

/// What OpenSSL's assembly writes where it has aligned its stack: the previous stack pointer lies at
/// rsp + 1152 (or in the red zone, at rsp - 8), and the CFA is 8 or 56 bytes above it
/// (`DW_CFA_def_cfa_expression: breg7 OFFSET; deref; plus_uconst ADDEND`). More does not fit.
#[test]
fn an_aligned_stack_that_stores_the_pointer() {
    let (built, table) = assemble(
        "
        f:  .cfi_startproc
            .cfi_offset rbp, -16
            .cfi_escape 0x0f, 6, 0x77, 0x80, 9, 6, 0x23, 8
            .zero 8, 0x90
        f1: .cfi_escape 0x0f, 5, 0x77, 0x78, 6, 0x23, 56
            .zero 8, 0x90
        f2: .cfi_escape 0x0f, 5, 0x77, 0x7c, 6, 0x23, 8
            .zero 8, 0x90
        f3: .cfi_escape 0x0f, 6, 0x77, 0x78, 6, 0x23, 0x80, 1
            .zero 8, 0x90
            .cfi_endproc
        ",
    );
    let at = |symbol| table.rule(built.offset(symbol));
    assert_eq!(at("f"), Rule::stored(144, 1, 2).expect("small enough"));
    assert_eq!(at("f1"), Rule::stored(-1, 7, 2).expect("small enough"));
    // Half a word, and 16 words above.
    assert_eq!(at("f2"), Rule::UNSUPPORTED);
    assert_eq!(at("f3"), Rule::UNSUPPORTED);
    assert_eq!(at("f1").stored_at(), (-1, 7));
}

/// A signal's frame is one by its mark, its expressions and their distances together: rsp, rbp and
/// rip at 160, 120 and 168 bytes from where the context begins, here 16 bytes up, then elsewhere.
#[test]
fn a_signal_frame() {
    let source = |ip: &str| {
        format!(
            "
            f:  .cfi_startproc
                .cfi_signal_frame
                .cfi_escape 0x0f, 4, 0x77, 0xb0, 1, 6
                .cfi_escape 0x10, 6, 3, 0x77, 0x88, 1
                .cfi_escape 0x10, 16, 3, 0x77, {ip}, 1
                .zero 8, 0x90
                .cfi_endproc
            "
        )
    };
    let (built, table) = assemble(&source("0xb8"));
    assert_eq!(table.rule(built.offset("f")), rule(Kind::Signal, 2, 0));
    let (built, table) = assemble(&source("0xb0"));
    assert_eq!(table.rule(built.offset("f")), Rule::UNSUPPORTED);
    let (built, table) = assemble(&source("0xb8").replace(".cfi_signal_frame", ""));
    assert_eq!(table.rule(built.offset("f")), Rule::UNSUPPORTED);
}

/// Lazy binding: the linker's table begins with an entry of 16 bytes that pushes at its sixth byte
/// and has one word on the stack before; each further one pushes in its first eleven bytes.
#[test]
fn a_procedure_linkage_table() {
    let built = build(
        "source.c",
        "int other(void); int f(void) { return other() + 1; }",
        &[
            "-shared",
            "-fPIC",
            "-O1",
            "-fcf-protection=none",
            "-Wl,-z,lazy",
            "-nostdlib",
        ],
    );
    let table = Table::from_elf(&built.bytes).expect("a table");
    let plt = built.section(".plt");
    assert_eq!(table.rule(plt), rule(Kind::Sp, 2, 0));
    assert_eq!(table.rule(plt + 5), rule(Kind::Sp, 2, 0));
    assert_eq!(table.rule(plt + 6), rule(Kind::Sp, 3, 0));
    assert_eq!(table.rule(plt + 16), rule(Kind::Plt, 11, 0));
    assert_eq!(table.rule(plt + 31), rule(Kind::Plt, 11, 0));
}

/// Where FDEs overlap, one ends where the next begins, wherever in the section they are; the rest
/// of the first is covered by nothing. Of two with one start the first in the section holds.
#[test]
fn overlapping_functions() {
    // By hand, for no assembler writes such: one CIE, FDEs with addresses of 8 bytes.
    let (built, table) = assemble(
        "
        f:  .zero 8, 0x90
        g:  .zero 8, 0x90
        h:  .zero 16, 0x90
        end:
            .section .eh_frame, \"a\", @progbits
        cie: .long 1f - 0f
        0:  .long 0
            .byte 1, 0
            .uleb128 1
            .sleb128 -8
            .byte 16
            .byte 0x0c, 7, 8        # CFA = rsp + 8
            .byte 0x90, 1           # rip at CFA - 8
            .balign 8
        1:  .macro fde start, end, offset
            .long 3f - 2f
        2:  .long 2b - cie
            .quad \\start, \\end - \\start
            .byte 0x0e, \\offset    # CFA = rsp + offset
            .byte 0x4c, 0x0e, 64    # 12 bytes on: CFA = rsp + 64
            .balign 8
        3:
            .endm
            fde g, h, 24
            fde f, end, 16
            fde g, end, 32
            .long 0
        ",
    );
    let at = |symbol| table.rule(built.offset(symbol));
    assert_eq!(at("f"), rule(Kind::Sp, 2, 0));
    assert_eq!(at("g"), rule(Kind::Sp, 3, 0));
    assert_eq!(at("h"), Rule::NONE);
    assert_eq!(table.skipped(), 1);
}

/// A damaged FDE leaves a gap, and is counted; those around it hold. Here it pops a state that
/// nothing pushed, after a good row of its own.
#[test]
fn a_damaged_function() {
    let (built, table) = assemble(
        "
        f:  .cfi_startproc
            .zero 8, 0x90
            .cfi_endproc
        g:  .cfi_startproc
            .zero 4, 0x90
            .cfi_def_cfa_offset 24
            .zero 4, 0x90
            .cfi_escape 0x0b
            .cfi_endproc
        h:  .cfi_startproc
            .zero 8, 0x90
            .cfi_endproc
        ",
    );
    let at = |symbol| table.rule(built.offset(symbol));
    assert_eq!(at("f"), rule(Kind::Sp, 1, 0));
    assert_eq!(at("g"), Rule::NONE);
    assert_eq!(table.rule(built.offset("h") - 1), Rule::NONE);
    assert_eq!(at("h"), rule(Kind::Sp, 1, 0));
    assert_eq!(table.skipped(), 1);
}

const FRAME: &str = "
    f:  .cfi_startproc
        .zero 8, 0x90
        .cfi_def_cfa_offset 40
        .zero 8, 0x90
        .cfi_endproc
";

/// `.debug_frame` serves where there is no `.eh_frame`.
#[test]
fn the_debugger_s_section() {
    let (built, table) = assemble(&format!(".cfi_sections .debug_frame\n{FRAME}"));
    assert_eq!(table.rule(built.offset("f")), rule(Kind::Sp, 1, 0));
    assert_eq!(table.rule(built.offset("f") + 8), rule(Kind::Sp, 5, 0));
}

/// Files without section headers are found by what the loader uses.
#[test]
fn without_section_headers() {
    let text = format!(".text\n.globl _start\n_start: .zero 16, 0x90\n{FRAME}");
    let arguments = [BARE, &["-Wl,--eh-frame-hdr"]].concat();
    let built = build("source.s", &text, &arguments);
    let mut bytes = built.bytes.clone();
    bytes[0x28..0x30].fill(0); // e_shoff
    bytes[0x3c..0x40].fill(0); // e_shnum, e_shstrndx
    let table = Table::from_elf(&bytes).expect("a table");
    assert_eq!(table.rule(built.offset("f") + 8), rule(Kind::Sp, 5, 0));
    let same = Table::from_elf(&built.bytes).expect("a table");
    assert_eq!(table.rows(), same.rows());
}

/// In memory, places are offsets from where the image begins, wherever in the file they were: here
/// the code is loaded a page further than it lies in the file.
#[test]
fn an_image() {
    let text = format!(".text\n.globl start\nstart: .zero 16, 0x90\n{FRAME}");
    let text = text.replace("f:", ".globl f\nf:");
    let arguments = [
        "-nostdlib",
        "-shared",
        "-z",
        "noseparate-code",
        "-Wl,--section-start=.text=0x5100",
    ];
    let built = build("source.s", &text, &arguments);
    let elf: ElfFile64 = ElfFile64::parse(&*built.bytes).expect("an ELF file");
    let mut image = vec![0; 0x10000];
    for segment in elf.segments() {
        let (at, data) = (
            segment.address() as usize,
            segment.data().expect("it is in the file"),
        );
        image[at..at + data.len()].copy_from_slice(data);
    }
    let f = elf.symbol_by_name("f").expect("it is there").address();
    assert_ne!(f, built.offset("f"));
    let table = Table::from_image(&image).expect("a table");
    assert_eq!(table.rule(f - 1), Rule::NONE);
    assert_eq!(table.rule(f), rule(Kind::Sp, 1, 0));
    assert_eq!(table.rule(f + 8), rule(Kind::Sp, 5, 0));
    assert_eq!(table.rule(f + 16), Rule::NONE);
}

/// The file's name gives what its bytes give.
#[test]
fn a_file_and_its_bytes() {
    let (built, table) = assemble(FRAME);
    let file = Table::from_file(&built.path).expect("a table");
    assert_eq!(file.rows(), table.rows());
}

/// Each kind of refusal is distinguished.
#[test]
fn what_gives_no_table() {
    let (built, _) = assemble(FRAME);
    let with = |at: usize, byte: u8| {
        let mut bytes = built.bytes.clone();
        bytes[at] = byte;
        Table::from_elf(&bytes).expect_err("no table")
    };
    assert!(matches!(with(0, 0), Error::NotElf(_)));
    assert!(
        matches!(
            with(4, 1),
            Error::Machine {
                class: 1,
                machine: 62,
                ..
            }
        ),
        "32 bits"
    );
    assert!(
        matches!(
            with(18, 183),
            Error::Machine {
                class: 2,
                machine: 183,
                ..
            }
        ),
        "arm64"
    );
    assert!(matches!(
        Table::from_elf(&built.bytes[..30]),
        Err(Error::NotElf(_))
    ));
    let bare = build("source.s", ".globl _start\n_start: nop", BARE);
    assert!(matches!(
        Table::from_elf(&bare.bytes),
        Err(Error::NoInformation)
    ));
    assert!(matches!(
        Table::from_file("/dev/zero".as_ref()),
        Err(Error::Read(_))
    ));
    assert!(matches!(
        Table::from_file("/nowhere".as_ref()),
        Err(Error::Read(_))
    ));
}
