//! What others measured on other machines: data, each with its source.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// A machine that others measured.
#[derive(Debug, Deserialize)]
pub struct Reference {
    /// Its name.
    pub name: String,
    /// Who measured, where it is told.
    pub source: String,
    /// Nanoseconds by row of the table.
    pub figures: BTreeMap<String, f64>,
}

/// In the order of their columns.
pub static REFERENCES: LazyLock<Vec<Reference>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("references.json")).expect("a file of this crate, tested")
});

#[cfg(test)]
mod tests {
    use super::*;

    /// The file is read, and a figure of the source is where it belongs.
    #[test]
    fn the_figures_are_those_of_their_sources() {
        let of = |name: &str| {
            REFERENCES
                .iter()
                .find(|reference| reference.name == name)
                .unwrap()
        };
        assert_eq!(of("2012").figures["memory.ram"], 100.0);
        assert_eq!(of("iPhone X").figures["pingpong.semaphore.across"], 3200.0);
        assert_eq!(of("iPhone 5s").figures["thread.overhead"], 230_000.0);
        assert!(
            REFERENCES
                .iter()
                .all(|reference| !reference.source.is_empty())
        );
    }
}
