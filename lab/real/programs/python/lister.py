"""Lists folders: for each that it reads on its stdin it starts find, waits until that has ended,
and then reads what it printed. A pipe holds no more than 64 KiB."""

import subprocess
import sys
import time


def list_folder(folder):
    with subprocess.Popen(["find", folder], stdout=subprocess.PIPE) as find:
        find.wait()
        return find.stdout.read()


print("ready", flush=True)
for line in sys.stdin:
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    list_folder(line.strip())
    print(begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
