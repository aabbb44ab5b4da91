#!/usr/bin/env bash
# Fuzzes what reads ELF files: `fuzz.sh SECONDS`. The stable toolchain suffices: libFuzzer comes as a
# crate, and the compiler can record the coverage that guides it. `cargo fuzz run table` works too.
# Begins with small files made here. What it learns stays in fuzz/corpus, what breaks in
# fuzz/artifacts: pass such a file to the program to see it again.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=$1
machine=$(rustc -vV | sed -n 's/^host: //p')
target=${CARGO_TARGET_DIR:-target}

# As cargo-fuzz does, less what needs nightly. With --target, build scripts are built without.
coverage=(
    -sanitizer-coverage-level=4
    -sanitizer-coverage-inline-8bit-counters
    -sanitizer-coverage-pc-table
    -sanitizer-coverage-trace-compares
)
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module ${coverage[*]/#/-Cllvm-args=} -Ccodegen-units=1" \
    cargo build --locked --quiet --release --target "$machine"

mkdir -p corpus/table artifacts/table
../scripts/fuzz-seeds.sh corpus/table
exec "$target/$machine/release/table" corpus/table -artifact_prefix=artifacts/table/ \
    -max_total_time="$seconds" -max_len=16384 -timeout=5 -rss_limit_mb=1024 -verbosity=0 \
    -print_final_stats=1
