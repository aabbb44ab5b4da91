"""What a case of the corpus is: a function that plays one freeze on a stage, registered with its
group and name, and the truth that it gives back.

A case's truth comes from how the freeze is made. What hangdog says is never looked at here.
"""

import dataclasses
import os
import zlib

# Of five cases so many are held back: nobody looks at their traces while the diagnosis is worked
# on, so that they tell how it does on what it was not made for.
HELD_BACK_OF_FIVE = 2
GROUPS = (
    "toolkits",
    "desktop",
    "databases",
    "web",
    "runtimes",
    "files",
    "network",
    "memory",
    "cpu",
    "shells",
)


@dataclasses.dataclass(frozen=True)
class Root:
    """Who is to blame. Several may be right: any member of a wait cycle."""

    # The process, by its id.
    pid: int
    # LongRunning, RepeatedYield, LongWait, Starved, Paging, Interrupted or Circular.
    classes: tuple
    # The thread: its id, or a pattern of its name; None where any thread of the process will do.
    thread: int | str | None = None


@dataclasses.dataclass(frozen=True)
class Truth:
    """What a diagnosis should say, from how the case was built and from what another tool saw."""

    # The cause in words, for the table.
    text: str
    # Whose time it was: thread ids, or process ids for any of their threads. The first is the one
    # that a person notices; all the others were held up by the same root.
    victims: tuple
    # Any of these is right.
    roots: tuple
    # When it froze: begin and end by CLOCK_MONOTONIC, ns.
    frozen: tuple
    # What another tool said while it was frozen.
    witness: str
    # From what provoked it to when all that was over, where it did not freeze all that time:
    # sluggish times before and after may or may not belong to the problem.
    troubled: tuple | None = None
    # Pattern of the function that the time went to, or in which the root waits, where the program
    # has one of its own.
    function: str | None = None
    # Patterns of functions that ran, with the least share of the samples that have one such.
    ran: tuple = ()
    # Patterns of functions that must not be what the time is named after.
    innocent: tuple = ()
    # What began the work, where that is part of the answer: kinds of `ran.begun`.
    begun: tuple = ()
    # Pattern of a function or library on the stack in which the victim waits.
    waits_in: str | None = None
    # Whether the threads really wait for each other in a circle.
    cycle: bool = False
    # What the root waits for would come from a person or from the world outside, whose part the lab
    # plays: to name the lab, which stands behind the root, is as right.
    outside: bool = False
    # The lab's own process.
    lab: int = dataclasses.field(default_factory=os.getpid)


@dataclasses.dataclass(frozen=True)
class Case:
    """One freeze: `play(stage)` makes it and gives its truth."""

    name: str
    group: str
    play: object
    # Changes what all programs share (swap, the clock, the firewall), so that nothing else may run.
    whole_machine: bool

    @property
    def held_back(self):
        """Whether it is of the set that is kept for the last measurement: by its name alone, so
        that nobody chose."""
        return zlib.crc32(self.name.encode()) % 5 < HELD_BACK_OF_FIVE

    @property
    def summary(self):
        """What freezes and why, in the words of the function's doc line."""
        return " ".join(self.play.__doc__.split())


CASES = {}


def freeze(group, name, whole_machine=False):
    """Registers the function below it as a case."""
    if group not in GROUPS:
        raise ValueError(f"{name}: there is no group {group}")

    def register(play):
        if name in CASES:
            raise ValueError(f"two cases are called {name}")
        CASES[name] = Case(name, group, play, whole_machine)
        return play

    return register
