"""What /proc says of the processes of a case: their names, states, children and progress."""

import contextlib
import os
import pathlib
import time

from stage import Fault, now_ns, wait_for

STILL_S = 0.3
STEP_S = 0.01


def status(pid):
    """The fields of /proc/PID/status."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    rows = (line.split(":", 1) for line in text.splitlines())
    return {row[0]: row[1].strip() for row in rows if len(row) == 2}


def state(pid):
    """The letter of a process's state: R, S, D, T, Z."""
    return status(pid)["State"][0]


def wait_channel(pid):
    """The kernel's function in which a process waits; 0 where it does not wait."""
    return pathlib.Path(f"/proc/{pid}/wchan").read_text(encoding="ascii")


def command(pid):
    """A process's command line; empty where it has ended."""
    with contextlib.suppress(OSError):
        text = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        return text.replace("\0", " ").strip()
    return ""


def name(pid):
    """A process's name; empty where it has ended."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    return ""


def until_named(pid, wanted):
    """Waits until a process has become the program of that name; gives when, ns."""
    wait_for(f"process {pid} called {wanted}", lambda: name(pid) == wanted)
    return now_ns()


def children(pid):
    """The processes that a process has started."""
    found = []
    for file in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in file.read_text(encoding="ascii").split()]
    return found


def descendants(pid):
    """The children of a process, theirs, and so on."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def until_descendant(pid, wanted):
    """Waits for a descendant of that name; gives its id."""

    def look():
        return [child for child in descendants(pid) if name(child) == wanted]

    return wait_for(f"{wanted}, started by {pid}", look)[0]


def until_waiting(pid, pattern=""):
    """Waits until a process has slept for a while in a kernel function whose name has `pattern`."""

    def look():
        for _ in range(5):
            if state(pid) not in "SD" or pattern not in wait_channel(pid):
                return False
            time.sleep(STEP_S)
        return True

    wait_for(f"process {pid} asleep in {pattern or 'a wait'}", look)


def moved(pid, field):
    """How much a process has read or written so far; `field` is one of /proc/PID/io."""
    text = pathlib.Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    return int(dict(line.split(": ") for line in text.splitlines())[field])


def until_still(pid, field="wchar"):
    """Waits until a process reads or writes no more; gives when it did so last, ns. `field` is one
    of /proc/PID/io."""
    deadline = time.monotonic() + 30
    last, changed = None, now_ns()
    while now_ns() - changed < STILL_S * 1e9:
        if time.monotonic() > deadline:
            raise Fault(f"{field} of {pid} goes on growing")
        count = moved(pid, field)
        if count != last:
            last, changed = count, now_ns()
        time.sleep(STEP_S)
    return changed


def cpu_s(pid):
    """The CPU time of all threads of a process, s, by the scheduler's statistics."""
    total = 0
    for file in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            total += int(file.read_text(encoding="ascii").split()[0])
    return total / 1e9


def must_be_stopped(pid):
    """A Fault where a process is not stopped."""
    if state(pid) != "T":
        raise Fault(f"/proc: {pid} is in state {state(pid)}, not stopped")


def running(program, word):
    """The process of that name that has `word` in its command line, whoever started it."""

    def look():
        numbers = (int(folder.name) for folder in pathlib.Path("/proc").glob("[0-9]*"))
        return [pid for pid in numbers if name(pid) == program and str(word) in command(pid)]

    return wait_for(f"{program} {word}", look)[0]


def pipes(pid):
    """The pipes that a process has open."""
    found = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(link))
    return {target for target in found if target.startswith("pipe:")}


def must_wait_in(pid, pattern=""):
    """The kernel's function in which a process waits; a Fault where that is another."""
    channel = wait_channel(pid)
    if channel == "0" or pattern not in channel:
        raise Fault(f"/proc: {pid} waits in {channel}, not in {pattern or 'the kernel'}")
    return channel
