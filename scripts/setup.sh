#!/usr/bin/env bash
# Installs what this machine lacks to build hangdog; `setup.sh test` adds what only the tests need,
# `setup.sh bench` what only the measurements need, `setup.sh lab-real` the programs that lab/real makes freeze,
# `setup.sh lab-paging-real` and `setup.sh lab-compare` those that page and serve there. Quiet when all is
# there. Looks for the tools themselves, not for packages, so that a compiler from elsewhere will
# do; only apt is asked to install.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:$HOME/.cargo/bin

say() { echo "setup: $*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# The package of Debian, then how to see that it is not needed.
missing=()
need() {
    local package=$1
    shift
    "$@" || missing+=("$package")
}
matches() { compgen -G "$1" >/dev/null; }
library() { has pkg-config && pkg-config --exists "$1"; }

need bc has bc
need clang has clang
need clang-format has clang-format
need debuginfod has debuginfod-find
need e2fsprogs has mkfs.ext4
need g++ has c++
need gcc has gcc
need libc6-dev test -e /usr/include/stdio.h
need libelf-dev library libelf
need make has make
need openssl has openssl
need pkg-config has pkg-config
need python3 has python3
need python3-venv python3 -c 'import ensurepip, venv'
need shellcheck has shellcheck
need xvfb has Xvfb
need xz-utils has xz
need zenity has zenity
need zlib1g-dev library zlib
if [[ ${1-} == test ]]; then
    need chromium has chromium
    need golang-go has go
    need openjdk-17-jdk-headless has javac
    need perl has perl
    need php-cli has php
    need ruby has ruby
fi
if [[ ${1-} == bench ]]; then
    need bonnie++ has bonnie++
    need bpftool has bpftool
    need chromium has chromium
    need fio has fio
    need libmemcached-tools has memcaslap
    need linux-perf has perf
    need memcached has memcached
    need mousepad has mousepad
    need nginx-light has nginx
    need postgresql matches '/usr/lib/postgresql/*/bin/pgbench'
    need redis-server has redis-server
    need redis-tools has redis-benchmark
    need strace has strace
    need stress-ng has stress-ng
    need sysbench has sysbench
    need trace-cmd has trace-cmd
    need wrk has wrk
fi
if [[ ${1-} == lab-paging-real ]]; then
    need libreoffice-writer has soffice
    need postgresql matches '/usr/lib/postgresql/*/bin/pgbench'
fi
if [[ ${1-} == lab-compare ]]; then
    need postgresql matches '/usr/lib/postgresql/*/bin/pgbench'
    need redis-server has redis-server
fi
if [[ ${1-} == lab-real ]]; then
    # The programs that lab/real makes freeze, hang or work, and the witnesses.
    while read -r package program; do
        need "$package" has "$program"
    done <<'END'
apache2 apache2
bsdutils logger
bzip2 bzip2
chromium chromium
cpulimit cpulimit
curl curl
dbus-bin gdbus
dbus-daemon dbus-daemon
dnsmasq-base dnsmasq
bind9-dnsutils dig
dunst dunst
emacs-nox emacs
featherpad featherpad
fuse3 fusermount3
gdb gdb
gedit gedit
git git
gpg gpg
gpg-agent gpg-agent
gunicorn gunicorn
haproxy haproxy
iproute2 ss
libglib2.0-bin gsettings
libnotify-bin notify-send
logrotate logrotate
mariadb-client mariadb
mariadb-server mariadbd
memcached memcached
mousepad mousepad
mupdf mupdf
nftables nft
nginx-light nginx
openbox openbox
openssh-client ssh
openssh-server sshd
pgbouncer pgbouncer
pinentry-gtk2 pinentry-gtk-2
policykit-1 pkcheck
procps pgrep
pv pv
redis-server redis-server
redis-tools redis-cli
rsync rsync
ruby ruby
scrot scrot
socat socat
sqlite3 sqlite3
sshfs sshfs
strace strace
systemd busctl
texstudio texstudio
tmux tmux
util-linux lslocks
varnish varnishd
weston weston
wget wget
xclip xclip
xdotool xdotool
xfsprogs mkfs.xfs
xterm xterm
END
    need at-spi2-core test -x /usr/libexec/at-spi-bus-launcher
    need php-fpm matches '/usr/sbin/php-fpm*'
    need php-memcached matches '/etc/php/*/mods-available/memcached.ini'
    need dconf-service test -x /usr/libexec/dconf-service
    need postgresql test -d /usr/lib/postgresql
    need python3 test -x /usr/bin/python3
    need xdg-desktop-portal test -x /usr/libexec/xdg-desktop-portal
    need xdg-desktop-portal-gtk test -x /usr/libexec/xdg-desktop-portal-gtk
    while read -r package module; do
        need "$package" /usr/bin/python3 -c "import $module"
    done <<'END' 2>/dev/null
gir1.2-gtk-3.0 gi.repository.Gtk
python3-dbus dbus
python3-fusepy fusepy
python3-gi gi
python3-gi-cairo gi._gi_cairo
python3-psycopg2 psycopg2
python3-pymysql pymysql
python3-pyqt5 PyQt5.QtWidgets
python3-redis redis
python3-sqlalchemy sqlalchemy
python3-tk tkinter
python3-urllib3 urllib3
END
    # Languages; one from elsewhere will do.
    need golang-go has go
    need nodejs has node
    need openjdk-17-jdk-headless has javac
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
