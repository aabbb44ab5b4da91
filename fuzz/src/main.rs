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

#[cfg(not(fuzzing))]
fn main() {
    eprintln!("scripts/fuzz.sh builds and runs this");
}
