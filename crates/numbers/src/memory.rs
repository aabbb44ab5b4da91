//! What memory costs.

use crate::method::Method;

/// In the table's order.
pub(crate) const METHODS: &[&Method] = &[];
