//! Files and areas of memory as the kernel side describes them (`bpf/area.h`), and where the file
//! systems are mounted: a file's names lead to the root of its file system, which is not always `/`.

use hangdog_symbols::text::text;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A file whose pages came or went, or in whose mapping a fault waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Major << 20 | minor.
    pub device: u32,
    pub inode: u64,
    /// Of its file system.
    pub magic: u32,
    /// From the root of its file system, beginning with `/`; a lone name for a file that lies in no
    /// directory, empty where it has none. `...` stands for directories that did not fit.
    pub path: String,
}

/// Memory of a process, as it was mapped when a fault was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub pid: u32,
    pub start: u64,
    pub end: u64,
    pub file_offset: u64,
    /// 0 where no file is mapped.
    pub inode: u64,
    pub device: u32,
    /// `enum area_flag`.
    pub flags: u32,
}

/// Of `area_flag`, as `bpf/records.h` has it.
pub(crate) const AREA_WRITABLE: u32 = 1;
pub(crate) const AREA_EXECUTABLE: u32 = 2;
pub(crate) const AREA_SHARED: u32 = 4;
pub(crate) const AREA_STACK: u32 = 8;
pub(crate) const AREA_HEAP: u32 = 16;
pub(crate) const AREA_PROGRAM: u32 = 32;

const PATH_DEPTH: usize = 12;
const NAME_LENGTH: usize = 96;
const NAMES: usize = 32;

impl File {
    /// Reads the record; `None` if it was cut.
    pub(crate) fn parse(bytes: &[u8]) -> Option<File> {
        let depth = u32_at(bytes, 24)? as usize;
        let names = bytes.get(NAMES..NAMES + PATH_DEPTH * NAME_LENGTH)?;
        let mut path = String::new();
        let mut parts: Vec<_> = names
            .chunks_exact(NAME_LENGTH)
            .take(depth)
            .map(text)
            .collect();
        if depth > PATH_DEPTH {
            parts.push("...".into());
        }
        // A file that lies in no directory is its own root.
        let alone = depth == 0 && !text(&names[..NAME_LENGTH]).is_empty();
        if alone {
            path = text(&names[..NAME_LENGTH]);
        }
        for part in parts.iter().rev() {
            path.push('/');
            path.push_str(part);
        }
        Some(File {
            device: u32_at(bytes, 12)?,
            inode: u64_at(bytes, 16)?,
            magic: u32_at(bytes, 28)?,
            path,
        })
    }
}

impl Area {
    /// Reads the record; `None` if it was cut.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Area> {
        Some(Area {
            pid: u32_at(bytes, 12)?,
            start: u64_at(bytes, 16)?,
            end: u64_at(bytes, 24)?,
            file_offset: u64_at(bytes, 32)?,
            inode: u64_at(bytes, 40)?,
            device: u32_at(bytes, 48)?,
            flags: u32_at(bytes, 52)?,
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// Whether a file is a shared library by its name.
pub(crate) fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".so") || name.contains(".so.")
}

/// Where file systems are mounted, by device: what of each is mounted, and at which place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mounts(HashMap<u32, Vec<(String, PathBuf)>>);

impl Mounts {
    /// Those of this process's mount namespace; none where they cannot be read.
    pub(crate) fn read() -> Mounts {
        let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Mounts::parse(&text)
    }

    /// As `/proc/PID/mountinfo` has them.
    pub(crate) fn parse(text: &str) -> Mounts {
        let mut mounts = Mounts::default();
        for line in text.lines() {
            let mut words = line.split(' ').skip(2);
            let (Some(device), Some(root), Some(place)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Some((major, minor)) = device.split_once(':') else {
                continue;
            };
            let (Ok(major), Ok(minor)) = (major.parse::<u32>(), minor.parse::<u32>()) else {
                continue;
            };
            let mount = (unescape(root), PathBuf::from(unescape(place)));
            let device = major << 20 | minor;
            mounts.0.entry(device).or_default().push(mount);
        }
        // The most that is mounted of it, at the shortest place.
        for mounts in mounts.0.values_mut() {
            mounts.sort_by_key(|(root, place)| (root.len(), place.as_os_str().len()));
        }
        mounts
    }

    /// Whether a file system is mounted anywhere.
    pub(crate) fn knows(&self, device: u32) -> bool {
        self.0.contains_key(&device)
    }

    /// The path of a file by which this process would open it; the path in its file system where that
    /// is mounted nowhere.
    pub(crate) fn path(&self, file: &File) -> String {
        let mounts = self.0.get(&file.device).map_or(&[][..], Vec::as_slice);
        let inside = Path::new(&file.path);
        if !inside.is_absolute() {
            return file.path.clone();
        }
        let found = mounts.iter().find_map(|(root, place)| {
            let rest = inside.strip_prefix(root).ok()?;
            Some(place.join(rest).to_string_lossy().into_owned())
        });
        found.unwrap_or_else(|| file.path.clone())
    }
}

/// Blanks and the like stand there as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        plain.push_str(before);
        let code = behind
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        match code {
            Some(code) => {
                plain.push(code.into());
                rest = &behind[3..];
            }
            None => {
                plain.push('\\');
                rest = behind;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `bpf/records.h` asserts them.
    const FILE_BYTES: usize = 1184;
    const AREA_BYTES: usize = 56;

    fn record(depth: u32, names: &[&str]) -> Vec<u8> {
        let mut bytes = vec![0; FILE_BYTES];
        bytes[12..16].copy_from_slice(&(254u32 << 20 | 1).to_ne_bytes());
        bytes[16..24].copy_from_slice(&99u64.to_ne_bytes());
        bytes[24..28].copy_from_slice(&depth.to_ne_bytes());
        for (at, name) in names.iter().enumerate() {
            let from = NAMES + at * NAME_LENGTH;
            bytes[from..from + name.len()].copy_from_slice(name.as_bytes());
        }
        bytes
    }

    /// Names come with the file first; what did not fit is marked; a cut record is none.
    #[test]
    fn a_path_is_put_together() {
        let bytes = record(3, &["libc.so.6", "lib", "usr"]);
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.path, "/usr/lib/libc.so.6");
        assert_eq!((file.device, file.inode), (254 << 20 | 1, 99));
        assert_eq!(File::parse(&bytes[..bytes.len() - 1]), None);
        let deep = File::parse(&record(13, &["f"; 12])).unwrap();
        assert_eq!(deep.path, format!("/...{}", "/f".repeat(12)));
        assert_eq!(
            File::parse(&record(0, &["memfd:x"])).unwrap().path,
            "memfd:x"
        );
        assert_eq!(File::parse(&record(0, &[])).unwrap().path, "");
    }

    /// The path begins where the file's own file system is mounted, and a bind mount of a part of it is
    /// taken only for what lies in it.
    #[test]
    fn a_path_begins_at_the_mount() {
        let mounts = Mounts::parse(
            "1 0 254:1 / / rw - ext4 /dev/vda rw\n\
             2 1 0:40 /sub /mnt/a\\040b rw - tmpfs tmpfs rw\n\
             3 1 254:1 /usr /bound rw - ext4 /dev/vda rw\n",
        );
        let file = |device, path: &str| File {
            device,
            inode: 1,
            magic: 0,
            path: path.into(),
        };
        assert_eq!(
            mounts.path(&file(254 << 20 | 1, "/usr/bin/x")),
            "/usr/bin/x"
        );
        assert_eq!(mounts.path(&file(40, "/sub/y")), "/mnt/a b/y");
        assert_eq!(mounts.path(&file(40, "/other/y")), "/other/y");
        assert_eq!(mounts.path(&file(7, "/z")), "/z");
        assert_eq!(mounts.path(&file(7, "memfd:x")), "memfd:x");
    }

    /// An area is read field by field, and the record's size is the C compiler's.
    #[test]
    fn an_area_is_read() {
        let mut bytes = vec![0; AREA_BYTES];
        for (at, value) in [(12, 7u32), (48, 254), (52, AREA_HEAP)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        for (at, value) in [(16, 0x1000u64), (24, 0x3000), (32, 4096), (40, 5)] {
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let area = Area {
            pid: 7,
            start: 0x1000,
            end: 0x3000,
            file_offset: 4096,
            inode: 5,
            device: 254,
            flags: AREA_HEAP,
        };
        assert_eq!(Area::parse(&bytes), Some(area));
        assert_eq!(Area::parse(&bytes[..55]), None);
    }
}
