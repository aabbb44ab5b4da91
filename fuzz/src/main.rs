//! Feeds what comes from outside to what reads it, as libFuzzer makes it up: one program with many
//! targets. HANGDOG_FUZZ names the one that it is; scripts/fuzz.sh builds it and runs them all.
//!
//! Without `--cfg fuzzing` there are no entry points, and so no program.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod memory;
#[cfg(fuzzing)]
mod table;
#[cfg(fuzzing)]
mod target;
#[cfg(fuzzing)]
mod texts;
#[cfg(fuzzing)]
mod trace;

// The command is no library: these modules of its own are compiled into this program.
#[cfg(fuzzing)]
#[allow(dead_code, unused_imports)]
#[path = "../../crates/cli/src/args.rs"]
mod args;
#[cfg(fuzzing)]
#[allow(dead_code, unused_imports)]
#[path = "../../crates/cli/src/flag_place.rs"]
mod flag_place;
#[cfg(fuzzing)]
#[allow(dead_code, unused_imports)]
#[path = "../../crates/cli/src/home.rs"]
mod home;
#[cfg(fuzzing)]
#[allow(dead_code, unused_imports)]
#[path = "../../crates/cli/src/limited.rs"]
mod limited;
#[cfg(fuzzing)]
#[allow(dead_code, unused_imports)]
#[path = "../../crates/cli/src/template.rs"]
mod template;

#[cfg(not(fuzzing))]
fn main() {
    eprintln!("scripts/fuzz.sh builds and runs this");
}
