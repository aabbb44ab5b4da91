"""What a program of the part `hung` is: a function that starts it and gives its truth once it
hangs, registered with its name."""

import dataclasses

from case import Root, Truth
from hangs import witness
from stage import now_ns

# Far longer than any recording.
FOR_GOOD_NS = 365 * 86400 * 10**9


@dataclasses.dataclass(frozen=True)
class Hung(Truth):
    """The truth of a program that hangs for good, and the way from it to what it waits for."""

    # Thread ids from the one that is asked about to the root, each waiting for the next. Every
    # member of a cycle is there once.
    chain: tuple = ()


@dataclasses.dataclass(frozen=True)
class HungProgram:
    """One program: `play(stage)` starts it, waits until it hangs, and gives its truth."""

    name: str
    play: object

    @property
    def summary(self):
        """What it waits for, in the words of the function's doc line."""
        return " ".join(self.play.__doc__.split())


PROGRAMS = {}


def hung(name):
    """Registers the function below it as a program."""

    def register(play):
        if name in PROGRAMS:
            raise ValueError(f"two programs are called {name}")
        PROGRAMS[name] = HungProgram(name, play)
        return play

    return register


def root(tid, classes):
    """Who is to blame, by thread id. Of a process of several threads it must be that one, but of a
    stopped one any."""
    pid = witness.process_of(tid)
    one_of_several = len(witness.threads_of(pid)) > 1 and witness.state(tid) not in "Tt"
    return Root(pid, classes, tid if one_of_several else None)


def truth(text, hops, more="", cycle=()):
    """The truth of a program that hangs: waits until all `hops` (witness.At) hang, in the order of
    the chain. `cycle`: the thread ids of those that wait for each other. `more` is what other
    witnesses said."""
    seen = witness.until_hung(hops)
    chain = tuple(hop.tid for hop in hops)
    classes = ("Circular",) if cycle else ("LongWait",)
    begin = now_ns()
    return Hung(
        text=text,
        victims=tuple(dict.fromkeys((chain[0], witness.process_of(chain[0])))),
        roots=tuple(root(tid, classes) for tid in cycle or chain[-1:]),
        frozen=(begin, begin + FOR_GOOD_NS),
        witness=f"{seen}; {more}" if more else seen,
        cycle=bool(cycle),
        chain=chain,
    )
