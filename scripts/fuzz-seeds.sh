#!/usr/bin/env bash
# Writes small ELF files to begin with into the directory given: `fuzz-seeds.sh DIRECTORY`.
set -euo pipefail
to=$(realpath "$1")
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
