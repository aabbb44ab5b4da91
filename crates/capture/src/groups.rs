//! Who is in a control group with limits, looked at while a recording goes on.
//!
//! The looks at its begin and its end (`limits`) miss a program that starts and ends in between; and once it has
//! ended, its group has given its memory back. So the members of groups with limits are read every second or so.
//! A limit is reported when it is first seen, and once more when the group has used it up.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use hangdog_trace::words::USED_UP;

use crate::limits::{Limit, Mount, read_text};

/// Time between two looks; more where a look takes long.
const EVERY: Duration = Duration::from_secs(1);
/// A look is followed by so many times what it took, so that it takes 0.2 % of a CPU at most.
const REST: u32 = 500;

/// Looks at the groups now and then.
pub(crate) struct Groups {
    due: Instant,
    /// By process and what is limited, what was reported of those that were there at the last look: the limit, and
    /// whether it was used up.
    reported: HashMap<(u32, (u8, String)), (u64, bool)>,
}

impl Groups {
    pub(crate) fn new() -> Groups {
        Groups {
            due: Instant::now() + EVERY,
            reported: HashMap::new(),
        }
    }

    /// The limits that were not reported yet, if it is time to look again.
    pub(crate) fn look_if_due(&mut self) -> Vec<Limit> {
        let begin = Instant::now();
        if begin < self.due {
            return Vec::new();
        }
        let mountinfo = read_text(Path::new("/proc/self/mountinfo")).unwrap_or_default();
        let mounts = Mount::all(&mountinfo);
        let hierarchies = mounts.iter().filter(|mount| mount.tells_limits());
        let new = self.news(hierarchies.flat_map(Mount::of_members).collect());
        self.due = Instant::now() + EVERY.max(begin.elapsed() * REST);
        new
    }

    /// Which of the limits that there are now were not reported.
    fn news(&mut self, mut all: Vec<Limit>) -> Vec<Limit> {
        let before = std::mem::take(&mut self.reported);
        all.retain(|limit| {
            let is_full = limit.used as f64 >= USED_UP * limit.limit as f64;
            let key = (limit.pid, limit.of());
            let known = before.get(&key).copied();
            let was_full = known.is_some_and(|(_, full)| full);
            self.reported
                .insert(key, (limit.limit, is_full || was_full));
            known.is_none_or(|(of, _)| of != limit.limit) || is_full && !was_full
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use hangdog_trace::words::LimitKind;

    use super::*;

    fn write(folder: PathBuf, files: &[(&str, &str)]) {
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    /// The limits of a group's member are reported once, and again when the group has used up its memory.
    #[test]
    fn members_are_reported_once() {
        let root = tempfile::tempdir().unwrap();
        let outer = [("io.max", "8:0 wbps=1000\n"), ("cgroup.procs", "7\n")];
        write(root.path().join("a"), &outer);
        let inner = |used| [("memory.max", "4096\n"), ("memory.current", used)];
        write(root.path().join("a/b"), &inner("5\n"));
        write(root.path().join("a/b"), &[("cgroup.procs", "0\n8\n")]);
        write(root.path().join("c"), &[("cgroup.procs", "9\n")]);
        let mount = Mount {
            at: root.path().to_owned(),
            root: "/".into(),
            controllers: Vec::new(),
        };
        let mut groups = Groups::new();
        let mut news = || {
            let news = groups.news(mount.of_members());
            let mut news: Vec<_> = news.iter().map(|it| (it.pid, it.kind, it.used)).collect();
            news.sort_by_key(|&(pid, kind, used)| (pid, u8::from(kind), used));
            news
        };
        let write_of = |pid| (pid, LimitKind::DiskWrite, 0);
        let memory = |used| (8, LimitKind::Memory, used);
        assert_eq!(news(), [write_of(7), memory(5), write_of(8)]);
        assert_eq!(news(), []);
        write(root.path().join("a/b"), &inner("4000\n"));
        assert_eq!(news(), [memory(4000)]);
        write(root.path().join("a/b"), &inner("5\n"));
        assert_eq!(news(), [], "it was full once");
        write(root.path().join("c"), &[("memory.max", "64\n")]);
        assert_eq!(news(), [(9, LimitKind::Memory, 0)]);
        write(root.path().join("c"), &[("cgroup.procs", "")]);
        assert_eq!(news(), []);
    }
}
