//! The moment from which on no file is read any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::boot::monotonic_ns;

/// When all reading is to end, ns of CLOCK_MONOTONIC.
static END: AtomicU64 = AtomicU64::new(u64::MAX);

/// From then on (ns of CLOCK_MONOTONIC) nothing is read any more: who asks gets no answer. May be
/// called in a signal handler.
pub fn end_by(moment: u64) {
    END.fetch_min(moment, Ordering::Relaxed);
}

/// What is left until nothing is read any more.
pub fn time_left() -> Duration {
    let end = END.load(Ordering::Relaxed);
    Duration::from_nanos(end.saturating_sub(monotonic_ns()))
}

/// Whether nothing is read any more.
pub(crate) fn is_over() -> bool {
    time_left().is_zero()
}
