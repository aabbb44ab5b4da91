//! Names of code that a just-in-time compiler made: it leaves them in files, for whoever asks, or they
//! are read from its memory ([`hotspot`](super::hotspot)).
//!
//! A perf map lies in the /tmp that its process sees, under the process's number there; a jitdump
//! lies anywhere, and its process has it mapped so that it can be found. Both may outlive their
//! process. /tmp is everybody's, so a file counts only if the process's user or root owns it, and
//! if it was written since the process began: the kernel uses numbers of processes again.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::hotspot::HotSpot;
use super::name::{Name, Names};
use super::spans::Spans;
use super::{Process, jitdump, perf_map};

/// A file larger than this is cut: nobody should fill our memory.
const MOST_BYTES: u64 = 256 << 20;
/// How exactly a process's start is known: the clocks of processes and of files tick apart.
const TOLERANCE: Duration = Duration::from_secs(2);

/// What a process's compilers say of their code.
pub(super) struct Jit {
    /// By their files.
    files: Vec<Spans<String>>,
    /// By its memory, of one that runs Java.
    hotspot: Option<HotSpot>,
}

impl Jit {
    /// Reads the files of a process; `dumps` are the jitdumps that any process has mapped.
    pub(super) fn of(process: &Process, dumps: &[&Path]) -> Jit {
        let life = Life::of(process);
        let mut code = Vec::new();
        for path in life.places(Path::new(&format!("/tmp/perf-{}.map", life.own_pid))) {
            code.extend(life.read(&path).map(|bytes| perf_map::parse(&bytes)));
        }
        for path in dumps.iter().flat_map(|dump| life.places(dump)) {
            let dump = life.read(&path).and_then(|bytes| jitdump::parse(&bytes));
            code.extend(
                dump.filter(|&(pid, _)| pid == life.own_pid)
                    .map(|(_, code)| code),
            );
        }
        let root = life.root.as_deref();
        Jit {
            files: code,
            hotspot: root.and_then(|root| HotSpot::of(process.pid, root)),
        }
    }

    /// The function at an address of the process.
    pub(super) fn name(&self, address: u64) -> Names {
        // The machine's memory is as it is now; a file may be from before code was compiled anew.
        let now = self
            .hotspot
            .as_ref()
            .and_then(|machine| machine.name(address));
        let name = now.map(|(function, start)| Name {
            function,
            offset: address - start,
            ..Name::default()
        });
        let in_files = || {
            let found = self.files.iter().find_map(|code| code.find(address));
            found.map(|(start, name)| Name::of_jit(name, address - start))
        };
        name.or_else(in_files).into_iter().collect()
    }
}

/// Whether a mapped file is a jitdump, by the name that the specification gives it.
pub(super) fn is_dump(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_prefix("jit-")?.strip_suffix(".dump"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// What can be known of a process that may have ended.
struct Life {
    /// Its number as it sees itself, in a container of its own perhaps.
    own_pid: u32,
    /// How we see its files, while it lives.
    root: Option<PathBuf>,
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
            root: None,
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
        life.root = Some(folder.join("root"));
        life.owners.extend(field(&status, "Uid:").next());
        life.own_pid = field(&status, "NSpid:").last().unwrap_or(process.pid);
        life
    }

    /// Where a file that the process calls `path` may be found.
    fn places(&self, path: &Path) -> Vec<PathBuf> {
        let within = path.strip_prefix("/").unwrap_or(path);
        match &self.root {
            Some(root) => vec![root.join(within)],
            None => vec![path.to_owned()],
        }
    }

    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let file = OpenOptions::new()
            .read(true)
            // A pipe in its place would keep us waiting for a writer.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .ok()?;
        self.trusts(&file).then_some(())?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn trusts(&self, file: &File) -> bool {
        let Ok(metadata) = file.metadata() else {
            return false;
        };
        let is_old = match (self.started, metadata.modified()) {
            (Some(started), Ok(written)) => written + TOLERANCE < started,
            _ => false,
        };
        metadata.is_file() && self.owners.contains(&metadata.uid()) && !is_old
    }
}

/// The numbers of a line of /proc/PID/status.
fn field(status: &str, name: &str) -> impl Iterator<Item = u32> {
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
    use std::os::unix::fs::symlink;

    use super::*;

    /// A life that began a minute ago, of which only root's and our own files count.
    fn life() -> Life {
        let mut life = Life::of(&Process {
            pid: u32::MAX,
            started_unix_ns: None,
        });
        life.started = Some(SystemTime::now() - Duration::from_secs(60));
        life
    }

    /// A file of ours that was written since the process began is believed; one from before, a
    /// link, and a pipe, which would never end, are not.
    #[test]
    fn only_the_process_s_own_files_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("good"), "x").unwrap();
        fs::write(path("stale"), "x").unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        let stale = File::options().write(true).open(path("stale")).unwrap();
        stale.set_modified(long_ago).unwrap();
        symlink(path("good"), path("link")).unwrap();
        let pipe = std::ffi::CString::new(path("pipe").to_str().unwrap()).unwrap();
        // SAFETY: a valid string; the mode is a plain number.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        assert_eq!(life().read(&path("good")).as_deref(), Some(&b"x"[..]));
        for refused in ["stale", "link", "pipe", "missing"] {
            assert_eq!(life().read(&path(refused)), None, "{refused}");
        }
    }

    /// Somebody else's file says nothing of a process.
    #[test]
    fn a_stranger_s_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf-1.map");
        fs::write(&path, "x").unwrap();
        let mut life = life();
        life.owners = vec![4_000_000_000];
        assert_eq!(life.read(&path), None);
    }

    /// The names of jitdumps are told from others.
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
