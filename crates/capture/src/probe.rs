//! Functions of programs, and static probes (USDT) in them, that are recorded as marks.
//!
//! The kernel puts a breakpoint where the code is, in every process that has the file mapped, now and
//! later, and takes it back with its descriptor, however the recorder ends. A function becomes a region
//! from its entry to its return on the same thread, with its first four arguments as they are in
//! registers; a static probe becomes a point. Work that is handed over from one thread to another
//! becomes a region too, where the same argument shows it at both ends ([`event_loops`]).
//!
//! A function is found by the file's symbol table (`hangdog_symbols::functions`); static probes are
//! libbpf's.

use std::env;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hangdog_symbols::functions;
use hangdog_trace::words::{MarkKind, Pairing};
use rustix::fs::{major, minor};

use crate::event::Probed;

/// Probes that there may be.
pub const MOST_PROBES: usize = 256;

/// A probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The name of its marks.
    pub name: String,
    /// The file that it is in.
    pub path: PathBuf,
    /// Where in the file.
    pub place: Place,
    /// What it marks.
    pub marks: Marked,
}

/// Where in a file a probe is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A function, by where its code begins in the file.
    Function(u64),
    /// A static probe.
    Static {
        /// Who provides it, as its note has it.
        provider: String,
        /// Its name.
        name: String,
    },
    /// No code: what any program writes into this file, the kernel's trace_marker.
    Marker {
        /// The device of its file system, as the kernel numbers it.
        device: u32,
        /// Its inode.
        inode: u64,
    },
}

/// What a probe marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// A moment.
    Point,
    /// A region from the function's entry to its return.
    Call,
    /// The begin of a region that ends where this argument comes again, counted from 0.
    Begin(usize),
    /// The end of such a region.
    End(usize),
}

impl Probe {
    /// Whether its return is probed too.
    pub(crate) fn has_return(&self) -> bool {
        self.marks == Marked::Call
    }

    /// The mark that it makes: kind, pairing and arguments.
    pub(crate) fn mark(&self, probed: &Probed) -> (MarkKind, Pairing, [i64; 4]) {
        // The argument that pairs is a mark's first.
        let with_first = |key: usize| {
            let mut arguments = probed.arguments;
            arguments.swap(0, key.min(3));
            arguments
        };
        match self.marks {
            Marked::Point => (MarkKind::Point, Pairing::Thread, probed.arguments),
            Marked::Call if probed.returned => (MarkKind::End, Pairing::Thread, probed.arguments),
            Marked::Call => (MarkKind::Begin, Pairing::Thread, probed.arguments),
            Marked::Begin(key) => (MarkKind::Begin, Pairing::Argument, with_first(key)),
            Marked::End(key) => (MarkKind::End, Pairing::Argument, with_first(key)),
        }
    }

    /// What a person calls it.
    pub(crate) fn described(&self) -> String {
        let path = self.path.display();
        match &self.place {
            Place::Function(_) => format!("function {} of {path}", self.name),
            Place::Static { provider, name } => format!("static probe {provider}:{name} of {path}"),
            Place::Marker { .. } => format!("writes to {path}"),
        }
    }
}

/// The functions that `PATH:FUNCTION` means: several, where a name has several meanings.
///
/// # Errors
/// A sentence for the user.
pub fn functions_of(text: &str) -> Result<Vec<Probe>, String> {
    let wrong =
        || format!("'{text}': give PATH:FUNCTION, as /usr/sbin/nginx:ngx_http_process_request");
    let (path, name) = text.split_once(':').ok_or_else(wrong)?;
    if path.is_empty() || name.is_empty() {
        return Err(wrong());
    }
    let path = file(path)?;
    let found = functions::named(&path, name);
    if found.is_empty() {
        return Err(format!(
            "{} has no function {name} in its symbol table, or is no ELF file (nm -C, or nm -CD where it is \
             stripped, lists its functions)",
            path.display()
        ));
    }
    let is_one = found.len() == 1;
    let probes = found.into_iter().map(|function| Probe {
        name: if is_one {
            name.to_owned()
        } else {
            function.name
        },
        path: path.clone(),
        place: Place::Function(function.offset),
        marks: Marked::Call,
    });
    Ok(probes.collect())
}

/// The static probe that `PATH:PROVIDER:NAME` means.
///
/// # Errors
/// A sentence for the user.
pub fn static_of(text: &str) -> Result<Probe, String> {
    let words: Vec<&str> = text.split(':').collect();
    let [path, provider, name] = words[..] else {
        return Err(format!(
            "'{text}': give PATH:PROVIDER:NAME, as /usr/lib/postgresql/15/bin/postgres:postgresql:query__start"
        ));
    };
    Ok(Probe {
        name: format!("{provider}:{name}"),
        path: file(path)?,
        place: Place::Static {
            provider: provider.to_owned(),
            name: name.to_owned(),
        },
        marks: Marked::Point,
    })
}

/// Where tracefs is mounted on most machines, and where it was before Linux 4.1.
const MARKERS: [&str; 2] = [
    "/sys/kernel/tracing/trace_marker",
    "/sys/kernel/debug/tracing/trace_marker",
];

/// What programs write into the kernel's trace_marker.
///
/// # Errors
/// A sentence for the user, if there is no such file.
pub fn marker() -> Result<Probe, String> {
    let found = MARKERS.iter().find_map(|path| {
        let path = PathBuf::from(path);
        let metadata = path.metadata().ok()?;
        Some((path, metadata.dev(), metadata.ino()))
    });
    let (path, device, inode) = found.ok_or(
        "--trace-marker: there is no /sys/kernel/tracing/trace_marker; as root, mount it: \
         mount -t tracefs nodev /sys/kernel/tracing",
    )?;
    Ok(Probe {
        name: "trace_marker".to_owned(),
        path,
        place: Place::Marker {
            device: major(device) << 20 | minor(device),
            inode,
        },
        marks: Marked::Point,
    })
}

/// What is known of event loops: libraries, of which any may be there, function, name of the mark, what it marks.
type EventLoop = (&'static [&'static str], &'static str, &'static str, Marked);
const QT: &[&str] = &["libQt5Core.so.5", "libQt6Core.so.6"];
const GLIB: &[&str] = &["libglib-2.0.so.0"];
const LIBUV: &[&str] = &["libuv.so.1"];
const EVENT_LOOPS: [EventLoop; 7] = [
    (
        QT,
        "QCoreApplication::postEvent",
        "Qt event",
        Marked::Begin(1),
    ),
    (
        QT,
        "QCoreApplication::notifyInternal2",
        "Qt event",
        Marked::End(1),
    ),
    (
        GLIB,
        "g_main_context_dispatch",
        "GLib dispatch",
        Marked::Call,
    ),
    (
        GLIB,
        "g_main_context_invoke_full",
        "GLib invoke",
        Marked::Point,
    ),
    (GLIB, "g_source_attach", "GLib source", Marked::Point),
    (LIBUV, "uv_async_send", "libuv async", Marked::Point),
    (LIBUV, "uv_queue_work", "libuv work", Marked::Point),
];

/// The probes of the event loops of GLib, Qt and libuv, of whichever of these libraries this machine has.
///
/// # Errors
/// A sentence for the user, if it has none of them.
pub fn event_loops() -> Result<Vec<Probe>, String> {
    let known = EVENT_LOOPS
        .iter()
        .flat_map(|(libraries, function, name, marks)| {
            libraries.iter().filter_map(move |library| {
                let path = file(library).ok()?;
                let [function] = &functions::named(&path, function)[..] else {
                    return None;
                };
                Some(Probe {
                    name: (*name).to_owned(),
                    path,
                    place: Place::Function(function.offset),
                    marks: *marks,
                })
            })
        });
    let probes: Vec<Probe> = known.collect();
    match probes.is_empty() {
        true => Err(
            "--event-loops: this machine has neither GLib nor Qt nor libuv as a shared library"
                .into(),
        ),
        false => Ok(probes),
    }
}

/// Where libraries are, beside the folder of the machine's own kind in each.
const LIBRARIES: [&str; 5] = ["/lib", "/usr/lib", "/usr/local/lib", "/lib64", "/usr/lib64"];

/// The file that a path means; a name without a slash is a command's on the PATH, or a library's.
fn file(text: &str) -> Result<PathBuf, String> {
    let known = |path: &Path| path.is_file().then(|| path.canonicalize().ok()).flatten();
    let found = if text.contains('/') {
        known(Path::new(text))
    } else {
        let multiarch = format!("{}-linux-gnu", env::consts::ARCH);
        let commands = env::var_os("PATH").unwrap_or_default();
        let commands: Vec<PathBuf> = env::split_paths(&commands).collect();
        let libraries = LIBRARIES
            .iter()
            .flat_map(|folder| [Path::new(folder).join(&multiarch), PathBuf::from(folder)]);
        let mut places = commands.into_iter().chain(libraries);
        places.find_map(|folder| known(&folder.join(text)))
    };
    found.ok_or_else(|| format!("there is no file {text}, on the PATH or among the libraries"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(marks: Marked) -> Probe {
        Probe {
            name: "f".into(),
            path: "/bin/true".into(),
            place: Place::Function(0),
            marks,
        }
    }

    /// A call is a region of its thread; what is handed over pairs by the argument that shows it.
    #[test]
    fn marks_of_probes() {
        let at = |returned| Probed {
            probe: 0,
            returned,
            arguments: [1, 2, 3, 4],
        };
        let call = probe(Marked::Call);
        assert_eq!(call.mark(&at(false)).0, MarkKind::Begin);
        assert_eq!(
            call.mark(&at(true)),
            (MarkKind::End, Pairing::Thread, [1, 2, 3, 4])
        );
        let handed = probe(Marked::Begin(1)).mark(&at(false));
        assert_eq!(handed, (MarkKind::Begin, Pairing::Argument, [2, 1, 3, 4]));
    }

    /// A probe that cannot exist is refused, with an example or the reason.
    #[test]
    fn wrong_probes_are_refused() {
        assert!(functions_of("nginx").unwrap_err().contains("PATH:FUNCTION"));
        assert!(functions_of(":main").unwrap_err().contains("PATH:FUNCTION"));
        assert!(
            functions_of("/nowhere/x:main")
                .unwrap_err()
                .contains("/nowhere/x")
        );
        assert!(
            functions_of("/proc/self/exe:no_such_function")
                .unwrap_err()
                .contains("no_such_function")
        );
        assert!(
            functions_of("/etc/passwd:root")
                .unwrap_err()
                .contains("no ELF file")
        );
        assert!(
            static_of("/bin/true:main")
                .unwrap_err()
                .contains("PROVIDER")
        );
    }

    /// A function of this very program is found, by its demangled name.
    #[test]
    fn a_function_is_found() {
        let found = functions_of("/proc/self/exe:probe::functions_of").unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].name, "probe::functions_of");
        assert!(matches!(found[0].place, Place::Function(1..)));
    }
}
