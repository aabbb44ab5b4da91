"""The truth of a case, and whether a verdict of `hangdog why --json` agrees with it."""

import dataclasses
import re

MIN_COMMON = 0.80
MAX_UNKNOWN = 0.05


@dataclasses.dataclass(frozen=True)
class Truth:
    """What a diagnosis should say, from how the case was built and from what another tool saw."""

    # In words, for the table.
    text: str
    # Whose time it was (thread id), and in which class.
    victim: int
    problem_class: str
    # Who is to blame (process id), and in which class.
    root: int
    root_class: str
    # When it froze, begin and end by CLOCK_MONOTONIC, ns.
    frozen: tuple
    # What another tool said while it was frozen.
    witness: str
    # From what provoked it to when all that was over, if it did not freeze all that time: sluggish
    # times before and after may or may not be told as one problem with it.
    troubled: tuple | None = None
    # Patterns of functions that ran, with the least share of the samples that have one such.
    ran: tuple = ()
    # Patterns of functions that must not be what the time is named after.
    innocent: tuple = ()
    # What began the work, where that is part of the answer: kinds of `ran.begun`.
    begun: tuple = ()
    # Pattern of a function or library on the stack in which the victim waits.
    waits_in: str | None = None


def common(part, whole):
    """The share of one time that lies within another."""
    both = min(part[1], whole[1]) - max(part[0], whole[0])
    return max(both, 0) / (part[1] - part[0]) if part[1] > part[0] else 0.0


def sentence(verdict):
    """The verdict in a few words, for the table."""
    root = verdict["root"]
    name = f"{root['class']} {root['process']}/{root['thread']}"
    return f"{name} in {root['function']}" if root.get("function") else name


def faults(truth, verdict, trace_start_ns):
    """What is wrong with a verdict; nothing where it is right. A verdict of another shape than
    documented raises KeyError or TypeError."""
    problem, root, blame = verdict["problem"], verdict["root"], verdict["blame"]
    found = []

    def demand(right, text):
        if not right:
            found.append(text)

    demand(
        problem["tid"] == truth.victim,
        f"thread {truth.victim} froze, not {problem['process']}/{problem['thread']} "
        f"({problem['tid']})",
    )
    begin = trace_start_ns + problem["start_ns"]
    told = (begin, begin + problem["duration_ns"])
    covered = common(truth.frozen, told)
    demand(covered >= MIN_COMMON, f"the problem has {covered:.0%} of the freeze")
    within = common(told, truth.troubled or truth.frozen)
    demand(within >= MIN_COMMON, f"{within:.0%} of the problem is in the time of the freeze")
    demand(
        problem["class"] == truth.problem_class,
        f"the problem is a {truth.problem_class}, not {problem['class']}",
    )
    demand(
        root["pid"] == truth.root,
        f"the root is process {truth.root}, not {root['process']} ({root['pid']})",
    )
    demand(
        root["class"] == truth.root_class,
        f"the root is a {truth.root_class}, not {root['class']}",
    )
    functions = verdict["ran"]["functions"] if verdict["ran"] else []
    for pattern, least in truth.ran:
        share = max(
            (part["total"] for part in functions if re.search(pattern, part["function"])),
            default=0.0,
        )
        demand(share >= least, f"{pattern} is on {share:.0%} of the samples, not on {least:.0%}")
    for pattern in truth.innocent:
        demand(
            not re.search(pattern, root["function"] or ""),
            f"{root['function']} is not what the time went to",
        )
    if truth.begun:
        begun = verdict["ran"] and verdict["ran"]["begun"]
        kind = begun["kind"] if begun else "nothing"
        demand(kind in truth.begun, f"{' or '.join(truth.begun)} began it, not {kind}")
    if truth.waits_in:
        stack = verdict["path"][0]["stack"] if verdict["path"] else []
        demand(
            any(re.search(truth.waits_in, name) for name in stack),
            f"it waits in {truth.waits_in}, not in {' < '.join(stack) or 'nothing known'}",
        )
    blamed = sum(part["ns"] for part in blame)
    demand(
        blamed == problem["duration_ns"],
        f"the blame adds up to {blamed} ns, not to the problem's {problem['duration_ns']}",
    )
    unknown = sum(part["share"] for part in blame if part["kind"] == "unknown")
    demand(unknown <= MAX_UNKNOWN, f"{unknown:.1%} unexplained, more than {MAX_UNKNOWN:.0%}")
    return found
