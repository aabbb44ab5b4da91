//! Stacks of a real program, stopped in several ways: the walk finds the functions that are on the
//! stack by the program's making, and goes step by step where framehop goes.

#![cfg(target_arch = "x86_64")]

mod common;
#[path = "common/reference.rs"]
mod reference;

use std::collections::HashMap;
use std::fs;
use std::io::Error;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};

use common::{Built, Mapping, build, mappings};
use hangdog_unwind::{End, Kind, Registers, Rule, Table, walk};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSegment, ObjectSymbol};
use reference::{Reference, Said};

/// A program stopped for us, killed in the end.
struct Stopped {
    child: Child,
    thread: i32,
    registers: Registers,
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        if self.thread != self.child.id() as i32 {
            // A traced thread is ours to bury, and its process is not dead before.
            // SAFETY: nothing is written.
            unsafe { libc::waitpid(self.thread, std::ptr::null_mut(), libc::__WALL) };
        }
        let _ = self.child.wait();
    }
}

/// Starts the program and lets it run until it stops itself. `None` if it may not be traced.
fn stop(built: &Built, way: &str) -> Option<Stopped> {
    let child = Command::new(&built.path)
        .arg(way)
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut stopped = Stopped {
        thread: child.id() as i32,
        child,
        registers: Registers::default(),
    };
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call. Only children of this thread are waited for.
        let thread = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        assert!(thread > 0, "waitpid: {}", Error::last_os_error());
        if !libc::WIFSTOPPED(status) {
            assert_eq!(
                libc::WEXITSTATUS(status),
                99,
                "it ends only if it may not be traced"
            );
            println!("NOT RUN: walks of real stacks: this machine does not allow ptrace");
            return None;
        }
        let signal = libc::WSTOPSIG(status);
        if signal != libc::SIGSTOP {
            // SAFETY: passes the signal on to a thread that is stopped for us.
            let failed = unsafe { libc::ptrace(libc::PTRACE_CONT, thread, 0, signal) };
            assert_eq!(failed, 0, "PTRACE_CONT: {}", Error::last_os_error());
            continue;
        }
        // SAFETY: all bytes may be 0.
        let mut all: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: `all` is what the kernel fills for a thread that is stopped for us.
        let failed = unsafe { libc::ptrace(libc::PTRACE_GETREGS, thread, 0, &mut all) };
        assert_eq!(failed, 0, "PTRACE_GETREGS: {}", Error::last_os_error());
        stopped.thread = thread;
        stopped.registers = Registers {
            ip: all.rip,
            sp: all.rsp,
            fp: all.rbp,
        };
        return Some(stopped);
    }
}

/// The code that the program has mapped.
struct Code {
    mappings: Vec<Mapping>,
    tables: HashMap<String, Table>,
}

impl Code {
    fn place(&self, address: u64) -> Option<(&str, u64)> {
        let mapping = self
            .mappings
            .iter()
            .find(|mapping| (mapping.start..mapping.end).contains(&address))?;
        Some((&mapping.path, address - mapping.start + mapping.offset))
    }

    fn rule(&self, address: u64) -> Rule {
        self.place(address)
            .and_then(|(path, offset)| Some(self.tables.get(path)?.rule(offset)))
            .unwrap_or(Rule::NONE)
    }
}

fn code(thread: i32, reference: &mut Reference) -> Code {
    let mut mappings = mappings(&thread.to_string());
    mappings.retain(|mapping| mapping.executable && mapping.path.starts_with('/'));
    let mut tables = HashMap::new();
    for mapping in &mappings {
        let bytes = fs::read(&mapping.path).expect("it is mapped");
        let elf: ElfFile64 = ElfFile64::parse(&*bytes).expect("an ELF file");
        let size = elf
            .segments()
            .map(|segment| segment.address() + segment.size())
            .max();
        let base = mapping.start - address_of(&elf, mapping.offset);
        reference.add(&bytes, base, size.expect("segments"));
        tables.insert(
            mapping.path.clone(),
            Table::from_elf(&bytes).expect("a table"),
        );
    }
    Code { mappings, tables }
}

/// Where the byte at a file offset is loaded, by the segment that has its page.
fn address_of(elf: &ElfFile64, offset: u64) -> u64 {
    let segment = elf
        .segments()
        .find(|segment| {
            let (start, size) = segment.file_range();
            (start & !0xfff..start + size).contains(&offset)
        })
        .expect("a segment has the offset");
    (offset + segment.address()).wrapping_sub(segment.file_range().0)
}

/// The functions of C names among the places, in the program itself.
fn names(built: &Built, code: &Code, places: &[u64]) -> Vec<String> {
    let elf: ElfFile64 = ElfFile64::parse(&*built.bytes).expect("an ELF file");
    let own = built.path.to_str().expect("a name in UTF-8");
    let name = |place: &u64| {
        let (_, offset) = code.place(*place).filter(|(path, _)| *path == own)?;
        let address = address_of(&elf, offset);
        let symbol = elf.symbols().find(|symbol| {
            let start = symbol.address();
            symbol.is_definition() && (start..start + symbol.size().max(1)).contains(&address)
        });
        // The compiler puts what is rarely run elsewhere, as `NAME.cold`.
        let name = symbol?.name().ok()?.trim_end_matches(".cold");
        (!name.starts_with("_Z")).then(|| name.to_string())
    };
    places.iter().filter_map(name).collect()
}

/// Walks the program stopped in that way; compares each step with framehop, except those that it
/// cannot do; gives the names met.
fn walked(way: &str) -> Option<Vec<String>> {
    let source = include_str!("stacks.cc");
    let built = build(
        "stacks.cc",
        source,
        &["-O2", "-fomit-frame-pointer", "-pthread"],
    );
    let stopped = stop(&built, way)?;
    let mut reference = Reference::default();
    let code = code(stopped.thread, &mut reference);
    let stack = fs::File::open(format!("/proc/{}/mem", stopped.thread)).expect("its memory");
    let memory = |address| {
        let mut word = [0; 8];
        stack.read_exact_at(&mut word, address).ok()?;
        Some(u64::from_le_bytes(word))
    };
    let mut addresses = Vec::new();
    let end = walk(
        stopped.registers,
        |at| code.rule(at),
        memory,
        127,
        &mut addresses,
    );
    assert_eq!(end, End::Root, "{addresses:x?}");

    let mut at = stopped.registers;
    let mut exact = true;
    let mut steps = 0;
    let mut places = Vec::new();
    for (i, ip) in addresses.iter().enumerate() {
        assert_eq!(at.ip, *ip);
        let place = at.ip - u64::from(!exact);
        places.push(place);
        let rule = code.rule(place);
        // It evaluates no dereference (`framehop.rs` has the proof), and takes any address but the
        // first for a return address.
        let able = !matches!(rule.kind(), Kind::Signal | Kind::Realigned | Kind::Stored);
        let said = reference.caller(at, exact, memory);
        let caller = at.caller(rule, memory);
        if i + 1 == addresses.len() {
            assert_eq!(said, Said::Root);
        } else if able {
            assert_eq!(
                Some(said),
                caller.map(Said::Caller),
                "step {i} from {at:x?}"
            );
            steps += 1;
        }
        exact = rule.kind() == Kind::Signal;
        at = caller.unwrap_or(at);
    }
    assert!(steps >= 8, "{steps} steps compared");
    Some(names(&built, &code, &places))
}

fn check(way: &str, expected: &[&str]) {
    if let Some(names) = walked(way) {
        assert_eq!(names, expected);
    }
}

/// Through qsort of libc, and a recursion whose last call is by std::function.
#[test]
fn a_callback() {
    check(
        "callback",
        &[
            "stop_here",
            "compare",
            "sorted",
            "recurse",
            "recurse",
            "recurse",
            "recurse",
            "work",
            "main",
            "_start",
        ],
    );
}

/// Through a handler of a signal that a system call was interrupted by.
#[test]
fn a_signal() {
    check(
        "signal",
        &[
            "stop_here",
            "on_signal",
            "compare",
            "sorted",
            "recurse",
            "recurse",
            "recurse",
            "recurse",
            "work",
            "main",
            "_start",
        ],
    );
}

/// Through a handler on a stack of its own.
#[test]
fn a_signal_on_another_stack() {
    check(
        "elsewhere",
        &[
            "stop_here",
            "on_signal",
            "compare",
            "sorted",
            "recurse",
            "recurse",
            "recurse",
            "recurse",
            "work",
            "main",
            "_start",
        ],
    );
}

/// A function that is interrupted at its first instruction is not taken for the one before it.
#[test]
fn a_fault_at_a_first_instruction() {
    check(
        "illegal",
        &[
            "stop_here",
            "on_signal",
            "illegal",
            "compare",
            "sorted",
            "recurse",
            "recurse",
            "recurse",
            "recurse",
            "work",
            "main",
            "_start",
        ],
    );
}

/// Through a function that realigns its stack.
#[test]
fn a_realigned_stack() {
    check(
        "realigned",
        &[
            "stop_here",
            "on_signal",
            "compare",
            "sorted",
            "realigned",
            "recurse",
            "recurse",
            "recurse",
            "recurse",
            "work",
            "main",
            "_start",
        ],
    );
}

/// In a destructor that an exception on its way runs.
#[test]
fn a_destructor() {
    check(
        "destructor",
        &[
            "stop_here",
            "on_signal",
            "compare",
            "sorted",
            "recurse",
            "recurse",
            "recurse",
            "recurse",
            "work",
            "throws",
            "main",
            "_start",
        ],
    );
}

/// To where a thread begins.
#[test]
fn a_thread() {
    check(
        "thread",
        &[
            "stop_here",
            "on_signal",
            "compare",
            "sorted",
            "recurse",
            "recurse",
            "recurse",
            "recurse",
            "work",
            "thread",
        ],
    );
}
