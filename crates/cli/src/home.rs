//! The folders of users: their own, and under sudo those of the caller, who set things up without root.

use std::env;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

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
}
