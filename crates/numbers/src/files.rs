//! What files cost in a directory: to open, read, write, make and remove, in the page cache and not.

use crate::method::Method;

/// In the table's order.
pub(crate) const METHODS: &[&Method] = &[];
