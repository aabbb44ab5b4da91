//! Reading files of a folder that somebody else may have filled.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{self, FileType, Mode, OFlags};

/// Opens a regular file for reading. Never waits, as opening a pipe would.
///
/// # Errors
/// If a link, a pipe, a device or a folder is there; otherwise what the system says.
pub fn open(path: &Path) -> io::Result<File> {
    let strange = || io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file");
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::open(path, flags, Mode::empty()).map_err(|why| match why {
        // A link; a socket.
        rustix::io::Errno::LOOP | rustix::io::Errno::NXIO => strange(),
        why => why.into(),
    })?;
    let found = FileType::from_raw_mode(fs::fstat(&file)?.st_mode);
    match found {
        FileType::RegularFile => Ok(file.into()),
        _ => Err(strange()),
    }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open`], and if it is longer.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(size.min(most) as usize);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it is longer than {most} bytes"),
        )),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    /// Whatever is no regular file is refused at once, and so is one that is too long.
    #[test]
    fn only_regular_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("file"), "four").unwrap();
        symlink(path("file"), path("link")).unwrap();
        fs::mknodat(fs::CWD, path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let _listener = UnixListener::bind(path("socket")).unwrap();
        assert_eq!(read(&path("file"), 4).unwrap(), b"four");
        for (name, most) in [
            ("file", 3),
            ("link", 9),
            ("pipe", 9),
            ("socket", 9),
            (".", 9),
        ] {
            let error = read(&path(name), most).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{name}: {error}");
        }
        let absent = read(&path("absent"), 9).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }
}
