//! Handoffs, and who holds what a thread waits for.
//!
//! A thread that waits for a lock on a file is told by the handoff just before its switch because of
//! whom; of a futex and of a lock inside the kernel the switch itself says it.

use hangdog_trace::ids::{NONE, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::tables::Handoff;
use hangdog_trace::words::{HandoffKind, HandoffStep};

use super::World;
use crate::event::{self, Event, Switch};
use crate::waiting::{is_stopped, names_other};

/// Of a futex call's operation: no other process uses the futex.
const FUTEX_PRIVATE: u64 = 128;

impl World {
    /// The argument of a switch, and who holds what the thread waits for.
    pub(super) fn what_is_waited_for(
        &self,
        thread: Utid,
        switch: &Switch,
        was_found: bool,
    ) -> (u64, Utid) {
        let (low, high) = (switch.arg & 0xffff_ffff, (switch.arg >> 32) as u32);
        let call = i64::from(switch.call);
        if Object(switch.object).kind() == ObjectKind::KernelLock {
            let holder = self.known(high).filter(|&utid| utid != thread && high != 0);
            return (low, holder.unwrap_or(NONE));
        }
        match call {
            _ if is_stopped(switch.left) || was_found && names_other(call, switch.left) => {
                let holder = self.known(high).filter(|&utid| utid != thread && high != 0);
                (low, holder.unwrap_or(NONE))
            }
            libc::SYS_futex => (low, self.holder(thread, high, low & FUTEX_PRIVATE == 0)),
            libc::SYS_fcntl | libc::SYS_flock => {
                let holder = self.file_locks.get(&thread);
                (switch.arg, holder.copied().unwrap_or(NONE))
            }
            _ => (switch.arg, NONE),
        }
    }

    /// A handoff becomes a row.
    pub(super) fn hand_over(&mut self, event: &Event, thread: Utid, handoff: &event::Handoff) {
        let kind = HandoffKind::from(handoff.kind);
        let other = match (kind, handoff.other) {
            (HandoffKind::Signal, tid) => self.thread(event.ts, tid),
            (_, 0) => NONE,
            (_, tid) => self.known(tid).unwrap_or(NONE),
        };
        if kind == HandoffKind::FileLock {
            match HandoffStep::from(handoff.step) {
                HandoffStep::Waiting => self.file_locks.insert(thread, other),
                _ => self.file_locks.remove(&thread),
            };
        }
        let (frame, detail) = match (kind, handoff.detail) {
            (HandoffKind::Work, 0) => (NONE, 0),
            (HandoffKind::Work, function) => {
                (self.code.kernel_function(function, &mut self.tables), 0)
            }
            (_, detail) => (NONE, detail),
        };
        self.tables.handoffs.push(Handoff {
            ts: self.since_start(event.ts),
            cpu: event.cpu,
            thread,
            context: handoff.context,
            kind: handoff.kind,
            step: handoff.step,
            key: handoff.key,
            object: handoff.object,
            other,
            frame,
            detail,
        });
    }
}
