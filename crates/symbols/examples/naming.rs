//! How long it takes to name 100,000 different places in all the shared libraries of a folder, at
//! first and once more, by helpers or in one process (`--here`):
//!
//!     cargo run -p hangdog-symbols --example naming -- /usr/lib/x86_64-linux-gnu

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hangdog_symbols::{Namer, Origin};
use hangdog_trace::ids::NONE;
use hangdog_trace::tables::{Frame, Frames, Module, Modules, Symbols};
use hangdog_trace::words::ModuleKind;
use object::read::ReadCache;
use object::{Object, ObjectSection};

const PLACES: usize = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    // As a recorder does: by processes that can do no harm. `--here` reads in this one.
    let is_here = std::env::args().nth(2).as_deref() == Some("--here");
    if !is_here {
        hangdog_symbols::helper::run_if_asked();
    }
    let folder = std::env::args()
        .nth(1)
        .unwrap_or("/usr/lib/x86_64-linux-gnu".into());
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        if name.is_some_and(|name| name.contains(".so")) {
            files.insert(path.canonicalize()?);
        }
    }
    let code: Vec<_> = files.into_iter().filter_map(code_of).collect();
    let total: u64 = code.iter().map(|(.., size)| size).sum();
    let (mut modules, mut frames) = (Modules::default(), Frames::default());
    for (module, (path, build_id, start, size)) in (0..).zip(&code) {
        modules.push(Module {
            module,
            kind: ModuleKind::File.into(),
            path: path.to_string_lossy().into_owned(),
            build_id: build_id.clone(),
            process: NONE,
        });
        // As many places as it has a share of all code, evenly spread and odd.
        let places = (PLACES as u64 * size / total).max(1);
        for place in 0..places {
            frames.push(Frame {
                frame: frames.len() as u32,
                module,
                offset: (start + size / places * place) | 1,
            });
        }
    }
    let origin = Origin {
        same_boot: true,
        process: &|_| None,
        mapped_from: &|_| None,
    };
    let mut namer = Namer::default();
    for round in ["first", "again"] {
        let mut symbols = Symbols::default();
        let start = Instant::now();
        namer.name(&modules, &frames, &origin, &mut symbols, |_, _| ());
        let named = symbols
            .inline_depth
            .iter()
            .filter(|&&depth| depth == 0)
            .count();
        println!(
            "{round}: {:.2} s for {} places in {} files, {named} named, {} with inlined functions",
            start.elapsed().as_secs_f64(),
            frames.len(),
            modules.len(),
            symbols.len(),
        );
    }
    Ok(())
}

/// A library with its build-id and where its code is in the file.
fn code_of(path: PathBuf) -> Option<(PathBuf, String, u64, u64)> {
    let cache = ReadCache::new(std::fs::File::open(Path::new(&path)).ok()?);
    let file = object::read::elf::ElfFile64::<object::Endianness, _>::parse(&cache).ok()?;
    let id = file.build_id().ok()??;
    let build_id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (start, size) = file.section_by_name(".text")?.file_range()?;
    Some((path, build_id, start, size))
}
