//! How much memory and CPU time control groups allow their processes, how fast they may use disks, and how many
//! threads they may have.
//!
//! Both versions of control groups are read, as files below /sys/fs/cgroup that everybody may read. Of a
//! process's groups, from its own outwards, the first counts that has a limit of a kind; of CPU time the one
//! that allows least.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use hangdog_trace::words::{LimitKind, USED_UP};

/// A limit of a process, or of its control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub pid: u32,
    pub kind: LimitKind,
    /// Bytes, bytes a second, operations a second, thousandths of a CPU, files, or threads.
    pub limit: u64,
    /// Of memory, how many bytes the group has; of files, how many are open; of threads, how many it has.
    pub used: u64,
    /// The group, from the root of its hierarchy; empty of what is the process's own.
    pub group: String,
    /// Of a disk, what the kernel calls it: `loop0`.
    pub device: String,
}

impl Limit {
    /// What it limits: each disk has its own.
    pub(crate) fn of(&self) -> (u8, String) {
        (self.kind.into(), self.device.clone())
    }
}

/// What version 1 has for "no limit", and more.
const NONE_FROM: u64 = 1 << 60;
/// The controllers of version 1 whose limits count.
const LIMITING: [&str; 4] = ["memory", "blkio", "cpu", "pids"];
/// Of no more disks are a group's limits reported.
const MOST_DISKS: usize = 16;
/// No such file is longer: a machine with many containers has thousands of mounts.
const LONGEST: u64 = 1 << 22;
/// Of a hierarchy no more groups are looked at for their members, and no more limits of members reported: whoever may
/// make groups can make any number.
const MOST_GROUPS: usize = 4096;
const MOST_OF_MEMBERS: usize = 8192;

/// The limits of all processes that have any.
pub(crate) fn all() -> Vec<Limit> {
    let Some(mounts) = read_text(Path::new("/proc/self/mountinfo")) else {
        return Vec::new();
    };
    let mounts = Mount::all(&mounts);
    let mut known: HashMap<(PathBuf, String), Vec<Limit>> = HashMap::new();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid else { continue };
        let Some(groups) = read_text(&entry.path().join("cgroup")) else {
            continue;
        };
        for line in groups.lines() {
            let Some((controllers, path)) =
                line.split_once(':').and_then(|(_, of)| of.split_once(':'))
            else {
                continue;
            };
            let Some(mount) = mounts.iter().find(|mount| mount.is_of(controllers)) else {
                continue;
            };
            let limits = (known.entry((mount.at.clone(), path.to_owned())))
                .or_insert_with(|| mount.limits(path));
            found.extend(limits.iter().cloned().map(|limit| Limit { pid, ..limit }));
        }
    }
    found
}

/// Where a hierarchy of control groups is mounted.
pub(crate) struct Mount {
    pub(crate) at: PathBuf,
    /// The group that is its root, in a container.
    pub(crate) root: String,
    /// Of version 1, its controllers; of version 2 none.
    pub(crate) controllers: Vec<String>,
}

impl Mount {
    /// Those that tell limits, of the lines of mountinfo.
    pub(crate) fn all(mountinfo: &str) -> Vec<Mount> {
        let mount = |line: &str| {
            let (left, right) = line.split_once(" - ")?;
            // The numbers of the mount, of its parent and of the device come first.
            let mut left = left.split(' ');
            let (root, at) = (left.nth(3)?, left.next()?);
            let mut right = right.split(' ');
            let (kind, options) = (right.next()?, right.nth(1)?);
            let controllers: Vec<String> = match kind {
                "cgroup2" => Vec::new(),
                "cgroup" => options.split(',').map(str::to_owned).collect(),
                _ => return None,
            };
            Some(Mount {
                at: PathBuf::from(at),
                root: root.to_owned(),
                controllers,
            })
        };
        mountinfo.lines().filter_map(mount).collect()
    }

    /// Whether a line of /proc/PID/cgroup with these controllers is of this hierarchy.
    pub(crate) fn is_of(&self, controllers: &str) -> bool {
        match controllers {
            "" => self.controllers.is_empty(),
            of => {
                let is_here = |name: &str| self.controllers.iter().any(|own| own == name);
                of.split(',')
                    .any(|name| LIMITING.contains(&name) && is_here(name))
            }
        }
    }

    pub(crate) fn tells_limits(&self) -> bool {
        let mut controllers = self.controllers.iter();
        self.controllers.is_empty() || controllers.any(|name| LIMITING.contains(&name.as_str()))
    }

    /// The limits of the processes that are in groups with any.
    pub(crate) fn of_members(&self) -> Vec<Limit> {
        let mut all: Vec<Limit> = Vec::new();
        let mut groups = vec![(PathBuf::new(), Vec::new())];
        let mut seen = 0;
        while let Some((group, outer)) = groups.pop()
            && seen < MOST_GROUPS
        {
            seen += 1;
            let mut limits = self.own_limits(&group);
            inherit(&mut limits, outer);
            let folder = self.at.join(&group);
            if !limits.is_empty() {
                let members = read_text(&folder.join("cgroup.procs")).unwrap_or_default();
                // One outside this namespace is 0.
                let members = members.lines().filter_map(|line| line.parse().ok());
                let of_members = members.filter(|&pid: &u32| pid > 0).flat_map(|pid| {
                    let of_group = limits.iter().cloned();
                    of_group.map(move |limit| Limit { pid, ..limit })
                });
                all.extend(of_members.take(MOST_OF_MEMBERS - all.len()));
            }
            let inner = fs::read_dir(&folder).into_iter().flatten().flatten();
            let inner = inner.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let inner = inner.map(|entry| (group.join(entry.file_name()), limits.clone()));
            groups.extend(inner.take(MOST_GROUPS));
        }
        all
    }

    /// The limits of a group, each of the first of it and those around it that has one.
    fn limits(&self, group: &str) -> Vec<Limit> {
        let mut found: Vec<Limit> = Vec::new();
        let below = group.strip_prefix(&self.root).unwrap_or(group);
        let inner = Path::new(below.trim_start_matches('/'));
        // A group that lies outside this namespace is not to be seen.
        if inner.components().any(|part| part.as_os_str() == "..") {
            return found;
        }
        for group in inner.ancestors() {
            inherit(&mut found, self.own_limits(group));
        }
        found
    }

    fn own_limits(&self, group: &Path) -> Vec<Limit> {
        let folder = self.at.join(group);
        let file = |name: &str| read_text(&folder.join(name));
        let number = |name: &str| file(name)?.trim().parse::<u64>().ok();
        let limit = |kind, limit, used| Limit {
            pid: 0,
            kind,
            limit,
            used,
            group: format!("/{}", group.display()),
            device: String::new(),
        };
        let of_disks = |kind, values: &mut dyn Iterator<Item = (u64, &str)>| {
            let mut least: BTreeMap<String, u64> = BTreeMap::new();
            for (value, number) in values.take(MOST_DISKS) {
                let known = least.entry(device_name(number)).or_insert(value);
                *known = value.min(*known);
            }
            let each = least.into_iter().map(|(device, least)| Limit {
                device,
                ..limit(kind, least, 0)
            });
            each.collect::<Vec<Limit>>()
        };
        let mut found = Vec::new();
        let memory = |limits: &[&str], used: &str| {
            let least = limits.iter().filter_map(|name| number(name)).min()?;
            let is_one = least < NONE_FROM;
            is_one.then(|| limit(LimitKind::Memory, least, number(used).unwrap_or(0)))
        };
        // Every service of a machine may have such a limit: it counts where there is hardly any room left.
        let tasks = || {
            let (most, used) = (number("pids.max")?, number("pids.current")?);
            let is_full = used as f64 >= USED_UP * most as f64;
            is_full.then(|| limit(LimitKind::Tasks, most, used))
        };
        found.extend(tasks());
        let cpu = |quota: &str, period: &str| {
            let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?);
            let thousandths = quota.saturating_mul(1000).checked_div(period)?;
            Some(limit(LimitKind::Cpu, thousandths, 0))
        };
        if self.controllers.is_empty() {
            let of_cpu = file("cpu.max").unwrap_or_default();
            found.extend(
                of_cpu
                    .trim()
                    .split_once(' ')
                    .and_then(|(quota, period)| cpu(quota, period)),
            );
            found.extend(memory(&["memory.max", "memory.high"], "memory.current"));
            let io = file("io.max").unwrap_or_default();
            for (word, kind) in [
                ("rbps=", LimitKind::DiskRead),
                ("wbps=", LimitKind::DiskWrite),
                ("riops=", LimitKind::DiskReads),
                ("wiops=", LimitKind::DiskWrites),
            ] {
                let mut values = io.lines().filter_map(|line| {
                    let (device, values) = line.split_once(' ')?;
                    let mut values = values.split(' ').filter_map(|it| it.strip_prefix(word));
                    Some((values.next()?.parse::<u64>().ok()?, device))
                });
                found.extend(of_disks(kind, &mut values));
            }
        } else {
            // No quota is -1.
            let of_cpu = |name: &str| file(name).unwrap_or_default();
            let (quota, period) = (of_cpu("cpu.cfs_quota_us"), of_cpu("cpu.cfs_period_us"));
            found.extend(cpu(quota.trim(), period.trim()));
            found.extend(memory(&["memory.limit_in_bytes"], "memory.usage_in_bytes"));
            for (name, kind) in [
                ("read_bps", LimitKind::DiskRead),
                ("write_bps", LimitKind::DiskWrite),
                ("read_iops", LimitKind::DiskReads),
                ("write_iops", LimitKind::DiskWrites),
            ] {
                let lines = file(&format!("blkio.throttle.{name}_device")).unwrap_or_default();
                let mut values = lines.lines().filter_map(|line| {
                    let (device, value) = line.split_once(' ')?;
                    Some((value.trim().parse::<u64>().ok()?, device))
                });
                found.extend(of_disks(kind, &mut values));
            }
        }
        found
    }
}

/// What the kernel calls a disk of this number, `7:0`; empty if it has none.
fn device_name(number: &str) -> String {
    let is_number = number.bytes().all(|it| it.is_ascii_digit() || it == b':');
    let link = is_number.then(|| fs::read_link(format!("/sys/dev/block/{number}")).ok());
    let name = link
        .flatten()
        .and_then(|link| Some(link.file_name()?.to_str()?.to_owned()));
    name.unwrap_or_default()
}

/// Adds the limits of an outer group: of each kind, and each disk, the inner one counts, of CPU time the one that allows
/// least.
fn inherit(limits: &mut Vec<Limit>, outer: Vec<Limit>) {
    for limit in outer {
        match limits.iter_mut().find(|known| known.of() == limit.of()) {
            Some(known) if limit.kind == LimitKind::Cpu && limit.limit < known.limit => {
                *known = limit;
            }
            Some(_) => {}
            None => limits.push(limit),
        }
    }
}

/// A small file's text; nothing where it cannot be read.
pub(crate) fn read_text(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    fn told(limits: &[Limit]) -> Vec<(LimitKind, u64, u64, &str)> {
        let told = limits.iter();
        told.map(|it| (it.kind, it.limit, it.used, it.group.as_str()))
            .collect()
    }

    /// A disk has the name that the kernel gives it; what is no number leads nowhere.
    #[test]
    fn disks_have_names() {
        for disk in fs::read_dir("/sys/block")
            .into_iter()
            .flatten()
            .flatten()
            .take(3)
        {
            let number = fs::read_to_string(disk.path().join("dev")).unwrap_or_default();
            assert_eq!(
                device_name(number.trim()),
                disk.file_name().to_string_lossy()
            );
        }
        for wrong in ["", "999999:1", "../block", "7:0/.."] {
            assert_eq!(device_name(wrong), "", "{wrong}");
        }
    }

    /// Each disk has its own limit, also where one of two is limited by an outer group.
    #[test]
    fn each_disk_has_its_own() {
        let disks: Vec<(String, String)> = fs::read_dir("/sys/block")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|disk| {
                let number = fs::read_to_string(disk.path().join("dev")).ok()?;
                let name = disk.file_name().into_string().ok()?;
                Some((name, number.trim().to_owned()))
            })
            .collect();
        let [(one, first), (two, second), ..] = &disks[..] else {
            return;
        };
        let root = tempfile::tempdir().unwrap();
        let throttle = "blkio.throttle.read_iops_device";
        let both = format!("{first} 300\n{second} 60\n");
        write(&root.path().join("tt"), &[(throttle, &both)]);
        let inner = format!("{second} 50\n");
        write(&root.path().join("tt/in"), &[(throttle, &inner)]);
        let mount = Mount {
            at: root.path().to_owned(),
            root: "/".into(),
            controllers: vec!["blkio".into()],
        };
        let limits = |group: &str| {
            let found = mount.limits(group).into_iter();
            found
                .map(|limit| (limit.device, limit.limit, limit.group))
                .collect::<BTreeSet<_>>()
        };
        let limit = |disk: &String, limit, group: &str| (disk.clone(), limit, group.to_owned());
        let outer = [limit(one, 300, "/tt"), limit(two, 60, "/tt")];
        assert_eq!(limits("/tt"), BTreeSet::from(outer));
        let mixed = [limit(one, 300, "/tt"), limit(two, 50, "/tt/in")];
        assert_eq!(limits("/tt/in"), BTreeSet::from(mixed));
    }

    /// Of a group and those around it, the nearest limit of each kind counts; "max" and what version 1 has
    /// for no limit are none.
    #[test]
    fn the_nearest_limit_counts() {
        let root = tempfile::tempdir().unwrap();
        write(
            &root.path().join("a/b"),
            &[
                ("memory.max", "max\n"),
                ("memory.current", "5\n"),
                ("cpu.max", "400000 100000\n"),
            ],
        );
        write(
            &root.path().join("a"),
            &[
                ("memory.max", "4096\n"),
                ("memory.high", "2048\n"),
                ("memory.current", "2000\n"),
                ("cpu.max", "50000 100000\n"),
                (
                    "io.max",
                    "999998:0 rbps=1000 wbps=max riops=max wiops=5\n999999:0 rbps=500 wbps=max\n",
                ),
            ],
        );
        let mut mount = Mount {
            at: root.path().to_owned(),
            root: "/".into(),
            controllers: Vec::new(),
        };
        assert_eq!(
            told(&mount.limits("/a/b")),
            [
                (LimitKind::Cpu, 500, 0, "/a"),
                (LimitKind::Memory, 2048, 2000, "/a"),
                (LimitKind::DiskRead, 500, 0, "/a"),
                (LimitKind::DiskWrites, 5, 0, "/a")
            ]
        );
        assert_eq!(told(&mount.limits("/../a")), [], "outside this namespace");
        write(
            &root.path().join("c"),
            &[
                ("memory.limit_in_bytes", "9223372036854771712\n"),
                ("blkio.throttle.read_bps_device", "7:0 1048576\n"),
                ("cpu.cfs_quota_us", "-1\n"),
                ("cpu.cfs_period_us", "100000\n"),
            ],
        );
        mount.controllers = vec!["rw".into(), "blkio".into()];
        let read = (LimitKind::DiskRead, 1 << 20, 0, "/c");
        assert_eq!(told(&mount.limits("/c")), [read]);
        write(&root.path().join("c"), &[("cpu.cfs_quota_us", "10000\n")]);
        let cpu = (LimitKind::Cpu, 100, 0, "/c");
        assert_eq!(told(&mount.limits("/c")), [cpu, read]);
    }

    /// Only hierarchies that tell limits are asked.
    #[test]
    fn hierarchies_are_told_apart() {
        let mounts = Mount::all(
            "30 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
             31 25 0:27 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
             32 25 0:28 / /tmp rw - tmpfs tmpfs rw\n",
        );
        let of = |controllers: &str| {
            let mount = mounts.iter().find(|mount| mount.is_of(controllers));
            mount.map(|mount| mount.at.to_str().unwrap())
        };
        assert_eq!(of(""), Some("/sys/fs/cgroup/unified"));
        assert_eq!(of("blkio"), Some("/sys/fs/cgroup/blkio"));
        assert_eq!(of("cpu,cpuacct"), None);
    }
}
