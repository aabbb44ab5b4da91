"""Real programs that wait for a child, and programs that somebody has stopped."""

import os
import signal
import subprocess

from hangs import builds
from hangs.pipes import fifo
from hangs.program import hung, truth
from hangs.witness import At, child, field, must_block, sleeps
from stage import Fault, need, output_of, read_line, wait_for

WAIT = ("wait4", "waitid")


@hung("bash-wait")
def bash(stage):
    """A script of bash waits for the end of a background command, which sleeps."""
    script = stage.directory / "backup.sh"
    script.write_text("sleep infinity &\nwait\necho done\n")
    shell = stage.start(["bash", script])
    return truth(
        "LongWait; root sleep, the child", [At(shell.pid, WAIT), sleeps(child(shell.pid, "sleep"))]
    )


@hung("make-recipe")
def make(stage):
    """make waits for a recipe whose cat opens a FIFO that nobody writes."""
    need("make")
    path = fifo(stage)
    (stage.directory / "Makefile").write_text(f"report:\n\tcat {path} > report; date >> report\n")
    builder = stage.start(["make", "-C", stage.directory])
    shell = child(builder.pid, "sh")
    cat = child(shell, "cat")
    return truth(
        "LongWait; root cat, which opens a FIFO without a writer",
        [At(builder.pid, WAIT), At(shell, WAIT), At(cat, ("open",))],
    )


@hung("git-hook")
def git(stage):
    """git commit waits for a hook, which waits for a lock that a sleeping process holds."""
    need("git", "flock")
    folder, lock = stage.directory / "tree", stage.directory / "review.lock"
    holder = stage.start([*builds.python("filelock"), "flock", lock], stdout=subprocess.PIPE)
    read_line(holder.stdout)
    output_of(["git", "init", "-q", folder], env=stage.environment)
    hook = folder / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\nflock {lock} true\nexit 0\n")
    hook.chmod(0o755)
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    words = ["git", "-C", folder, *identity, "commit", "-q", "--allow-empty", "-m", "first"]
    commit = stage.start(words)
    shell = child(commit.pid, "pre-commit")
    waiter = child(shell, "flock")
    return truth(
        "LongWait; root the process that holds the lock, which sleeps",
        [At(commit.pid, WAIT), At(shell, WAIT), At(waiter, ("flock",)), sleeps(holder.pid)],
        must_block({waiter: holder.pid}),
    )


@hung("xargs-flock")
def xargs(stage):
    """xargs waits for flock, which waits for a lock of another flock, which holds it for a command
    that sleeps."""
    need("xargs", "flock")
    names, lock = stage.directory / "names", stage.directory / "print.lock"
    names.write_text("one\ntwo\n")
    holder = stage.start(["flock", lock, "sleep", "infinity"])
    sleeper = child(holder.pid, "sleep")
    printer = stage.start(["xargs", "-a", names, "-n1", "flock", lock, "echo"])
    waiter = child(printer.pid, "flock")
    return truth(
        "LongWait; root sleep, the command of the flock that holds the lock",
        [At(printer.pid, WAIT), At(waiter, ("flock",)), At(holder.pid, WAIT), sleeps(sleeper)],
        must_block({waiter: holder.pid}),
    )


def busy(stage):
    """Starts a program that runs all the time, until somebody stops it."""
    return stage.start(["yes"], stdout=subprocess.DEVNULL)


@hung("stopped")
def stopped(stage):
    """A program that would run is stopped by a signal."""
    process = busy(stage)
    process.send_signal(signal.SIGSTOP)
    return truth("LongWait; it is stopped itself", [At(process.pid, state="T")])


@hung("debugged")
def debugged(stage):
    """A program that would run is held by gdb, which waits for a command that nobody gives."""
    need("gdb")
    process = busy(stage)
    path = fifo(stage)
    # Open for both, so that it neither waits for a writer nor sees the end.
    commands = os.open(path, os.O_RDWR)
    words = ["gdb", "-q", "-nx", "-p", process.pid]
    debugger = stage.start(words, stdin=commands)
    os.close(commands)
    traced = wait_for(f"gdb at {process.pid}", lambda: int(field(process.pid, "TracerPid")))
    if traced != debugger.pid:
        raise Fault(f"{process.pid} is traced by {traced}, not by {debugger.pid}")
    return truth(
        "LongWait; root gdb, which waits for a command",
        [At(process.pid, state="t"), At(debugger.pid, ("poll", "select", "read"))],
        f"/proc: the tracer is {traced}",
    )
