//! What `hangdog numbers` found on this machine goes along with a recording.

use crate::support::{hangdog, json, machine, number};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn record(cache: &Path, dir: &Path, name: &str) -> Value {
    let output = hangdog()
        .args(["record", "-o", name, "--no-stacks", "--", "true"])
        .current_dir(dir)
        .env("XDG_CACHE_HOME", cache)
        .env_remove("SUDO_UID")
        .output()
        .expect("a run");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    json(&["info"], &dir.join(name))["meta"].clone()
}

/// Before anything was measured a trace has no baseline costs; afterwards it has the medians that
/// were found, under their names.
#[test]
fn a_recording_takes_the_figures_along() {
    let Some(machine) = machine() else { return };
    let dir = machine.dir();
    let cache = machine.path("cache");
    assert_eq!(record(&cache, dir, "before.hang").get("yardstick"), None);

    let measured = hangdog()
        .args(["numbers", "--quick", "--json", "--only", "kernel.syscall"])
        .current_dir(dir)
        .output()
        .expect("a run");
    let report: Value = serde_json::from_slice(&measured.stdout).expect("JSON");
    let machine_of = |field: &str| report["machine"][field].as_str().expect("text");
    let name = format!(
        "numbers-{}-{}.json",
        machine_of("key"),
        machine_of("kernel")
    );
    fs::create_dir_all(cache.join("hangdog")).expect("a cache");
    fs::write(cache.join("hangdog").join(name), &measured.stdout).expect("a file");

    let yardstick = &record(&cache, dir, "after.hang")["yardstick"];
    assert_eq!(
        number(&yardstick["taken_unix_s"]),
        number(&report["taken_unix_s"])
    );
    let found = &report["figures"][0]["median"];
    assert!(found.is_number());
    assert_eq!(&yardstick["costs_ns"]["kernel.syscall"], found);
}
