//! Files in a directory of their own, by the bare system calls, and one that grows from size to
//! size.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::machine;
use crate::meter::{Meter, Untried};
use crate::place::Place;

/// What is read and written at a time, bytes, as lmbench's bw_file_rd does.
const BUFFER: usize = 64 << 10;

/// A directory that is removed with all that is in it when this is dropped. Files are named
/// relative to it, so that it does not count how deep it lies.
pub(super) struct Directory {
    handle: File,
    files: TempDir,
    buffer: Vec<u8>,
}

impl Directory {
    pub fn new(place: &Place) -> Result<Directory, Untried> {
        let files = tempfile::tempdir_in(&place.dir)?;
        Ok(Directory {
            handle: File::open(files.path())?,
            files,
            buffer: vec![7; BUFFER],
        })
    }

    pub fn path(&self) -> &std::path::Path {
        self.files.path()
    }

    /// Opens a file to read it.
    #[inline]
    pub fn open(&self, name: &CStr) -> Result<File, Untried> {
        self.open_as(name, libc::O_RDONLY)
    }

    /// Makes a file, empty, to write it.
    #[inline]
    pub fn create(&self, name: &CStr) -> Result<File, Untried> {
        self.open_as(name, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC)
    }

    #[inline]
    fn open_as(&self, name: &CStr, how: i32) -> Result<File, Untried> {
        let how = how | libc::O_CLOEXEC;
        // SAFETY: the name ends in zero; the file that is opened is nobody else's.
        unsafe {
            match libc::openat(self.handle.as_raw_fd(), name.as_ptr(), how, 0o600) {
                -1 => Err(Untried::last("openat")),
                file => Ok(OwnedFd::from_raw_fd(file).into()),
            }
        }
    }

    /// Removes a file.
    #[inline]
    pub fn unlink(&self, name: &CStr) -> Result<(), Untried> {
        // SAFETY: the name ends in zero.
        match unsafe { libc::unlinkat(self.handle.as_raw_fd(), name.as_ptr(), 0) } {
            0 => Ok(()),
            _ => Err(Untried::last("unlink")),
        }
    }

    /// Writes so many bytes where the file stands.
    #[inline]
    pub fn write(&self, file: &File, bytes: u64) -> Result<(), Untried> {
        in_parts(bytes, "write", |_, part| {
            // SAFETY: a part is no longer than the buffer.
            unsafe { libc::write(file.as_raw_fd(), self.buffer.as_ptr().cast(), part) }
        })
    }

    /// Reads the file's first bytes from where it stands.
    #[inline]
    pub fn read(&mut self, file: &File, bytes: u64) -> Result<(), Untried> {
        let buffer = self.buffer.as_mut_ptr();
        in_parts(bytes, "read", |_, part| {
            // SAFETY: a part is no longer than the buffer.
            unsafe { libc::read(file.as_raw_fd(), buffer.cast(), part) }
        })
    }

    /// Reads the file's first bytes, wherever it stands.
    #[inline]
    pub fn pread(&mut self, file: &File, bytes: u64) -> Result<(), Untried> {
        let buffer = self.buffer.as_mut_ptr();
        in_parts(bytes, "pread", |offset, part| {
            // SAFETY: a part is no longer than the buffer.
            unsafe { libc::pread(file.as_raw_fd(), buffer.cast(), part, offset as i64) }
        })
    }

    /// Opens, reads, closes.
    #[inline]
    pub fn open_read(&mut self, name: &CStr, bytes: u64) -> Result<(), Untried> {
        let file = self.open(name)?;
        self.read(&file, bytes)
    }
}

/// Calls with offset and length of each part until it has all bytes.
#[inline]
fn in_parts(
    bytes: u64,
    what: &str,
    mut call: impl FnMut(u64, usize) -> isize,
) -> Result<(), Untried> {
    let mut done = 0;
    while done < bytes {
        match call(done, (bytes - done).min(BUFFER as u64) as usize) {
            0 => return Err(Untried(format!("{what}: {done} bytes instead of {bytes}"))),
            -1 => return Err(Untried::last(what)),
            part => done += part as u64,
        }
    }
    Ok(())
}

/// A quarter of what is free in the place's file system, bytes: files are to fit into it.
pub(super) fn room(place: &Place) -> Result<u64, Untried> {
    match machine::free_bytes(&place.dir) / 4 {
        0 => Err(Untried("the file system says that nothing is free".into())),
        room => Ok(room),
    }
}

/// A file that is measured at one size after the other, and grows between: so it is written once a
/// visit. It goes only as far as time and space allow.
pub(super) struct Growing {
    pub directory: Directory,
    /// For writing, at its end.
    end: File,
    bytes: u64,
    room: u64,
    /// Whether what was written has to be on the disk.
    synced: bool,
    /// What had to be done for this size took so long.
    took: Duration,
}

impl Growing {
    pub const NAME: &CStr = c"grows";

    pub fn new(place: &Place, synced: bool) -> Result<Growing, Untried> {
        let directory = Directory::new(place)?;
        Ok(Growing {
            end: directory.create(Growing::NAME)?,
            room: room(place)?,
            directory,
            bytes: 0,
            synced,
            took: Duration::ZERO,
        })
    }

    /// Whether it may have that size: where there is room, and where it will not make the visit
    /// half as long again as it should be. Of less than 1 MiB it is not the size that takes time.
    pub fn may_be(&self, bytes: u64, meter: &Meter) -> bool {
        let counts = |bytes: u64| bytes.max(1 << 20) as f64;
        let will_take = self.took.mul_f64(counts(bytes) / counts(self.bytes));
        bytes <= self.room && will_take <= meter.time_left() + meter.budget() / 2
    }

    /// Lets it grow, and does once what it is for: so long it takes at least to have that size.
    pub fn grow(
        &mut self,
        bytes: u64,
        once: impl FnOnce(&mut Directory) -> Result<(), Untried>,
    ) -> Result<(), Untried> {
        let start = Instant::now();
        self.directory.write(&self.end, bytes - self.bytes)?;
        if self.synced {
            self.end.sync_all()?;
        }
        once(&mut self.directory)?;
        self.bytes = bytes;
        self.took = start.elapsed();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::read::READ;
    use crate::kernel::tests::place;

    /// What is written is what is read, whole, in sizes below, at and beyond the buffer's; what is
    /// not there is told and not counted as read; nothing is left.
    #[test]
    fn files_are_written_and_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let mut own = Directory::new(&place(dir.path())).unwrap();
        for bytes in [0, 1, BUFFER as u64, 3 * BUFFER as u64 + 5] {
            own.write(&own.create(c"file").unwrap(), bytes).unwrap();
            let length = own.path().join("file").metadata().unwrap().len();
            assert_eq!(length, bytes);
            own.buffer.fill(0);
            own.open_read(c"file", bytes).unwrap();
            let read = own.buffer.iter().filter(|&&byte| byte == 7).count();
            assert_eq!(read, (bytes as usize).min(BUFFER));
            let file = own.open(c"file").unwrap();
            own.pread(&file, bytes).unwrap();
            assert!(own.open_read(c"file", bytes + 1).is_err());
            own.buffer.fill(7);
            own.unlink(c"file").unwrap();
            assert!(own.open(c"file").is_err());
            assert!(own.unlink(c"file").is_err());
        }
        drop(own);
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    /// It has the size that it should, and does not grow beyond what time or space allow.
    #[test]
    fn a_file_grows_as_far_as_it_may() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = Growing::new(&place(dir.path()), false).unwrap();
        let long = Meter::new(READ.id, READ.figures, 0, Duration::from_secs(1000));
        let none = Meter::new(READ.id, READ.figures, 0, Duration::ZERO);
        for bytes in [1, 64, 100_000] {
            file.grow(bytes, |_| Ok(())).unwrap();
            let path = file.directory.path().join("grows");
            assert_eq!(path.metadata().unwrap().len(), bytes);
        }
        assert!(file.may_be(200_000, &long));
        assert!(!file.may_be(200_000, &none));
        assert!(!file.may_be(file.room + 1, &long));
    }
}
