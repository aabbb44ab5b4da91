"""Whether a verdict of `hangdog why --json` agrees with the truth of a case."""

import dataclasses
import re

from case import Root

MIN_COMMON = 0.80
MAX_UNKNOWN = 0.05

RIGHT, HALF, WRONG = "right", "half", "wrong"


@dataclasses.dataclass(frozen=True)
class Judgement:
    """`half` is the right process to blame for the right thread or time, but not all that the truth
    says of it."""

    result: str
    # What is wrong with it: (kind, text). Kinds: victim, interval, root, thread, class, function,
    # samples, begun, stack, cycle, sum, unknown.
    faults: tuple
    # The verdict in a few words.
    said: str
    # The verdict's own claims, for the calibration.
    confidence: float
    unknown: float
    questions: int
    # A wait cycle is reported where there is none.
    false_cycle: bool


def common(part, whole):
    """The share of one time that lies within another."""
    both = min(part[1], whole[1]) - max(part[0], whole[0])
    return max(both, 0) / (part[1] - part[0]) if part[1] > part[0] else 0.0


def is_victim(truth, problem):
    """Whether a problem is that of a thread which the freeze held up."""
    return problem["tid"] in truth.victims or problem["pid"] in truth.victims


def cut(span, window):
    """The part of a time that lies in the recording."""
    return max(span[0], window[0]), min(span[1], window[1])


def is_freeze(truth, problem, window):
    """What speaks against a problem being the freeze; nothing where it is. `window`: begin and end
    of the recording by the clock of the truth, ns."""
    found = []
    if not is_victim(truth, problem):
        who = f"{problem['process']}/{problem['thread']} ({problem['tid']})"
        froze = " or ".join(map(str, truth.victims))
        found.append(("victim", f"{froze} froze, not {who}"))
    begin = window[0] + problem["start_ns"]
    told = (begin, begin + problem["duration_ns"])
    covered = common(cut(truth.frozen, window), told)
    if covered < MIN_COMMON:
        found.append(("interval", f"the problem has {covered:.0%} of the freeze"))
    within = common(told, truth.troubled or truth.frozen)
    if within < MIN_COMMON:
        found.append(("interval", f"{within:.0%} of the problem is in the time of the freeze"))
    return found


def sentence(verdict):
    """The verdict in a few words, for the table."""
    root = verdict["root"]
    name = f"{root['class']} {root['process']}/{root['thread']}"
    return f"{name} in {root['function']}" if root.get("function") else name


def _is_thread(wanted, root):
    if wanted is None:
        return True
    if isinstance(wanted, int):
        return root["tid"] == wanted
    return re.search(wanted, root["thread"]) is not None


def _details(truth, verdict):
    """What is wrong with the rest of a verdict whose problem and root process are right."""
    problem, root, blame = verdict["problem"], verdict["root"], verdict["blame"]
    found = []

    def demand(kind, right, text):
        if not right:
            found.append((kind, text))

    roots = [one for one in roots_of(truth, problem) if one.pid == root["pid"]]
    demand(
        "thread",
        any(_is_thread(one.thread, root) for one in roots),
        f"the root is thread {roots[0].thread}, not {root['thread']} ({root['tid']})",
    )
    demand(
        "class",
        any(root["class"] in one.classes for one in roots),
        f"the root is a {' or '.join(roots[0].classes)}, not {root['class']}",
    )
    if truth.function and root["pid"] != truth.lab:
        names = [root["function"] or "", root.get("inlined_into") or ""]
        demand(
            "function",
            any(re.search(truth.function, name) for name in names),
            f"the function is {truth.function}, not {root['function']}",
        )
    functions = verdict["ran"]["functions"] if verdict["ran"] else []
    for pattern, least in truth.ran:
        share = max(
            (part["total"] for part in functions if re.search(pattern, part["function"])),
            default=0.0,
        )
        text = f"{pattern} is on {share:.0%} of the samples, not on {least:.0%}"
        demand("samples", share >= least, text)
    for pattern in truth.innocent:
        demand(
            "function",
            not re.search(pattern, root["function"] or ""),
            f"{root['function']} is not what the time went to",
        )
    if truth.begun:
        begun = verdict["ran"] and verdict["ran"]["begun"]
        kind = begun["kind"] if begun else "nothing"
        # What began it before the recording is in no trace.
        told = kind in truth.begun or (kind == "before" and problem["start_ns"] == 0)
        demand("begun", told, f"{' or '.join(truth.begun)} began it, not {kind}")
    if truth.waits_in:
        stack = verdict["path"][0]["stack"] if verdict["path"] else []
        demand(
            "stack",
            any(re.search(truth.waits_in, name) for name in stack),
            f"it waits in {truth.waits_in}, not in {' < '.join(stack) or 'nothing known'}",
        )
    cycle = bool(verdict["knot"])
    demand("cycle", cycle or not truth.cycle, "no wait cycle is reported, though there is one")
    demand("cycle", truth.cycle or not cycle, "a wait cycle is reported, though there is none")
    blamed = sum(part["ns"] for part in blame)
    demand(
        "sum",
        blamed == problem["duration_ns"],
        f"the blame adds up to {blamed} ns, not to the problem's {problem['duration_ns']}",
    )
    unknown = unknown_share(verdict)
    text = f"{unknown:.1%} unexplained, more than {MAX_UNKNOWN:.0%}"
    demand("unknown", unknown <= MAX_UNKNOWN, text)
    return found


def roots_of(truth, problem):
    """All that are right as the root of a problem. The lab, which plays a person, is so for those
    whom the person keeps waiting, not for itself."""
    if truth.outside and is_victim(truth, problem):
        return (*truth.roots, Root(truth.lab, ("LongWait",)))
    return truth.roots


def unknown_share(verdict):
    """The share of the problem that the verdict leaves open."""
    return sum(part["share"] for part in verdict["blame"] if part["kind"] == "unknown")


def result_of(kinds):
    """The result by the kinds of faults."""
    if not kinds:
        return RIGHT
    return WRONG if "root" in kinds or {"victim", "interval"} <= kinds else HALF


def judge(truth, verdict, window):
    """Holds a verdict against the truth. One of another shape than documented raises KeyError or
    TypeError."""
    problem, root = verdict["problem"], verdict["root"]
    faults = is_freeze(truth, problem, window)
    roots = roots_of(truth, problem)
    blamed = any(one.pid == root["pid"] for one in roots)
    if not blamed:
        pids = " or ".join(str(one.pid) for one in roots)
        text = f"the root is process {pids}, not {root['process']} ({root['pid']})"
        faults.append(("root", text))
    if blamed:
        faults += _details(truth, verdict)
    return Judgement(
        result=result_of({kind for kind, _ in faults}),
        faults=tuple(faults),
        said=sentence(verdict),
        confidence=root["confidence"],
        unknown=unknown_share(verdict),
        questions=len(verdict["questions"]),
        false_cycle=bool(verdict["knot"]) and not truth.cycle,
    )
