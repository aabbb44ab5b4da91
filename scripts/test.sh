#!/usr/bin/env bash
# Every test: sets up, lints, runs the page's tests in a browser, the crates' tests, 20 s of fuzzing for
# each target, the lab's own tests, the lab with one seed, and ten freezes of real programs. One that
# fails does not keep the others from running. The end repeats each runner's closing lines, and what was
# not run: what a machine does not allow never counts as passed.
#
# All is compiled once, by Clippy's compiler, which is rustc with its lints: to lint apart from that takes
# the dependencies a second time. What most of the crates' tests do is wait, so the fuzzer and the lab's
# own tests have the CPUs meanwhile, at the lowest priority.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
target=${CARGO_TARGET_DIR:-target}
logs=$target/test-logs
hangdog=$target/debug/hangdog

scripts/setup.sh test || exit 1
# Without them the exports' tests say that they were not run.
scripts/readers.sh || echo "readers: they could not be fetched"
rm -rf "$logs"
mkdir -p "$logs"

failed=()
not_run=()
times=("set-up $SECONDS s")
stage() {
    local name=$1 begin=$SECONDS
    shift
    printf '\n=== %s\n' "$name"
    "$@" 2>&1 | tee "$logs/$name.log" || failed+=("$name")
    times+=("$name $((SECONDS - begin)) s")
}
# Many tests wait for a kernel and for other programs, so a loaded machine can make one fail. Those that
# failed run once more, one at a time, and the load is printed. What does not compile, and a test
# program that broke off, counts at once.
crates() {
    local log=$logs/cargo.log tests
    cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$log" && return
    mapfile -t tests < <(sed -nE 's/^test (.*) \.\.\. FAILED$/\1/p' "$log")
    if ((${#tests[@]} == 0)) ||
        [[ $(grep -c '^error: .*test failed' "$log") != $(grep -c '^test result: FAILED' "$log") ]]; then
        return 1
    fi
    echo "TRIED AGAIN under a load of $(cut -d' ' -f1-3 /proc/loadavg): ${tests[*]}"
    cargo test --workspace --locked --no-fail-fast -- --exact --test-threads 1 "${tests[@]}"
}
lab_tests() {
    make -s -C lab all build/venv && (cd lab && python3 -m unittest discover -s tests)
}
# Freezes of real programs that are short and take few packages. The witness of each must see it; of
# the verdicts so many must be right as a busy machine leaves right.
short_freezes=(sqlite-busy find-exec-fifo background-group idle-policy quota-gzip python-pool
    memory-fresh-pages disk-copy-stalls file-fifo-silent xargs-xz)
lab_real() {
    lab/build/venv/bin/python lab/real/run.py --hangdog "$hangdog" --setting record \
        --results "$target/lab-real" "${short_freezes[@]/#/--name=}" --least-right 3
}

compile() {
    scripts/ui.sh build && cargo test --workspace --locked --no-run
}
export RUSTC_WORKSPACE_WRAPPER=clippy-driver

stage lint scripts/lint.sh text
stage compile compile
if [[ ${failed[*]} == *compile* ]]; then
    echo "FAILED: ${failed[*]}; what does not compile cannot be tested"
    exit 1
fi
# Clippy's warnings, also those of an earlier run.
if grep -q '^warning: ' "$logs/compile.log"; then
    failed+=(clippy)
fi
stage ui scripts/ui.sh test
beside() {
    renice -n 19 "$BASHPID" >/dev/null
    scripts/fuzz.sh 20 >"$logs/fuzz.log" 2>&1 || touch "$logs/fuzz.failed"
    lab_tests >"$logs/lab-tests.log" 2>&1 || touch "$logs/lab-tests.failed"
}
beside &
stage crates crates
wait
for name in fuzz lab-tests; do
    echo "=== $name, beside the crates' tests"
    cat "$logs/$name.log"
    [[ ! -e $logs/$name.failed ]] || failed+=("$name")
done
stage bench-tests python3 -m unittest discover -s bench/tests
if reason=$("$hangdog" doctor 2>&1); then
    stage lab python3 lab/run.py --hangdog "$hangdog" --seeds 1 --again
    stage lab-real lab_real
else
    not_run+=("lab, lab-real: this machine does not allow recording: $(tail -n 1 <<<"$reason")")
fi

# A live test that cannot run here says so and ends well; the lab marks such a row.
mapfile -t -O "${#not_run[@]}" not_run < <(
    grep -hoE 'NOT RUN: .*' "$logs/crates.log" "$logs/ui.log" | cut -d' ' -f3- | sort -u
    grep -hE -A1 'not run$' "$logs/lab.log" 2>/dev/null | grep -vE '^--$' | paste -d: - - |
        sed -E 's/^([^ ]+).*not run: */lab: \1: /'
    sed -nE 's/^cannot run: /lab-real: /p' "$logs/lab-real.log" 2>/dev/null
)

printf '\n=== closing lines\n'
grep -hE '^(test result|TRIED AGAIN)' "$logs/crates.log" | grep -v ' 0 passed; 0 failed; 0 ignored;'
grep -hE '^ℹ (pass|fail|skipped) |^ +Tests ' "$logs/ui.log"
grep -hE '^stat::number_of_executed_units|^SUMMARY' "$logs/fuzz.log"
grep -hE '^(Ran [0-9]+ tests|OK|FAILED|lab(-real)?: )' "$logs"/{lab*,bench-tests}.log
if ((${#not_run[@]})); then
    echo "not run, and not to be counted as passed:"
    printf '  %s\n' "${not_run[@]}"
else
    echo "not run: nothing was left out"
fi
(
    IFS=,
    echo "time: ${times[*]}"
)
if ((${#failed[@]})); then
    echo "FAILED: ${failed[*]}"
    exit 1
fi
echo "passed: everything that was run, in $((SECONDS / 60)) min $((SECONDS % 60)) s"
