//! All methods of measuring.

use crate::kind::Kind;
use crate::method::Method;
use crate::{files, kernel, memory, threads};

/// Every method, in the table's order.
pub fn methods() -> impl Iterator<Item = &'static Method> + Clone {
    [
        memory::METHODS,
        threads::METHODS,
        kernel::METHODS,
        files::METHODS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// The kind of a figure by its id.
pub fn kind(id: &str) -> Option<&'static Kind> {
    methods()
        .flat_map(|method| method.figures)
        .find(|kind| kind.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// An id names one figure, belongs to its section's words, and every method says how and whence.
    #[test]
    fn ids_are_unique_and_methods_are_documented() {
        let mut seen = HashSet::new();
        for method in methods() {
            assert!(method.weight > 0, "{}", method.id);
            assert!(
                method.how.len() > 20 && !method.source.is_empty(),
                "{}",
                method.id
            );
            for figure in method.figures {
                assert!(seen.insert(figure.id), "{} twice", figure.id);
                assert!(figure.id.contains('.'), "{}", figure.id);
            }
        }
    }
}
