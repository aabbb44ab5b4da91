"""Locks on files, and FIFOs: programs that wait for another program by way of a file."""

import os
import pathlib
import signal
import subprocess

from case import Root, Truth, freeze
from freezes.slow_disk import must_wait_in, start_of
from freezes.sqlite import lock_holders
from stage import Fault, need, now_ns, read_line, wait_for

PYTHON = "/usr/bin/python3"
PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"
REGISTER = PROGRAMS / "file_register.py"
SENSOR = PROGRAMS / "file_sensor.py"
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
# Where the kernel waits for a lock; the name of the second kind depends on the version.
FLOCK_WAITS = ("flock_lock_inode_wait", "locks_lock_inode_wait", "__do_sys_flock")
POSIX_WAITS = ("fcntl_setlk", "do_lock_file_wait")
PIPE_WAITS = ("pipe_read", "anon_pipe_read", "fifo_pipe_read")
SLEEPS = ("do_nanosleep", "hrtimer_nanosleep")
# What the root is at takes so much longer than a freeze should last, s.
LONGER_S = 0.7


@freeze("files", "file-flock")
def flock_held(stage):
    """flock(1) waits to start a job, for the last run of that job still sleeps with the lock."""
    need("flock", "lslocks", "sleep")
    lock = stage.directory / "job.lock"
    lock.touch()
    # It becomes the job, which so has the lock.
    job = stage.start(["flock", "--no-fork", lock, "sleep", "1000"])
    wait_for("the first job", lambda: lock_holders(lock) == {job.pid})
    start_of(job, "sleep")
    waiter = stage.program(["flock", lock, "date"], stdout=subprocess.PIPE)
    start = start_of(waiter, "flock")
    place, holders = stage.hold(
        lambda: (must_wait_in(waiter.pid, FLOCK_WAITS), lock_holders(lock))
    )
    end = now_ns()
    job.send_signal(signal.SIGTERM)
    waiter.ended()
    # The waiter is listed too, as blocked.
    if job.pid not in holders:
        raise Fault(f"lslocks: the lock is of {holders}, not of {job.pid}")
    return Truth(
        text="LongWait in flock; root sleep, which has the lock",
        victims=(waiter.pid,),
        roots=(Root(job.pid, ("LongWait",)),),
        frozen=(start, end),
        witness=f"/proc: {waiter.pid} waits in {place}; lslocks: {job.pid} has the lock",
    )


@freeze("files", "file-posix-lock")
def posix_lock_held(stage):
    """A program that appends to a register waits for the POSIX lock of another that sorts it."""
    need(PYTHON, "lslocks")
    register = stage.directory / "register"
    register.touch()
    words = [PYTHON, REGISTER]
    sorter = stage.start([*words, "sort", "reg_sorter", register], **PIPES)
    read_line(sorter.stdout)
    writer = stage.program([*words, "append", "reg_writer", register], stdout=subprocess.PIPE)
    writer.line()
    stage.ordinary()
    sorter.stdin.write(f"{stage.freeze_s + LONGER_S}\n".encode())
    read_line(sorter.stdout)
    place, holders = stage.hold(
        lambda: (must_wait_in(writer.pid, POSIX_WAITS), lock_holders(register))
    )
    frozen = tuple(map(int, writer.line().split()))
    if sorter.pid not in holders:
        raise Fault(f"lslocks: the lock is of {holders}, not of {sorter.pid}")
    return Truth(
        text="LongWait in lockf; root reg_sorter, LongRunning in sort_register",
        victims=(writer.pid,),
        roots=(Root(sorter.pid, ("LongRunning",)),),
        frozen=frozen,
        witness=f"/proc: {writer.pid} waits in {place}; lslocks: {sorter.pid} has the lock",
        # The expression within it is its own too.
        function=r"\bsort_register\b",
        waits_in="append_line",
    )


@freeze("files", "file-fifo-silent")
def fifo_silent(stage):
    """grep reads from a FIFO whose writer sends nothing for a while."""
    need(PYTHON, "grep")
    fifo = stage.directory / "fifo"
    os.mkfifo(fifo)
    sensor = stage.start([PYTHON, SENSOR, "sensor", fifo], **PIPES)
    grep = stage.program(
        ["grep", "--line-buffered", "temperature", fifo], stdout=subprocess.PIPE
    )
    stage.ordinary()
    sensor.stdin.write(f"{stage.freeze_s + LONGER_S}\n".encode())
    places = stage.hold(
        lambda: (must_wait_in(grep.pid, PIPE_WAITS), must_wait_in(sensor.pid, SLEEPS))
    )
    frozen = tuple(map(int, read_line(sensor.stdout).split()))
    return Truth(
        text="LongWait in read; root sensor, which sleeps",
        victims=(grep.pid,),
        roots=(Root(sensor.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"/proc: {grep.pid} waits in {places[0]}, {sensor.pid} in {places[1]}",
        function=r"\bawait_instrument$",
    )
