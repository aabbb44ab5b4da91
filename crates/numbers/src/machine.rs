//! Which machine the figures belong to: what the system says of itself.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A cache as the system describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 to 4.
    pub level: u32,
    /// Whether it holds data; an instruction cache does not.
    pub data: bool,
    /// Bytes.
    pub bytes: u64,
}

/// Where files were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Where it is mounted.
    pub mounted_at: String,
    /// ext4, tmpfs, ...
    pub kind: String,
    /// The device or other source.
    pub device: String,
    /// Bytes that may be written.
    pub free_bytes: u64,
}

/// What the system says of itself. Empty or zero where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's name.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: u32,
    /// The first CPU's caches.
    pub caches: Vec<Cache>,
    /// Bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// As `uname -m` has it.
    pub arch: String,
    /// Whether a hypervisor runs it.
    pub guest: bool,
    /// When memory is given huge pages: `always`, `madvise`, `never`.
    pub huge_pages: String,
    /// Where files were made.
    pub files: FileSystem,
    /// Tells machines apart, and says nothing else of them: a hash of the machine's id, its CPU and
    /// their number.
    pub key: String,
}

impl Machine {
    /// Looks at this machine, and at the file system of `dir`.
    pub fn look(dir: &Path) -> Machine {
        let cpuinfo = read("/proc/cpuinfo");
        let field = |name: &str| {
            cpuinfo.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            })
        };
        let cpu = field("model name").unwrap_or_default();
        let cpus = crate::cpu::allowed().map_or(0, |cpus| cpus.len() as u32);
        let memory_kib: u64 = read("/proc/meminfo")
            .lines()
            .find_map(|line| {
                line.strip_prefix("MemTotal:")?
                    .trim()
                    .strip_suffix("kB")?
                    .trim()
                    .parse()
                    .ok()
            })
            .unwrap_or(0);
        Machine {
            key: key(&[
                &read("/etc/machine-id"),
                &read("/proc/sys/kernel/hostname"),
                &cpu,
                &cpus.to_string(),
            ]),
            cpu,
            cpus,
            caches: caches(),
            memory_bytes: memory_kib * 1024,
            kernel: read("/proc/sys/kernel/osrelease"),
            arch: std::env::consts::ARCH.to_owned(),
            guest: field("flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
            files: file_system(dir),
        }
    }

    /// The last level's size, bytes; what many machines have where the system does not say.
    pub(crate) fn last_cache(&self) -> u64 {
        let of_data = self.caches.iter().filter(|cache| cache.data);
        of_data.map(|cache| cache.bytes).max().unwrap_or(64 << 20)
    }

    /// Four times the last cache, so that most loads miss it, or an eighth of the memory, so that
    /// nobody else is pushed out.
    pub(crate) fn largest_memory_to_measure(&self) -> u64 {
        (4 * self.last_cache())
            .min(self.memory_bytes / 8)
            .max(1 << 20)
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The word in brackets of `always [madvise] never`.
fn chosen(choices: &str) -> String {
    let inside = |text: &str| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned());
    inside(choices).unwrap_or_default()
}

/// FNV-1a of 64 bits: no secret is kept by it, only a name made of many.
fn key(parts: &[&str]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

fn caches() -> Vec<Cache> {
    let mut caches = Vec::new();
    for index in 0.. {
        let of = |name: &str| {
            read(&format!(
                "/sys/devices/system/cpu/cpu0/cache/index{index}/{name}"
            ))
        };
        let (level, size) = (of("level"), of("size"));
        let (Ok(level), Some(bytes)) = (level.parse(), bytes_of(&size)) else {
            break;
        };
        caches.push(Cache {
            level,
            data: of("type") != "Instruction",
            bytes,
        });
    }
    caches
}

/// Of `48K`, as sysfs has it.
fn bytes_of(size: &str) -> Option<u64> {
    let unit = size
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(size.len());
    let number: u64 = size[..unit].parse().ok()?;
    let times = match &size[unit..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(times)
}

fn file_system(dir: &Path) -> FileSystem {
    let Ok(metadata) = fs::metadata(dir) else {
        return FileSystem::default();
    };
    let number = format!(
        "{}:{}",
        libc::major(metadata.dev()),
        libc::minor(metadata.dev())
    );
    let real = fs::canonicalize(dir).unwrap_or_default();
    let mounts = read("/proc/self/mountinfo");
    let above = mounts
        .lines()
        .filter_map(mount)
        .filter(|mount| real.starts_with(&mount.at));
    // A file system may be mounted in several places, one over the other. By its number first:
    // but btrfs gives files a number that no mount has.
    let found = above.max_by_key(|mount| (mount.number == number, mount.at.len()));
    let Some(mount) = found else {
        return FileSystem::default();
    };
    FileSystem {
        mounted_at: mount.at,
        kind: mount.kind,
        device: mount.source,
        free_bytes: free_bytes(dir),
    }
}

struct Mount {
    number: String,
    at: String,
    kind: String,
    source: String,
}

/// Of a line of mountinfo, as proc(5) has it: id, parent, major:minor, root, mount point, options,
/// optional fields, `-`, type, source, ...
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(2);
    let number = fields.next()?.to_owned();
    let at = fields.nth(1)?.replace("\\040", " ");
    let mut fields = after.split(' ');
    let (kind, source) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    Some(Mount {
        number,
        at,
        kind,
        source,
    })
}

/// Bytes that this user may still write in the directory's file system; 0 where it does not say.
pub(crate) fn free_bytes(dir: &Path) -> u64 {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(dir.as_os_str().as_bytes()) else {
        return 0;
    };
    // SAFETY: the path ends in zero, and a statvfs is plain numbers that the call fills.
    unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &mut stat) != 0 {
            return 0;
        }
        (stat.f_bavail as u64).saturating_mul(stat.f_frsize as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sysfs writes sizes with a letter; what is no size is none.
    #[test]
    fn sizes_of_sysfs() {
        assert_eq!(bytes_of("48K"), Some(48 * 1024));
        assert_eq!(bytes_of("2M"), Some(2 << 20));
        assert_eq!(bytes_of("512"), Some(512));
        assert_eq!(bytes_of("K"), None);
        assert_eq!(bytes_of("12 bananas"), None);
        assert_eq!(bytes_of(""), None);
    }

    /// A line as proc(5) shows it, with optional fields, and one that is cut off.
    #[test]
    fn a_mount_is_read_from_its_line() {
        let line =
            "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = mount(line).unwrap();
        assert_eq!(
            [mount.number, mount.at, mount.kind, mount.source],
            ["98:0", "/mnt 2", "ext3", "/dev/root"]
        );
        assert!(super::mount("36 35 98:0 /mnt1").is_none());
    }

    /// The kernel's own file system is named as such.
    #[test]
    fn proc_is_a_proc() {
        let files = file_system(Path::new("/proc"));
        assert_eq!(
            (files.kind.as_str(), files.mounted_at.as_str()),
            ("proc", "/proc")
        );
    }

    /// Parts are kept apart: where one ends matters.
    #[test]
    fn keys_tell_machines_apart() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }
}
