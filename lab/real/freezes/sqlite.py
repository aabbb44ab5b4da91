"""SQLite's busy handler: a program waits for the lock on a database file by asking again and again
while another sleeps in a transaction."""

import subprocess
import time

from case import Root, Truth, freeze
from freezes.interactive import Terminal
from stage import Fault, need, now_ns, output_of, read_line

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


@freeze("databases", "sqlite-busy")
def busy(stage):
    """An insert asks SQLite for the lock that another program's sleeping transaction holds, again
    and again."""
    need(PYTHON, "lslocks")
    base = stage.directory / "notes.db"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    holder = stage.start([PYTHON, "-c", HOLDER, base], **pipes)
    read_line(holder.stdout)
    waiter = stage.program([PYTHON, "-c", WAITER, base], stdout=subprocess.PIPE)
    waiter.line()
    stage.ordinary()
    holder.stdin.write(f"{stage.freeze_s}\n".encode())
    holder.stdin.flush()
    time.sleep(0.1)
    holders = stage.hold(lambda: lock_holders(base))
    frozen = tuple(map(int, waiter.line().split()))
    if holders != {holder.pid}:
        raise Fault(f"lslocks: the lock is held by {holders}, not by {holder.pid}")
    return Truth(
        text="RepeatedYield; root sqlite_holder, which sleeps",
        victims=(waiter.pid,),
        roots=(Root(holder.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"lslocks: {holder.pid} holds the lock on {base.name}",
        waits_in="sqlite",
    )


@freeze("databases", "sqlite-shell")
def shell(stage):
    """A sqlite3 shell asks again and again for the lock on a database that somebody at another
    sqlite3 shell has locked in a transaction and then left open."""
    need("sqlite3", "lslocks")
    base = stage.directory / "notes.db"
    words = ["sqlite3", "-init", "/dev/null", base]
    holder = Terminal(stage, words, "sqlite> ")
    holder.enter("CREATE TABLE notes (text);")
    stage.ordinary()
    holder.enter("BEGIN EXCLUSIVE;")
    insert = "INSERT INTO notes VALUES ('written')"
    writer = stage.program([*words, ".timeout 60000", insert])
    begin = now_ns()
    holders = stage.hold(lambda: lock_holders(base))
    holder.type("COMMIT;")
    frozen = begin, writer.ended()
    if holders != {holder.pid}:
        raise Fault(f"lslocks: the lock is held by {holders}, not by {holder.pid}")
    return Truth(
        text="RepeatedYield; root the other sqlite3, left at its prompt in a transaction",
        victims=(writer.pid,),
        roots=(Root(holder.pid, ("LongWait",)),),
        outside=True,
        frozen=frozen,
        witness=f"lslocks: {holder.pid} holds the lock on {base.name}",
        waits_in="sqlite",
    )
