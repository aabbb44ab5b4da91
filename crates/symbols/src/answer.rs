//! Answers questions about open files: all that takes apart what others wrote is called from here.
//! In a recording this runs in a process that has nothing but these files
//! ([`confined`](crate::helper)).

use std::fs::File;
use std::io::Read;

use hangdog_unwind::{Error, Rule, Table};

use crate::elf;
use crate::go;
use crate::image::Image;
use crate::interpreter::Interpreter;
use crate::jitdump;
use crate::name::{Name, Names};
use crate::perf_map;
use crate::request::{Bytes, Places, Request, Response, TableOf};
use crate::script;
use crate::spans::Sought;
use crate::stripped;
use crate::symbol_table;

/// So much of a compiler's file is read, bytes.
const MOST_BYTES: u64 = 256 << 20;
/// Memory for the names that one file of a compiler's tells, bytes.
const ROOM: usize = 64 << 20;

/// Answers; a file that could not be opened is `None`.
pub(crate) fn answer(request: &Request, files: Vec<Option<File>>) -> Response {
    let file = |at: usize| files.get(at).and_then(Option::as_ref);
    let answer = match request {
        Request::Describe { build_id } => {
            first_with(build_id, &files).map(|(at, _, image)| Response::Image(at, image))
        }
        Request::Table { build_id } => table(build_id, &files),
        Request::Name(places) => file(0).and_then(|names| name(places, names, file(1))),
        Request::Symbols(sought) => file(0).and_then(|file| {
            let (found, code) = symbol_table::answer(file, sought)?;
            Some(Response::Symbols { found, code })
        }),
        Request::Compiled { pid, addresses } => Some(compiled(*pid, addresses, &files)),
    };
    answer.unwrap_or(Response::Nothing)
}

/// The first ELF file with a build-id; if that is empty, the first at all.
fn first_with<'a>(build_id: &str, files: &'a [Option<File>]) -> Option<(usize, &'a File, Image)> {
    files.iter().enumerate().find_map(|(at, file)| {
        let file = file.as_ref()?;
        let image = Image::of(file)?;
        let is_it = build_id.is_empty() || image.build_id == build_id;
        is_it.then_some((at, file, image))
    })
}

fn table(build_id: &str, files: &[Option<File>]) -> Option<Response> {
    // A file that is no ELF file of 64 bits is none with a table, and that is known too.
    let there = files.iter().flatten().next()?;
    let file = match first_with(build_id, files) {
        Some((_, file, _)) => file,
        None if build_id.is_empty() => there,
        None => return None,
    };
    let go = go::program(file);
    let parks = go.as_ref().and_then(|go| go.parks);
    let table = match Table::of(file) {
        Ok(table) => table,
        Err(Error::Read(_)) => return None,
        // Go's own linker writes no such information, and its code keeps frame pointers.
        Err(_) if parks.is_some() => Table::of_frame_pointers(),
        Err(_) => {
            return Some(Response::Table(TableOf {
                rows: None,
                interpreter: None,
            }));
        }
    };
    let table = match parks {
        Some((start, end)) => table.with_rule(start, end, Rule::TASK),
        None => table,
    };
    let script = script::find(file);
    let loops = script.as_ref().map_or(&[][..], |found| &found.loops);
    let marked = table.rows_with_loops(loops);
    let mut rows = Vec::with_capacity(marked.len() * 8);
    for row in marked {
        rows.extend_from_slice(&row.pc.to_ne_bytes());
        rows.extend_from_slice(&row.rule.0.to_ne_bytes());
    }
    Some(Response::Table(TableOf {
        rows: Some(Bytes(rows)),
        interpreter: match script {
            Some(found) => Some(
                found
                    .script
                    .map_or(Interpreter::Unknown, Interpreter::Script),
            ),
            None => match go.and_then(|go| go.goroutines) {
                Some(goroutines) => Some(Interpreter::Go(goroutines)),
                None => Interpreter::of(file),
            },
        },
    }))
}

fn name(places: &Places, names: &File, module: Option<&File>) -> Option<Response> {
    // It may have been exchanged since it was described.
    let is_it = places.build_id.is_empty() || Image::of(names)?.build_id == places.build_id;
    is_it.then_some(())?;
    let (mut found, cut) = elf::name(names, &places.addresses);
    go::name_rest(module.unwrap_or(names), &places.addresses, &mut found);
    if let (Some((name, offsets)), Some(file)) = (&places.module, module) {
        stripped::name_rest(name, file, offsets, &mut found);
    }
    Some(Response::Names { names: found, cut })
}

fn compiled(pid: u32, addresses: &[u64], files: &[Option<File>]) -> Response {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    let mut names = vec![Names::new(); addresses.len()];
    let mut cut = false;
    for (at, file) in files.iter().enumerate() {
        let Some(file) = file else { continue };
        let mut code = Sought::new(&sorted, ROOM);
        let file = file.take(MOST_BYTES);
        if at == 0 {
            perf_map::parse(file, &mut code);
        } else if jitdump::parse(file, pid, &mut code).is_none() {
            continue;
        }
        cut |= code.cut;
        for (names, &address) in names.iter_mut().zip(addresses) {
            if names.is_empty()
                && let Some((start, name)) = code.find(address)
            {
                names.push(Name::of_jit(name, address - start));
            }
        }
    }
    Response::Names { names, cut }
}
