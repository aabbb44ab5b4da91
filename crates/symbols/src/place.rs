//! Where a file that somebody else controls is found, and how it is opened: without following links
//! that its owner could have planted, without waiting at a pipe, and only if it is a regular file.
//!
//! A file is looked at before it is opened (O_PATH): opening a device can have effects, and opening a
//! pipe would keep us waiting for a writer.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Where a file is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// At a path whose last part is no link: the kernel tells mapped files so.
    Path(PathBuf),
    /// At a path in a folder where only root makes links, such as that of debug information.
    Linked(PathBuf),
    /// What a process has mapped at an address range, whatever became of its path.
    Mapped {
        /// The process.
        pid: u32,
        /// First address.
        start: u64,
        /// The address behind the last.
        end: u64,
    },
    /// At a path as a process sees it; links lead nowhere but to what the process itself sees.
    Within {
        /// The process.
        pid: u32,
        /// The path, by the process's own root.
        path: PathBuf,
    },
}

/// What a file must be to be handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// It begins as an ELF file does. What is secret is none.
    pub elf: bool,
    /// Whose it may be; empty: anybody's.
    pub owners: Vec<u32>,
    /// It was written since then, seconds since 1970.
    pub written_since: Option<i64>,
}

impl Terms {
    /// An ELF file of anybody.
    pub fn elf() -> Terms {
        Terms {
            elf: true,
            ..Terms::default()
        }
    }
}

/// What came of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Opened {
    /// It is open.
    Yes,
    /// There is none, or it may not be opened.
    Absent,
    /// It is a pipe, a device, a link or a folder.
    NotRegular,
    /// It is another file than the terms ask for.
    OtherTerms,
}

/// Opens a file to be read.
pub(crate) fn open(place: &Place, terms: &Terms) -> Result<File, Opened> {
    let seen = look(place).map_err(|why| match why {
        Errno::LOOP => Opened::NotRegular,
        _ => Opened::Absent,
    })?;
    let stat = fstat(&seen).map_err(|_| Opened::Absent)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Opened::NotRegular);
    }
    let is_foreign = !terms.owners.is_empty() && !terms.owners.contains(&stat.st_uid);
    let is_old = terms
        .written_since
        .is_some_and(|since| (stat.st_mtime as i64) < since);
    if is_foreign || is_old {
        return Err(Opened::OtherTerms);
    }
    let again = format!("/proc/self/fd/{}", seen.as_fd().as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(CWD, again, flags, Mode::empty()).map_err(|_| Opened::Absent)?;
    let file = File::from(file);
    let mut magic = [0; 4];
    if terms.elf && (file.read_exact_at(&mut magic, 0).is_err() || magic != *b"\x7fELF") {
        return Err(Opened::OtherTerms);
    }
    Ok(file)
}

/// The file as it lies there, not opened yet.
fn look(place: &Place) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let at = |path: &str, flags| openat(CWD, path, flags, Mode::empty());
    match place {
        Place::Path(path) => openat(CWD, path, flags | OFlags::NOFOLLOW, Mode::empty()),
        Place::Linked(path) => openat(CWD, path, flags, Mode::empty()),
        // The kernel's own links: they lead to the file itself, whatever its path is now.
        Place::Mapped { pid, start, end } => {
            at(&format!("/proc/{pid}/map_files/{start:x}-{end:x}"), flags)
        }
        Place::Within { pid, path } => {
            let root = at(&format!("/proc/{pid}/root"), flags | OFlags::DIRECTORY)?;
            let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            let path = path.strip_prefix("/").unwrap_or(path);
            openat2(root, path, flags | OFlags::NOFOLLOW, Mode::empty(), resolve)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use rustix::fs::mknodat;

    use super::*;

    fn opened(path: &Path, terms: &Terms) -> Opened {
        match open(&Place::Path(path.to_owned()), terms) {
            Ok(_) => Opened::Yes,
            Err(why) => why,
        }
    }

    /// A regular file is opened. A link, a pipe, which would keep us waiting, and a folder are not.
    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("good"), "x").unwrap();
        symlink(path("good"), path("link")).unwrap();
        let pipe = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, path("pipe"), FileType::Fifo, pipe, 0).unwrap();
        let anything = Terms::default();
        assert_eq!(opened(&path("good"), &anything), Opened::Yes);
        for refused in ["link", "pipe", "."] {
            assert_eq!(
                opened(&path(refused), &anything),
                Opened::NotRegular,
                "{refused}"
            );
        }
        assert_eq!(opened(&path("missing"), &anything), Opened::Absent);
    }

    /// Whose file it is, when it was written and whether it is an ELF file counts where it is asked
    /// for.
    #[test]
    fn terms_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf-1.map");
        fs::write(&path, "x").unwrap();
        assert_eq!(opened(&path, &Terms::elf()), Opened::OtherTerms);
        let of = |owners: Vec<u32>, written_since| Terms {
            elf: false,
            owners,
            written_since,
        };
        // SAFETY: geteuid has no preconditions.
        let ourselves = unsafe { libc::geteuid() };
        assert_eq!(opened(&path, &of(vec![ourselves], None)), Opened::Yes);
        let stranger = vec![4_000_000_000];
        assert_eq!(opened(&path, &of(stranger, None)), Opened::OtherTerms);
        let now = SystemTime::now();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(now - Duration::from_secs(3600)).unwrap();
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let since = seconds.as_secs() as i64 - 60;
        assert_eq!(opened(&path, &of(vec![], Some(since))), Opened::OtherTerms);
        assert_eq!(opened(&path, &of(vec![], Some(since - 7200))), Opened::Yes);
    }

    /// What a process has mapped is opened though its path is gone, and a link that leads out of what
    /// the process sees does not.
    #[test]
    fn a_process_s_own_files_are_opened() {
        let pid = std::process::id();
        let own = crate::maps::executable(pid)
            .into_iter()
            .find(|mapping| mapping.path.starts_with('/'))
            .unwrap();
        let mapped = Place::Mapped {
            pid,
            start: own.start,
            end: own.end,
        };
        // Without CAP_CHECKPOINT_RESTORE the kernel does not follow it.
        assert!(matches!(
            open(&mapped, &Terms::elf()),
            Ok(_) | Err(Opened::Absent)
        ));
        let within = Place::Within {
            pid,
            path: own.path.into(),
        };
        assert!(open(&within, &Terms::elf()).is_ok());
        let magic = Place::Within {
            pid,
            path: format!("/proc/{pid}/exe").into(),
        };
        assert!(open(&magic, &Terms::elf()).is_err());
    }
}
