//! Whose the ends of a connection are, and what went over it last.

use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::Object;
use hangdog_trace::sockets::Holder;
use hangdog_trace::words::LastTransfer;

use crate::evidence::Evidence;

/// The process that has the other end of a connection: that was seen to have or use it, or else that
/// made it, which need not have kept it.
pub fn peer_of(evidence: &Evidence<'_>, object: Object) -> Option<Upid> {
    let end = evidence.sockets.peer(object);
    end.and_then(|end| process_of(evidence, end))
        .or_else(|| evidence.sockets.peer_process(object))
}

/// The process that has an end of a connection.
pub(super) fn process_of(evidence: &Evidence<'_>, end: Object) -> Option<Upid> {
    let holder = evidence.sockets.holders(end).last();
    holder.map(|holder| holder.process).or_else(|| {
        let user = evidence.uses_before(end, u64::MAX).next()?;
        Some(
            evidence
                .threads
                .thread(evidence.transfers.thread[user])
                .upid,
        )
    })
}

/// Who holds the other end of a connection, or listens where it leads.
pub(super) fn other_end_of(evidence: &Evidence<'_>, object: Object) -> Option<Holder> {
    let sockets = evidence.sockets;
    let ends = sockets
        .peer(object)
        .into_iter()
        .chain(sockets.listeners(object));
    let mut holders = ends.filter_map(|end| sockets.holders(end).last());
    holders.next().copied()
}

/// Whether the last bytes of a connection went out.
pub(super) fn has_sent(evidence: &Evidence<'_>, object: Object, until: u64) -> bool {
    match last_transfer(evidence, object, until) {
        Some(row) => evidence.transfers.sent[row],
        None => {
            let own = evidence.sockets.holders(object).first();
            own.is_some_and(|own| matches!(own.last, LastTransfer::Sent | LastTransfer::Lost))
        }
    }
}

/// The row of `transfers` that used a socket last before `until`.
pub(super) fn last_transfer(evidence: &Evidence<'_>, object: Object, until: u64) -> Option<usize> {
    evidence.uses_before(object, until).next()
}

pub(super) fn last_received(evidence: &Evidence<'_>, object: Object, until: u64) -> Option<usize> {
    let mut uses = evidence.uses_before(object, until);
    uses.find(|&row| !evidence.transfers.sent[row])
}

pub(super) fn last_user(evidence: &Evidence<'_>, object: Object, until: u64) -> Option<Utid> {
    last_transfer(evidence, object, until).map(|row| evidence.transfers.thread[row])
}
