"""Watches the threads of a program and of its children through /proc while it runs.

The kernel's own accounts are a witness independent of the program and of any recorder: the state
of each thread, its time on a CPU, and its time in a run queue.
"""

import dataclasses
import pathlib
import subprocess
import tempfile
import time

PERIOD_S = 0.01


@dataclasses.dataclass(frozen=True)
class Sample:
    """One thread at one moment."""

    at_ns: int
    tid: int
    process: str
    thread: str
    state: str
    cpu_ns: int
    queued_ns: int
    major_faults: int


def _processes(pid):
    yield pid
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _processes(int(child))


def _sample_process(pid):
    process = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        at_ns = time.monotonic_ns()
        # The name stands in parentheses and may contain anything.
        name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(") ")
        cpu_ns, queued_ns, _ = map(int, (task / "schedstat").read_text().split())
        fields = rest.split()
        faults = int(fields[9])
        yield Sample(at_ns, int(task.name), process, name, fields[0], cpu_ns, queued_ns, faults)


def watch(command, timeout_s=30):
    """Runs a command; gives its exit code, stdout, stderr and the samples."""
    samples = []
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with subprocess.Popen(command, stdout=out, stderr=err) as running:
            deadline = time.monotonic() + timeout_s
            while running.poll() is None:
                if time.monotonic() > deadline:
                    running.kill()
                try:
                    for pid in list(_processes(running.pid)):
                        samples.extend(_sample_process(pid))
                except (FileNotFoundError, ProcessLookupError):
                    pass  # It exited between two looks.
                time.sleep(PERIOD_S)
        out.seek(0)
        err.seek(0)
        return running.returncode, out.read(), err.read(), samples


@dataclasses.dataclass(frozen=True)
class Account:
    """What the threads of one name did during an interval, as shares of it, and how many pages
    they waited for."""

    running: float
    queued: float
    blocked: float
    major_faults: int


def account(samples, begin_ns, end_ns, process, thread):
    """The account of those threads, or None if they were not seen then."""
    mine = [
        s
        for s in samples
        if begin_ns <= s.at_ns <= end_ns and (s.process, s.thread) == (process, thread)
    ]
    if not mine:
        return None
    cpu = queued = faults = 0
    for tid in {s.tid for s in mine}:
        of_tid = [s for s in mine if s.tid == tid]
        cpu += of_tid[-1].cpu_ns - of_tid[0].cpu_ns
        queued += of_tid[-1].queued_ns - of_tid[0].queued_ns
        faults += of_tid[-1].major_faults - of_tid[0].major_faults
    length = max(end_ns - begin_ns, 1)
    blocked = sum(s.state in "SD" for s in mine) / len(mine)
    return Account(cpu / length, queued / length, blocked, faults)
