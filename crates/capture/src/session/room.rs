//! The machine's CPUs, and how much room each has in what the programs write to.

use crate::error::{Error, Result};
use crate::ring::Block;

const MOST_CPUS: usize = 512;
/// Of the definitions ring, bytes a CPU; a power of two.
const DEFINITIONS: u32 = 8 << 20;
/// The most and the least of it for all CPUs.
const DEFINITIONS_MOST: u32 = 64 << 20;
const DEFINITIONS_LEAST: u32 = 8 << 20;
/// What a copied stack takes of it at most (`bpf/records.h`).
const COPY_SIZE: u32 = 5184;

/// CPUs that records can come from.
pub(crate) fn cpu_count() -> Result<usize> {
    let cpus = libbpf_rs::num_possible_cpus().map_err(|cause| Error::Bpf {
        doing: "count the CPUs",
        cause,
    })?;
    if cpus > MOST_CPUS {
        return Err(Error::TooManyCpus {
            cpus,
            most: MOST_CPUS,
        });
    }
    Ok(cpus)
}

pub(super) fn is_online(cpu: usize) -> bool {
    // The boot CPU has no such file on many machines.
    std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/online"))
        .map_or(true, |text| text.trim() != "0")
}

/// A CPU that is online.
pub(crate) fn first_cpu() -> usize {
    (0..MOST_CPUS).find(|&cpu| is_online(cpu)).unwrap_or(0)
}

/// Bytes of the definitions ring, a power of two.
pub(super) fn definitions_size(cpus: usize) -> u32 {
    let wanted = DEFINITIONS.saturating_mul(cpus as u32);
    wanted
        .clamp(DEFINITIONS_LEAST, DEFINITIONS_MOST)
        .next_power_of_two()
}

/// How many stacks each CPU may copy until the next time: half of the ring is for them.
pub(super) fn copies_allowed(cpus: usize) -> u32 {
    definitions_size(cpus) / 2 / COPY_SIZE / cpus as u32
}

/// The largest ring whose CPUs together stay within `memory`, at least 4 blocks.
pub(super) fn blocks_shift(memory: u64, cpus: usize) -> u32 {
    let blocks = memory / size_of::<Block>() as u64 / cpus as u64;
    // 2^18 blocks a CPU are 1 GB; the array's index is 32 bits wide over all CPUs.
    blocks.max(1).ilog2().clamp(2, 18)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rings never take more than they were given, and use more than half of it.
    #[test]
    fn rings_fill_their_memory() {
        for cpus in [1, 2, 7, 64] {
            for memory in [32u64 << 20, 128 << 20, 100_000_000] {
                let used = (cpus as u64 * 4096) << blocks_shift(memory, cpus);
                assert!(
                    used <= memory && used * 2 > memory,
                    "{cpus} CPUs, {memory}: {used}"
                );
            }
        }
    }
}
