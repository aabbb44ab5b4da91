"""What a thread did by other tools than hangdog: /proc for when it did not come back, gdb for
where it was."""

import dataclasses
import re
import threading
import time

from stage import Fault, now_ns, output_of, wait_for

STEP_S = 0.01
TICKS_A_SECOND = 100
LOOKS = 4


@dataclasses.dataclass(frozen=True)
class Turn:
    """A time within which a thread came back from no wait."""

    begin_ns: int
    end_ns: int
    # CPU time that it used meanwhile.
    cpu_s: float

    @property
    def span(self):
        return self.begin_ns, self.end_ns

    @property
    def wall_s(self):
        return (self.end_ns - self.begin_ns) / 1e9


def _look(tid):
    """How often it has waited of its own accord, and its CPU time in ticks."""
    with open(f"/proc/{tid}/status", encoding="ascii", errors="replace") as file:
        line = next(line for line in file if line.startswith("voluntary_ctxt_switches"))
    with open(f"/proc/{tid}/stat", encoding="ascii", errors="replace") as file:
        # The name, in brackets, may have blanks in it.
        fields = file.read().rpartition(")")[2].split()
    return int(line.split()[1]), int(fields[11]) + int(fields[12])


class Watcher(threading.Thread):
    """Watches a thread and keeps its turns.

    The kernel counts a wait when it begins, so that a turn is what lies between the beginnings of
    two waits: a wait and what is run after it. One that is all but nothing else than a wait used
    no CPU. The bounds are right to within some hundredths of a second."""

    def __init__(self, tid):
        super().__init__(daemon=True)
        self.tid, self.turns = tid, []
        self.start()

    def run(self):
        try:
            waits, ticks = _look(self.tid)
            begin = now_ns()
            while True:
                time.sleep(STEP_S)
                waits_now, ticks_now = _look(self.tid)
                if waits_now != waits:
                    end = now_ns()
                    self.turns.append(Turn(begin, end, (ticks_now - ticks) / TICKS_A_SECOND))
                    begin, waits, ticks = end, waits_now, ticks_now
        except (OSError, StopIteration):
            # It has ended.
            return

    def busiest(self, at_least_s):
        """Waits until a turn of so much CPU time is over; gives the busiest of all so far."""
        what = f"a turn of thread {self.tid} that takes {at_least_s} s of the CPU"
        wait_for(what, lambda: any(turn.cpu_s >= at_least_s for turn in list(self.turns)))
        return max(list(self.turns), key=lambda turn: turn.cpu_s)

    def longest(self):
        """The longest turn so far."""
        return max(list(self.turns), key=lambda turn: turn.wall_s)


def until_idle(tid, seconds=2.0):
    """Waits until a thread has used no CPU for so long."""
    seen = [_look(tid)[1], time.monotonic()]

    def idle():
        ticks = _look(tid)[1]
        if ticks > seen[0] + 1:
            seen[:] = [ticks, time.monotonic()]
        return time.monotonic() - seen[1] > seconds

    wait_for(f"thread {tid} idle", idle)


def must_be_in(pid, pattern):
    """Looks with gdb where a process is that is frozen again; gives the line of the stack that
    agrees. A few looks, for it does other things too."""
    for _ in range(LOOKS):
        stack = output_of(["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "backtrace"])
        for line in stack.splitlines():
            if line.startswith("#") and re.search(pattern, line):
                return line
        time.sleep(0.3)
    raise Fault(f"gdb did not find {pid} in {pattern}")
