//! Folders and files of a trace, by descriptor: root may write into a folder that a user owns.
//!
//! That user can rename, replace and exchange whatever lies in the folder, at any time, also
//! between two system calls of ours. Why nothing outside the trace can be overwritten or given away
//! all the same:
//!
//! 1. A path is used once: to open the parent of the trace's folder. From then on every name is a
//!    single one, relative to a descriptor.
//! 2. The trace's folder is made (`mkdirat`) and then opened without following a link. What was
//!    opened is taken only if it is empty, is this process's user's, and nobody else may write in
//!    it. So it is the one that was made, or one of our own that is as empty; a folder of the
//!    user's, with whatever is planted in it, is neither.
//! 3. So nobody else can put a name into it, and while it has mode 0700 and is root's nobody else
//!    can reach what is in it. Where it lies meanwhile does not matter: the descriptor stays with
//!    it when it is renamed. The same holds for the tables' folders in it, by the same function.
//! 4. A file is made under a name that does not exist (`O_EXCL`, which does not follow links
//!    either), is written, given and renamed by its descriptor and the folder's.
//! 5. What is given is a descriptor of something that was made here: files and tables' folders when
//!    they are made, the trace's folder last. With that it is the user's; nothing is done in it
//!    after that.
//!
//! Steps 4 and 5 do not rest on step 2 as far as other files are concerned: in any folder
//! whatsoever they touch only names in it, and give only what was made.
//!
//! What a user can do: lead the parent's path elsewhere by a link, as for any command that is
//! told to write there (a new, empty folder is made there, or the recording fails); move the
//! trace away; remove it once it was given.
//!
//! Content goes to a temporary name, which is renamed when all of it is there. Whatever ends the
//! writer in between (kill -9, a full disk) leaves at most a temporary file, and readers ignore
//! those.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Dir, Mode, OFlags};
use rustix::process::{Gid, Uid, geteuid};

use crate::error::{Error, Result};

/// Ending of a file that is not finished.
const TEMPORARY: &str = "tmp";

/// Whom a trace is made for, where that is not who makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    /// Where it was when it was opened: for messages.
    path: PathBuf,
}

impl Folder {
    /// Makes the folder `path`, for this process's user alone. Its parent must exist. Returns the
    /// parent too.
    pub(crate) fn create(path: &Path) -> io::Result<(Folder, Folder)> {
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let Some(name) = path.file_name() else {
            return Err(io::ErrorKind::AlreadyExists.into());
        };
        let parent = Folder::open(parent)?;
        Ok((parent.make(name)?, parent))
    }

    /// Opens a folder that is there, for what others have put into it.
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Folder {
            fd: fs::open(path, flags, Mode::empty())?,
            path: path.into(),
        })
    }

    /// Makes a folder in this one, for this process's user alone.
    pub(crate) fn make(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        let name = name.as_ref();
        fs::mkdirat(&self.fd, name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = Folder {
            fd: fs::openat(&self.fd, name, flags, Mode::empty())?,
            path: self.path.join(name),
        };
        let found = fs::fstat(&folder.fd)?;
        let others = Mode::from_raw_mode(found.st_mode) & (Mode::WGRP | Mode::WOTH);
        if found.st_uid != geteuid().as_raw() || !others.is_empty() || !folder.is_empty()? {
            return Err(io::Error::other(
                "another folder took its place while it was made, or the file system keeps no owners",
            ));
        }
        Ok(folder)
    }

    fn is_empty(&self) -> io::Result<bool> {
        for entry in Dir::read_from(&self.fd)? {
            if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where it was when it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Who owns it, if root is to give files in it to somebody else.
    pub(crate) fn owner_for_root(&self) -> io::Result<Option<Owner>> {
        let found = fs::fstat(&self.fd)?;
        Ok((geteuid().is_root() && found.st_uid != 0).then_some(Owner {
            user: found.st_uid,
            group: found.st_gid,
        }))
    }

    /// Puts what `write` writes under `name`, in place of what was there, and gives it to `owner`.
    pub(crate) fn put(
        &self,
        name: &str,
        owner: Option<Owner>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<()> {
        let temporary = Path::new(name).with_extension(TEMPORARY);
        // What a writer left that was killed.
        let _ = self.remove(&temporary);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let attempt = || {
            let made = fs::openat(&self.fd, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
            let mut out = File::from(made);
            write(&mut out)?;
            give(&out, owner)?;
            fs::renameat(&self.fd, &temporary, &self.fd, name)?;
            Ok(())
        };
        attempt().map_err(|e| {
            // It may not exist; the error that matters is the first one.
            let _ = self.remove(&temporary);
            Error::io(&self.path.join(name), e)
        })
    }

    /// Removes a file of this folder.
    pub(crate) fn remove(&self, name: &Path) -> io::Result<()> {
        Ok(fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Removes an empty folder of this one.
    pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Gives the folder itself, not what is in it.
    pub(crate) fn give(&self, owner: Option<Owner>) -> Result<()> {
        give(&self.fd, owner).map_err(|e| Error::io(&self.path, e))
    }
}

fn give(made: impl AsFd, owner: Option<Owner>) -> io::Result<()> {
    if let Some(Owner { user, group }) = owner {
        fs::fchown(made, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    /// A write that fails leaves what was there, and no temporary file.
    #[test]
    fn failure_leaves_the_old_content() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let path = dir.path().join("a.json");
        let write = |text: &'static [u8]| move |out: &mut File| out.write_all(text);
        folder.put("a.json", None, write(b"old")).unwrap();
        let error = folder.put("a.json", None, |out| {
            out.write_all(b"ne")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(matches!(error, Err(Error::DiskFull { file }) if file == path));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    /// Links that were planted under the names that will be used are replaced, not followed.
    #[test]
    fn planted_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let canary = dir.path().join("canary");
        std::fs::write(&canary, "mine").unwrap();
        let place = dir.path().join("place");
        std::fs::create_dir(&place).unwrap();
        for name in ["a.tmp", "a.json"] {
            symlink(&canary, place.join(name)).unwrap();
        }
        let folder = Folder::open(&place).unwrap();
        let write = |out: &mut File| out.write_all(b"new");
        folder.put("a.json", None, write).unwrap();
        assert_eq!(std::fs::read(&canary).unwrap(), b"mine");
        let placed = place.join("a.json");
        assert!(std::fs::symlink_metadata(&placed).unwrap().is_file());
        assert_eq!(std::fs::read(&placed).unwrap(), b"new");
    }

    /// A trace's folder is not made through a link, even one that leads nowhere.
    #[test]
    fn a_link_is_no_place_for_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        symlink(dir.path().join("nowhere"), dir.path().join("link")).unwrap();
        let error = Folder::create(&dir.path().join("link")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(!dir.path().join("nowhere").exists());
    }
}
