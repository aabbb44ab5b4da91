//! What the kernel costs: calls, faults, signals, mappings, timers, and what the hypervisor takes.

use crate::method::Method;

/// In the table's order.
pub(crate) const METHODS: &[&Method] = &[];
