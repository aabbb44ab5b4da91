#!/usr/bin/env bash
# Writes small files to begin with into the directory given: `fuzz-seeds.sh TARGET DIRECTORY`. Targets
# that are not named here begin with nothing.
set -euo pipefail
to=$(realpath "$2")
seed() {
    printf '%b' "$2" >"$to/$1"
}
case $1 in
    answers)
        seed one 'version = 1\n[[answer]]\nnumber = 1\nquestion = "?"\nchoice = "a/b"\n
[answer.wait]\nwaiter = "app/main"\ncall = "futex"\nat = ["f"]\n'
        ;;
    compiled)
        seed map '1000 10 first one\n0x2000 0x20 second\n'
        # The header of process 77's, and a function `f` at 0x1000.
        seed dump 'DTiJ\x01\0\0\0\x28\0\0\0\x3e\0\0\0\0\0\0\0\x4d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x3a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0f\0'
        ;;
    kernel)
        seed maps '\x027f00-7fff r-xp 00001000 fe:00 77   /a b/c.so\nRss: 4 kB\nPrivate_Dirty: 4 kB\nReferenced: 4 kB\n'
        seed mounts '\x0230 21 0:45 / /a\\040b rw shared:1 - fuse.x host: rw\n31 21 0:26 / /sys/fs/cgroup rw - cgroup2 x rw\n'
        seed locks '\x021: FLOCK ADVISORY WRITE 4711 fe:01:42 0 EOF\n1: -> FLOCK ADVISORY WRITE 7 fe:01:42 0 EOF\n'
        seed symbols '\x02ffffffff81000200 t schedule\nffffffffc0000000 t draw [gpu]\n'
        seed status '\x027 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\nUid: 1 2\nvoluntary_ctxt_switches: 7\n'
        seed call '\x027 0x1000 0x2 0x3 0x4 0x5 0x6 0x7ffd 0x7fee'
        ;;
    meta)
        seed one '{"format": 1, "started_unix_ns": 7, "duration_ns": 60000000, "state": "complete"'
        seed whole '{"format": 1, "mode": "instant", "state": "recording", "parts": {}}'
        ;;
    reports)
        seed one '{"signature":"aa","program":"a","sign":"stall","sentence":"x","count":1,"first_unix_ns":7,"occasions":[{"unix_ns":7,"duration_ns":7,"goes_on":false,"pid":7,"tid":7,"trace":"20261122-140322-a.hang","from_ns":1,"to_ns":2}]}'
        ;;
    snap)
        seed order '1000 7 /a b/c.hang'
        seed answer 'ok 7 77'
        ;;
    spans)
        seed otlp '{"resourceSpans":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"100"}}]},"scopeSpans":[{"spans":[{"spanId":"00f067aa0ba902b7","name":"a","startTimeUnixNano":"2000000","endTimeUnixNano":3000000,"attributes":[{"key":"thread.id","value":{"intValue":101}},{"key":"thread.name","value":{"stringValue":"pool"}}]}]}]}]}'
        seed kept '{"version":1,"spans":[{"thread":1,"name":"a","start":7,"end":77,"id":7}]}'
        ;;
    trace)
        # Each of the traces that it knows, complete, with the end that it has and with the last there is;
        # the last byte chooses what is asked.
        for base in {0..14}; do
            for asked in 3 4 5; do
                seed "$base-$asked" "\\0$(printf %o "$base")\\0343\\0$asked"
                seed "$base-$asked-long" "\\0$(printf %o "$base")\\0043\\0$asked"
            done
        done
        ;;
esac
[[ $1 == table || $1 == elf ]] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
small=(-nostdlib -s -z noseparate-code -z noexecstack "-Wl,--build-id=none")

cat >frames.s <<'S'
    .text
    .globl _start
_start:
    .cfi_startproc
    .cfi_undefined rip
    .zero 8, 0x90
    .cfi_endproc
    .cfi_startproc
    .cfi_personality 0x1b, _start
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register rbp
    .zero 300, 0x90
    .cfi_remember_state
    leave
    .cfi_def_cfa rsp, 8
    .cfi_restore rbp
    ret
    .cfi_restore_state
    .zero 8, 0x90
    .cfi_def_cfa r10, 0
    .zero 1, 0x90
    .cfi_escape 0x10, 6, 2, 0x76, 0
    .cfi_escape 0x0f, 3, 0x76, 0x78, 6
    .zero 8, 0x90
    .cfi_endproc
    .cfi_startproc
    .cfi_signal_frame
    .cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 6
    .cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0
    .cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1
    .zero 8, 0x90
    .cfi_endproc
S
gcc "${small[@]}" -static frames.s -o "$to/static"
gcc "${small[@]}" -static -Wl,--eh-frame-hdr frames.s -o "$to/header"
{ echo '.cfi_sections .debug_frame' && cat frames.s; } >debug.s
gcc -nostdlib -static -z noseparate-code "-Wl,--build-id=none" debug.s -o "$to/debug"
echo 'int other(int); int f(int n) { return other(n) + 1; }' >shared.c
gcc "${small[@]}" -shared -fPIC -O2 -Wl,-z,lazy shared.c -o "$to/shared"
# Addresses of eight bytes, where code may be anywhere.
gcc "${small[@]}" -static -mcmodel=large -fPIC -O2 -Wl,--defsym=other=0,-e,f shared.c -o "$to/large"
