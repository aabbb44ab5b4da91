//! What code a process has mapped, as /proc/PID/maps tells it.

use std::fs;

/// A piece of memory.
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
    let executable = |line| mapping(line, |permissions| permissions.contains('x'));
    maps.lines().filter_map(executable).collect()
}

/// The memory of a process that is of one path, whatever may be done with it; none if the process is
/// gone or may not be seen.
pub fn of_path(pid: u32, path: &str) -> Vec<Mapping> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    let lines = maps.lines().filter(|line| line.ends_with(path));
    let mappings = lines.filter_map(|line| mapping(line, |_| true));
    mappings.filter(|mapping| mapping.path == path).collect()
}

/// One line, if its permissions are fitting.
pub(crate) fn mapping(line: &str, fits: impl Fn(&str) -> bool) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let file_offset = words.next()?;
    let path = words.nth(2).unwrap_or("").trim_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    fits(permissions).then_some(())?;
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

    fn executable(line: &str) -> Option<Mapping> {
        mapping(line, |permissions| permissions.contains('x'))
    }

    /// What this process has mapped of a file is found, if the path is the whole one.
    #[test]
    fn of_a_path() {
        let own = super::executable(std::process::id());
        let file = own
            .iter()
            .find(|mapping| mapping.path.starts_with('/'))
            .unwrap();
        assert!(of_path(std::process::id(), &file.path).contains(file));
        assert!(of_path(std::process::id(), &file.path[1..]).is_empty());
    }

    /// A line of maps is read with a path that has blanks; data and nonsense are passed over.
    #[test]
    fn maps_lines_are_read() {
        let line = "7f00-7fff r-xp 00001000 fe:00 77                         /a b/c.so";
        let read = executable(line).unwrap();
        assert_eq!(
            (read.start, read.end, read.file_offset),
            (0x7f00, 0x7fff, 0x1000)
        );
        assert_eq!(read.path, "/a b/c.so");
        assert_eq!(executable("7f00-7fff rw-p 00000000 00:00 0"), None);
        assert_eq!(executable("nonsense"), None);
        assert_eq!(
            executable("7f00-7fff r-xp 00000000 00:00 0").unwrap().path,
            ""
        );
    }
}
