#!/usr/bin/env bash
# The compiler as fuzz.sh calls it for the crates of this tree: they record which code ran, which guides
# libFuzzer, and have their entry points for it. As cargo-fuzz does, less what needs nightly. They are not
# optimised: that takes a third of the time to compile, and of 20 s little is lost. Build scripts run as
# they are.
set -euo pipefail
if [[ " $* " == *" --crate-name build_script_"* || " $* " != *" --crate-name "* ]]; then
    exec "$@"
fi
coverage=(
    -sanitizer-coverage-level=4
    -sanitizer-coverage-inline-8bit-counters
    -sanitizer-coverage-pc-table
    -sanitizer-coverage-trace-compares
)
exec "$@" --cfg fuzzing -Copt-level=0 -Cpasses=sancov-module "${coverage[@]/#/-Cllvm-args=}"
