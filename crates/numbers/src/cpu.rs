//! Which CPUs this process may use, and staying on one of them.

use std::fs;
use std::mem;

use crate::meter::Untried;

/// The CPUs that this thread may run on, ascending.
pub(crate) fn allowed() -> Result<Vec<usize>, Untried> {
    // SAFETY: a cpu_set_t is plain bits, and the kernel fills as many as it is told there are.
    let set = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        if libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set) != 0 {
            return Err(Untried::last("the CPUs that may be used"));
        }
        set
    };
    // SAFETY: `cpu` is below the number of bits in the set.
    Ok((0..libc::CPU_SETSIZE as usize)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect())
}

/// Keeps the calling thread on these CPUs; threads and processes that it starts inherit it.
pub(crate) fn stay_on(cpus: &[usize]) -> Result<(), Untried> {
    // SAFETY: as above; CPU numbers beyond the set are refused before.
    let result = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        for &cpu in cpus {
            assert!(
                cpu < libc::CPU_SETSIZE as usize,
                "CPU {cpu} came from the same set"
            );
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, mem::size_of_val(&set), &set)
    };
    if result != 0 {
        return Err(Untried::last(&format!("staying on CPU {cpus:?}")));
    }
    Ok(())
}

/// Keeps the calling thread on one CPU until this is dropped.
#[derive(Debug)]
pub(crate) struct Pinned {
    before: Vec<usize>,
}

/// See [`Pinned`].
pub(crate) fn pin(cpu: usize) -> Result<Pinned, Untried> {
    let before = allowed()?;
    stay_on(&[cpu])?;
    Ok(Pinned { before })
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // What was allowed before is still; if it is not, the thread stays where it is.
        let _ = stay_on(&self.before);
    }
}

/// The CPU that the calling thread runs on now.
pub(crate) fn current() -> usize {
    // SAFETY: takes nothing and only reads.
    unsafe { libc::sched_getcpu() as usize }
}

/// The core that a CPU belongs to, as the system says: (package, core). None where it does not say.
pub(crate) fn core_of(cpu: usize) -> Option<(u32, u32)> {
    let read = |name: &str| -> Option<u32> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    Some((read("physical_package_id")?, read("core_id")?))
}

/// Two CPUs to measure on: one, and another that is not the same core's second thread, of the same
/// package if possible. The last ones, because interrupts prefer the first.
pub(crate) fn pair(allowed: &[usize]) -> (usize, Option<usize>) {
    let here = *allowed.last().unwrap_or(&0);
    let core = core_of(here);
    let others = || allowed.iter().rev().copied().filter(|&cpu| cpu != here);
    let package = |cpu| core_of(cpu).map(|(package, _)| package);
    let there = others()
        .find(|&cpu| core_of(cpu) != core && package(cpu) == package(here))
        .or_else(|| others().find(|&cpu| core_of(cpu) != core))
        .or_else(|| others().next());
    (here, there)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pinned thread runs where it was told, on each CPU in turn, and is free again afterwards.
    #[test]
    fn a_pinned_thread_runs_where_it_was_told() {
        let before = allowed().unwrap();
        for &cpu in &before {
            let pinned = pin(cpu).unwrap();
            assert_eq!(current(), cpu);
            assert_eq!(allowed().unwrap(), [cpu]);
            drop(pinned);
            assert_eq!(allowed().unwrap(), before);
        }
    }

    /// The two CPUs of a pair differ; with one CPU there is no other.
    #[test]
    fn a_pair_is_two_cpus() {
        let all = allowed().unwrap();
        let (here, there) = pair(&all);
        assert!(all.contains(&here));
        assert_eq!(there.is_some(), all.len() > 1);
        assert_ne!(Some(here), there);
        assert_eq!(pair(&all[..1]).1, None);
    }
}
