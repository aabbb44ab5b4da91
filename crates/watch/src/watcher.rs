//! Looks for every sign of a hang, and tells of each with the process that it is in.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use crate::netlink::SockDiag;
use crate::processes::{self, Process};
use crate::stalls::Stalls;
use crate::standing::{Limits, Stretch};
use crate::windows::{self, Queue, Silence, Windows};

/// By what a hang was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A window did not read what its display sent.
    Window,
    /// A named thread did not come round.
    Stall,
}

impl Sign {
    /// The word for it in answers.
    pub fn text(self) -> &'static str {
        match self {
            Sign::Window => "window",
            Sign::Stall => "stall",
        }
    }
}

/// A hang that was noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hang {
    /// By what.
    pub sign: Sign,
    /// The process that hung; none if it cannot be seen from here.
    pub process: Option<Process>,
    /// The thread that hung, by the kernel's thread id: of a window the process's first.
    pub tid: u32,
    /// When, in CLOCK_MONOTONIC.
    pub stretch: Stretch,
}

/// What looks.
pub struct Watcher {
    diag: SockDiag,
    queues: Vec<Queue>,
    windows: Windows,
    /// The processes of windows that do not answer, by the inode of the socket: found while they
    /// live.
    holders: HashMap<u32, Option<Process>>,
    stalls: Vec<Stalls>,
}

/// A suspect is looked at so often before it is believed,
const CLOSE_LOOKS: usize = 20;
/// and after such pauses.
const PAUSE: Duration = Duration::from_millis(5);

impl Watcher {
    /// Watches all windows and some threads.
    ///
    /// # Errors
    /// If the kernel cannot be asked for unix sockets.
    pub fn new(windows: Limits, stalls: Vec<Stalls>) -> io::Result<Watcher> {
        let mut watcher = Watcher {
            diag: SockDiag::open()?,
            queues: Vec::new(),
            windows: Windows::new(windows),
            holders: HashMap::new(),
            stalls,
        };
        watcher.read_queues()?;
        Ok(watcher)
    }

    /// Looks once, and gives the hangs that are to be told. Takes 100 ms where one begins to be
    /// suspected, otherwise a moment.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn look(&mut self) -> io::Result<Vec<Hang>> {
        let mut silences = self.look_at_windows()?;
        if !self.windows.suspects().is_empty() {
            for _ in 0..CLOSE_LOOKS {
                std::thread::sleep(PAUSE);
                silences.extend(self.look_at_windows()?);
            }
            for client in self.windows.confirm() {
                let holder = processes::holder_of_socket(client);
                self.holders.insert(client, holder);
            }
        }
        let mut hangs = Vec::new();
        for Silence { client, stretch } in silences {
            let process = match stretch.goes_on {
                true => self.holders.get(&client).cloned().flatten(),
                false => self.holders.remove(&client).flatten(),
            };
            hangs.push(Hang {
                sign: Sign::Window,
                tid: process.as_ref().map_or(0, |process| process.pid),
                process,
                stretch,
            });
        }
        self.holders
            .retain(|client, _| self.windows.is_silent(*client));
        let now = monotonic_ns();
        for (thread, stretch) in self.stalls.iter_mut().flat_map(|stalls| stalls.look(now)) {
            hangs.push(Hang {
                sign: Sign::Stall,
                tid: thread.tid,
                process: Some(thread.process),
                stretch,
            });
        }
        Ok(hangs)
    }

    /// How many windows there are, and how many threads that were named.
    pub fn watched(&self) -> (usize, usize) {
        let threads = self.stalls.iter().map(Stalls::count).sum();
        (self.queues.len(), threads)
    }

    fn look_at_windows(&mut self) -> io::Result<Vec<Silence>> {
        self.read_queues()?;
        Ok(self.windows.look(monotonic_ns(), &self.queues))
    }

    fn read_queues(&mut self) -> io::Result<()> {
        let queues = &mut self.queues;
        queues.clear();
        self.diag.connections(|connection| {
            if windows::is_display(connection.name) {
                queues.push(Queue {
                    client: connection.peer,
                    unread: connection.unread_by_peer,
                });
            }
        })
    }
}

/// CLOCK_MONOTONIC, ns: the recorder's clock.
fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
