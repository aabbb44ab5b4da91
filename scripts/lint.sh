#!/usr/bin/env bash
# Holds every language of the tree to its format and its linter: `lint.sh`, or `lint.sh text` for all that
# needs no compiler (test.sh compiles by Clippy's). Says what it looks at; runs all of them even if one
# complains.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
what=${1-all}

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
# Phrases that made readers stumble, and are gone. The [ ] around a letter keeps the list from matching
# itself.
words() {
    local phrases=(
        '[f]lies on' "thread's [d]oings" 'wakes? in [v]ain' 'wok(e|en) .*in [v]ain' 'looked .*in [v]ain'
        'too [f]resh' '[t]rying on' '[l]aid to' 'would [r]emain without' '[g]one by on' '[t]old are'
        '[o]thers had them' 'let a time-?out [p]ass' 'memory to be [b]rought in' '[T]ime-out' '[t]ime-out'
        'a [y]ardstick' 'the [y]ardstick' 'comes? [r]ound\b' 'a [k]not\b' 'the [k]not\b'
        '[a]mid something' 'by what the others [s]how' 'takes? it [b]ack by'
    )
    local places=(crates bpf mark docs README.md CONTRIBUTING.md ui/src lab scripts bench Makefile)
    local pattern
    pattern=$(IFS='|' && echo "${phrases[*]}")
    ! grep -rnE "$pattern" --exclude-dir={build,node_modules,target,dist} \
        --include=*.{rs,h,c,cc,cpp,py,sh,md,ts,tsx,mjs,txt,toml} --include=Makefile "${places[@]}" |
        grep -vE '^docs/DIAGNOSIS-LOG.md:[0-9]+:  ' # what earlier versions printed
}

mapfile -t shell < <(find scripts .ci bench -type f -exec grep -lE '^#!.*\b(ba)?sh\b' {} + | sort)
mapfile -t c < <(find bpf lab/programs lab/real bench mark -name '*.[ch]' | sort)
mapfile -t python < <(find lab bench scripts crates mark -name '*.py' -not -path '*/build/*' | sort)

check rustfmt cargo fmt --all --check
[[ $what == text ]] || check clippy cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
check clang-format clang-format --dry-run -Werror "${c[@]}"
check shellcheck shellcheck "${shell[@]}"
check python python_parses "${python[@]}"
check words words
check circles scripts/circles.py crates/*

if ((${#failed[@]})); then
    echo "lint: failed: ${failed[*]}"
    exit 1
fi
