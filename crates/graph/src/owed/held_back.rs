//! What was sent within this machine and came late, though its receiver waited for it: TCP waits with a small segment
//! until an earlier one is acknowledged (Nagle's algorithm, RFC 896), and the other end acknowledges late (RFC 1122,
//! 4.2.3.2); or a packet was lost, and sent again.

use hangdog_trace::ids::Utid;
use hangdog_trace::object::ObjectKind;

use crate::evidence::Evidence;
use crate::owed::last::last_transfer;
use crate::wait::{Wait, WaitKind};

/// Within one machine data arrives long before that, ns.
const LATE_NS: u64 = 20_000_000;

/// Data that came late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldBack {
    /// Who sent it last before it came.
    pub sender: Utid,
    /// From then until it came, ns.
    pub delay_ns: u64,
}

/// Whether what ended a wait had been sent long before by the other end of the connection, on this machine.
pub fn held_back(evidence: &Evidence<'_>, wait: &Wait) -> Option<HeldBack> {
    let object = wait.object(evidence);
    if !matches!(wait.kind, WaitKind::Message | WaitKind::Poll)
        || object.kind() != ObjectKind::Inet
        || wait.duration() < LATE_NS
    {
        return None;
    }
    let end = evidence.sockets.peer(object)?;
    let transfers = evidence.transfers;
    let sent = last_transfer(evidence, end, wait.end).filter(|&row| transfers.sent[row])?;
    let delay_ns = wait.end - transfers.ts[sent];
    // What the receiver read just after is another part of it.
    let waited = wait.end - wait.start.max(transfers.ts[sent]);
    (delay_ns >= LATE_NS && waited >= delay_ns / 2).then_some(HeldBack {
        sender: transfers.thread[sent],
        delay_ns,
    })
}
