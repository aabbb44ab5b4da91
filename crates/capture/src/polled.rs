//! What a thread waits for that waits for several things at once (poll, select).
//!
//! The kernel side tells the one descriptor of a poll, or the one internet socket of two. Of a thread that was found
//! waiting for several, they are read from its memory, or are those of its epoll. The one that matters is the one that
//! another process has the other end of.

use std::collections::{HashMap, HashSet};
use std::fs;

use hangdog_symbols::memory::{Memory, ProcessMemory};
use hangdog_trace::object::{Object, ObjectKind};

use crate::procfs;
use crate::records::{Definition, What};

/// Whether a call waits for any of several things, and names them each time.
pub(crate) fn polls(call: i16) -> bool {
    #[cfg(target_arch = "x86_64")]
    let is_old_poll = i64::from(call) == libc::SYS_poll;
    #[cfg(not(target_arch = "x86_64"))]
    let is_old_poll = false;
    is_old_poll
        || is_old_select(call)
        || matches!(i64::from(call), libc::SYS_ppoll | libc::SYS_pselect6)
}

/// Whether a call waits for any of the things that were put into an epoll before.
pub(crate) fn epolls(call: i16) -> bool {
    #[cfg(target_arch = "x86_64")]
    let is_old = i64::from(call) == libc::SYS_epoll_wait;
    #[cfg(not(target_arch = "x86_64"))]
    let is_old = false;
    is_old
        || matches!(
            i64::from(call),
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2
        )
}

fn is_old_select(call: i16) -> bool {
    #[cfg(target_arch = "x86_64")]
    return i64::from(call) == libc::SYS_select;
    #[cfg(not(target_arch = "x86_64"))]
    return {
        let _ = call;
        false
    };
}

/// The pipes and sockets that processes have open.
#[derive(Default)]
pub(crate) struct Opened {
    /// By process and inode number.
    objects: HashMap<(u32, u64), u64>,
    /// For each pipe, who can write to it, and who can read from it.
    writers: HashMap<u64, Vec<u32>>,
    readers: HashMap<u64, Vec<u32>>,
    /// The sockets by which a process is connected to, by process and inode number.
    listeners: HashSet<(u32, u64)>,
}

impl Opened {
    pub(crate) fn of(definitions: &[Definition]) -> Opened {
        const READ: u8 = 1;
        const WRITE: u8 = 2;
        const LISTENER: u8 = 1;
        let mut opened = Opened::default();
        for definition in definitions {
            let What::Open(open) = &definition.what else {
                continue;
            };
            let object = Object(open.object);
            if object.kind() == ObjectKind::Pipe && open.access & READ != 0 {
                opened.readers.entry(object.0).or_default().push(open.pid);
            }
            match object.kind() {
                ObjectKind::Pipe if open.access & WRITE != 0 => {
                    opened.writers.entry(object.0).or_default().push(open.pid);
                }
                ObjectKind::Pipe | ObjectKind::Inet | ObjectKind::Unix => {}
                _ => continue,
            }
            // A process that can only write to it waits for nothing there.
            if object.kind() == ObjectKind::Pipe && open.access & READ == 0 {
                continue;
            }
            let place = (open.pid, object.value());
            if open.kind == LISTENER {
                opened.listeners.insert(place);
            } else {
                opened.objects.insert(place, object.0);
            }
        }
        opened
    }

    /// The same for the descriptors of an epoll. Who may be connected to by one of them is a server, which
    /// waits for anybody: 0. A unix socket does not count: an event loop may wake itself by it. Nor do a process and a
    /// pipe that others than it and the writers read too: they learn by its end that a writer is gone.
    pub(crate) fn awaited_by_epoll(&self, pid: u32, descriptors: &[u32]) -> u64 {
        let mut inodes = (descriptors.iter()).filter_map(|&descriptor| inode(pid, descriptor));
        match inodes.any(|inode| self.listeners.contains(&(pid, inode))) {
            true => 0,
            false => match self.awaited(pid, descriptors) {
                other if matches!(Object(other).kind(), ObjectKind::Unix | ObjectKind::Process) => {
                    0
                }
                pipe if self.is_lifeline(pid, pipe) => 0,
                awaited => awaited,
            },
        }
    }

    fn is_lifeline(&self, pid: u32, pipe: u64) -> bool {
        let writes = |reader| (self.writers.get(&pipe)).is_some_and(|all| all.contains(reader));
        let mut readers = self.readers.get(&pipe).into_iter().flatten();
        readers.any(|reader| *reader != pid && !writes(reader))
    }

    /// Which of the descriptors that a thread of a process waits for at once has somebody at its other
    /// end, if that is one: a connection, or pipes to which the same process writes. 0 if it cannot be
    /// told. A unix socket counts where it is the only thing with another end: a program with a window
    /// waits for its display all the time. So it is with a process (pidfd): an event loop watches its children
    /// beside other things.
    pub(crate) fn awaited(&self, pid: u32, descriptors: &[u32]) -> u64 {
        let objects: Vec<Object> = (descriptors.iter())
            .filter_map(|&descriptor| {
                let inode = inode(pid, descriptor)?;
                self.objects.get(&(pid, inode)).copied().map(Object)
            })
            .collect();
        let of_kind = |wanted| {
            let all = objects.iter().copied();
            all.filter(move |object| object.kind() == wanted)
                .map(|object| object.0)
        };
        let other_writer = |pipe: u64| {
            let writers = self.writers.get(&pipe)?.iter().copied();
            writers.filter(|&writer| writer != pid).max()
        };
        let connections = of_kind(ObjectKind::Inet).map(|object| (object, object));
        let pipes = of_kind(ObjectKind::Pipe)
            .filter_map(|pipe| Some((u64::from(other_writer(pipe)?), pipe)));
        let only = |candidates: &[(u64, u64)]| match candidates {
            [(key, first), rest @ ..] if rest.iter().all(|(other, _)| other == key) => Some(*first),
            _ => None,
        };
        let all: Vec<(u64, u64)> = connections.chain(pipes).collect();
        let local: Vec<u64> = of_kind(ObjectKind::Unix).collect();
        match local[..] {
            [local] if all.is_empty() && descriptors.len() <= FEW => local,
            [] if all.is_empty() && descriptors.len() <= FEW => {
                let mut processes = (descriptors.iter()).filter_map(|&at| process(pid, at));
                match (processes.next(), processes.next()) {
                    (Some(only), None) => Object::new(ObjectKind::Process, u64::from(only)).0,
                    _ => 0,
                }
            }
            _ => only(&all).unwrap_or(0),
        }
    }
}

/// The inode of a pipe or a socket that a process has open.
fn inode(pid: u32, descriptor: u32) -> Option<u64> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    // pipe:[123], socket:[123]
    let (_, inode) = link.to_str()?.split_once(":[")?;
    inode.strip_suffix(']')?.parse().ok()
}

/// The process that a descriptor of another stands for (pidfd), if it has not ended.
fn process(pid: u32, descriptor: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    // -1 once it has ended, 0 where it is in another pid namespace.
    line.trim().parse().ok().filter(|&pid| pid > 0)
}

/// An event loop waits for more than so many descriptors.
const FEW: usize = 2;

/// The descriptors that a thread waits for in a call that [`polls`], if they are a few.
pub(crate) fn polled(tid: u32, pid: u32, call: i16) -> Vec<u32> {
    const MOST: u64 = 64;
    const ENTRY: usize = 8;
    let Some(&[first, second, third, ..]) = procfs::system_call(tid).as_deref().map(|words| {
        // The call comes before its arguments.
        words.get(1..).unwrap_or_default()
    }) else {
        return Vec::new();
    };
    let memory = ProcessMemory(pid);
    let selects = matches!(i64::from(call), libc::SYS_pselect6) || is_old_select(call);
    if selects {
        // Those that it would read or write. A set has a bit for each, and the C library's 1024.
        let words = first.min(1024).div_ceil(64);
        let set = |address: u64, word: u64| match address {
            0 => 0,
            address => memory.word(address.wrapping_add(word * 8)).unwrap_or(0),
        };
        let descriptors = (0..words).flat_map(|word| {
            let bits = set(second, word) | set(third, word);
            (0..64)
                .filter_map(move |bit| (bits >> bit & 1 != 0).then_some((word * 64 + bit) as u32))
        });
        let asked = descriptors.filter(|&at| u64::from(at) < first);
        return asked.take(MOST as usize).collect();
    }
    if second > MOST {
        return Vec::new();
    }
    let mut bytes = vec![0; second as usize * ENTRY];
    if memory.read(first, &mut bytes).is_none() {
        return Vec::new();
    }
    let entries = bytes.chunks_exact(ENTRY);
    let descriptor = |entry: &[u8]| {
        let number = i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
        u32::try_from(number).ok()
    };
    entries.filter_map(descriptor).collect()
}

/// The descriptors of the epoll that a thread waits for in a call that [`epolls`], if they are a few.
pub(crate) fn epolled(tid: u32, pid: u32) -> Vec<u32> {
    const MOST: usize = 64;
    let Some(&[_, epoll, ..]) = procfs::system_call(tid).as_deref() else {
        return Vec::new();
    };
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")) else {
        return Vec::new();
    };
    // "tfd:       12 events:       19 data: ..."
    let descriptor = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        words.next()?.parse().ok()
    };
    let descriptors: Vec<u32> = text.lines().filter_map(descriptor).collect();
    match descriptors.len() {
        0..=MOST => descriptors,
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Open;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    const OTHER: u32 = 4_000_001;
    const THIRD: u32 = 4_000_002;

    /// The object of a descriptor of this process.
    fn object(kind: ObjectKind, descriptor: &impl AsRawFd) -> u64 {
        let link = fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd())).unwrap();
        let inode = link.to_str().unwrap().split(['[', ']']).nth(1).unwrap();
        Object::new(kind, inode.parse().unwrap()).0
    }

    fn open(pid: u32, object: u64, access: u8) -> Definition {
        let (unread, kind, last, ago) = (0, 0, 0, 0);
        let open = Open {
            pid,
            object,
            unread,
            access,
            kind,
            last,
            ago,
        };
        Definition {
            ts: 0,
            what: What::Open(open),
        }
    }

    /// Of pipes the one counts to which another process can write, and two count if that is the same
    /// process; a unix socket does not.
    #[test]
    fn what_has_somebody_at_its_other_end_is_awaited() {
        let own = std::process::id();
        let (first, _first) = std::io::pipe().unwrap();
        let (second, _second) = std::io::pipe().unwrap();
        let (socket, _socket) = std::os::unix::net::UnixStream::pair().unwrap();
        let pipes = [
            object(ObjectKind::Pipe, &first),
            object(ObjectKind::Pipe, &second),
        ];
        let unix = object(ObjectKind::Unix, &socket);
        let all = [first.as_raw_fd(), second.as_raw_fd(), socket.as_raw_fd()];
        let all = all.map(|descriptor| descriptor as u32);
        let awaited = |others: &[(u32, u64)]| {
            let mut found: Vec<_> = pipes.iter().map(|&pipe| open(own, pipe, 3)).collect();
            found.push(open(own, unix, 3));
            found.extend(others.iter().map(|&(pid, object)| open(pid, object, 2)));
            Opened::of(&found).awaited(own, &all)
        };
        assert_eq!(awaited(&[]), 0);
        assert_eq!(awaited(&[(OTHER, pipes[1])]), pipes[1]);
        assert_eq!(awaited(&[(OTHER, pipes[0]), (OTHER, pipes[1])]), pipes[0]);
        assert_eq!(awaited(&[(OTHER, pipes[0]), (THIRD, pipes[1])]), 0);
        assert_eq!(Opened::of(&[]).awaited(own, &all), 0);
        assert_eq!(Opened::of(&[]).awaited(OTHER, &all), 0);
    }

    /// A process counts by the descriptor that stands for it, unless that is one of several things or in an epoll.
    #[test]
    fn the_only_process_is_awaited() {
        let own = std::process::id();
        let this = rustix::process::getpid();
        let first = rustix::process::pidfd_open(this, rustix::process::PidfdFlags::empty());
        let first = first.unwrap();
        let second = first.try_clone().unwrap();
        let (first, second) = (first.as_raw_fd() as u32, second.as_raw_fd() as u32);
        let opened = Opened::of(&[]);
        let process = Object::new(ObjectKind::Process, u64::from(own)).0;
        assert_eq!(opened.awaited(own, &[first]), process);
        assert_eq!(opened.awaited(own, &[first, second]), 0);
        assert_eq!(opened.awaited_by_epoll(own, &[first]), 0);
    }

    /// Of an epoll the one connection counts, unless it is a server's.
    #[test]
    fn the_only_connection_of_an_epoll_is_awaited() {
        let own = std::process::id();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let connection = object(ObjectKind::Inet, &client);
        let mut server = open(own, object(ObjectKind::Inet, &listener), 3);
        if let What::Open(open) = &mut server.what {
            open.kind = 1;
        }
        let opened = Opened::of(&[open(own, connection, 3), server]);
        let (client, listener) = (client.as_raw_fd() as u32, listener.as_raw_fd() as u32);
        assert_eq!(opened.awaited_by_epoll(own, &[client]), connection);
        assert_eq!(opened.awaited_by_epoll(own, &[client, listener]), 0);
    }

    /// A pipe that a third process reads too, or that its own can only write to, is none that an epoll waits for.
    #[test]
    fn a_pipe_that_only_ends_is_not_awaited() {
        let own = std::process::id();
        let (reader, _writer) = std::io::pipe().unwrap();
        let pipe = object(ObjectKind::Pipe, &reader);
        let awaited = |access: u8, others: &[(u32, u8)]| {
            let others = others.iter().map(|&(pid, access)| open(pid, pipe, access));
            let found: Vec<_> = std::iter::once(open(own, pipe, access))
                .chain(others)
                .collect();
            Opened::of(&found).awaited_by_epoll(own, &[reader.as_raw_fd() as u32])
        };
        assert_eq!(awaited(1, &[(OTHER, 3)]), pipe);
        assert_eq!(awaited(1, &[(OTHER, 3), (THIRD, 1)]), 0);
        assert_eq!(awaited(2, &[(OTHER, 3)]), 0);
    }

    /// What an epoll waits for is read of a thread that waits for it.
    #[test]
    fn the_descriptors_of_an_epoll_are_read() {
        let (reader, writer) = std::io::pipe().unwrap();
        let descriptor = reader.as_raw_fd();
        let (tell, told) = std::sync::mpsc::channel();
        let waiter = std::thread::spawn(move || {
            let mut event = libc::epoll_event {
                events: libc::EPOLLIN as u32,
                u64: 0,
            };
            // SAFETY: gettid and epoll_create1 have no preconditions; the descriptors are open, and the
            // event lives on until the calls return.
            unsafe {
                let epoll = libc::epoll_create1(0);
                libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, descriptor, &mut event);
                tell.send(libc::gettid() as u32).unwrap();
                libc::epoll_wait(epoll, &mut event, 1, 60_000);
                libc::close(epoll);
            }
        });
        let tid = told.recv().unwrap();
        let read = || epolled(tid, std::process::id());
        let found = (0..10_000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            Some(read()).filter(|found| !found.is_empty())
        });
        drop(writer);
        waiter.join().unwrap();
        assert_eq!(found, Some(vec![descriptor as u32]));
    }

    /// Descriptors are read from the memory of a thread that waits for them, by poll and by select.
    #[test]
    fn descriptors_are_read_where_the_thread_keeps_them() {
        let calls = [libc::SYS_ppoll, libc::SYS_pselect6];
        for (call, least) in calls.into_iter().flat_map(|call| [(call, 3), (call, 200)]) {
            let (reader, writer) = std::io::pipe().unwrap();
            // One that lies in the second word of a set, too.
            // SAFETY: the descriptor is open, and what is made of it is owned by nobody else.
            let far = unsafe {
                OwnedFd::from_raw_fd(libc::fcntl(
                    reader.as_raw_fd(),
                    libc::F_DUPFD_CLOEXEC,
                    least,
                ))
            };
            let descriptor = far.as_raw_fd();
            let wanted = vec![descriptor as u32];
            let (tell, told) = std::sync::mpsc::channel();
            let waiter = std::thread::spawn(move || {
                // SAFETY: gettid has no preconditions.
                tell.send(unsafe { libc::gettid() } as u32).unwrap();
                // Until the writer is closed.
                let time = libc::timespec {
                    tv_sec: 60,
                    tv_nsec: 0,
                };
                let mut entries = [
                    libc::pollfd {
                        fd: -1,
                        events: libc::POLLIN,
                        revents: 0,
                    },
                    libc::pollfd {
                        fd: descriptor,
                        events: libc::POLLIN,
                        revents: 0,
                    },
                ];
                // SAFETY: a set of bits, all of them clear, is one; the descriptor fits into it, and
                // the calls get what lives on until they return.
                unsafe {
                    let mut set: libc::fd_set = std::mem::zeroed();
                    libc::FD_SET(descriptor, &mut set);
                    let none = std::ptr::null_mut();
                    match call {
                        libc::SYS_ppoll => libc::ppoll(entries.as_mut_ptr(), 2, &time, none),
                        _ => libc::pselect(
                            descriptor + 1,
                            &mut set,
                            none.cast(),
                            none.cast(),
                            &time,
                            none,
                        ),
                    };
                }
            });
            let tid = told.recv().unwrap();
            let read = || polled(tid, std::process::id(), call as i16);
            let found = (0..20_000).map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                read()
            });
            let found = { found }.find(|found| !found.is_empty());
            drop(writer);
            waiter.join().unwrap();
            drop(far);
            assert_eq!(found.as_ref(), Some(&wanted), "{call}");
        }
        assert!(polled(THIRD, THIRD, libc::SYS_ppoll as i16).is_empty());
    }
}
