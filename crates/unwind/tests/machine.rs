//! Tables of what this machine runs, this very process among it.

#![cfg(target_arch = "x86_64")]

mod common;

use std::fs;

use common::{Mapping, build, mappings};
use hangdog_unwind::{Kind, Rule, Table};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};

fn mapping_of(address: u64) -> Mapping {
    mappings("self")
        .into_iter()
        .find(|mapping| (mapping.start..mapping.end).contains(&address))
        .expect("it is mapped")
}

/// Where libc has signal handlers return to, as the kernel was told, all registers are in the
/// context: the handler's return took one word off the stack, and the context is what is left.
#[test]
fn where_handlers_return_to() {
    extern "C" fn handler(_: libc::c_int) {}
    // The kernel's own form: handler, flags, restorer, mask.
    let mut kernel = [0u64; 4];
    // SAFETY: the handler does nothing; `kernel` has the size that the kernel writes for a signal
    // set of 8 bytes.
    let failed = unsafe {
        let handler: extern "C" fn(libc::c_int) = handler;
        libc::signal(libc::SIGUSR2, handler as libc::sighandler_t);
        libc::syscall(
            libc::SYS_rt_sigaction,
            libc::SIGUSR2,
            std::ptr::null::<u64>(),
            kernel.as_mut_ptr(),
            8,
        )
    };
    assert_eq!(failed, 0);
    let restorer = kernel[2];
    let mapping = mapping_of(restorer);
    let table = Table::from_file(mapping.path.as_ref()).expect("a table");
    let rule = table.rule(restorer - mapping.start + mapping.offset);
    assert_eq!(rule, Rule::new(Kind::Signal, 0, 0).expect("small enough"));
}

/// The vdso's functions begin with the return address on top; and all its rows are in it.
#[test]
fn vdso() {
    let mapping = mappings("self")
        .into_iter()
        .find(|mapping| mapping.path == "[vdso]")
        .expect("a vdso");
    // SAFETY: the kernel maps it readable, for as long as the process lives.
    let image = unsafe {
        std::slice::from_raw_parts(
            mapping.start as *const u8,
            (mapping.end - mapping.start) as usize,
        )
    };
    let table = Table::from_image(image).expect("a table");
    assert!(
        table
            .rows()
            .iter()
            .all(|row| (row.pc as usize) < image.len())
    );
    let elf: ElfFile64 = ElfFile64::parse(image).expect("an ELF file");
    let mut functions = 0;
    for symbol in elf.dynamic_symbols().filter(|symbol| symbol.size() > 0) {
        let rule = table.rule(symbol.address());
        assert_eq!(rule, Rule::new(Kind::Sp, 1, 0).expect("small enough"));
        functions += 1;
    }
    assert!(functions >= 3, "{functions} functions");
}

/// A program's `_start` has no caller, and libc has such places too: where threads begin.
#[test]
fn outermost_frames() {
    let built = build("source.c", "int main(void) { return 0; }", &[]);
    let table = Table::from_elf(&built.bytes).expect("a table");
    assert_eq!(table.rule(built.offset("_start")), Rule::END);
    let libc = mappings("self")
        .into_iter()
        .find(|mapping| mapping.path.contains("/libc.so"))
        .expect("a libc");
    let table = Table::from_elf(&fs::read(libc.path).expect("libc")).expect("a table");
    assert!(table.rows().iter().any(|row| row.rule == Rule::END));
}

/// What gcc writes for a function that realigns its stack and has arguments on it.
#[test]
fn realigned_by_gcc() {
    let source = "
        __attribute__((noinline)) void use(void *p) { __asm__ volatile(\"\" : : \"r\"(p) : \"memory\"); }
        __attribute__((noinline)) int f(int a, int b, int c, int d, int e, int g, int n, int m) {
            _Alignas(64) char space[64];
            char *more = __builtin_alloca(n);
            use(space);
            use(more);
            return space[n] + more[m];
        }
        int main(int n, char **v) { return f(1, 2, 3, 4, 5, 6, n, n); }
    ";
    let built = build("source.c", source, &["-O2", "-fomit-frame-pointer"]);
    let table = Table::from_elf(&built.bytes).expect("a table");
    let start = built.offset("f");
    let realigned = (start..start + 128).any(|at| table.rule(at).kind() == Kind::Realigned);
    assert!(realigned, "gcc realigns the stack of f");
}
