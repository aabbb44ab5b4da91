//! Which file has the names of a module: the module itself if it is still what was recorded, the
//! debug information that was split off it, or a debuginfod server's.
//!
//! The build-id decides: a file that has another one is another program, whatever its path says.

use std::fs;
use std::path::Path;

use crate::debuginfod::Debuginfod;
use crate::image::Image;
use crate::maps;
use crate::place::{Place, Terms};
use crate::reader::{LOOK, Question, Reader};
use crate::request::{Request, Response};

/// Where distributions put debug information.
const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// How places in a module become addresses in the file that names them.
pub(crate) enum Layout {
    /// By the headers of the module itself.
    Of(Located),
    /// By where the module's code was mapped from: the module itself is gone.
    MappedFrom(u64),
}

/// An ELF file and where it is.
#[derive(Clone)]
pub(crate) struct Located {
    pub place: Place,
    pub image: Image,
}

/// The file with the names of a module.
pub(crate) struct Found {
    pub names: Located,
    pub layout: Layout,
}

impl Found {
    /// The address, by the count of the file with the names, of a place in the module.
    pub(crate) fn address(&self, file_offset: u64) -> Option<u64> {
        match &self.layout {
            Layout::Of(module) => module.image.address(file_offset),
            Layout::MappedFrom(start) => {
                let names = &self.names.image;
                names.address_by_mapping(file_offset, *start)
            }
        }
    }
}

/// A module as it was recorded.
pub(crate) struct Wanted<'a> {
    pub path: &'a Path,
    /// In hexadecimal; empty if it has none.
    pub build_id: &'a str,
    /// Whether this is still the boot of the machine that was recorded: a file without a build-id
    /// is then taken for what it was.
    pub same_boot: bool,
    /// Offset in the file from which its code was mapped.
    pub mapped_from: Option<u64>,
}

/// Finds the names of modules; `None` for one of which nothing here has them.
pub(crate) fn find(
    wanted: &[&Wanted<'_>],
    reader: &mut Reader,
    debuginfod: &Debuginfod,
) -> Vec<Option<Found>> {
    let modules = modules(wanted, reader);
    let candidates = wanted.iter().zip(&modules).map(|(wanted, module)| Sought {
        label: wanted.path.to_string_lossy().into_owned(),
        build_id: wanted.build_id.to_owned(),
        places: debug_files(wanted, module.as_ref()),
    });
    let candidates: Vec<Sought> = candidates.collect();
    let debug_files = first_of(reader, &candidates);
    let found = wanted.iter().zip(modules).zip(debug_files);
    let found = found.map(|((wanted, module), debug_file)| {
        let lacks_lines = (module.as_ref()).is_none_or(|module| !module.image.has_lines);
        let fetched = || {
            let id = Some(wanted.build_id).filter(|id| lacks_lines && !id.is_empty())?;
            fetched(id, reader, debuginfod)
        };
        let names = debug_file.or_else(fetched);
        match module {
            Some(module) => Some(Found {
                names: names.unwrap_or_else(|| module.clone()),
                layout: Layout::Of(module),
            }),
            None => Some(Found {
                names: names?,
                layout: Layout::MappedFrom(wanted.mapped_from?),
            }),
        }
    });
    found.collect()
}

/// A file that may be at several places.
struct Sought {
    label: String,
    /// Empty: whatever it has.
    build_id: String,
    places: Vec<Place>,
}

/// The first place of each where the file is.
fn first_of(reader: &mut Reader, sought: &[Sought]) -> Vec<Option<Located>> {
    let questions = sought.iter().map(|sought| Question {
        label: sought.label.clone(),
        files: (sought.places.iter())
            .map(|place| (place.clone(), Terms::elf()))
            .collect(),
        request: Request::Describe {
            build_id: sought.build_id.clone(),
        },
    });
    let asked: Vec<Question> = questions
        .filter(|question| !question.files.is_empty())
        .collect();
    let mut answers = reader.ask_all(&asked, LOOK).into_iter();
    let located = sought.iter().map(|sought| {
        if sought.places.is_empty() {
            return None;
        }
        match answers.next()? {
            Response::Image(at, image) => {
                let place = sought.places.get(at)?.clone();
                Some(Located { place, image })
            }
            _ => None,
        }
    });
    located.collect()
}

/// The modules themselves: at their paths, or where a process that runs still has them.
fn modules(wanted: &[&Wanted<'_>], reader: &mut Reader) -> Vec<Option<Located>> {
    let sought = |wanted: &Wanted<'_>, place: Option<Place>| Sought {
        label: wanted.path.to_string_lossy().into_owned(),
        build_id: wanted.build_id.to_owned(),
        places: place.into_iter().collect(),
    };
    let at_paths = wanted.iter().map(|wanted| {
        // Without a build-id it is taken for what it was only as long as the machine runs.
        let counts = wanted.same_boot || !wanted.build_id.is_empty();
        sought(wanted, counts.then(|| Place::Path(wanted.path.to_owned())))
    });
    let at_paths: Vec<Sought> = at_paths.collect();
    let mut modules = first_of(reader, &at_paths);
    for (module, wanted) in modules.iter_mut().zip(wanted) {
        if module.is_none() && !wanted.build_id.is_empty() {
            let mut mapped = still_mapped(wanted.path).into_iter().flatten();
            *module = mapped.find_map(|place| {
                let found = first_of(reader, &[sought(wanted, Some(place))]);
                found.into_iter().next()?
            });
        }
    }
    modules
}

/// A path without what the kernel adds to that of a file that is gone.
fn without_deleted(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

/// What running processes have mapped from a path, which may lead elsewhere by now: it was
/// replaced, or the path is that of a container.
fn still_mapped(path: &Path) -> Option<impl Iterator<Item = Place>> {
    let path = without_deleted(path.to_str()?).to_owned();
    let processes = fs::read_dir("/proc").ok()?;
    let found = processes.filter_map(move |entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let mappings = maps::executable(pid);
        let mapping = mappings
            .iter()
            .find(|mapping| without_deleted(&mapping.path) == path)?;
        Some(Place::Mapped {
            pid,
            start: mapping.start,
            end: mapping.end,
        })
    });
    Some(found)
}

/// Where the debug information may be that was split off a module; nowhere if it has its own, or has
/// nothing by which it could be known.
fn debug_files(wanted: &Wanted<'_>, module: Option<&Located>) -> Vec<Place> {
    if wanted.build_id.is_empty() || module.is_some_and(|module| module.image.has_lines) {
        return Vec::new();
    }
    let mut places = Vec::new();
    places.extend(by_build_id(wanted.build_id));
    let link = module.and_then(|module| module.image.debug_link.as_deref());
    places.extend(by_link(wanted.path, link).unwrap_or_default());
    places
}

fn by_build_id(build_id: &str) -> Option<Place> {
    let is_hexadecimal = build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (folder, name) = build_id.split_at_checked(2).filter(|_| is_hexadecimal)?;
    let path = format!("{DEBUG_FOLDER}/.build-id/{folder}/{name}.debug");
    Some(Place::Linked(path.into()))
}

/// What a debuginfod server has of a program.
fn fetched(build_id: &str, reader: &mut Reader, debuginfod: &Debuginfod) -> Option<Located> {
    let path = debuginfod.debug_file(build_id)?;
    let sought = Sought {
        label: path.to_string_lossy().into_owned(),
        build_id: build_id.to_owned(),
        places: vec![Place::Linked(path)],
    };
    first_of(reader, &[sought]).into_iter().next()?
}

/// The file that a module's debug link names, beside it or in the debug folder.
fn by_link(path: &Path, link: Option<&str>) -> Option<Vec<Place>> {
    // It is a file name: anything else would lead away from the folders below.
    let name = Path::new(link?).file_name()?;
    let folder = path.parent()?;
    let in_debug_folder = Path::new(DEBUG_FOLDER).join(folder.strip_prefix("/").unwrap_or(folder));
    let mut places = vec![
        Place::Path(folder.join(name)),
        Place::Path(folder.join(".debug").join(name)),
        Place::Linked(in_debug_folder.join(name)),
    ];
    places.retain(|place| *place != Place::Path(path.to_owned()));
    Some(places)
}
