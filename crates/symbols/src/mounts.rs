//! Which file systems answer only as long as somebody else does: a server, or a process.

use std::fs;
use std::path::{Path, PathBuf};

/// The mount point of such a file system that a path lies in; `None` if it lies on none.
pub(crate) fn remote(path: &Path) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    remote_in(&mounts, path)
}

/// `mounts` is as /proc/PID/mountinfo has it: later mounts hide earlier ones.
pub(crate) fn remote_in(mounts: &str, path: &Path) -> Option<PathBuf> {
    let mount = |line: &str| {
        let (place, file_system) = line.split_once(" - ")?;
        let point = PathBuf::from(unescaped(place.split(' ').nth(4)?));
        let kind = file_system.split(' ').next()?.to_owned();
        path.starts_with(&point).then_some((point, kind))
    };
    let found = mounts.lines().filter_map(mount);
    let (point, kind) = found.max_by_key(|(point, _)| point.components().count())?;
    is_remote(&kind).then_some(point)
}

fn is_remote(kind: &str) -> bool {
    const KINDS: [&str; 12] = [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "gfs2", "ocfs2",
        "lustre",
    ];
    kind.starts_with("fuse") || KINDS.contains(&kind)
}

/// The kernel writes blanks and the like as three octal digits.
fn unescaped(text: &str) -> String {
    let mut plain = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| byte == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                plain.push(escaped);
                rest = &behind[3..];
            }
            None => {
                plain.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The innermost mount counts, and only those that somebody must answer for.
    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 21 0:45 / /mnt rw - nfs4 server:/ rw
31 30 0:46 / /mnt/a\\040b rw shared:1 - fuse.sshfs host: rw
32 30 254:1 / /mnt/disk rw - ext4 /dev/vdb rw
";
        let remote = |path: &str| remote_in(mounts, Path::new(path));
        assert_eq!(remote("/usr/lib/a.so"), None);
        assert_eq!(remote("/mnt/lib/a.so"), Some("/mnt".into()));
        assert_eq!(remote("/mnt/a b/a.so"), Some("/mnt/a b".into()));
        assert_eq!(remote("/mnt/disk/a.so"), None);
        assert_eq!(remote("/mntother"), None);
    }
}
