"""Runs a command and writes what it cost: `measured.py FILE COMMAND...`.

A process of its own, so that the command's CPU time can be told from that of a recorder around it.
"""

import json
import resource
import subprocess
import sys
import time


def cpu(who):
    """User and system time, s."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def main():
    result, command = sys.argv[1], sys.argv[2:]
    begin = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    wall = time.monotonic() - begin
    measured = {
        "code": done.returncode,
        "out": done.stdout,
        "wall_s": wall,
        "cpu_s": cpu(resource.RUSAGE_CHILDREN),
        "own_cpu_s": cpu(resource.RUSAGE_SELF),
    }
    with open(result, "w", encoding="utf-8") as file:
        json.dump(measured, file)


if __name__ == "__main__":
    main()
