#!/usr/bin/env bash
# demo.sh HANGDOG: a program of the lab hangs, hangdog records it and says why.
set -euo pipefail
cd "$(dirname "$0")/.."
hangdog=$1
trace=$(dirname "$hangdog")/demo.hang # where only the demo writes

show() {
    printf '\n$ %s\n' "$*"
    "$@"
}

as_root=()
if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "demo: recording needs root, and there is no sudo here: run make demo as root" >&2
        exit 1
    fi
    echo "demo: recording needs root: using sudo"
    as_root=(sudo)
fi

make -s -C lab build/queue
if [[ -e $trace ]]; then
    "${as_root[@]}" rm -r "$trace"
fi

echo "demo: main hands jobs to a pool of workers; one of them takes far too long (lab/programs/queue.c)"
if ! show "${as_root[@]}" "$hangdog" record -o "$trace" -- lab/build/queue --seed 1; then
    printf '\ndemo: it could not be recorded; this is what the machine allows and lacks:\n' >&2
    show "${as_root[@]}" "$hangdog" doctor >&2
    exit 1
fi
show "${as_root[@]}" "$hangdog" why "$trace"

cat <<EOF

demo: the trace stays in $trace; see it in the browser:
  ${as_root[*]:+sudo }$hangdog open $trace
or look around at the terminal:
  ${as_root[*]:+sudo }$hangdog info $trace
  ${as_root[*]:+sudo }$hangdog threads $trace --process queue
  ${as_root[*]:+sudo }$hangdog story $trace --thread queue/queue --limit 40
EOF
