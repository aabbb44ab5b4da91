//! What /proc says about processes and threads. All of it may be gone at any moment: then it is none.

use std::fs;
use std::path::Path;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The kernel's process id.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub process: Process,
    /// The kernel's thread id.
    pub tid: u32,
    /// Its name.
    pub name: String,
}

/// The process that holds a socket, by the socket's inode. Of several, as after a fork, the one
/// that was first.
pub fn holder_of_socket(inode: u32) -> Option<Process> {
    let wanted = format!("socket:[{inode}]");
    let holds = |pid: &u32| {
        numbers(Path::new(&format!("/proc/{pid}/fd"))).any(|fd| {
            let link = fs::read_link(format!("/proc/{pid}/fd/{fd}"));
            link.is_ok_and(|target| target.as_os_str() == wanted.as_str())
        })
    };
    let pid = pids()
        .filter(holds)
        .min_by_key(|&pid| (started(pid).unwrap_or(u64::MAX), pid))?;
    Some(Process {
        pid,
        name: name(pid)?,
    })
}

/// The ids of all processes.
pub fn pids() -> impl Iterator<Item = u32> {
    numbers(Path::new("/proc"))
}

/// The ids of a process's threads.
pub fn tids(pid: u32) -> impl Iterator<Item = u32> {
    numbers(Path::new(&format!("/proc/{pid}/task")))
}

/// A process's name.
pub fn name(pid: u32) -> Option<String> {
    read_name(&format!("/proc/{pid}/comm"))
}

/// A thread's name.
pub fn thread_name(pid: u32, tid: u32) -> Option<String> {
    read_name(&format!("/proc/{pid}/task/{tid}/comm"))
}

/// How often a thread has left the CPU voluntarily.
pub fn voluntary_switches(pid: u32, tid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    read_voluntary_switches(&status)
}

pub(crate) fn read_voluntary_switches(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let number = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    number.trim().parse().ok()
}

fn read_name(path: &str) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// When a process started, in ticks since the system's start.
fn started(pid: u32) -> Option<u64> {
    read_started(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Field 22. The second is a name in brackets that may hold anything, brackets too.
pub(crate) fn read_started(stat: &[u8]) -> Option<u64> {
    let behind_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let rest = std::str::from_utf8(&stat[behind_name..]).ok()?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The names in a folder that are numbers.
fn numbers(folder: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// This process holds a socket that it made, and is named as it is.
    #[test]
    fn own_socket() {
        use std::os::fd::AsRawFd;
        let (end, _other) = UnixStream::pair().unwrap();
        let inode = fs::metadata(format!("/proc/self/fd/{}", end.as_raw_fd())).unwrap();
        let holder = holder_of_socket(inode.ino() as u32).unwrap();
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(Some(holder.name), name(std::process::id()));
        assert_eq!(holder_of_socket(0), None);
    }

    /// A thread that blocks counts up; one that is not there has no number.
    #[test]
    fn switches() {
        let pid = std::process::id();
        // SAFETY: gettid has no preconditions.
        let tid = unsafe { libc::gettid() } as u32;
        let before = voluntary_switches(pid, tid).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(voluntary_switches(pid, tid).unwrap() > before);
        assert_eq!(voluntary_switches(pid, u32::MAX), None);
    }

    /// Names in brackets do not confuse; what is cut short is none.
    #[test]
    fn odd_files() {
        let fields = "S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        let stat = format!("12 (a) b) {fields}");
        assert_eq!(read_started(stat.as_bytes()), Some(4711));
        assert_eq!(read_started(b"12 (a) S 1"), None);
        assert_eq!(read_started(b""), None);
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(read_voluntary_switches(status), Some(12));
        assert_eq!(
            read_voluntary_switches("nonvoluntary_ctxt_switches:\t3"),
            None
        );
    }
}
