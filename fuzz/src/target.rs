//! Which target it is.

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

use crate::{memory, table, texts, trace};

/// Names the target.
const VARIABLE: &str = "HANGDOG_FUZZ";

/// Every target, by name.
const ALL: [(&str, fn(&[u8])); 14] = [
    ("answers", texts::answers),
    ("call", texts::call),
    ("compiled", texts::compiled),
    ("elf", hangdog_symbols::fuzz::elf),
    ("interpreters", memory::interpreters),
    ("kernel", texts::kernel),
    ("marks", hangdog_capture::fuzz::marks),
    ("meta", texts::meta),
    ("reports", texts::reports),
    ("snap", texts::snap),
    ("spans", texts::spans),
    ("table", table::any_file),
    ("trace", trace::any_tables),
    ("wire", hangdog_symbols::fuzz::message),
];

static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();

/// Finds the target that the environment names. `list` lists them and ends; any other is refused.
fn choose() {
    // Work that is handed to another thread, and waited for, takes longer than small work.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.use_current_thread().build_global().expect("one pool");
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    match ALL.iter().find(|(name, _)| *name == wanted) {
        Some((_, target)) => drop(CHOSEN.set(*target)),
        None if wanted == "list" => {
            ALL.iter().for_each(|(name, _)| println!("{name}"));
            std::process::exit(0);
        }
        None => {
            eprintln!("there is no target '{wanted}': {VARIABLE}=list lists them");
            std::process::exit(2);
        }
    }
}

fuzz_target!(init: choose(), |bytes: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        target(bytes);
    }
});
