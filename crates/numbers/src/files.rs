//! What files cost in a directory: to open, read, write, make and remove, in the page cache and not.

mod directory;
mod make;
mod read;
mod sync;
mod uncached;

use crate::method::Method;

/// In the table's order.
pub(crate) const METHODS: &[&Method] = &[&read::READ, &uncached::READ, &make::MAKE, &sync::SYNC];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::visits_keep_their_word;

    /// See [`visits_keep_their_word`].
    #[test]
    fn visits_to_files_keep_their_word() {
        visits_keep_their_word(METHODS);
    }
}
