//! What the fuzzer (fuzz/) calls: the parsers of this crate that have no other entry.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use hangdog_symbols::memory::Memory;
use libbpf_rs::skel::SkelBuilder;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use crate::chain::{self, Numbers};
use crate::flight::{Order, answered};
use crate::language::{self, Runtime};
use crate::limits::Mount;
use crate::marks::area::Area;
use crate::memory::{self, Mounts};
use crate::session::skeleton::{HangdogSkelBuilder, types::python_layout};
use crate::waiting::FileLocks;
use crate::{function, goroutines, perl, php, procfs, python, residence, ruby, sockets};

/// How each Python that is known keeps its frames, as the kernel side has it.
fn layouts() -> &'static [python_layout] {
    static LAYOUTS: OnceLock<Vec<python_layout>> = OnceLock::new();
    LAYOUTS.get_or_init(|| {
        let mut object = std::mem::MaybeUninit::uninit();
        let open = HangdogSkelBuilder::default().open(&mut object);
        let open = open.expect("the programs are in this file");
        let constants = open.maps.rodata_data.as_deref();
        constants
            .expect("they have constants")
            .python_layouts
            .to_vec()
    })
}

/// The functions that a thread is in, read from its interpreter's `memory`, for each interpreter, and a program's goroutines
/// and tasks; `state` and `thread` are addresses where the reading begins.
///
/// # Panics
/// If there are more words than a thread can have, or more goroutines or tasks than are looked at.
pub fn interpreters(memory: &impl Memory, state: u64, thread: u64) {
    let parked = goroutines::parked(memory, state, |addresses| {
        assert!(!addresses.is_empty(), "{addresses:x?}");
        Vec::new()
    });
    assert!(parked.len() <= 1000, "{} goroutines", parked.len());
    let pythons = layouts().iter().map(|&layout| {
        let runtime = python::frames::Runtime { state, layout };
        let tasks = python::tasks::parked(memory, runtime, &mut Numbers::new(), |_| 1);
        assert!(tasks.len() <= 1000, "{} tasks", tasks.len());
        python::locks::Locks::read(memory, runtime).holder(thread, (state, &[thread]));
        Runtime::Python(runtime)
    });
    let ruby = ruby::Runtime {
        library: state,
        context: 8,
    };
    let others = [
        Runtime::Ruby(ruby),
        Runtime::Php(php::Runtime(state)),
        Runtime::Perl(perl::Runtime(state)),
    ];
    for runtime in pythons.chain(others) {
        let mut count = 0;
        let define = |function: function::Function| {
            function.offset();
            function.source();
            count += 1;
            count
        };
        let words = language::read(memory, runtime, thread, &mut Numbers::new(), define);
        assert!(words.len() <= 2 * chain::MOST, "{} words", words.len());
        let words = chain::on_stack_from(thread, words);
        let mut weaver = chain::Weaver::new(&words);
        for at in 0..8 {
            weaver.leave(thread + at * 16, thread + at * 16 + 16, at % 2 == 0);
        }
        weaver.rest().count();
    }
}

/// The memory in which a program marks: the program chooses its content, between rounds too.
pub fn marks(bytes: &[u8]) {
    /// Where rings begin, and what each of the following takes.
    const RINGS: u64 = 4096;
    const EACH: u64 = 64;
    let Some((shape, content)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let (rings, records) = (u32::from(shape[0] % 3) + 1, 1u32 << (shape[1] % 5));
    let names = u32::from(shape[2] % 4) + 1;
    let size = RINGS + EACH * u64::from(rings + names + rings * records);
    let make = || {
        let file = memfd_create("fuzz", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, size)?;
        fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW)?;
        rustix::io::Result::Ok(File::from(file))
    };
    let Ok(file) = make() else { return };
    let put = |bytes: &[u8], at: u64| {
        let _ = file.write_all_at(bytes, at);
    };
    put(&0x736b_7261_6d67_6468u64.to_ne_bytes(), 0);
    for (at, number) in (8..).step_by(4).zip([1, 77, rings, records, names]) {
        put(&number.to_ne_bytes(), at);
    }
    let (first, second) = content.split_at(content.len() / 2);
    let room = (size - RINGS) as usize;
    put(&first[..first.len().min(room)], RINGS);
    if shape[3] & 1 != 0 {
        put(
            &second[..second.len().min(RINGS as usize)],
            u64::from(shape[3]),
        );
    }
    let Some(mut area) = file.try_clone().ok().and_then(|file| Area::of(file).ok()) else {
        return;
    };
    area.record_until(7);
    let mut found = Vec::new();
    let since = area.begun();
    for round in [first, second] {
        put(&round[..round.len().min(room)], RINGS);
        let mut allowed = 64;
        area.read(&mut allowed, &mut found);
        area.read_rings(&mut allowed, &mut found);
        area.copy(&since, &mut 64, &mut found);
        for at in 0..=names {
            area.name(at);
        }
    }
    area.skip();
}

/// A line that a client of the flight recorder writes, and one that it reads.
///
/// # Panics
/// If an order does not read as it is written.
pub fn line(line: &str) {
    if let Some(order) = Order::parse(line) {
        assert_eq!(Order::parse(&order.to_string()), Some(order));
    }
    let _ = answered(line);
}

/// A text of /proc or of a control group that others have a say in.
pub fn proc_text(text: &str) {
    residence::segments(&residence::parse(text), "/usr/bin/app");
    for mount in Mount::all(text) {
        mount.is_of("memory");
    }
    FileLocks::parse(text).holder_for(7);
    let mounts = Mounts::parse(text);
    mounts.knows(0);
    for line in text.lines() {
        procfs::stack_pointer_of(line);
    }
}

/// What the kernel side tells of others' names: of a function, a file, an area of memory, a socket.
pub fn record(kind: u32, bytes: &[u8]) {
    if let Some(function) = language::parse(kind, bytes) {
        function.source();
    }
    if let Some(file) = memory::File::parse(bytes) {
        Mounts::default().path(&file);
    }
    memory::Area::parse(bytes);
    sockets::Description::parse(bytes);
    sockets::unix_path(bytes);
}
