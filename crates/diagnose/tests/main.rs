//! What the diagnosis says of traces that are small enough to read, in one program: to link one for each file
//! takes longer than to run them.

mod baseline;
mod before;
mod causes;
mod chains;
mod compare;
mod file_locks;
mod frames;
mod helpers;
mod idle;
mod knots;
mod last_link;
mod loops;
mod loss;
mod many;
mod pipes;
mod problems;
mod properties;
mod questions;
mod ran;
mod ranking;
mod servers;
mod signature;
mod slice;
mod stretches;
mod support;
mod tasks;
mod thinned;
mod trial_kernel;
mod trial_locks;
mod trial_messages;
mod trial_programs;
mod trial_schedulers;
mod turns;
mod verdict;
mod what_if;
mod whole;

/// No file of tests is left out.
#[test]
fn all_files_are_named() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let files = std::fs::read_dir(here).unwrap();
    for file in files.map(|file| file.unwrap().path()) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let is_code = file.extension().is_some_and(|it| it == "rs") && name != "main";
        let named = include_str!("main.rs").contains(&format!("\nmod {name};\n"));
        assert!(named || !is_code, "{name}");
    }
}
