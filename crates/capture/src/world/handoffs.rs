//! Handoffs, and who holds what a thread waits for.
//!
//! A thread that waits for a lock on a file is told by the handoff just before its switch because of
//! whom; of a futex and of a lock inside the kernel the switch itself says it.

use hangdog_trace::ids::{NONE, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::tables::Handoff;
use hangdog_trace::words::{HandoffKind, HandoffStep};

use super::World;
use crate::records::{Event, event_kind};
use crate::waiting::names_other;

/// Of a futex call's operation: no other process uses the futex.
const FUTEX_PRIVATE: u64 = 128;

impl World {
    /// The argument of a switch, and who holds what the thread waits for.
    pub(super) fn what_is_waited_for(&self, thread: Utid, event: &Event) -> (u64, Utid) {
        let (low, high) = (event.arg & 0xffff_ffff, (event.arg >> 32) as u32);
        let call = i64::from(event.call);
        if Object(event.object).kind() == ObjectKind::KernelLock {
            let holder = self.known(high).filter(|&utid| utid != thread && high != 0);
            return (low, holder.unwrap_or(NONE));
        }
        match call {
            _ if event.kind == event_kind::WAITING && names_other(call, event.flags) => {
                let holder = self.known(high).filter(|&utid| utid != thread && high != 0);
                (low, holder.unwrap_or(NONE))
            }
            libc::SYS_futex => (low, self.holder(thread, high, low & FUTEX_PRIVATE == 0)),
            libc::SYS_fcntl | libc::SYS_flock => {
                let holder = self.file_locks.get(&thread);
                (event.arg, holder.copied().unwrap_or(NONE))
            }
            _ => (event.arg, NONE),
        }
    }

    /// A handoff becomes a row.
    pub(super) fn hand_over(&mut self, cpu: u16, thread: Utid, event: &Event) {
        let (kind, step) = (HandoffKind::from(event.x), HandoffStep::from(event.flags));
        let detail = u64::from(event.c) << 32 | u64::from(event.b);
        let other = match kind {
            HandoffKind::Signal => self.thread(event.ts, event.a),
            _ if event.a == 0 => NONE,
            _ => self.known(event.a).unwrap_or(NONE),
        };
        if kind == HandoffKind::FileLock {
            match step {
                HandoffStep::Waiting => self.file_locks.insert(thread, other),
                _ => self.file_locks.remove(&thread),
            };
        }
        let (frame, detail) = match (kind, detail) {
            (HandoffKind::Work, 0) => (NONE, 0),
            (HandoffKind::Work, function) => {
                (self.code.kernel_function(function, &mut self.tables), 0)
            }
            (_, detail) => (NONE, detail),
        };
        self.tables.handoffs.push(Handoff {
            ts: self.since_start(event.ts),
            cpu,
            thread,
            context: event.vector,
            kind: event.x,
            step: event.flags,
            key: event.arg,
            object: event.object,
            other,
            frame,
            detail,
        });
    }
}
