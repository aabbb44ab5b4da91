"""Somebody at a prompt: `ord_again.py LOG PAUSE_S COMMAND...` runs commands (each a JSON list of
words) one after the other, for ever, and writes begin, end (CLOCK_MONOTONIC, ns), CPU time (ns)
and name of each. Ends where one fails."""

import json
import os
import resource
import subprocess
import sys
import time


def cpu_ns():
    """CPU time of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * 1e9)


def main():
    log, pause_s = sys.argv[1], float(sys.argv[2])
    jobs = [json.loads(text) for text in sys.argv[3:]]
    with open(log, "a", buffering=1, encoding="utf-8") as file:
        while True:
            for words in jobs:
                before = cpu_ns()
                begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                subprocess.run(
                    words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
                )
                end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                name = os.path.basename(words[0])
                file.write(f"{begin} {end} {cpu_ns() - before} {name}\n")
                time.sleep(pause_s)


main()
