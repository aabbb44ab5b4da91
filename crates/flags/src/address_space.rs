//! What a process has in memory: its mappings and their bytes.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

/// The memory of a process.
pub(crate) struct Memory(fs::File);

impl Memory {
    pub(crate) fn of(pid: u32) -> io::Result<Memory> {
        fs::File::open(format!("/proc/{pid}/mem")).map(Memory)
    }

    /// As many of the bytes as are there.
    pub(crate) fn read(&self, address: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let read = self.0.read_at(&mut bytes, address).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }
}

/// A line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Map {
    /// First address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// As `r-xp`.
    pub permissions: String,
    /// Where in the file it begins, bytes.
    pub offset: u64,
    /// The file, or what the kernel calls it; empty for plain memory.
    pub path: String,
}

impl Map {
    /// Reads a line.
    fn of_line(line: &str) -> Option<Map> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let permissions = words.next()?.to_owned();
        let offset = u64::from_str_radix(words.next()?, 16).ok()?;
        let path = words.nth(2).unwrap_or("").trim_start().to_owned();
        Some(Map {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            permissions,
            offset,
            path,
        })
    }

    /// Whether somebody may write there: this process, or another one that shares it.
    pub(crate) fn may_change(&self) -> bool {
        self.permissions.contains('w') || self.permissions.ends_with('s')
    }

    pub(crate) fn is_system_library(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or("");
        [
            "libc.so",
            "libc-",
            "ld-linux",
            "libpthread",
            "libm.so",
            "[vdso]",
        ]
        .iter()
        .any(|library| name.starts_with(library))
    }
}

/// What a process has mapped, by address.
pub(crate) fn maps(pid: u32) -> Vec<Map> {
    let text = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().filter_map(Map::of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of maps is read with its permissions and path; what nobody can write is told.
    #[test]
    fn maps_are_read() {
        let line = "7f00-7fff rw-s 00001000 fe:00 77                         /dev/shm/a b";
        let map = Map::of_line(line).unwrap();
        assert_eq!((map.start, map.end), (0x7f00, 0x7fff));
        assert_eq!(map.path, "/dev/shm/a b");
        assert_eq!(map.offset, 0x1000);
        assert!(map.may_change());
        let constant = Map::of_line("10-20 r--p 00000000 00:00 0").unwrap();
        assert!(!constant.may_change() && constant.path.is_empty());
        assert_eq!(Map::of_line("nonsense"), None);
    }
}
