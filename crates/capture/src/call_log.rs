//! Whose system calls are logged: the recorded command, or processes that run already, with all that
//! descend from them.
//!
//! The kernel side has a bit for each thread (`bpf/call_log.h`). A child inherits its parent's, so only
//! who lives when the recording begins has to be found: again and again, until nobody new is, since
//! a thread whose bit is not yet set may create others.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::population::Population;
use crate::procfs;

/// Whose system calls to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallsOf {
    /// The recorded command and its children.
    pub command: bool,
    /// Processes that run already, and their children: pid or name.
    pub processes: Vec<String>,
}

impl CallsOf {
    /// Whether there is anybody.
    pub fn any(&self) -> bool {
        self.command || !self.processes.is_empty()
    }

    /// The processes, by pid.
    pub(crate) fn pids(&self, population: &Population) -> Result<HashSet<u32>> {
        let mut pids = HashSet::new();
        for selector in &self.processes {
            let before = pids.len();
            pids.extend(named(population, selector));
            if pids.len() == before {
                return Err(Error::NoProcess(selector.clone()));
            }
        }
        Ok(pids)
    }
}

/// The processes of that pid or name: their first thread's, or their program's.
fn named(population: &Population, selector: &str) -> impl Iterator<Item = u32> {
    let number: Option<u32> = selector.parse().ok();
    let leaders = population.threads.iter();
    leaders.filter_map(move |(&tid, member)| {
        let company = population.processes.get(&tid)?;
        let program = company.command.split(' ').next().unwrap_or_default();
        let program = program.rsplit('/').next();
        let fits = number == Some(tid) || member.name == selector || program == Some(selector);
        (tid == member.pid && !member.is_kernel && fits).then_some(tid)
    })
}

/// The kernel side's bits, one for each tid.
pub(crate) struct Bits<'a>(pub &'a [AtomicU64]);

impl Bits<'_> {
    /// Logs the calls of one thread from now on. Returns whether they were not logged before.
    pub(crate) fn set(&self, tid: u32) -> bool {
        let bit = 1 << (tid % 64);
        let word = self.0.get(tid as usize / 64);
        word.is_some_and(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }

    /// The same of all threads of the processes and of who descends from these.
    pub(crate) fn set_family(&self, pids: &HashSet<u32>) {
        // A process that creates threads faster than we look is logged as far as we came.
        const ROUNDS: usize = 20;
        for _ in 0..ROUNDS {
            let new = procfs::family(pids).into_iter();
            if new.filter(|&tid| self.set(tid)).count() == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::Member;

    fn population() -> Population {
        let mut population = Population::default();
        for (tid, pid, name, command) in [
            (10, 10, "python3", "/usr/bin/python3 app.py"),
            (11, 10, "worker", ""),
            (12, 12, "main", "/opt/app/server --port 1"),
            (13, 13, "worker", "worker"),
        ] {
            let member = Member {
                pid,
                name: name.into(),
                parent: 1,
                is_kernel: false,
            };
            population.add(tid, member);
            if tid == pid {
                population.process(pid).command = command.into();
            }
        }
        population
    }

    fn pids(processes: &[&str]) -> Result<Vec<u32>> {
        let calls = CallsOf {
            command: false,
            processes: processes.iter().map(|&it| it.into()).collect(),
        };
        let mut pids: Vec<u32> = calls.pids(&population())?.into_iter().collect();
        pids.sort_unstable();
        Ok(pids)
    }

    /// A process goes by its pid, its first thread's name or its program's; not by another thread's.
    #[test]
    fn processes_go_by_pid_or_name() {
        assert_eq!(pids(&["10", "server"]).unwrap(), [10, 12]);
        assert_eq!(pids(&["worker"]).unwrap(), [13]);
        assert!(matches!(pids(&["10", "nobody"]), Err(Error::NoProcess(name)) if name == "nobody"));
        assert!(pids(&["11"]).is_err());
    }

    /// A bit is set once, and a tid beyond all bits is none.
    #[test]
    fn bits_are_set_once() {
        let words = [const { AtomicU64::new(0) }; 2];
        let bits = Bits(&words);
        assert!(bits.set(65) && !bits.set(65) && bits.set(1));
        assert!(!bits.set(128));
        assert_eq!(words.map(AtomicU64::into_inner), [2, 2]);
    }
}
