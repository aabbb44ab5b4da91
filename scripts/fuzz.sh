#!/usr/bin/env bash
# Fuzzes what reads what comes from outside: `fuzz.sh SECONDS [TARGET...]`, each target so long, as many
# at once as there are CPUs; all that the program has if none are named. The stable toolchain suffices:
# libFuzzer comes as a crate, and the compiler can record the coverage that guides it
# (scripts/rustc-fuzz.sh). Only the crates of this tree are compiled for it; the others are those of
# `cargo test`, built in the same way so that they have the same features. Begins with small files made
# here. What it learns stays in fuzz/corpus, what breaks in fuzz/artifacts: `HANGDOG_FUZZ=TARGET PROGRAM
# FILE` shows it again. Ends with libFuzzer's closing lines, each with its target.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
seconds=$1
shift
built=$(RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/rustc-fuzz.sh \
    cargo test --workspace --locked --no-run --bin fuzz --message-format json-render-diagnostics) || exit
program=$(sed -nE 's/.*"executable":"([^"]+)".*/\1/p' <<<"$built")
echo "the program: $program"

targets=("$@")
if ((${#targets[@]} == 0)); then
    mapfile -t targets < <(HANGDOG_FUZZ=list "$program" -runs=0 2>/dev/null)
fi
((${#targets[@]})) || exit
logs=$(mktemp -d)
# Some targets read files: no disk is to be waited for.
files=$(mktemp -d -p /dev/shm)
trap 'rm -rf "$logs" "$files"' EXIT
options=(-max_total_time="$seconds" -timeout=30 -rss_limit_mb=1024 -verbosity=0 -print_funcs=0
    -print_final_stats=1)
run() {
    local target=$1 own=(-max_len=4096)
    case $target in
        table | elf) own=(-max_len=16384) ;;
        # Few rows tell little, and each trace takes long; what weighs inputs would take half of the time.
        trace) own=(-max_len=1024 -len_control=0 -entropic=0) ;;
    esac
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target" "$files/$target"
    scripts/fuzz-seeds.sh "$target" "fuzz/corpus/$target" &&
        TMPDIR=$files/$target HANGDOG_FUZZ=$target "$program" "fuzz/corpus/$target" \
            -artifact_prefix="fuzz/artifacts/$target/" "${options[@]}" "${own[@]}"
}
for target in "${targets[@]}"; do
    while (($(jobs -rp | wc -l) >= $(nproc))); do
        wait -n
    done
    # What is found ends it; else nothing does but the time.
    { run "$target" >"$logs/$target" 2>&1 || touch "$logs/$target.failed"; } &
done
wait

for target in "${targets[@]}"; do
    if [[ -e $logs/$target.failed ]]; then
        grep -vE '^(stat::|SUMMARY|WARNING|INFO)' "$logs/$target"
    fi
    sed -nE "s/^(stat::number_of_executed_units|SUMMARY).*/& ($target)/p" "$logs/$target"
done
! compgen -G "$logs/*.failed" >/dev/null
