//! Frames get their names, by module and offset: the process may be long gone.

use std::collections::HashMap;
use std::path::Path;

use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use hangdog_trace::ids::ModuleId;
use hangdog_trace::tables::{Frames, Modules, Symbol, Symbols};
use hangdog_trace::words::ModuleKind;

/// Names every frame that can be named on this machine.
///
/// `same_kernel` says that the kernel that runs now is the one that was recorded: kernel addresses
/// mean nothing to another. A file whose build-id has changed since names nothing either, nor does
/// one that has none and was recorded elsewhere or before a reboot.
/// `progress` is told how many frames of how many are done.
pub fn name_frames(
    modules: &Modules,
    frames: &Frames,
    same_kernel: bool,
    mut progress: impl FnMut(usize, usize),
) -> Symbols {
    let mut by_module: HashMap<ModuleId, Vec<usize>> = HashMap::new();
    for row in 0..frames.len() {
        by_module.entry(frames.module[row]).or_default().push(row);
    }
    let symbolizer = Symbolizer::builder().enable_auto_reload(false).build();
    let mut symbols = Symbols::default();
    let mut done = 0;
    for at in 0..modules.len() {
        let Some(rows) = by_module.get(&modules.module[at]) else {
            continue;
        };
        let offsets: Vec<u64> = rows.iter().map(|&row| frames.offset[row]).collect();
        let path = Path::new(&modules.path[at]);
        let (source, input) = match modules.kind[at].into() {
            ModuleKind::Kernel if same_kernel => (
                Source::Kernel(Kernel::default()),
                Input::AbsAddr(offsets.as_slice()),
            ),
            ModuleKind::File if is_unchanged(path, &modules.build_id[at], same_kernel) => (
                Source::Elf(Elf::new(path)),
                Input::FileOffset(offsets.as_slice()),
            ),
            _ => continue,
        };
        // A module that cannot be read leaves its frames without names: module and offset remain.
        let found = symbolizer.symbolize(&source, input).unwrap_or_default();
        for (&row, symbol) in rows.iter().zip(found) {
            if let Symbolized::Sym(symbol) = symbol {
                symbols.push(Symbol {
                    frame: frames.frame[row],
                    inline_depth: 0,
                    function: symbol.name.into_owned(),
                    function_offset: symbol.offset as u64,
                    source: symbol
                        .code_info
                        .map(|code| source_line(&code))
                        .unwrap_or_default(),
                });
            }
        }
        done += rows.len();
        progress(done, frames.len());
    }
    symbols
}

fn source_line(code: &blazesym::symbolize::CodeInfo<'_>) -> String {
    let path = code.to_path();
    match code.line {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    }
}

fn is_unchanged(path: &Path, build_id: &str, same_kernel: bool) -> bool {
    if build_id.is_empty() {
        return same_kernel && path.exists();
    }
    let now = blazesym::helper::read_elf_build_id(path).ok().flatten();
    now.is_some_and(|id| crate::perf::hexadecimal(&id) == build_id)
}
