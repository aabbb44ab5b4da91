//! The folders of users: their own, and under sudo those of the caller, who set things up without root.

use std::env;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A kind of folder of the XDG base directory specification.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// What can be made again.
    Cache,
    /// What the user chose.
    Config,
}

impl Kind {
    fn variable(self) -> &'static str {
        match self {
            Kind::Cache => "XDG_CACHE_HOME",
            Kind::Config => "XDG_CONFIG_HOME",
        }
    }

    fn in_home(self) -> &'static str {
        match self {
            Kind::Cache => ".cache/hangdog",
            Kind::Config => ".config/hangdog",
        }
    }
}

/// hangdog's own folder of the user who runs this.
pub fn own(kind: Kind) -> Option<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    match absolute(kind.variable()) {
        Some(folder) => Some(folder.join("hangdog")),
        None => Some(absolute("HOME")?.join(kind.in_home())),
    }
}

/// The same of the user who called sudo.
pub fn of_caller(kind: Kind) -> Option<PathBuf> {
    let uid: libc::uid_t = env::var("SUDO_UID").ok()?.parse().ok()?;
    Some(home_of(uid)?.join(kind.in_home()))
}

/// A file that a user may have put there, as text; what is beyond `most` bytes is an error.
///
/// # Errors
/// If it cannot be read, is too long, or no text.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    // A pipe would keep us waiting for ever.
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let mut text = String::new();
    file.take(most.saturating_add(1))
        .read_to_string(&mut text)?;
    match text.len() as u64 > most {
        true => Err(io::Error::other(format!("it is longer than {most} bytes"))),
        false => Ok(text),
    }
}

fn home_of(uid: libc::uid_t) -> Option<PathBuf> {
    let mut text = vec![0; 16 << 10];
    // SAFETY: a zeroed passwd is one of null pointers and numbers; the call fills it with pointers
    // into `text`, which outlives their use here.
    unsafe {
        let mut entry: libc::passwd = std::mem::zeroed();
        let mut found = std::ptr::null_mut();
        let failed = libc::getpwuid_r(uid, &mut entry, text.as_mut_ptr(), text.len(), &mut found);
        if failed != 0 || found.is_null() || entry.pw_dir.is_null() {
            return None;
        }
        let home = CStr::from_ptr(entry.pw_dir);
        Some(PathBuf::from(OsStr::from_bytes(home.to_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The home of the user who runs the test is found by his number.
    #[test]
    fn a_home_is_found_by_number() {
        assert_eq!(home_of(0), Some("/root".into()));
        assert_eq!(home_of(4_000_000_000), None);
    }

    /// A file up to the limit is read whole; one beyond it is refused, and not cut off.
    #[test]
    fn long_files_are_refused() -> io::Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(&file, "12345")?;
        assert_eq!(text(file.path(), 5)?, "12345");
        assert!(text(file.path(), 4).is_err());
        Ok(())
    }
}
