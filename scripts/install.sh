#!/usr/bin/env bash
# install.sh HANGDOG DIRECTORY: the command, its man pages, the completions of three shells (all
# made by the command itself), and the unit that watches for hangs; it is not started. Asks for root only where the directory needs it.
set -euo pipefail
cd "$(dirname "$0")/.."
hangdog=$1
prefix=$2

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir "$made/man"
"$hangdog" man "$made/man"
for shell in bash zsh fish; do
    "$hangdog" completions "$shell" >"$made/$shell"
done

as_root=()
parent=$prefix
while [[ ! -e $parent ]]; do parent=$(dirname "$parent"); done
if [[ ! -w $parent ]]; then
    echo "install: $prefix needs root: using sudo"
    as_root=(sudo)
fi
put() { "${as_root[@]}" install -D -m "$1" -t "$prefix/$2" "${@:3}"; }
put_as() { "${as_root[@]}" install -D -m 644 "$1" "$prefix/$2"; }

put 755 bin "$hangdog"
put 644 share/man/man1 "$made"/man/*
put 644 share/doc/hangdog README.md LICENSE-*
put 644 lib/systemd/system packaging/hangdog-watch.service
put_as "$made/bash" share/bash-completion/completions/hangdog
put_as "$made/zsh" share/zsh/site-functions/_hangdog
put_as "$made/fish" share/fish/vendor_completions.d/hangdog.fish
echo "install: $prefix/bin/hangdog"
