//! Flags in memory that are watched, by hardware breakpoints.
//!
//! A breakpoint is a perf event of one thread: every thread that there is gets one, and those that it
//! makes later inherit it. Nothing is written into the process, and nothing stays behind: a
//! breakpoint is gone with its descriptor, however the recorder ends, and a child or another program
//! does not have it.
//!
//! A thread has four. A flag takes two where its reads are watched (`bpf/flag.h`), so that the reads
//! of at most two flags of a process are; of three or four there are the writes alone.
//!
//! Each use costs the thread some 4 µs. So reads, and apart from them writes, that come too often are
//! not watched for the rest of a second: a thread that spins on its flag is slow for a fiftieth of its
//! time, and the trace says when nobody looked.

mod shared;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::time::{Duration, Instant};

use hangdog_trace::words::Access;
use libbpf_rs::{Link, ProgramMut};

use crate::error::{Error, Result};
use crate::perf::{Watched, breakpoint, enable};

/// A flag in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The process.
    pub pid: u32,
    /// Its address there.
    pub address: u64,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// What the user calls it.
    pub name: String,
    /// Where several processes share it, the first of them in the list of flags that is this memory;
    /// otherwise its own place there.
    pub memory: usize,
}

/// Flags that can be watched, of all processes together.
pub const MOST_FLAGS: usize = 8;
/// Breakpoints that a thread has.
pub const BREAKPOINTS: usize = 4;
/// Flags of a process whose reads are watched too.
pub const MOST_WITH_READS: usize = BREAKPOINTS / 2;
/// Uses a second of one kind that are watched without a rest: one takes up to 0.1 ms, so that a thread which does
/// nothing else comes to no more than 10,000.
pub const MOST_A_SECOND: u64 = 4_000;
/// How long uses that come more often are not watched.
const REST: Duration = Duration::from_secs(1);
/// Once the flag has been written, somebody may begin to wait for the next write: then reads are watched again after
/// so long.
const REST_IF_WRITTEN: Duration = Duration::from_millis(200);
/// How often the threads of a process are listed, at most, until no new one comes.
const ROUNDS: usize = 20;

impl Flag {
    /// Says what is wrong with it, if a breakpoint cannot have it.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn check(&self) -> std::result::Result<(), String> {
        let Flag {
            name,
            size,
            address,
            ..
        } = self;
        if !matches!(size, 1 | 2 | 4 | 8) {
            return Err(format!("a flag has 1, 2, 4 or 8 bytes; {name} has {size}"));
        }
        if address % u64::from(*size) != 0 {
            return Err(format!(
                "{name} is at {address:#x}, which no breakpoint of {size} bytes can have: its \
                 address must be a multiple of its size"
            ));
        }
        Ok(())
    }
}

/// The same flags, and behind them those of other processes that share their memory, numbered.
///
/// # Errors
/// A sentence for the user, if a flag cannot be watched or there are too many.
pub fn with_sharers(mut flags: Vec<Flag>) -> std::result::Result<Vec<Flag>, String> {
    for at in 0..flags.len() {
        flags[at].memory = at;
        flags[at].check()?;
        let Flag { pid, address, .. } = flags[at];
        for (pid, address) in shared::elsewhere(pid, address) {
            let other = Flag {
                pid,
                address,
                ..flags[at].clone()
            };
            if !flags
                .iter()
                .any(|known| (known.pid, known.address) == (pid, address))
            {
                flags.push(other);
            }
        }
    }
    if flags.len() > MOST_FLAGS {
        return Err(format!(
            "these are {} flags, by the processes that share them; at most {MOST_FLAGS} can be watched",
            flags.len()
        ));
    }
    if let Some(flag) = flags
        .iter()
        .find(|flag| of_process(&flags, flag.pid) > BREAKPOINTS)
    {
        return Err(format!(
            "a thread has {BREAKPOINTS} breakpoints: process {} cannot have more flags",
            flag.pid
        ));
    }
    Ok(flags)
}

/// How many of the `flags` are of the process.
fn of_process(flags: &[Flag], pid: u32) -> usize {
    flags.iter().filter(|flag| flag.pid == pid).count()
}

/// Whether the reads of a flag are watched, among all these.
pub fn watches_reads(flags: &[Flag], flag: &Flag) -> bool {
    of_process(flags, flag.pid) <= MOST_WITH_READS
}

/// Uses of one kind of one flag.
#[derive(Default)]
struct Side {
    events: Vec<OwnedFd>,
    seen: u64,
    rests_until: Option<Instant>,
    /// Its rest is a short one.
    rests_less: bool,
}

impl Side {
    /// Has the rest end early where it has taken so long already.
    fn rest_less(&mut self, rest: Duration) {
        self.rests_until = self.rests_until.map(|end| end - (REST - rest));
    }

    /// Whether they are to rest from now on, or to come back, by how many there were so far. While they
    /// are `held` they rest in any case.
    fn decide(&mut self, count: u64, most: u64, now: Instant, is_held: bool) -> Option<Access> {
        let new = count - std::mem::replace(&mut self.seen, count);
        match self.rests_until {
            None if is_held || new > most => {
                (self.rests_until, self.rests_less) = (Some(now + REST), false);
                Some(Access::Paused)
            }
            Some(end) if now >= end && !is_held => {
                self.rests_until = None;
                Some(Access::Resumed)
            }
            _ => None,
        }
    }
}

/// Breakpoints that are set.
#[derive(Default)]
pub(crate) struct Watch {
    /// By flag: its reads, its writes.
    sides: Vec<[Side; 2]>,
    links: Vec<Link>,
    looked: Option<Instant>,
}

impl Watch {
    /// Sets the breakpoints of `flags`; `programs` are those for writes, and for reads and writes.
    pub(crate) fn set(flags: &[Flag], programs: [&ProgramMut<'_>; 2]) -> Result<Watch> {
        allow_descriptors();
        let mut watch = Watch::default();
        for flag in flags {
            let mut sides: [Side; 2] = Default::default();
            let kinds = [
                (programs[0], Watched::Writes, 1),
                (programs[1], Watched::ReadsAndWrites, 0),
            ];
            let kinds = match watches_reads(flags, flag) {
                true => &kinds[..],
                false => &kinds[..1],
            };
            let threads = each_thread(flag.pid, |tid| {
                for (program, watched, side) in kinds {
                    let event = breakpoint(tid, flag.address, flag.size, *watched)?;
                    sides[*side].events.push(event.try_clone()?);
                    let link = program
                        .attach_perf_event(event.as_raw_fd())
                        .map_err(io::Error::other)?;
                    // The link owns the descriptor from here on, and closes it.
                    let _ = event.into_raw_fd();
                    watch.links.push(link);
                }
                Ok(())
            });
            match threads {
                Err(cause) => return Err(refused(flag, cause)),
                Ok(0) => return Err(refused(flag, io::Error::from_raw_os_error(libc::ESRCH))),
                Ok(_) => watch.sides.push(sides),
            }
        }
        Ok(watch)
    }

    /// Looks at how many uses there were so far, by flag (reads, writes). Has those that come too often
    /// rest, and those that have rested come back: which of which flag, and what became of it.
    pub(crate) fn look(&mut self, counts: &[[u64; 2]]) -> Vec<(usize, Access, Access)> {
        let now = Instant::now();
        let since = self.looked.replace(now).map_or(REST, |last| now - last);
        let most = (MOST_A_SECOND as f64 * since.as_secs_f64()) as u64;
        let mut changes = Vec::new();
        for (flag, ([reads, writes], counts)) in self.sides.iter_mut().zip(counts).enumerate() {
            let is_written = counts[1] > writes.seen;
            let of_writes = writes.decide(counts[1], most, now, false);
            if is_written && !std::mem::replace(&mut reads.rests_less, true) {
                reads.rest_less(REST_IF_WRITTEN);
            }
            // Without the breakpoint for writes a write looks like a read.
            let is_held = writes.rests_until.is_some();
            let of_reads = reads.decide(counts[0], most, now, is_held);
            let (reads, writes) = (
                (&*reads, Access::Read, of_reads),
                (&*writes, Access::Write, of_writes),
            );
            let in_order = [
                (reads, Access::Paused),
                (writes, Access::Paused),
                (writes, Access::Resumed),
                (reads, Access::Resumed),
            ];
            for ((side, kind, decided), change) in in_order {
                if decided == Some(change) {
                    for event in &side.events {
                        enable(event, change == Access::Resumed);
                    }
                    changes.push((flag, kind, change));
                }
            }
        }
        changes
    }

    /// Takes the breakpoints away.
    pub(crate) fn end(&mut self) {
        self.links.clear();
        self.sides.clear();
    }
}

/// Calls `set` for each thread of a process, also those that are made meanwhile; returns how many
/// there were. One that has ended is passed over. One that was made meanwhile by a thread that has
/// the breakpoint already has it twice, and reports twice: that is better than not at all.
fn each_thread(pid: u32, mut set: impl FnMut(u32) -> io::Result<()>) -> io::Result<usize> {
    let mut known = HashSet::new();
    let mut count = 0;
    for _ in 0..ROUNDS {
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
            break;
        };
        let tids = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let new: Vec<u32> = tids.filter(|&tid| known.insert(tid)).collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            match set(tid) {
                Err(cause) if cause.raw_os_error() == Some(libc::ESRCH) => {}
                other => {
                    other?;
                    count += 1;
                }
            }
        }
    }
    Ok(count)
}

fn refused(flag: &Flag, cause: io::Error) -> Error {
    let Flag { name, pid, .. } = flag;
    let reason = match cause.raw_os_error() {
        Some(libc::ENOSPC) => {
            "a thread's four hardware breakpoints are in use: watch fewer flags, or end the debugger \
             that has them"
        }
        Some(libc::EACCES | libc::EPERM) => {
            "it is another user's process, or kernel.perf_event_paranoid forbids it: run as root"
        }
        Some(libc::ESRCH) => "there is no such process",
        Some(libc::EMFILE) => "it has too many threads for this process's limit of open files",
        _ => "",
    };
    let doing = match reason {
        "" => format!("watch {name} in process {pid}"),
        reason => format!("watch {name} in process {pid}: {reason}"),
    };
    Error::system(doing, cause)
}

/// A breakpoint takes up to four descriptors for each thread.
fn allow_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Without it a process with hundreds of threads cannot be watched, and the error says so.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(pid: u32, address: u64, size: u8) -> Flag {
        Flag {
            pid,
            address,
            size,
            name: "ready".into(),
            memory: 0,
        }
    }

    /// A flag must lie as a breakpoint of the CPU can.
    #[test]
    fn sizes_and_places_are_checked() {
        assert!(flag(1, 0x1004, 4).check().is_ok());
        assert!(flag(1, 0x1001, 1).check().is_ok());
        assert!(flag(1, 0x1002, 4).check().is_err());
        assert!(flag(1, 0x1000, 3).check().is_err());
        assert!(flag(1, 0x1000, 16).check().is_err());
    }

    /// Four breakpoints are reads and writes of two flags, or writes of four, process by process.
    #[test]
    fn breakpoints_are_shared_out() {
        let flags = [flag(1, 0, 4), flag(1, 8, 4), flag(2, 0, 4)];
        assert!(flags.iter().all(|it| watches_reads(&flags, it)));
        let flags = [flag(1, 0, 4), flag(1, 8, 4), flag(1, 16, 4), flag(2, 0, 4)];
        let reads: Vec<bool> = flags.iter().map(|it| watches_reads(&flags, it)).collect();
        assert_eq!(reads, [false, false, false, true]);
    }

    /// Where writes rest, reads do: a write would be taken for one.
    #[test]
    fn hot_writes_rest_with_reads() {
        let mut watch = Watch {
            sides: vec![Default::default()],
            ..Watch::default()
        };
        let [read, write] = [Access::Read, Access::Write];
        let both = [(0, read, Access::Paused), (0, write, Access::Paused)];
        assert_eq!(watch.look(&[[0, 1_000_000]]), both);
        for side in &mut watch.sides[0] {
            side.rests_until = Some(Instant::now());
        }
        let back = [(0, write, Access::Resumed), (0, read, Access::Resumed)];
        assert_eq!(watch.look(&[[0, 1_000_000]]), back);
    }

    /// Reads that rest come back sooner once the flag was written, and only then.
    #[test]
    fn reads_come_back_behind_a_write() {
        let mut watch = Watch {
            sides: vec![Default::default()],
            ..Watch::default()
        };
        let look = |watch: &mut Watch, writes: u64| {
            watch.looked = Instant::now().checked_sub(REST);
            watch.look(&[[1_000_000, writes]])
        };
        look(&mut watch, 0);
        let left = |watch: &Watch| {
            watch.sides[0][0]
                .rests_until
                .map(|end| end - Instant::now())
        };
        assert!(left(&watch) > Some(REST_IF_WRITTEN));
        assert_eq!(look(&mut watch, 1), []);
        let short = left(&watch);
        assert!(short <= Some(REST_IF_WRITTEN));
        assert_eq!(look(&mut watch, 2), []);
        assert!(left(&watch) <= short && left(&watch).is_some());
        watch.sides[0][0].rests_until = Some(Instant::now());
        let resumed = (0, Access::Read, Access::Resumed);
        assert_eq!(look(&mut watch, 2), [resumed]);
    }

    /// Reads that come too often rest and come back; writes of the same flag are watched on.
    #[test]
    fn hot_reads_rest() {
        let mut watch = Watch {
            sides: vec![Default::default()],
            ..Watch::default()
        };
        assert_eq!(watch.look(&[[0, 0]]), []);
        let paused = (0, Access::Read, Access::Paused);
        assert_eq!(watch.look(&[[1_000_000, 0]]), [paused]);
        assert_eq!(watch.look(&[[1_000_000, 0]]), []);
        watch.sides[0][0].rests_until = Some(Instant::now());
        let resumed = (0, Access::Read, Access::Resumed);
        assert_eq!(watch.look(&[[1_000_000, 0]]), [resumed]);
    }
}
