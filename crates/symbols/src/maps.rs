//! What code a process has mapped, as /proc/PID/maps tells it.

use std::fs;

/// A piece of memory that may be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Where in the file it begins, bytes.
    pub file_offset: u64,
    /// The file as the kernel calls it, `[vdso]` and the like, or empty.
    pub path: String,
}

/// The executable memory of a process; none if it is gone or may not be seen.
pub fn executable(pid: u32) -> Vec<Mapping> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    maps.lines().filter_map(mapping).collect()
}

/// One line, if it is executable.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let file_offset = words.next()?;
    let path = words.nth(2).unwrap_or("").trim_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    permissions.contains('x').then_some(())?;
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        file_offset: number(file_offset)?,
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of maps is read with a path that has blanks; data and nonsense are passed over.
    #[test]
    fn maps_lines_are_read() {
        let line = "7f00-7fff r-xp 00001000 fe:00 77                         /a b/c.so";
        let read = mapping(line).unwrap();
        assert_eq!(
            (read.start, read.end, read.file_offset),
            (0x7f00, 0x7fff, 0x1000)
        );
        assert_eq!(read.path, "/a b/c.so");
        assert_eq!(mapping("7f00-7fff rw-p 00000000 00:00 0"), None);
        assert_eq!(mapping("nonsense"), None);
        assert_eq!(mapping("7f00-7fff r-xp 00000000 00:00 0").unwrap().path, "");
    }
}
