"""What an ordinary life is: a function that starts it on a stage and comes back when starting up
is over. The life goes on until the stage is closed.

The function gives a witness, or None where there is none. A witness is called after the recording
with its begin and end (CLOCK_MONOTONIC, ns). It gives the longest time for which somebody was held
up, s, and a text that says what was measured.
"""

import dataclasses
import re
import statistics
import time

from stage import Fault, wait_for


@dataclasses.dataclass(frozen=True)
class Life:
    """One life in which nothing freezes."""

    name: str
    start: object

    @property
    def summary(self):
        """What goes on, in the words of the function's doc line."""
        return " ".join(self.start.__doc__.split())


LIVES = {}


def ordinary(name):
    """Registers the function below it as a life."""

    def register(start):
        if name in LIVES:
            raise ValueError(f"two lives are called {name}")
        LIVES[name] = Life(name, start)
        return start

    return register


def turns_of(log, begin_ns, end_ns):
    """The turns of a log that overlap a time, as lists of words. Each line is one turn: begin and
    end by CLOCK_MONOTONIC, ns, and more. Waits for the turn in which the time ends."""

    def lines():
        # The last one may be half written.
        return [line.split() for line in log.read_text(encoding="utf-8").split("\n")[:-1]]

    wait_for(
        f"the end of a turn in {log.name}",
        lambda: any(int(words[1]) >= end_ns for words in lines()),
        30,
    )
    found = [words for words in lines() if int(words[1]) > begin_ns and int(words[0]) < end_ns]
    if not found:
        raise Fault(f"{log.name} has no turn within the recording")
    return found


def until_turns(log, least=1):
    """Waits until a log has so many turns: what writes it has started up."""
    wait_for(
        f"turns in {log.name}",
        lambda: log.exists() and log.read_text(encoding="utf-8").count("\n") >= least,
    )


def slowest_turn(log, what):
    """A witness by the log of a load generator or a frame loop."""

    def look(begin_ns, end_ns):
        turns = turns_of(log, begin_ns, end_ns)
        worst = max(int(words[1]) - int(words[0]) for words in turns) / 1e9
        return worst, f"the slowest of {len(turns)} {what} took {worst * 1000:.1f} ms"

    return look


def longest_without_cpu(log, what):
    """A witness by a log of jobs that compute, of which each line has the CPU time too: the time
    of a job for which none of its processes ran."""

    def look(begin_ns, end_ns):
        turns = turns_of(log, begin_ns, end_ns)
        worst = max(int(words[1]) - int(words[0]) - int(words[2]) for words in turns) / 1e9
        worst = max(worst, 0.0)
        return worst, f"{len(turns)} {what}, of which none was off the CPU over {worst:.3f} s"

    return look


def slowest_file(folders, pattern, what, least):
    """A witness by the files that a job makes one after the other: by how much one took longer than
    they do in the median. Looks in the first of the folders that has so many."""

    def finished():
        for folder in folders:
            try:
                times = sorted(path.stat().st_ctime_ns for path in folder.glob(pattern))
            except FileNotFoundError:
                # A new round has begun while it was looked at.
                continue
            if len(times) >= least:
                return times
        return None

    def look(_begin_ns, _end_ns):
        times = wait_for(f"{least} {what}", finished, 30)
        took = [(b - a) / 1e9 for a, b in zip(times, times[1:], strict=False)]
        worst, median = max(took), statistics.median(took)
        text = f"the slowest of {len(took)} {what} took {worst:.3f} s, the median {median:.3f} s"
        return worst - median, text

    return look


def title_after(stage, window, act, title):
    """A witness for a window that nobody uses: how long it takes after the recording to answer
    `act` (words of xdotool) by a title that has a match of the pattern."""

    def look(_begin_ns, _end_ns):
        begin = time.monotonic()
        stage.xdotool(*act)

        def shown():
            return re.search(title, stage.xdotool("getwindowname", window))

        wait_for(f"title {title}", shown, 30)
        took = time.monotonic() - begin
        return took, f"the window answered {act[0]} in {took * 1000:.0f} ms after the recording"

    return look
