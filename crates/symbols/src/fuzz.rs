//! What the fuzzer (fuzz/) calls: the parsers of this crate that have no other entry.

use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::answer::answer;
use crate::hotspot::{Code, HotSpot, Variables};
use crate::interpreter::Interpreter;
use crate::kernel::Kernel;
use crate::memory::Memory;
use crate::name::{Name, Names};
use crate::place::{Opened, Place, Terms};
use crate::reader::ids_of;
use crate::request::{Request, Response};
use crate::spans::Sought;
use crate::tables::unwinding_of;
use crate::v8::{Layout, V8};
use crate::{go, jit, jitdump, maps, mounts, perf_map, stripped, wire};

/// What compilers say of their code: a perf map, or, if it is one, a jitdump of process 77.
pub fn compiled(bytes: &[u8], addresses: &[u64]) {
    let mut addresses = addresses.to_vec();
    addresses.sort_unstable();
    let mut code = Sought::new(&addresses, 1 << 16);
    if jitdump::parse(bytes, 77, &mut code).is_none() {
        perf_map::parse(bytes, &mut code);
    }
    for &address in &addresses {
        if let Some((start, name)) = code.find(address) {
            assert!(start <= address);
            Name::of_jit(name, address - start);
        }
    }
}

/// An ELF file, as the parser takes it apart.
///
/// # Panics
/// If an answer is not of what was asked.
pub fn elf(bytes: &[u8]) {
    let Some(file) = in_memory(bytes) else { return };
    let ask = |request: Request| {
        let file = file.try_clone().expect("a descriptor");
        answer(&request, vec![Some(file)])
    };
    let build_id = String::new();
    let code = match ask(Request::Describe { build_id }) {
        Response::Image(_, image) => {
            for offset in places(bytes) {
                image.address(offset);
                image.address_by_mapping(offset, 4096);
            }
            image.code
        }
        _ => Vec::new(),
    };
    let build_id = String::new();
    unwinding_of(ask(Request::Table { build_id }));
    let addresses: Vec<_> = places(bytes)
        .chain(code.iter().map(|piece| piece.address))
        .collect();
    let some: Vec<_> = addresses.iter().copied().map(Some).collect();
    let mut names = vec![Names::new(); some.len()];
    go::name_rest(&file, &some, &mut names);
    stripped::name_rest("a", &file, &addresses, &mut names);
    assert_eq!(names.len(), some.len());
}

fn in_memory(bytes: &[u8]) -> Option<File> {
    let mut file = File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(bytes).ok()?;
    Some(file)
}

/// Some places of a file, and beyond it.
fn places(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let length = bytes.len() as u64;
    [0, 1, 64, length / 2, length, u64::MAX].into_iter()
}

/// What one of the processes that read foreign files sends to another: a message as it is on the
/// socket, taken for a question and for each kind of answer.
pub fn message(bytes: &[u8]) {
    let Ok((one, other)) = UnixStream::pair() else {
        return;
    };
    // More than fits into the socket would have to be read meanwhile.
    let sent = (&one).write_all(&bytes[..bytes.len().min(1 << 14)]);
    drop(one);
    let Ok(Some((bytes, _))) = sent.and_then(|()| wire::receive_bytes(&other)) else {
        return;
    };
    let _ = wire::parse::<Vec<(Place, Terms)>>(&bytes);
    let _ = wire::parse::<Request>(&bytes);
    let Ok((_, response)) = wire::parse::<(Vec<Opened>, Response)>(&bytes) else {
        return;
    };
    if let Response::Image(_, image) = &response {
        for offset in places(&bytes) {
            image.address(offset);
            image.address_by_mapping(offset, 4096);
        }
    }
    ids_of(vec![response.clone()]);
    if let (_, Some(Interpreter::V8(layout))) = unwinding_of(response) {
        layout.shared();
    }
}

/// Texts of /proc that others have a say in.
pub fn proc_text(text: &str) {
    for line in text.lines() {
        maps::mapping(line, |_| true);
    }
    mounts::remote_in(text, Path::new("/a b/c"));
    let kernel = Kernel::parse(text);
    for address in [0, 1, 0x1000, 0xffff_ffff_8100_0000, u64::MAX] {
        kernel.name(address);
    }
    jit::field(text, "Uid:").count();
}

/// Java's machine in memory, which describes itself there, and with a layout of these `numbers`.
pub fn java<M: Memory + Copy>(memory: M, numbers: &[u64; 18], address: u64) {
    let machines = [
        HotSpot::read(memory, &Variables::fuzzed(), 0),
        Some(HotSpot::fuzzed(memory, numbers)),
    ];
    for machine in machines.into_iter().flatten() {
        machine.interpreter();
        if let Some(Code::Method(method)) = machine.code(address) {
            machine.method(method);
        }
        machine.method(address);
    }
}

/// Objects of a V8 with a layout of these `numbers`.
pub fn javascript<M: Memory>(memory: M, numbers: &[i32; 18], address: u64) {
    V8::new(memory, Layout::fuzzed(*numbers)).function(address);
}
