#!/usr/bin/env bash
# Installs what this machine lacks to build and test hangdog; `setup.sh bench` adds what only the
# measurements need, `setup.sh lab-real` the programs that lab/real makes freeze. Quiet when all is
# there. Looks for the tools themselves, not for packages, so that a compiler from elsewhere will
# do; only apt is asked to install.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin

say() { echo "setup: $*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# The package of Debian, then how to see that it is not needed.
missing=()
need() {
    local package=$1
    shift
    "$@" || missing+=("$package")
}
library() { has pkg-config && pkg-config --exists "$1"; }

need clang has clang
need clang-format has clang-format
need debuginfod has debuginfod-find
need g++ has c++
need gcc has gcc
need libc6-dev test -e /usr/include/stdio.h
need libelf-dev library libelf
need make has make
need pkg-config has pkg-config
need python3 has python3
need python3-venv python3 -c 'import ensurepip, venv'
need shellcheck has shellcheck
need xvfb has Xvfb
need zenity has zenity
need zlib1g-dev library zlib
if [[ ${1-} == bench ]]; then
    need chromium has chromium
    need linux-perf has perf
    need mousepad has mousepad
    need stress-ng has stress-ng
    need sysbench has sysbench
fi
if [[ ${1-} == lab-real ]]; then
    need at-spi2-core test -x /usr/libexec/at-spi-bus-launcher
    need chromium has chromium
    need dbus-daemon has dbus-daemon
    need gdb has gdb
    need gedit has gedit
    need iproute2 has ss
    need mousepad has mousepad
    need postgresql test -d /usr/lib/postgresql
    need python3 test -x /usr/bin/python3
    need texstudio has texstudio
    need util-linux has lslocks
    need xclip has xclip
    need xdotool has xdotool
fi

install_packages() {
    local as_root=()
    if [[ $(id -u) != 0 ]]; then
        has sudo || return 1
        as_root=(sudo)
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "$@" >&2
}

if ((${#missing[@]})); then
    by_hand="install them by hand (these are Debian's names) and try again"
    if ! has apt-get; then
        say "missing: ${missing[*]}"
        say "there is no apt-get here: $by_hand"
        exit 1
    fi
    say "installing ${missing[*]}"
    if ! install_packages "${missing[@]}"; then
        say "that failed; trying again with fresh package lists"
        if [[ $(id -u) == 0 ]]; then apt-get update >&2; else sudo apt-get update >&2; fi ||
            say "the package lists could not be fetched"
        if ! install_packages "${missing[@]}"; then
            say "apt-get could not install ${missing[*]}: $by_hand"
            exit 1
        fi
    fi
fi

# lmbench is in Debian's component non-free, which few machines list. It is fetched, verified by apt
# as any package, with lists of its own that name that component too, and unpacked into target/:
# the machine's settings stay as they are. `make bench` says so where it cannot be had.
fetch_lmbench() {
    local home=$PWD/target/lmbench own part
    [[ -d /usr/lib/lmbench || -d $home/usr ]] && return
    grep -qsx 'ID=debian' /etc/os-release && has apt-get && has dpkg || return
    say "fetching lmbench into $home"
    own=$(mktemp -d)
    mkdir -p "$own"/{lists/partial,cache/archives/partial,parts}
    for part in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
        [[ -r $part ]] || continue
        sed -E -e 's/^(Components:.*\<main\>.*)$/\1 non-free/' \
            -e 's/^(deb .*\<main\>.*)$/\1 non-free/' "$part" >"$own/parts/${part##*/}"
    done
    local with=(-q -o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$own/parts"
        -o "Dir::State::Lists=$own/lists" -o "Dir::Cache=$own/cache"
        -o "APT::Sandbox::User=root" -o "APT::Update::Post-Invoke-Success::=")
    if apt-get "${with[@]}" update >"$own/log" 2>&1 &&
        (cd "$own" && apt-get "${with[@]}" download lmbench >>"$own/log" 2>&1) &&
        mkdir -p "$home" && dpkg -x "$own"/lmbench_*.deb "$home"; then
        :
    else
        say "it could not be fetched: $(tail -n 1 "$own/log")"
    fi
    rm -r "$own"
}
if [[ ${1-} == bench ]]; then fetch_lmbench; fi

# The lab reads its truths with tomllib.
if ! python3 -c 'import tomllib' 2>/dev/null; then
    say "python3 is $(python3 --version | cut -d' ' -f2); the lab needs 3.11 or later"
    exit 1
fi

rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
get_rust="get it with rustup (https://rustup.rs), or from your distribution if that has $rust"
if ! has cargo; then
    say "there is no cargo: hangdog needs Rust $rust or later; $get_rust"
    exit 1
fi
have=$(cargo --version | cut -d' ' -f2)
if [[ $(printf '%s\n' "$rust" "$have" | sort -V | head -n 1) != "$rust" ]]; then
    say "cargo is $have; hangdog needs Rust $rust or later; $get_rust"
    exit 1
fi
for component in rustfmt clippy; do
    if ! cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1; then
        say "there is no $component, which make test needs: rustup component add $component"
        exit 1
    fi
done
