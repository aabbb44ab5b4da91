"""Imports data into memory: for a line of its stdin, `end` or the size of what is to be imported,
MiB. It has a fault that shows after the import: it is aborted then."""

import os
import sys

with open("/proc/self/comm", "w", encoding="ascii") as file:
    file.write("import_data")
line = sys.stdin.readline().strip()
if line not in ("", "end"):
    data = os.urandom(int(float(line) * (1 << 20)))
    os.abort()
