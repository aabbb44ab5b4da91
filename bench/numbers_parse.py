"""What the other tools print, read into ns and bytes a second.

Each reader takes a tool's whole output and gives its values by name; a curve's names are bytes. One
that finds nothing says so: a tool that changed its output must not pass for one that agrees.
"""

import re

MICRO = 1e3
MILLI = 1e6


class Unreadable(Exception):
    """Output without the value that it should have."""


def _find(pattern, text):
    """The last match: the tools print their settings before their results."""
    found = re.findall(pattern, text, re.MULTILINE)
    if not found:
        raise Unreadable(f"no '{pattern}' in: {' '.join(text.split())[:200] or 'nothing'}")
    return found[-1]


def value(pattern, factor):
    """A reader of one number, times a factor."""
    return lambda text: {"value": float(_find(pattern, text)) * factor}


microseconds = value(r"([\d.]+) microseconds", MICRO)
"""lmbench's `Simple syscall: 0.1332 microseconds`."""

lmbench_rate = value(r"^\s*[\d.]+ ([\d.]+)\s*$", 1e6)
"""lmbench's `67.11 16927.45`: millions of bytes, and as many a second."""

lmbench_mmap = value(r"^\s*[\d.]+ ([\d.]+)\s*$", MICRO)
"""lat_mmap's `1.048576 20`: millions of bytes, and microseconds."""

perf_usecs = value(r"([\d.]+) usecs/op", MICRO)
"""perf bench's `4.930805 usecs/op`."""

perf_rate = value(r"([\d.]+) GB/sec", 2.0**30)
"""perf bench mem's `15.616411 GB/sec`, which are GiB."""

sysbench_rate = value(r"\(([\d.]+) MiB/sec\)", 2.0**20)
"""sysbench memory's `13952.00 MiB transferred (13918.57 MiB/sec)`."""

sysbench_median = value(r"50th percentile:\s+([\d.]+)", MILLI)
"""sysbench's latency with --percentile=50, which it prints in ms."""

stress_nanosecs = value(r"([\d.]+) nanosecs per", 1.0)
"""stress-ng's metrics: `3784.69 nanosecs per context switch`."""


def less(reader, ns):
    """A reader whose value has a known part taken off: the time that was asked to sleep."""
    return lambda text: {name: one - ns for name, one in reader(text).items()}


def sysbench_each(count):
    """A reader of sysbench's one event of so many operations: `avg: 135.50` ms."""
    return value(r"avg:\s+([\d.]+)", MILLI / count)


def lat_mem_rd(text):
    """lat_mem_rd's curve, `0.00049 1.096`: size in MiB, ns; sizes are whole 512 bytes."""
    _find(r"stride=(\d+)", text)
    rows = re.findall(r"^([\d.]+) ([\d.]+)\s*$", text, re.MULTILINE)
    if not rows:
        raise Unreadable("a stride without sizes")
    return {round(float(size) * 2048) * 512: float(ns) for size, ns in rows}


def lat_ctx(text):
    """lat_ctx's `"size=0k ovr=0.53` and `2 1.76`, us: what it says of a switch, and that with what
    it took off for the pipe."""
    overhead = float(_find(r"ovr=([\d.]+)", text))
    switch = float(_find(r"^2 ([\d.]+)", text))
    return {"switch": switch * MICRO, "hand-over": (switch + overhead) * MICRO}


def lat_fs(text):
    """lat_fs's `0k 21 920 141419`: size, files, files made a second, files deleted a second."""
    made, deleted = _find(r"^\d+k\s+\d+\s+(\d+)\s+(\d+)", text)
    if "0" in (made, deleted):
        raise Unreadable("it says that it made or deleted no file")
    return {"create": 1e9 / int(made), "delete": 1e9 / int(deleted)}
