"""Keeps a register, a file of lines that several programs write to, each of which locks it by
POSIX (lockf): `file_register.py append NAME FILE` adds a line ten times a second, and tells each
that takes more than a second by its begin and end; `file_register.py sort NAME FILE` obeys stdin:
`SECONDS` has it lock the file and sort it anew for so long."""

import fcntl
import random
import sys
import time


def append_line(path, line):
    """Adds a line once nobody else is at the register."""
    with open(path, "a", encoding="ascii") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        file.write(line)


def sort_register(path, seconds):
    """Has the register for itself while it compares and sorts for so long."""
    with open(path, "r+", encoding="ascii") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        print("locked", flush=True)
        draw = random.Random(1)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sorted(draw.random() for _ in range(20_000))


def main():
    role, name, path = sys.argv[1:]
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)
    print("ready", flush=True)
    if role == "sort":
        for line in sys.stdin:
            sort_register(path, float(line))
        return
    while True:
        time.sleep(0.1)
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        append_line(path, "an entry\n")
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if end - begin > 1_000_000_000:
            print(begin, end, flush=True)


main()
