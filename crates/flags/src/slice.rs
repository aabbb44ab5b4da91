//! What a branch was decided by: backwards from its flags through whatever made each value, as in
//! dynamic slicing (Korel and Laski, 1988), until it meets memory that this thread did not write in
//! the steps that were seen, the result of a system call, a register as it was at the first step, or
//! what code left there that is not to be looked into. How an address was formed is no part of the value.

use std::collections::HashSet;

use iced_x86::{Code, Register};

use crate::executed::{Executed, is_atomic, overlap};
use crate::registers::Step;

/// What a value was made of; `at` is the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Memory.
    Load { at: usize, address: u64, size: u8 },
    /// The result of a system call, by number.
    Call { at: usize, number: u64 },
    /// A register as it was at the first step.
    Entry(Register),
    /// A register as foreign code left it, of which this is the step that wrote it.
    Foreign { at: usize },
}

/// A value's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Register(Register),
    Flags,
    Memory { address: u64, size: u8, load: usize },
}

/// What the branch at step `branch` was decided by; steps that are `foreign` are not looked into.
pub(crate) fn sources(
    steps: &[Step],
    executed: &[Executed],
    branch: usize,
    foreign: impl Fn(usize) -> bool,
) -> Vec<Source> {
    let mut wanted: HashSet<Place> = HashSet::from([Place::Flags]);
    if !executed[branch].reads_flags {
        // jrcxz and its like look at a register.
        wanted = executed[branch]
            .reads
            .iter()
            .map(|&r| Place::Register(r))
            .collect();
    }
    let mut found = Vec::new();
    for at in (0..branch).rev() {
        if wanted.is_empty() {
            break;
        }
        let step = &executed[at];
        // Memory that this thread wrote itself: what it wrote counts.
        let mut made_register = false;
        let mut loaded = Vec::new();
        wanted.retain(|place| match *place {
            Place::Flags => {
                made_register |= step.writes_flags;
                !step.writes_flags
            }
            Place::Register(register) => {
                let writes = step.writes.contains(&register);
                made_register |= writes;
                !writes
            }
            Place::Memory {
                address,
                size,
                load,
            } => {
                let mut stores = step.stores.iter();
                let stored = stores
                    .any(|&(to, length, surely)| surely && overlap((to, length), (address, size)));
                if stored {
                    loaded.push((load, address, size));
                }
                !stored
            }
        });
        if !made_register && loaded.is_empty() {
            continue;
        }
        if foreign(at) {
            let loads = loaded.into_iter();
            found.extend(loads.map(|(at, address, size)| Source::Load { at, address, size }));
            found.extend(made_register.then_some(Source::Foreign { at }));
            continue;
        }
        if step.instruction.code() == Code::Syscall {
            let number = steps[at].general[0];
            found.push(Source::Call { at, number });
            continue;
        }
        wanted.extend(step.reads.iter().map(|&register| Place::Register(register)));
        if step.reads_flags {
            wanted.insert(Place::Flags);
        }
        let atomic = is_atomic(&step.instruction);
        for &(address, size) in &step.loads {
            if atomic {
                found.push(Source::Load { at, address, size });
            } else {
                wanted.insert(Place::Memory {
                    address,
                    size,
                    load: at,
                });
            }
        }
    }
    found.extend(wanted.into_iter().filter_map(|place| match place {
        Place::Memory {
            address,
            size,
            load: at,
        } => Some(Source::Load { at, address, size }),
        Place::Register(register) => Some(Source::Entry(register)),
        Place::Flags => None,
    }));
    found
}
