"""Windows of small programs that are used by keys: key `q` is a quick turn, key `s` a slow one
(programs/gtk_panel.py, programs/qt_totals.py). They tell of turns that took long."""

import pathlib
import subprocess
import time

from freezes.runtimes import activities
from stage import Fault, wait_for

PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"
# Debian's own, which has the modules.
PYTHON = "/usr/bin/python3"
KEYS = 4
KEY_S = 0.3
# A slow turn takes so much longer than it must.
MARGIN_S = 0.3
# Who computes has at least this share of a CPU, even where others compute too.
LEAST_SHARE = 0.1


def state_of(tid):
    """The state of a thread by /proc: a letter."""
    stat = pathlib.Path(f"/proc/{tid}/stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()[0]


def cpu_ns(tid):
    """CPU time of a thread so far, by the scheduler's statistics."""
    process = pathlib.Path(f"/proc/{tid}/schedstat")
    return int(process.read_text(encoding="ascii").split()[0])


def share_of_cpu(tid, seconds=0.4):
    """The share of the time that a thread is on the CPU just now."""
    before, begin = cpu_ns(tid), time.monotonic()
    time.sleep(seconds)
    return (cpu_ns(tid) - before) / 1e9 / (time.monotonic() - begin)


def must_sleep(pid):
    """Sees to it that a thread of a process sleeps for a time that it has chosen; gives the
    thread."""
    found = activities(pid)
    asleep = [one for one in found if "nanosleep" in one.waits_in]
    if not asleep:
        raise Fault(f"/proc: no thread sleeps: {'; '.join(map(str, found))}")
    return asleep[0]


def open_panel(stage, program, *arguments):
    """Starts such a program, and presses some keys that it answers quickly."""
    words = [PYTHON, PROGRAMS / program, *arguments]
    panel = stage.program(words, stdout=subprocess.PIPE)
    stage.window("ready$")
    for turn in range(1, KEYS + 1):
        stage.xdotool("key", "q")
        stage.window(f"done {turn}$")
        time.sleep(KEY_S)
    return panel


def told_all(panel, wanted):
    """Reads what the program tells until all `wanted` words were there, in any order; gives the
    numbers of each."""
    said = {}
    while not wanted <= said.keys():
        word, *numbers = panel.line().split()
        said.setdefault(word, tuple(map(int, numbers)))
    return said


def slow_turn(stage, panel, look, key="s"):
    """Presses the key of the slow turn; gives what the program told of it and what `look` saw."""
    stage.xdotool("key", key)
    seen = stage.hold(look)
    return told_all(panel, {"turn"})["turn"], seen


def start_program(stage, name, *arguments, ready):
    """Starts one of the programs that others ask, and waits until it is `ready()`."""
    process = stage.start([PYTHON, PROGRAMS / name, *arguments])

    def look():
        if process.poll() is not None:
            raise Fault(f"{name} ended with exit code {process.returncode}")
        return ready()

    wait_for(name, look)
    return process
