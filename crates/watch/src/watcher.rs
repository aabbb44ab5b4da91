//! Looks for every sign of a hang, and reports each with the process that it is in.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::budgets::Budgets;
use crate::netlink::SockDiag;
use crate::processes::{self, Process};
use crate::relays::Relays;
use crate::stalls::Stalls;
use crate::standing::{Limits, Stretch};
use crate::windows::{self, Inlet, Queue, Silence, Windows};

/// By what a hang was noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A window did not read what its display sent.
    Window,
    /// A named thread stalled.
    Stall,
    /// A region of this name took longer than it may.
    Region(String),
}

impl Sign {
    /// The word for it in answers.
    pub fn text(&self) -> &'static str {
        match self {
            Sign::Window => "window",
            Sign::Stall => "stall",
            Sign::Region(_) => "region",
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
    connections: usize,
    relays: Relays,
    windows: Windows,
    /// The processes of windows that do not answer: found while they live.
    holders: HashMap<Inlet, Option<Process>>,
    stalls: Vec<Stalls>,
    /// Whoever reads marks puts them in there.
    budgets: Arc<Mutex<Budgets>>,
}

/// A suspect is looked at so often before it is believed,
const CLOSE_LOOKS: usize = 20;
/// and after such pauses.
const PAUSE: Duration = Duration::from_millis(5);

impl Watcher {
    /// Watches all windows, some threads and some regions.
    ///
    /// # Errors
    /// If the kernel cannot be asked for unix sockets.
    pub fn new(
        windows: Limits,
        stalls: Vec<Stalls>,
        budgets: Arc<Mutex<Budgets>>,
    ) -> io::Result<Watcher> {
        let mut watcher = Watcher {
            diag: SockDiag::open()?,
            queues: Vec::new(),
            connections: 0,
            relays: Relays::default(),
            windows: Windows::new(windows),
            holders: HashMap::new(),
            stalls,
            budgets,
        };
        watcher.read_queues(monotonic_ns())?;
        Ok(watcher)
    }

    /// From now on a hang's end is waited for no longer than this, ns: for as long as the recorder
    /// remembers its begin.
    pub fn wait_at_most(&mut self, most_ns: u64) {
        self.windows.wait_at_most(most_ns);
        let stalls = self.stalls.iter_mut();
        stalls.for_each(|stalls| stalls.wait_at_most(most_ns));
        let budgets = self.budgets.lock();
        let mut budgets = budgets.unwrap_or_else(PoisonError::into_inner);
        budgets.wait_at_most(most_ns);
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
                let holder = match client {
                    Inlet::Socket(inode) => processes::holder_of_socket(inode),
                    Inlet::Eventfd(pid, _) => {
                        processes::name(pid).map(|name| Process { pid, name })
                    }
                };
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
        let stalls = self.stalls.iter_mut();
        for (thread, stretch) in stalls.flat_map(|stalls| stalls.look(monotonic_ns)) {
            hangs.push(Hang {
                sign: Sign::Stall,
                tid: thread.tid,
                process: Some(thread.process),
                stretch,
            });
        }
        let budgets = self.budgets.lock();
        let mut budgets = budgets.unwrap_or_else(PoisonError::into_inner);
        let overruns = budgets.look(monotonic_ns());
        hangs.extend(overruns.into_iter().map(|overrun| Hang {
            sign: Sign::Region(overrun.region),
            process: overrun.process,
            tid: overrun.tid,
            stretch: overrun.stretch,
        }));
        drop(budgets);
        Ok(one_a_process(hangs))
    }

    /// How many windows there are, and how many threads that were named.
    pub fn watched(&self) -> (usize, usize) {
        let threads = self.stalls.iter().map(Stalls::count).sum();
        (self.connections, threads)
    }

    fn look_at_windows(&mut self) -> io::Result<Vec<Silence>> {
        let begun = monotonic_ns();
        self.read_queues(begun)?;
        let seen = begun..monotonic_ns();
        Ok(self.windows.look(seen, &self.queues))
    }

    fn read_queues(&mut self, now: u64) -> io::Result<()> {
        let queues = &mut self.queues;
        queues.clear();
        let mut sum = 0u64;
        self.diag.connections(|connection| {
            if windows::is_display(connection.name) {
                sum = sum.wrapping_add(u64::from(connection.peer).pow(2));
                queues.push(Queue {
                    client: Inlet::Socket(connection.peer),
                    unread: connection.unread_by_peer.into(),
                });
            }
        })?;
        self.connections = queues.len();
        self.relays.search(now, sum);
        self.relays.read(|process, fd, unread| {
            queues.push(Queue {
                client: Inlet::Eventfd(process.pid, fd),
                unread,
            });
        });
        Ok(())
    }
}

/// A process can have several windows, and threads and regions that are watched besides: of what hung in
/// it at the same time the longest is reported.
fn one_a_process(mut hangs: Vec<Hang>) -> Vec<Hang> {
    let length = |hang: &Hang| hang.stretch.window.end - hang.stretch.window.start;
    hangs.sort_by_key(|hang| Reverse(length(hang)));
    let mut told = HashSet::new();
    hangs.retain(|hang| match &hang.process {
        Some(process) => told.insert(process.pid),
        None => true,
    });
    hangs
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hang(pid: Option<u32>, window: std::ops::Range<u64>) -> Hang {
        Hang {
            sign: Sign::Window,
            process: pid.map(|pid| Process {
                pid,
                name: "app".to_owned(),
            }),
            tid: 0,
            stretch: Stretch {
                window,
                goes_on: false,
            },
        }
    }

    /// Of a process with several windows the longest hang is reported; processes that cannot be seen
    /// are not taken for one.
    #[test]
    fn several_windows() {
        let hangs = vec![
            hang(Some(1), 5..9),
            hang(Some(2), 0..2),
            hang(Some(1), 3..9),
            hang(None, 0..9),
            hang(None, 0..8),
        ];
        let told = one_a_process(hangs);
        let told: Vec<_> = told
            .iter()
            .map(|hang| {
                let pid = hang.process.as_ref().map(|process| process.pid);
                (pid, hang.stretch.window.clone())
            })
            .collect();
        let expected = [(None, 0..9), (None, 0..8), (Some(1), 3..9), (Some(2), 0..2)];
        assert_eq!(told, expected);
    }
}
