"""Processes that wait for another one by what they share: memory, System V IPC, being its child."""

import os
import pwd
import subprocess

from hangs import builds
from hangs.pipes import fifo
from hangs.program import hung, truth
from hangs.witness import At, child, must_own, sleeps
from stage import need, output_of, read_line, wait_for


def play(stage, pattern, *words):
    """Starts a pattern of processes.c; gives the process and its child, the holder."""
    process = stage.start([builds.c("processes"), pattern, *words])
    return process.pid, child(process.pid, "holder")


def play_ipc(stage, pattern, option):
    """The same with a System V object, of the kind that this option of ipcs and ipcrm is for; gives
    its id too."""
    need("ipcs", "ipcrm")
    process = stage.start([builds.c("processes"), pattern], stdout=subprocess.PIPE)
    number = read_line(process.stdout)
    # While the program is still there nobody else can have the number.
    stage.callback(subprocess.run, ["ipcrm", option, number], check=False)
    return process.pid, child(process.pid, "holder"), number


def owner():
    """The user that runs the lab, as ipcs prints it."""
    return pwd.getpwuid(os.geteuid()).pw_name


def must_say(words, line):
    """Waits until a command prints a line of these words."""

    def look():
        return any(told.split() == line for told in output_of(words).splitlines())

    wait_for(f"{' '.join(words)}: {' '.join(line)}", look, 30)
    return f"{' '.join(words)}: {' '.join(line)}"


@hung("shared-mutex")
def mutex(stage):
    """A process waits for a mutex in shared memory that a sleeping process holds."""
    waiter, holder = play(stage, "mutex")
    return truth(
        "LongWait; root the other process, which sleeps",
        [At(waiter, ("futex",)), sleeps(holder)],
        must_own({waiter: holder}),
    )


@hung("shared-semaphore")
def semaphore(stage):
    """A process waits for a POSIX semaphore in shared memory that a sleeping process has
    decreased."""
    waiter, holder = play(stage, "semaphore")
    return truth(
        "LongWait; root the other process, which sleeps", [At(waiter, ("futex",)), sleeps(holder)]
    )


@hung("semop")
def semop(stage):
    """A process waits for a System V semaphore that a sleeping process has decreased."""
    waiter, holder, number = play_ipc(stage, "semop", "-s")
    # The first of the set: value 0, one waits for more, none for 0, who changed it last.
    known = must_say(["ipcs", "-s", "-i", number], ["0", "0", "1", "0", str(holder)])
    return truth(
        "LongWait; root the other process, which sleeps",
        [At(waiter, ("semop",)), sleeps(holder)],
        known,
    )


@hung("msgrcv")
def messages(stage):
    """A process waits for the second part of an answer by a System V message queue; the one that
    sent the first part sleeps."""
    asker, server, number = play_ipc(stage, "messages", "-q")
    # Who sent last and who received last.
    known = must_say(["ipcs", "-q", "-p"], [number, owner(), str(server), str(asker)])
    return truth(
        "LongWait; root the process that should answer, which sleeps",
        [At(asker, ("msgrcv",)), sleeps(server)],
        known,
    )


@hung("sigwait-child")
def sigwait(stage):
    """A process waits by sigwaitinfo for the end of its child, which sleeps."""
    parent, sleeper = play(stage, "sigchld")
    return truth(
        "LongWait; root the child, which sleeps", [At(parent, ("sigwait",)), sleeps(sleeper)]
    )


@hung("vfork-fifo")
def vfork(stage):
    """A process waits for its vfork child to execute a program; the child opens a FIFO first, which
    nobody writes."""
    path = fifo(stage)
    parent = stage.start([builds.c("processes"), "vfork", path])
    opener = child(parent.pid)
    return truth(
        "LongWait; root the child, which opens a FIFO without a writer",
        [At(parent.pid, ("vfork",), state="D"), At(opener, ("open",))],
    )
