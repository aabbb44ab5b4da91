"""Imports log lines from stdin, some thousands a second: `sh_importer.py CLOSED`. After a line
that says `month` it closes the month, which is computing until the file CLOSED is there; it prints
when that began, and when it began and ended."""

import hashlib
import pathlib
import sys
import time

LINES_AT_ONCE = 200


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def close_month(lines):
    """Adds up what the month had."""
    begin, digest = now(), b""
    print(begin, flush=True)
    while not pathlib.Path(sys.argv[1]).exists():
        for _ in range(10000):
            digest = hashlib.sha256(digest + lines).digest()
    print(begin, now(), flush=True)


def main():
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("importer")
    # Without reading ahead.
    with open(0, "rb", buffering=256) as log:
        for number, line in enumerate(log):
            if line.startswith(b"month"):
                close_month(line)
            elif number % LINES_AT_ONCE == 0:
                time.sleep(0.02)


main()
