"""Processes that wait for a lock of a file."""

import signal
import subprocess

from hangs import builds
from hangs.program import hung, truth
from hangs.witness import At, call, must_block, sleeps
from stage import need, read_line, wait_for


def locker(stage, kind, *names):
    """Starts filelock.py; gives it once it has the first lock."""
    paths = [stage.directory / name for name in names]
    process = stage.start([*builds.python("filelock"), kind, *paths], stdout=subprocess.PIPE)
    read_line(process.stdout)
    return process


def waiter(stage, kind, name):
    """Starts filelock.py for a lock that is held; gives its process id."""
    return stage.start([*builds.python("filelock"), kind, stage.directory / name]).pid


def go_on(*lockers):
    """Has them take their other locks, one after the other."""
    for process in lockers:
        wait_for("sigwait", lambda process=process: call(process.pid)[0] == "sigwait")
        process.send_signal(signal.SIGUSR1)


@hung("flock-two")
def flock_two(stage):
    """Two processes take two files' locks (flock) in opposite orders."""
    first = locker(stage, "flock", "a.lock", "b.lock")
    second = locker(stage, "flock", "b.lock", "a.lock")
    go_on(first, second)
    a, b = first.pid, second.pid
    return truth(
        "Circular; two processes wait for each other's flock",
        [At(a, ("flock",)), At(b, ("flock",))],
        must_block({a: b, b: a}),
        cycle=(a, b),
    )


@hung("lockf-chain")
def lockf_chain(stage):
    """A process waits for a POSIX lock of one that waits for such a lock of a third, which
    sleeps."""
    last = locker(stage, "lockf", "b.lock")
    middle = locker(stage, "lockf", "a.lock", "b.lock")
    go_on(middle)
    first = waiter(stage, "lockf", "a.lock")
    return truth(
        "LongWait; root the third process, which sleeps",
        [At(first, ("fcntl",)), At(middle.pid, ("fcntl",)), sleeps(last.pid)],
        must_block({first: middle.pid, middle.pid: last.pid}),
    )


@hung("ofd-lock")
def ofd(stage):
    """A process waits for a lock that belongs to another one's open file (OFD lock), of which the
    kernel does not say whose it is."""
    holder = locker(stage, "ofd", "a.lock")
    first = waiter(stage, "ofd", "a.lock")
    return truth(
        "LongWait; root the other process, which sleeps",
        [At(first, ("fcntl",)), sleeps(holder.pid)],
        must_block({-1: -1}),
    )


@hung("sqlite-exclusive")
def sqlite(stage):
    """The shell of SQLite tries again and again to begin a transaction, which another process holds
    open exclusively while it sleeps."""
    need("sqlite3")
    database = stage.directory / "store.db"
    holder = stage.start([*builds.python("sqlite_client"), database], stdout=subprocess.PIPE)
    read_line(holder.stdout)
    words = ["sqlite3", "-cmd", ".timeout 2147483647", database, "BEGIN EXCLUSIVE"]
    shell = stage.start(words)
    return truth(
        "LongWait; root the other process, which sleeps in its transaction",
        [At(shell.pid, ("nanosleep",), turns=True), sleeps(holder.pid)],
    )
