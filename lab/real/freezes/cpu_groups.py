"""Control groups of the CPU (version 1) and programs that share one CPU in them, with long work for
such. Where sessions are grouped (autogroup), niceness counts only within such a control group."""

import contextlib
import itertools
import os
import pathlib
import time

from freezes.procfs import cpu_s, state
from stage import CannotRun, Fault, need, now_ns, wait_for

ROOT = pathlib.Path("/sys/fs/cgroup/cpu")
# Before what else the machine is at.
SHARES = 16384
LOOKS = 10

_numbers = itertools.count()


def last_cpu():
    """The CPU that the programs of a case share."""
    return max(os.sched_getaffinity(0))


class Group:
    """A control group, in `parent` if that is given; `settings` are files of it, without the `cpu.`
    before their names."""

    def __init__(self, stage, parent=None, **settings):
        if os.geteuid() != 0 or not (ROOT / "cpu.cfs_quota_us").exists():
            raise CannotRun("there is no control group of the CPU to be made")
        above = parent.path if parent else ROOT
        self.path = above / f"hangdog-real-{os.getpid()}-{next(_numbers)}"
        self.path.mkdir()
        stage.callback(wait_for, "the end of the group's processes", self._remove, 10)
        self.set(**{"shares": SHARES} | settings)

    def _remove(self):
        with contextlib.suppress(OSError):
            self.path.rmdir()
        return not self.path.exists()

    def set(self, **settings):
        """Changes settings."""
        for name, value in settings.items():
            (self.path / f"cpu.{name}").write_text(str(value))

    def add(self, pid, nice=0, pinned=True):
        """Takes a process in, with that niceness, and by default on the last CPU only."""
        (self.path / "cgroup.procs").write_text(str(pid))
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            tid = int(task.name)
            os.setpriority(os.PRIO_PROCESS, tid, nice)
            if pinned:
                os.sched_setaffinity(tid, {last_cpu()})

    def statistics(self):
        """What cpu.stat says."""
        lines = (self.path / "cpu.stat").read_text(encoding="ascii").splitlines()
        return {line.split()[0]: int(line.split()[1]) for line in lines}


def hard_to_pack(stage, megabytes=96):
    """A file that is much work for a packer."""
    path = stage.directory / "records"
    # Longer than the window of gzip.
    part = os.urandom(1 << 19).hex().encode()
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(part)
    return path


def must_be_starved(pid, begin_ns, before_s, most=0.25):
    """What says that a process of one thread has wanted the CPU since then, and had little of it;
    a Fault where it has not. `before_s`: its CPU time till then."""
    states = []
    for _ in range(LOOKS):
        states.append(state(pid))
        time.sleep(0.02)
    seconds, used = (now_ns() - begin_ns) / 1e9, cpu_s(pid) - before_s
    if states.count("R") < 0.8 * LOOKS or used > most * seconds:
        raise Fault(f"/proc: in states {''.join(states)}, {used:.2f} of {seconds:.1f} s on the CPU")
    return f"/proc: runnable, and {used:.2f} of {seconds:.1f} s on the CPU"


def endless(stage, group, *words, nice=0):
    """Starts a program in a group that computes until it is ended."""
    need(words[0])
    process = stage.start(words)
    group.add(process.pid, nice)
    return process


def end(process):
    """Ends a program of the stage."""
    process.kill()
    process.wait()
