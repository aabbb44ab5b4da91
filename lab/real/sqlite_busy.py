"""SQLite's busy handler: a program waits for the lock on a database file by asking again and again
while another sleeps in a transaction."""

import subprocess
import time

from judge import Truth
from stage import Fault, need, output_of

NAME = "sqlite"
FREEZE_S = 3.0
# Debian's own, with Debian's libsqlite3.
PYTHON = "/usr/bin/python3"

# They name themselves, so that they can be told apart as two different programs can.
HOLDER = """
import sqlite3, sys, time
open("/proc/self/comm", "w").write("sqlite_holder")
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute("CREATE TABLE notes (text)")
print("ready", flush=True)
for line in sys.stdin:
    base.execute("BEGIN IMMEDIATE")
    base.execute("INSERT INTO notes VALUES ('held')")
    time.sleep(float(line))
    base.execute("COMMIT")
"""
WAITER = """
import sqlite3, sys, time
open("/proc/self/comm", "w").write("sqlite_waiter")
base = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
print("ready", flush=True)
while True:
    time.sleep(0.05)
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    base.execute("INSERT INTO notes VALUES ('written')")
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if end - begin > 1_000_000_000:
        print(begin, end, flush=True)
"""


def lock_holders(path):
    """The processes that hold a lock on a file, by the kernel's list."""
    words = ["lslocks", "--noheadings", "--raw", "--notruncate", "-o", "PID,PATH"]
    rows = (line.split(maxsplit=1) for line in output_of(words).splitlines())
    return {int(row[0]) for row in rows if len(row) == 2 and row[1] == str(path)}


def play(stage):
    """Freezes the waiter once; gives the truth."""
    need(PYTHON, "lslocks")
    base = stage.directory / "notes.db"

    def start(script):
        process = stage.start(
            [PYTHON, "-c", script, base], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if process.stdout.readline() != b"ready\n":
            raise Fault("a program of the case did not start")
        return process

    holder = start(HOLDER)
    waiter = start(WAITER)
    with stage.recording():
        holder.stdin.write(f"{FREEZE_S}\n".encode())
        holder.stdin.flush()
        time.sleep(FREEZE_S / 2)
        holders = lock_holders(base)
        frozen = tuple(map(int, waiter.stdout.readline().split()))
    if holders != {holder.pid}:
        raise Fault(f"lslocks: the lock is held by {holders}, not by {holder.pid}")
    return Truth(
        text="RepeatedYield; root sqlite_holder, which sleeps",
        victim=waiter.pid,
        problem_class="RepeatedYield",
        root=holder.pid,
        root_class="LongWait",
        frozen=frozen,
        witness=f"lslocks: {holder.pid} holds the lock on {base.name}",
        waits_in="sqlite",
    )
