//! Who is at the other end of a transfer: whoever uses that end.

use std::collections::HashMap;

use hangdog_trace::ids::{NONE, Upid, Utid};
use hangdog_trace::object::Object;

use crate::tables::Tables;

/// Who uses an end of a connection, as far as transfers show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Owner {
    /// [`NONE`] if there are several.
    process: Upid,
    /// [`NONE`] if there are several.
    thread: Utid,
}

/// Both ends of a pipe are the same object: the one that bytes go in at gets this bit, which no
/// object has.
const WAY_IN: u64 = 1 << 63;

/// The peers of all transfers, by row; [`NONE`] where not known.
#[derive(Debug)]
pub(crate) struct Peers(Vec<u32>);

impl Peers {
    /// `other_end` has the object at the other side for each row of `transfers`.
    pub(crate) fn new(tables: &Tables<'_>, other_end: &[Object]) -> Peers {
        let transfers = tables.transfers;
        let processes = Processes::new(tables);
        let end = |object: Object, other: Object, sending: bool| match object == other && sending {
            true => object.0 | WAY_IN,
            false => object.0,
        };
        let mut owners: HashMap<u64, Owner> = HashMap::new();
        for (row, &other) in other_end.iter().enumerate() {
            let own = Object(transfers.object[row]);
            let user = Owner {
                process: processes.of(transfers.thread[row]),
                thread: transfers.thread[row],
            };
            let owner = owners
                .entry(end(own, other, transfers.sent[row]))
                .or_insert(user);
            if owner.process != user.process {
                owner.process = NONE;
            }
            if owner.thread != user.thread {
                owner.thread = NONE;
            }
        }
        let peer = other_end
            .iter()
            .enumerate()
            .map(|(row, &other)| {
                let own = Object(transfers.object[row]);
                let there = end(other, own, !transfers.sent[row]);
                let Some(owner) = owners.get(&there) else {
                    return NONE;
                };
                let thread = transfers.thread[row];
                match owner.process == processes.of(thread) {
                    _ if owner.process == NONE => NONE,
                    false => owner.process.wrapping_mul(2),
                    true if owner.thread == NONE || owner.thread == thread => NONE,
                    true => owner.thread.wrapping_mul(2).wrapping_add(1),
                }
            })
            .collect();
        Peers(peer)
    }

    pub(crate) fn of(&self, row: usize) -> Option<u32> {
        self.0.get(row).copied().filter(|&peer| peer != NONE)
    }
}

/// The process of each thread, found at once.
struct Processes(Vec<Upid>);

impl Processes {
    fn new(tables: &Tables<'_>) -> Processes {
        let mut of = vec![NONE; tables.timeline.threads().end as usize];
        for thread in tables.threads.iter() {
            if let Some(process) = of.get_mut(thread.utid as usize) {
                *process = thread.upid;
            }
        }
        Processes(of)
    }

    fn of(&self, thread: Utid) -> Upid {
        self.0.get(thread as usize).copied().unwrap_or(NONE)
    }
}
