#!/usr/bin/env bash
# Holds every language of the tree to its format and its linter. Says what it looks at; runs all of
# them even if one complains.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

failed=()
check() {
    local name=$1
    shift
    echo "lint: $name"
    "$@" || failed+=("$name")
}
python_parses() {
    python3 -c 'import ast, sys
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        ast.parse(file.read(), name)' "$@"
}

mapfile -t shell < <(find scripts .ci bench -type f -exec grep -lE '^#!.*\b(ba)?sh\b' {} + | sort)
mapfile -t c < <(find bpf lab/programs lab/real bench -name '*.[ch]' | sort)
mapfile -t python < <(find lab bench scripts crates -name '*.py' -not -path '*/build/*' | sort)

check rustfmt cargo fmt --all --check
check rustfmt-fuzz cargo fmt --manifest-path fuzz/Cargo.toml --check
check clippy cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
check clang-format clang-format --dry-run -Werror "${c[@]}"
check shellcheck shellcheck "${shell[@]}"
check python python_parses "${python[@]}"

if ((${#failed[@]})); then
    echo "lint: failed: ${failed[*]}"
    exit 1
fi
