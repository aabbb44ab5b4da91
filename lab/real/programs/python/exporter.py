"""An exporter that obeys its stdin: `json` imports a module of its package `formats`, `all` the rest, which has
threads import modules of the same package and waits for them while it is imported itself."""

import importlib
import sys
import time

print("ready", flush=True)
for line in sys.stdin:
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if line.strip() == "all":
        print(begin, flush=True)
        importlib.import_module("formats")
    else:
        importlib.import_module("json")
    print(begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
