//! Hardware counters: which of them this machine has, opened on every CPU where the programs read
//! them (`bpf/counters.h`).
//!
//! One event of each kind counts all that a CPU does, in user space and in the kernel. It lives as
//! long as the map that it is put into. A kind that cannot be opened is not asked for again: the
//! programs are told before they are loaded, and the trace has the reason beside its hooks.

#[cfg(test)]
mod proof;

use std::io::{Error as SystemError, ErrorKind};
use std::os::fd::AsRawFd;

use hangdog_trace::meta::Hook;
use libbpf_rs::{MapCore, MapFlags};

use crate::error::{Error, Result};
use crate::perf;

/// Something that can be counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// As `meta.json` has it among the hooks.
    pub name: &'static str,
    /// `perf_event_attr.type`.
    pub class: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
}

/// How many kinds there are; `COUNTERS` of `bpf/counters.h`.
pub(crate) const KINDS: usize = 4;

const TYPE_HARDWARE: u32 = 0;
const TYPE_HARDWARE_CACHE: u32 = 3;
const CPU_CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;
const CACHE_MISSES: u64 = 3;
/// Cache 3, the data TLB; operation 0, reads; result 1, misses.
const DATA_TLB_READ_MISSES: u64 = 3 | 1 << 16;

/// What is counted, in the order of `bpf/counters.h`.
pub(crate) const HARDWARE: [Kind; KINDS] = [
    Kind {
        name: "cycles",
        class: TYPE_HARDWARE,
        config: CPU_CYCLES,
    },
    Kind {
        name: "instructions",
        class: TYPE_HARDWARE,
        config: INSTRUCTIONS,
    },
    Kind {
        name: "cache-misses",
        class: TYPE_HARDWARE,
        config: CACHE_MISSES,
    },
    Kind {
        name: "dtlb-misses",
        class: TYPE_HARDWARE_CACHE,
        config: DATA_TLB_READ_MISSES,
    },
];

/// The counters of a session.
pub(crate) struct Counters {
    kinds: [Kind; KINDS],
    /// Why a kind is not counted.
    refused: [Option<String>; KINDS],
}

impl Counters {
    /// None of `kinds`.
    pub(crate) fn none(kinds: [Kind; KINDS], why: &str) -> Counters {
        Counters {
            kinds,
            refused: [(); KINDS].map(|()| Some(why.to_owned())),
        }
    }

    /// Those of `kinds` that can be opened on `cpu`.
    pub(crate) fn probe(kinds: [Kind; KINDS], cpu: usize) -> Counters {
        let opened = kinds.map(|kind| perf::counter(cpu, kind.class, kind.config).err());
        let nothing = opened.iter().all(Option::is_some);
        Counters {
            kinds,
            refused: opened.map(|refused| Some(reason(refused?, nothing))),
        }
    }

    /// A bit for each kind that can be counted, as the programs want it.
    pub(crate) fn mask(&self) -> u32 {
        let bits = self.refused.iter().enumerate();
        bits.filter(|(_, refused)| refused.is_none())
            .map(|(i, _)| 1 << i)
            .sum()
    }

    /// Opens them on `cpus`, for the programs to find in `map`. Where one cannot be opened on one
    /// of the CPUs, it counts on the others, and the reason is kept.
    pub(crate) fn open(
        &mut self,
        map: &impl MapCore,
        cpus: impl Iterator<Item = usize>,
    ) -> Result<()> {
        let mask = self.mask();
        for cpu in cpus {
            for (i, kind) in self.kinds.iter().enumerate() {
                if mask & 1 << i == 0 {
                    continue;
                }
                let event = match perf::counter(cpu, kind.class, kind.config) {
                    Ok(event) => event,
                    Err(why) => {
                        self.refused[i] = Some(format!("not on CPU {cpu}: {why}"));
                        continue;
                    }
                };
                let key = (cpu * KINDS + i) as u32;
                // The map holds the event from here on; our descriptor is closed.
                map.update(
                    &key.to_ne_bytes(),
                    &event.as_raw_fd().to_ne_bytes(),
                    MapFlags::ANY,
                )
                .map_err(|cause| Error::Bpf {
                    doing: "hand the counters to the programs",
                    cause,
                })?;
            }
        }
        Ok(())
    }

    /// What the trace says of them.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = Hook> {
        self.kinds
            .iter()
            .zip(&self.refused)
            .map(|(kind, refused)| Hook {
                name: kind.name.into(),
                attached: refused.is_none(),
                reason: refused.clone().unwrap_or_default(),
            })
    }
}

/// Why a kind could not be opened, where `nothing` says whether the others could not either.
fn reason(why: SystemError, nothing: bool) -> String {
    let unknown = matches!(
        why.raw_os_error(),
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP)
    );
    match (unknown, nothing) {
        (true, true) => "this machine has no PMU, or its hypervisor does not expose it".into(),
        (true, false) => "the PMU of this machine does not count them".into(),
        (false, _) if why.kind() == ErrorKind::PermissionDenied => {
            format!("{why}; run as root, or: sysctl kernel.perf_event_paranoid=-1")
        }
        (false, _) => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine without a PMU, a PMU without one kind, and any other error are distinguished.
    #[test]
    fn reasons() {
        let said = |errno, nothing| reason(SystemError::from_raw_os_error(errno), nothing);
        assert!(said(libc::ENOENT, true).contains("no PMU"));
        assert!(said(libc::EOPNOTSUPP, true).contains("no PMU"));
        assert!(said(libc::ENOENT, false).contains("does not count"));
        assert!(said(libc::EACCES, true).contains("perf_event_paranoid"));
        assert!(said(libc::EMFILE, true).contains("Too many open files"));
    }

    /// The mask has the bits of those that were not refused, in their order.
    #[test]
    fn the_mask_leaves_out_what_was_refused() {
        let mut counters = Counters::none(HARDWARE, "no");
        assert_eq!(counters.mask(), 0);
        counters.refused[1] = None;
        counters.refused[3] = None;
        assert_eq!(counters.mask(), 0b1010);
        let attached: Vec<_> = counters.hooks().map(|hook| hook.attached).collect();
        assert_eq!(attached, [false, true, false, true]);
    }
}
