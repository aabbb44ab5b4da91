//! What threads and processes cost: to make, to wake, to hand over to.

use crate::method::Method;

/// In the table's order.
pub(crate) const METHODS: &[&Method] = &[];
