"""Processes that wait for what should come through a pipe, or should leave it."""

import os

from hangs.program import hung, truth
from hangs.witness import At, must_share, sleeps
from stage import now_ns


def fifo(stage):
    """Makes a FIFO that nobody has open."""
    path = stage.directory / f"fifo-{now_ns()}"
    os.mkfifo(path)
    return path


def connected(stage, *commands):
    """Starts commands in a row, each one's stdout the next one's stdin; gives their process ids."""
    started, come = [], None
    for number, words in enumerate(commands):
        more = {} if come is None else {"stdin": come}
        following = None
        if number + 1 < len(commands):
            following, more["stdout"] = os.pipe()
        started.append(stage.start(words, **more).pid)
        for end in (come, more.get("stdout")):
            if end is not None:
                os.close(end)
        come = following
    return started


@hung("pipe-silent-writer")
def silent_writer(stage):
    """cat reads a pipe whose only writer sleeps."""
    writer, cat = connected(stage, ["sleep", "infinity"], ["cat"])
    return truth(
        "LongWait; root sleep, which has the pipe open for writing",
        [At(cat, ("read",), 0), sleeps(writer)],
        must_share((cat, 0), (writer, 1)),
    )


@hung("pipe-full")
def full(stage):
    """yes writes to a full pipe whose only reader sleeps."""
    yes, reader = connected(stage, ["yes"], ["sleep", "infinity"])
    return truth(
        "LongWait; root sleep, which has the pipe open for reading",
        [At(yes, ("write",), 1), sleeps(reader)],
        must_share((yes, 1), (reader, 0)),
    )


@hung("pipe-two")
def two(stage):
    """Two cats read from each other."""
    there, back = os.pipe(), os.pipe()
    first = stage.start(["cat"], stdin=back[0], stdout=there[1]).pid
    second = stage.start(["cat"], stdin=there[0], stdout=back[1]).pid
    for end in (*there, *back):
        os.close(end)
    both = must_share((first, 0), (second, 1)), must_share((second, 0), (first, 1))
    return truth(
        "Circular; two processes read from each other",
        [At(first, ("read",), 0), At(second, ("read",), 0)],
        " and ".join(both),
        cycle=(first, second),
    )


@hung("fifo-no-writer")
def no_writer(stage):
    """cat opens a FIFO that nobody opens for writing."""
    cat = stage.start(["cat", fifo(stage)])
    return truth("LongWait; nobody writes the FIFO", [At(cat.pid, ("open",))])


@hung("fifo-no-reader")
def no_reader(stage):
    """tee opens a FIFO that nobody opens for reading."""
    tee = stage.start(["tee", fifo(stage)])
    return truth("LongWait; nobody reads the FIFO", [At(tee.pid, ("open",))])
