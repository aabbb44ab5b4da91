//! Names of code that a just-in-time compiler made, from the files that it writes.
//!
//! A perf map lies in the /tmp that its process sees, under the process's number there; a jitdump
//! lies anywhere, and its process has it mapped so that it can be found. Both may outlive their
//! process. /tmp is everybody's, so a file counts only if the process's user or root owns it, and
//! if it was written since the process began: the kernel uses numbers of processes again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::name::Names;
use crate::place::{Place, Terms};
use crate::process::Process;
use crate::reader::{PATIENCE, Reader};
use crate::request::{Request, Response};
use crate::wire::MOST_FILES;

/// How exactly a process's start is known: the clocks of processes and of files tick apart.
const TOLERANCE: Duration = Duration::from_secs(2);

/// Names code of a process by what its compilers say; `dumps` are the jitdumps that any process has
/// mapped.
pub(crate) fn name(
    reader: &mut Reader,
    process: &Process,
    dumps: &[&Path],
    addresses: &[u64],
) -> Vec<Names> {
    let life = Life::of(process);
    let map = PathBuf::from(format!("/tmp/perf-{}.map", life.own_pid));
    let files: Vec<(Place, Terms)> = std::iter::once(map.as_path())
        .chain(dumps.iter().copied())
        .take(MOST_FILES)
        .map(|path| (life.place(path), life.terms()))
        .collect();
    let request = Request::Compiled {
        pid: life.own_pid,
        addresses: addresses.to_vec(),
    };
    let label = map.to_string_lossy();
    match reader.ask(&label, &files, &request, PATIENCE) {
        Response::Names { names, .. } if names.len() == addresses.len() => names,
        _ => vec![Names::new(); addresses.len()],
    }
}

/// Whether a mapped file is a jitdump, by the name that the specification gives it.
pub(crate) fn is_dump(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_prefix("jit-")?.strip_suffix(".dump"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// What can be known of a process that may have ended.
struct Life {
    /// Its number as it sees itself, in a container of its own perhaps.
    own_pid: u32,
    pid: u32,
    /// Whether it lives, so that its files can be seen as it sees them.
    is_alive: bool,
    started: Option<SystemTime>,
    /// Whose files are believed.
    owners: Vec<u32>,
}

impl Life {
    fn of(process: &Process) -> Life {
        // SAFETY: geteuid has no preconditions.
        let ourselves = unsafe { libc::geteuid() };
        let mut life = Life {
            own_pid: process.pid,
            pid: process.pid,
            is_alive: false,
            started: process
                .started_unix_ns
                .map(|ns| SystemTime::UNIX_EPOCH + Duration::from_nanos(ns)),
            owners: vec![0, ourselves],
        };
        let caller: Option<u32> = std::env::var("SUDO_UID")
            .ok()
            .and_then(|id| id.parse().ok());
        life.owners.extend(caller);
        let folder = PathBuf::from(format!("/proc/{}", process.pid));
        let (Some(status), Some(started)) = (
            fs::read_to_string(folder.join("status")).ok(),
            started(&folder),
        ) else {
            return life;
        };
        let is_another = life
            .started
            .is_some_and(|recorded| started > recorded + TOLERANCE);
        if is_another {
            return life;
        }
        life.started.get_or_insert(started);
        life.is_alive = true;
        life.owners.extend(field(&status, "Uid:").next());
        life.own_pid = field(&status, "NSpid:").last().unwrap_or(process.pid);
        life
    }

    /// Where a file that the process calls `path` may be found.
    fn place(&self, path: &Path) -> Place {
        match self.is_alive {
            true => Place::Within {
                pid: self.pid,
                path: path.to_owned(),
            },
            false => Place::Path(path.to_owned()),
        }
    }

    /// What a file must be to be believed.
    fn terms(&self) -> Terms {
        let since = self.started.and_then(|started| {
            let since = started.checked_sub(TOLERANCE)?;
            let since = since.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            i64::try_from(since.as_secs()).ok()
        });
        Terms {
            elf: false,
            owners: self.owners.clone(),
            written_since: since,
        }
    }
}

/// The numbers of a line of /proc/PID/status.
pub(crate) fn field(status: &str, name: &str) -> impl Iterator<Item = u32> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let words = line.unwrap_or_default().split_ascii_whitespace();
    words.filter_map(|word| word.parse().ok())
}

/// When the process of a folder in /proc began.
fn started(folder: &Path) -> Option<SystemTime> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let (_, behind_name) = stat.rsplit_once(") ")?;
    let ticks: f64 = behind_name.split(' ').nth(19)?.parse().ok()?;
    // SAFETY: sysconf takes a plain number.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    let age = Duration::try_from_secs_f64(uptime - ticks / ticks_per_second).unwrap_or_default();
    SystemTime::now().checked_sub(age)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a process that is gone only root's and our own files count; one that lives has its own too,
    /// as it sees them.
    #[test]
    fn owners_are_those_of_the_process() {
        let gone = Life::of(&Process {
            pid: u32::MAX,
            started_unix_ns: Some(5_000_000_000),
        });
        assert_eq!(gone.terms().written_since, Some(3));
        assert!(gone.terms().owners.contains(&0));
        let path = Path::new("/tmp/perf-1.map");
        assert_eq!(gone.place(path), Place::Path(path.to_owned()));
        let own = Life::of(&Process {
            pid: std::process::id(),
            started_unix_ns: None,
        });
        assert!(own.terms().written_since.is_some());
        assert!(matches!(own.place(path), Place::Within { .. }));
    }

    /// The names of jitdumps are recognised among others.
    #[test]
    fn jitdumps_are_told_by_name() {
        assert!(is_dump(Path::new("/home/a/.debug/jit/x/jit-123.dump")));
        for other in [
            "/tmp/jit-.dump",
            "/tmp/jit-1.dump.so",
            "/tmp/perf-1.map",
            "/",
        ] {
            assert!(!is_dump(Path::new(other)), "{other}");
        }
    }

    /// This very process began before now, and after the machine did.
    #[test]
    fn a_start_is_read() {
        let started = started(Path::new("/proc/self")).unwrap();
        let age = SystemTime::now().duration_since(started).unwrap();
        assert!(age < Duration::from_secs(3600), "{age:?}");
    }
}
