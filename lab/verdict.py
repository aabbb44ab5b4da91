"""Compares what `hangdog why --json` says of a run with its truth."""

import dataclasses

MIN_OVERLAP = 0.80
MAX_UNKNOWN = 0.05


@dataclasses.dataclass(frozen=True)
class Comparison:
    """`faults` is empty where the verdict is right; the rest is for the table."""

    verdict: str
    overlap: float
    unknown: float
    faults: tuple


def overlap_of(one, other):
    """Share of the time covered by both in that covered by either."""
    both = min(one[1], other[1]) - max(one[0], other[0])
    either = max(one[1], other[1]) - min(one[0], other[0])
    return max(both, 0) / either if either > 0 else 0.0


def share_of(blame, kind):
    """The share blamed on a kind; by the nanoseconds, so that a wrong `share` shows elsewhere."""
    total = sum(part["ns"] for part in blame)
    return sum(part["ns"] for part in blame if part["kind"] == kind) / total if total else 0.0


def sentence(verdict):
    root = verdict["root"]
    name = f"{root['class']} {root['process']}/{root['thread']}"
    return f"{name} in {root['function']}" if root.get("function") else name


def compare(truth, run, verdict, trace_start_ns):
    """`trace_start_ns`: the trace's start by CLOCK_MONOTONIC. A verdict of another shape than
    documented raises KeyError or TypeError."""
    problem, root, blame = verdict["problem"], verdict["root"], verdict["blame"]
    faults = []

    def demand(right, text):
        if not right:
            faults.append(text)

    demand(
        problem["thread"] == truth.victim,
        f"the thread that hung is {truth.victim}, not {problem['thread']}",
    )
    begin = trace_start_ns + problem["start_ns"]
    overlap = overlap_of((begin, begin + problem["duration_ns"]), (run.begin_ns, run.end_ns))
    demand(
        overlap >= MIN_OVERLAP,
        f"problem and hang overlap by {overlap:.0%}, less than {MIN_OVERLAP:.0%}",
    )
    demand(
        (root["process"], root["thread"]) in {(truth.process, name) for name in truth.threads},
        f"the root is {truth.process}/{'|'.join(truth.threads)}, "
        f"not {root['process']}/{root['thread']}",
    )
    demand(
        root["class"] == truth.root_class,
        f"the class is {truth.root_class}, not {root['class']}",
    )
    function = truth.functions.get(root["thread"])
    if function is not None:
        demand(
            root["function"] == function,
            f"the function is {function}, not {root['function']}",
        )
    if truth.inlined_into is not None:
        demand(
            root["inlined_into"] == truth.inlined_into,
            f"it is inlined into {truth.inlined_into}, not {root['inlined_into']}",
        )
    if truth.victim_in is not None:
        stack = verdict["path"][0]["stack"] if verdict["path"] else []
        demand(
            truth.victim_in in stack,
            f"the victim waits in {truth.victim_in}, not in {' < '.join(stack) or 'nothing'}",
        )
    for expected in truth.ran:
        name, least = expected["function"], expected["total"]
        functions = verdict["ran"]["functions"] if verdict["ran"] else []
        share = sum(part["total"] for part in functions if part["function"] == name)
        demand(share >= least, f"{name} is on {share:.0%} of the samples, not on {least:.0%}")
    if truth.knot:
        knot = {member["thread"] for member in verdict["knot"] or ()}
        demand(
            knot == set(truth.knot),
            f"the wait cycle is {', '.join(truth.knot)}, not {', '.join(sorted(knot)) or 'none'}",
        )
    blamed = sum(part["ns"] for part in blame)
    demand(
        blamed == problem["duration_ns"],
        f"the blame adds up to {blamed} ns, not to the problem's {problem['duration_ns']}",
    )
    if truth.blame is not None:
        kind, least = truth.blame["kind"], truth.blame["share"]
        share = share_of(blame, kind)
        demand(share >= least, f"{kind} has {share:.0%} of the blame, less than {least:.0%}")
    unknown = share_of(blame, "unknown")
    demand(unknown <= MAX_UNKNOWN, f"{unknown:.1%} unexplained, more than {MAX_UNKNOWN:.0%}")
    return Comparison(sentence(verdict), overlap, unknown, tuple(faults))
