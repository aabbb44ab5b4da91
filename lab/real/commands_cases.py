"""Commands whose time is known part by part.

A function with `@command("name")` prepares one on a stage and gives a Command. Its parts are
sequential: no two of them could be shortened for the same second. With what is left ("other") they
are the whole run.
"""

import dataclasses

import commands_truth as measure
from stage import Fault, Stage


@dataclasses.dataclass(frozen=True)
class Part:
    """What a person would name, and where it is to be found: pattern of the process's name, and a
    kind of `blame[].kind`, or any."""

    name: str
    process: str
    kind: str


@dataclasses.dataclass(frozen=True)
class Command:
    """`words` is run in `cwd`. `prepare()` brings everything back to where it was before a run.
    `measured(command)` runs it without hangdog and gives its wall time, s, and the shares of the
    parts in their order."""

    stage: Stage
    words: list
    parts: tuple
    measured: object
    witness: str
    cwd: object = None
    prepare: object = None

    def popen(self, words, **more):
        """Starts the command, or a tool that starts it."""
        options = {"cwd": self.cwd or self.stage.directory, "env": self.stage.environment}
        return self.stage.start([str(word) for word in words], **options | more)

    def once(self):
        """One run without hangdog."""
        if self.prepare:
            self.prepare()
        return self.measured(self)


COMMANDS = {}


def command(name):
    """Registers the function below it."""

    def register(make):
        if name in COMMANDS:
            raise ValueError(f"two commands are called {name}")
        COMMANDS[name] = make
        return make

    return register


def by_cpu(command):
    """Of one process, or of several where one runs at a time: the share of the CPU, and that of
    the one thing that it waits for, where that is the second part."""
    used, _ = measure.run(command)
    shares = [used.cpu_share, 1 - used.cpu_share]
    return used.wall_s, shares[: len(command.parts)]


def by_tree(command):
    """Of a tree of processes of which one works at a time. Parts that run must have run."""
    wall_s, times = measure.by_last_born(command)
    shares = [measure.share_of(times, part.process, wall_s) for part in command.parts]
    if command.prepare:
        command.prepare()
    used, _ = measure.run(command)
    if used.cpu_share < 0.93:
        raise Fault(f"time: {used.cpu_share:.0%} of the time is CPU time, so that something waited")
    return used.wall_s, shares


BY_TREE = "strace -f of process begins and ends (a moment is the last-born's); rusage: CPU-bound"


def load():
    """Registers all commands."""
    # pylint: disable=import-outside-toplevel, unused-import
    import commands_builds  # noqa: F401
    import commands_others  # noqa: F401
