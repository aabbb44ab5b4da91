"""What else runs on the machine changes a composed hang: it must not share the CPUs with a build,
or the truth is another. So it starts where little is going on, and goes ahead of others."""

import atexit
import os
import pathlib
import time

IDLE_SHARE = 0.7
LOOK_S = 0.25
PATIENCE_S = 30

AUTOGROUP = pathlib.Path("/proc/self/autogroup")


def go_ahead(nice=-10):
    """Lets this process and those that it starts go before others, if it may. Where the scheduler
    groups by session, niceness counts within the session only: then the session's is set, until
    this process ends."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
        group = AUTOGROUP.read_text().split()
        # Nothing to read: this process is in no session's group, and niceness counts by itself.
        if not group:
            return
        AUTOGROUP.write_text(str(nice))
    except (PermissionError, FileNotFoundError):
        return
    atexit.register(AUTOGROUP.write_text, group[-1])


def _times():
    """(idle, all) of all CPUs since boot, in ticks. The kernel's first line: user, nice, system,
    idle, iowait, irq, softirq, steal."""
    first = pathlib.Path("/proc/stat").read_text().splitlines()[0]
    ticks = [int(word) for word in first.split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def is_quiet():
    """Looks for a moment."""
    idle, total = _times()
    time.sleep(LOOK_S)
    idle_then, total_then = _times()
    return idle_then - idle >= IDLE_SHARE * (total_then - total)


def wait():
    """Comes back when it is quiet, or when patience ends; gives whether it is quiet."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if is_quiet():
            return True
    return False
