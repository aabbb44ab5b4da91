//! Programs that read what their display sends on a thread of its own.
//!
//! Qt does so: its socket is read also while the program hangs. But that thread does nothing with
//! what it reads; it wakes the main thread for it, through an eventfd which that polls. An eventfd
//! that stays set is to such a program what a queue that is not read is to others.
//!
//! A program has more eventfds, and a busy worker's may stay set for long without harm. The main
//! thread's are known by what it polls when it is idle: the kernel tells the arguments of the call
//! that a thread is blocked in.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::processes::Process;
use crate::stalls::Selector;

/// The threads that read for others.
const READERS: [&str; 2] = ["QXcbEventQueue", "WaylandEventThread"];

/// The eventfds of one program.
struct Relay {
    process: Process,
    /// Those that the main thread polls; empty until it is met polling.
    eventfds: Vec<u32>,
}

/// All programs that have a reader.
#[derive(Default)]
pub struct Relays {
    programs: Vec<Relay>,
    /// What the connections to displays were when the programs were last searched for.
    searched: u64,
    /// What they have become, and since when, ns: a program makes its threads a moment later.
    changed: Option<(u64, u64)>,
}

/// After such a time a program has its threads, ns.
const SETTLED_NS: u64 = 1_000_000_000;

impl Relays {
    /// Searches for the programs again, if other connections to displays than before have been
    /// there for a moment. `connections` is a number that changes with them; `now` in ns.
    pub fn search(&mut self, now: u64, connections: u64) {
        if connections == self.searched {
            self.changed = None;
            return;
        }
        match self.changed {
            Some((to, since)) if to == connections => {
                if now < since + SETTLED_NS {
                    return;
                }
            }
            _ => return self.changed = Some((connections, now)),
        }
        self.searched = connections;
        self.changed = None;
        let selectors = READERS.into_iter().filter_map(|name| name.parse().ok());
        let threads = selectors.flat_map(|selector: Selector| selector.find());
        let mut found: Vec<Process> = threads.map(|thread| thread.process).collect();
        found.sort_by_key(|process| process.pid);
        found.dedup();
        let mut known = std::mem::take(&mut self.programs);
        for process in found {
            let before = known.iter().position(|relay| relay.process == process);
            self.programs.push(match before {
                Some(at) => known.swap_remove(at),
                None => Relay {
                    process,
                    eventfds: Vec::new(),
                },
            });
        }
    }

    /// Gives to `each`, for every eventfd of a main thread, whose it is, which, and by how much it
    /// is set.
    pub fn read(&mut self, mut each: impl FnMut(&Process, u32, u64)) {
        for relay in &mut self.programs {
            let pid = relay.process.pid;
            if relay.eventfds.is_empty() {
                relay.eventfds = polled_eventfds(pid);
            }
            let count = |&fd: &u32| Some((fd, eventfd_count(pid, fd)?));
            let counts: Option<Vec<_>> = relay.eventfds.iter().map(count).collect();
            match counts {
                Some(counts) => counts
                    .iter()
                    .for_each(|&(fd, n)| each(&relay.process, fd, n)),
                // One is no eventfd any more: what it polls now is to be learnt.
                None => relay.eventfds.clear(),
            }
        }
    }
}

/// The eventfds that a process's main thread is polling; none if it is not at that.
fn polled_eventfds(pid: u32) -> Vec<u32> {
    let polled = || {
        let call = fs::read_to_string(format!("/proc/{pid}/task/{pid}/syscall")).ok()?;
        let (address, count) = read_poll(&call)?;
        let mut bytes = vec![0; count * POLLFD];
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        memory.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    };
    let bytes = polled().unwrap_or_default();
    let fds = bytes.chunks_exact(POLLFD).filter_map(|entry| {
        let fd = i32::from_ne_bytes(*entry.first_chunk()?);
        u32::try_from(fd).ok()
    });
    fds.filter(|&fd| eventfd_count(pid, fd).is_some()).collect()
}

/// Size of `struct pollfd`.
const POLLFD: usize = 8;
/// A main loop polls fewer.
const MOST_POLLED: usize = 4096;

/// The first two arguments of the call that a thread is blocked in, as /proc has it, if that is
/// poll or ppoll: where the list is and how long.
pub(crate) fn read_poll(call: &str) -> Option<(u64, usize)> {
    let mut fields = call.split_ascii_whitespace();
    let number: i64 = fields.next()?.parse().ok()?;
    #[cfg(target_arch = "x86_64")]
    let polls = [libc::SYS_poll, libc::SYS_ppoll];
    #[cfg(not(target_arch = "x86_64"))]
    let polls = [libc::SYS_ppoll];
    let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
    let (address, count) = (argument()?, argument()? as usize);
    (polls.contains(&number) && count <= MOST_POLLED).then_some((address, count))
}

/// By how much an eventfd is set; none if it is something else.
fn eventfd_count(pid: u32, fd: u32) -> Option<u64> {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let mut lines = info.lines();
    let count = lines.find_map(|line| line.strip_prefix("eventfd-count:"))?;
    u64::from_str_radix(count.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only poll's arguments are taken; a thread that runs has none, a list without end is none.
    #[test]
    fn calls() {
        let ppoll = libc::SYS_ppoll;
        let call = |count| format!("{ppoll} 0x7f00 0x{count:x} 0x0 0x0 0x8 0x0 0x7ffc 0x7f11\n");
        assert_eq!(read_poll(&call(6)), Some((0x7f00, 6)));
        assert_eq!(read_poll(&call(u64::MAX)), None);
        for other in ["running\n", "", "-1 0x7ffc 0x7f11\n", "202 0x7f00 0x6\n"] {
            assert_eq!(read_poll(other), None, "{other}");
        }
    }

    /// An eventfd tells by how much it is set, in whatever base the kernel writes; other files do
    /// not.
    #[test]
    fn counts() {
        // SAFETY: eventfd takes plain numbers.
        let fd = unsafe { libc::eventfd(26, libc::EFD_CLOEXEC) };
        let pid = std::process::id();
        assert_eq!(eventfd_count(pid, fd as u32), Some(26));
        // SAFETY: it was just made, and nobody else has it.
        unsafe { libc::close(fd) };
        assert_eq!(eventfd_count(pid, u32::MAX), None);
    }

    /// Programs are searched for a moment after connections changed, and not again for the same.
    #[test]
    fn searches() {
        let mut relays = Relays::default();
        let mut search = |now, connections| {
            relays.search(now, connections);
            relays.searched
        };
        assert_eq!(search(0, 7), 0);
        assert_eq!(search(SETTLED_NS / 2, 8), 0);
        assert_eq!(search(SETTLED_NS, 8), 0);
        assert_eq!(search(SETTLED_NS * 2, 8), 8);
    }
}
