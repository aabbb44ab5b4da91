//! Which file has the names of a module: the module itself if it is still what was recorded, the
//! debug information that was split off it, or a debuginfod server's.
//!
//! The build-id decides: a file that has another one is another program, whatever its path says.

use std::fs;
use std::path::{Path, PathBuf};

use super::debuginfod::Debuginfod;
use super::image::Image;

/// Where distributions put debug information.
const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// How places in a module become addresses in the file that names them.
pub(super) enum Layout {
    /// By the headers of the module itself.
    Of(Image),
    /// By where the module's code was mapped from: the module itself is gone.
    MappedFrom(u64),
}

/// The file with the names of a module.
pub(super) struct Found {
    pub names: Image,
    pub layout: Layout,
}

impl Found {
    /// The address, by the count of the file with the names, of a place in the module.
    pub(super) fn address(&self, file_offset: u64) -> Option<u64> {
        match &self.layout {
            Layout::Of(module) => module.address(file_offset),
            Layout::MappedFrom(start) => self.names.address_by_mapping(file_offset, *start),
        }
    }
}

/// A module as it was recorded.
pub(super) struct Wanted<'a> {
    pub path: &'a Path,
    /// In hexadecimal; empty if it has none.
    pub build_id: &'a str,
    /// Whether this is still the boot of the machine that was recorded: a file without a build-id
    /// is then taken for what it was.
    pub same_boot: bool,
    /// Offset in the file from which its code was mapped.
    pub mapped_from: Option<u64>,
}

/// Finds the names of a module; `None` if nothing here has them.
pub(super) fn find(wanted: &Wanted<'_>, debuginfod: &Debuginfod) -> Option<Found> {
    match module(wanted) {
        Some(module) => Some(Found {
            names: debug_file(&module, debuginfod).unwrap_or_else(|| module.clone()),
            layout: Layout::Of(module),
        }),
        None => {
            let names =
                by_build_id(wanted.build_id).or_else(|| debuginfod.debug_file(wanted.build_id))?;
            let layout = Layout::MappedFrom(wanted.mapped_from?);
            Some(Found { names, layout })
        }
    }
}

/// The module itself: at its path, or where a process that runs still has it.
fn module(wanted: &Wanted<'_>) -> Option<Image> {
    if wanted.build_id.is_empty() {
        return wanted.same_boot.then(|| Image::open(wanted.path))?;
    }
    let is_it = |image: &Image| image.build_id == wanted.build_id;
    Image::open(wanted.path)
        .filter(is_it)
        .or_else(|| still_mapped(wanted.path)?.find_map(|path| Image::open(&path).filter(is_it)))
}

/// A path without what the kernel adds to that of a file that is gone.
fn without_deleted(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

/// What running processes have mapped from a path, which may lead elsewhere by now: it was
/// replaced, or the path is that of a container.
fn still_mapped(path: &Path) -> Option<impl Iterator<Item = PathBuf>> {
    let path = without_deleted(path.to_str()?).to_owned();
    let processes = fs::read_dir("/proc").ok()?;
    let found = processes.filter_map(move |entry| {
        let process = entry.ok()?.path();
        let maps = fs::read_to_string(process.join("maps")).ok()?;
        let line = maps.lines().find(|line| {
            let mapped = line.find('/').map(|at| &line[at..]);
            mapped.is_some_and(|mapped| without_deleted(mapped) == path)
        })?;
        let range = line.split(' ').next()?;
        Some(process.join("map_files").join(range))
    });
    Some(found)
}

/// The debug information that was split off a module; `None` if it has its own, or if there is
/// none.
fn debug_file(module: &Image, debuginfod: &Debuginfod) -> Option<Image> {
    if module.has_lines || module.build_id.is_empty() {
        return None;
    }
    by_build_id(&module.build_id)
        .or_else(|| by_link(module))
        .or_else(|| debuginfod.debug_file(&module.build_id))
}

fn by_build_id(build_id: &str) -> Option<Image> {
    let (folder, name) = build_id.split_at_checked(2)?;
    let path = format!("{DEBUG_FOLDER}/.build-id/{folder}/{name}.debug");
    Image::open(Path::new(&path)).filter(|image| image.build_id == build_id)
}

/// The file that the module's debug link names, beside it or in the debug folder.
fn by_link(module: &Image) -> Option<Image> {
    let name = module.debug_link.as_ref()?;
    // It is a file name: anything else would lead away from the folders below.
    let name = Path::new(name).file_name()?;
    let folder = module.path.parent()?;
    let in_debug_folder = Path::new(DEBUG_FOLDER).join(folder.strip_prefix("/").unwrap_or(folder));
    [
        folder.join(name),
        folder.join(".debug").join(name),
        in_debug_folder.join(name),
    ]
    .iter()
    .filter(|path| **path != module.path)
    .find_map(|path| Image::open(path).filter(|image| image.build_id == module.build_id))
}
