"""Which figure of `hangdog numbers` meets which of another tool, and why they may differ.

A reason says what each of the two measures, and on which side of the other hangdog's figure lies
for it: one that lies on the other side is not explained by it. Reasons come from the tools'
manuals, from the system calls that they make (strace), and where those say nothing from their
machine code.
"""

import dataclasses

import numbers_tools as tools
from numbers_tools import bandwidth, file_rate, lmbench, perf_copy

KIB, MIB = 1 << 10, 1 << 20
ROUND_TRIP = 0.5


@dataclasses.dataclass(frozen=True)
class Pair:
    """A figure of hangdog's, at a place of its curve, and what should be like it.

    `times` makes one of the tool's units one of hangdog's: half a round trip is a context switch. Rates
    are made into times by `amount`, bytes."""

    figure: str
    at: int | None
    tool: tools.Tool
    key: object = "value"
    times: float = 1.0
    amount: int | None = None
    side: str = ""
    why: str = ""

    def theirs(self, read):
        """What the tool read, as hangdog would count it."""
        value = read[self.key]
        if self.amount is not None:
            value = self.amount * 1e9 / value
        return value * self.times

    def explains(self, ratio):
        """Whether the reason fits hangdog's figure divided by the tool's."""
        return {"less": ratio < 1, "more": ratio > 1, "either": True, "": False}[self.side]


PAGES = (
    "lmbench leads each load to another page, and through all pages before it comes back to one: "
    "where there are more pages than TLB entries no load finds its page's; in a wholly random "
    "order some do"
)
ONE_SUM = (
    "lmbench's rdwr adds all that it reads to one sum, so that each addition waits for the one "
    "before; hangdog doubles each element by itself"
)
LONG_SUM = (
    "lmbench adds up the elements of 512 bytes one to the other before it begins with the next, so "
    "that additions wait; hangdog keeps four sums"
)
DOWN = (
    "lmbench's fwr writes each 512 bytes from the last element to the first, which CPUs join into "
    "whole lines less well on the way to the memory; hangdog writes upwards"
)
EIGHT = (
    "sysbench reads elements of 8 bytes and hangdog of 4: half as many loads for as many bytes"
)
SPACES = (
    "two processes hand over, so that each switch changes the address space; with hangdog two "
    "threads of one process do"
)
ONE_WAY = (
    "stress-ng's writer gets no answer: it waits until its byte has been read, with two calls a "
    "byte and not four; and its pipe holds one packet"
)
SYSV = (
    "lmbench's are System V semaphores: the kernel completes a sleeper's call, which posts the "
    "answer, within the call that wakes it, so that the waker goes on before the other has run; of "
    "POSIX ones, as hangdog's, each must run to answer, with a call to wake and one to wait"
)
LARGER = (
    "fork copies page tables, and hangdog, with its libraries, has more of them than lmbench's "
    "small C program"
)
HELLO = (
    "lmbench starts a small C program of its own from another; hangdog starts `true`, from a "
    "process that has more page tables for fork to copy"
)
CHOOSE = "sysbench draws a random number before each lock, to choose one of its mutexes"
MEAN_SLEEP = (
    "lmbench's is a mean, in which the latest sleeps count most, and has the call's own time in "
    "it; hangdog's is a median, from the moment asked for"
)
WRITTEN = (
    "lmbench maps 1 MiB of a file and writes into it every 16 KiB, 64 faults; hangdog maps 64 KiB "
    "that nothing touches"
)
AROUND = (
    "lmbench's time is for mapping, touching every page, not one in 16, and unmapping; hangdog's "
    "for the faults alone"
)
ADDED = (
    "lmbench adds up what it has read, and goes back to the file's begin by a call of its own "
    "(io_only); hangdog does not look at it, and reads from a place (pread)"
)
RECENT = (
    "ext4 passes over inodes that were deleted in the last minutes, one by one, when it looks for "
    "a free one: a file costs the more to make the more were deleted before; lmbench deletes many "
    "in one place, hangdog few, in a directory that ext4 was told to place apart"
)
SENDING = (
    "lmbench measures first what sending costs (kill with signal 0) and takes that off; hangdog's "
    "is the whole, from before the call until it has returned"
)
RARE_WAITS = (
    "lmbench's is a mean of all files, with the waits of milliseconds that a few of them have; "
    "hangdog's is a median"
)
WITH_WRITE = "sysbench's time has the write in it; hangdog's is of fsync alone"


def _handover(figure, words):
    return [
        Pair(f"{figure}.same", None, lmbench(words), times=ROUND_TRIP, side="less", why=SPACES),
        Pair(f"{figure}.across", None, lmbench(words, on="two"), times=ROUND_TRIP),
    ]


def _semaphore(on, place):
    return Pair(
        f"pingpong.semaphore.{place}",
        None,
        lmbench("lat_sem", on=on),
        times=ROUND_TRIP,
        side="more",
        why=SYSV,
    )


def _loops(figure, what, side="", why=""):
    return [
        Pair(figure, at, bandwidth(size, what), side=side, why=why)
        for at, size in ((16 * KIB, "16k"), (64 * MIB, "64m"))
    ]


MEMORY = [
    *(
        Pair("memory.latency", at, tools.LATENCY, key=at, side="less", why=PAGES)
        for at in (16 * KIB, 256 * KIB, 4 * MIB, 64 * MIB)
    ),
    *_loops("memory.read", "frd", "more", LONG_SUM),
    *_loops("memory.read.fourth", "rd", "more", LONG_SUM),
    *_loops("memory.write", "fwr", "more", DOWN),
    *_loops("memory.write.fourth", "wr"),
    *_loops("memory.update.fourth", "rdwr", "more", ONE_SUM),
    Pair("memory.read", 64 * MIB, tools.READ_WORDS, side="less", why=EIGHT),
    # Half of hangdog's memory is copied to the other half.
    Pair("memory.copy", 32 * KIB, bandwidth("16k", "bcopy")),
    Pair("memory.copy", 32 * KIB, perf_copy("16KB")),
    Pair("memory.copy", 64 * MIB, bandwidth("32m", "bcopy")),
    Pair("memory.copy", 64 * MIB, perf_copy("32MB")),
    Pair("memory.read.all", None, bandwidth("64m", "rd", "all")),
    Pair("memory.write.all", None, bandwidth("64m", "wr", "all")),
]

THREADS = [
    Pair("process.fork", None, lmbench("lat_proc fork"), side="more", why=LARGER),
    Pair("process.exec", None, lmbench("lat_proc exec"), side="more", why=HELLO),
    *_handover("pingpong.pipe", "lat_pipe"),
    Pair("pingpong.pipe.same", None, tools.SCHED_PIPE, times=ROUND_TRIP, side="less", why=SPACES),
    Pair("pingpong.pipe.same", None, tools.CONTEXT, key="hand-over", side="less", why=SPACES),
    Pair("pingpong.pipe.same", None, tools.SWITCH, times=0.5, side="more", why=ONE_WAY),
    *_handover("pingpong.unix", "lat_unix"),
    _semaphore("here", "same"),
    _semaphore("two", "across"),
    Pair("lock.uncontended", None, tools.LOCK, side="less", why=CHOOSE),
]

KERNEL = [
    Pair("kernel.syscall", None, lmbench("lat_syscall null")),
    Pair("kernel.syscall", None, tools.SYSCALL),
    Pair("kernel.clock", None, tools.CLOCK),
    Pair("kernel.signal", None, lmbench("lat_sig catch"), side="more", why=SENDING),
    Pair("kernel.signal_install", None, lmbench("lat_sig install")),
    Pair(
        "kernel.mmap",
        None,
        lmbench("lat_mmap 1m {file}", tools.parse.lmbench_mmap),
        side="less",
        why=WRITTEN,
    ),
    # Of 16 pages one faults, and the others are mapped with it.
    Pair(
        "fault.file",
        None,
        lmbench("lat_pagefault {file}"),
        times=16,
        side="less",
        why=AROUND,
    ),
    Pair("timer.late", None, tools.SLEEP, side="less", why=MEAN_SLEEP),
]

FILES = [
    *(
        Pair(figure, at, file_rate(size, what), amount=at, side="less", why=ADDED)
        for figure, what in (("file.open_read", "open2close"), ("file.read", "io_only"))
        for at, size in (
            (4 * KIB, "4k"),
            (64 * KIB, "64k"),
            (MIB, "1m"),
            (64 * MIB, "64m"),
        )
    ),
    *(
        Pair(f"file.{key}", at, tool, key=key, side=side, why=why)
        for at, tool in tools.FILES.items()
        for key, side, why in (("create", "less", RECENT), ("delete", "less", RARE_WAITS))
    ),
    Pair("file.fsync", None, tools.FSYNC, side="less", why=WITH_WRITE),
]

PAIRS = MEMORY + THREADS + KERNEL + FILES
