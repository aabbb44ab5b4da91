//! docs/NUMBERS.md against the methods: it names each figure, and says how it is measured.

use hangdog_numbers::methods;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The document's section on methods is made from them; UPDATE_GOLDEN=1 writes it.
#[test]
fn document_and_methods_agree() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/NUMBERS.md");
    let document = fs::read_to_string(&path).expect("docs/NUMBERS.md");
    let heading = "## Methods\n";
    let (before, found) = document.split_once(heading).expect("the section");
    let mut expected = String::from("\n| figures | how | after |\n|---|---|---|\n");
    for method in methods() {
        let figures: Vec<String> = method
            .figures
            .iter()
            .map(|kind| format!("`{}`", kind.id))
            .collect();
        let (how, source) = (method.how, method.source);
        writeln!(expected, "| {} | {how} | {source} |", figures.join(", ")).expect("text");
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, format!("{before}{heading}{expected}")).expect("the document");
        return;
    }
    assert_eq!(found, expected, "UPDATE_GOLDEN=1 writes it");
}
