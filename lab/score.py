"""Scores verdicts against truths, and lays the scores out in a table."""

import dataclasses
import statistics

import composed
import verdict as verdicts

# The goals (shares of all cases; questions; the average share of the blame that is unknown).
FIRST, AMONG_THREE = 0.95, 0.99
MEDIAN_QUESTIONS, MOST_QUESTIONS = 1, 3
UNEXPLAINED = 0.05


@dataclasses.dataclass(frozen=True)
class Score:
    """One case. `others`: by rule, (thread right, thread and class right); None if not run."""

    case: composed.Case
    said: str
    overlap: float
    first: bool
    among_three: bool
    victim: bool
    # None where the truth names no function, or no wait cycle.
    function: bool | None
    knot: bool | None
    questions: int
    unexplained: float
    # How sure the verdict says that it is.
    confidence: float
    others: dict | None


def names(suspect):
    return suspect["process"], suspect["thread"]


def is_right(case, suspect):
    return names(suspect) in case.roots and suspect["class"] == case.root_class


def score(case, verdict, trace_start_ns, others):
    """`verdict` None: nothing was found. Of another shape than documented: KeyError, TypeError."""
    by_rule = others and {
        rule: (names(said) in case.roots, is_right(case, said)) for rule, said in others.items()
    }
    if verdict is None:
        return Score(
            case, "nothing", 0.0, False, False, False, False, False, 0, 1.0, 0.0, by_rule
        )
    problem, root = verdict["problem"], verdict["root"]
    begin = trace_start_ns + problem["start_ns"]
    overlap = verdicts.overlap_of(
        (begin, begin + problem["duration_ns"]), (case.run.begin_ns, case.run.end_ns)
    )
    # A root of something else than the hang is right by accident. Whoever stands between victim
    # and root was held up for the same time by the same cause.
    found = overlap >= verdicts.MIN_OVERLAP
    suspects = verdict.get("suspects") or [root]
    knot = {member["thread"] for member in verdict["knot"] or ()}
    return Score(
        case=case,
        said=verdicts.sentence(verdict),
        overlap=overlap,
        first=found and is_right(case, suspects[0]),
        among_three=found and any(is_right(case, suspect) for suspect in suspects[:3]),
        victim=found and problem["thread"] == case.victim,
        function=None if case.function is None else found and root["function"] == case.function,
        knot=knot == set(case.knot) if case.knot else None,
        questions=len(verdict["questions"]),
        unexplained=verdicts.share_of(verdict["blame"], "unknown"),
        confidence=root["confidence"],
        others=by_rule,
    )


def share(results, right):
    return sum(map(right, results)) / len(results)


def missed_goals(results):
    """What falls short of a goal, in words; empty where all are met."""
    asked = [result.questions for result in results]
    found = [
        (share(results, lambda r: r.first), FIRST, "right first"),
        (share(results, lambda r: r.among_three), AMONG_THREE, "right among the first three"),
    ]
    missed = [f"{got:.1%} {what}, less than {goal:.0%}" for got, goal, what in found if got < goal]
    if statistics.median(asked) > MEDIAN_QUESTIONS:
        missed.append(f"{statistics.median(asked)} questions in the median case")
    if max(asked) > MOST_QUESTIONS:
        missed.append(f"{max(asked)} questions in the worst case")
    unexplained = statistics.mean(result.unexplained for result in results)
    if unexplained > UNEXPLAINED:
        missed.append(f"{unexplained:.1%} unexplained, more than {UNEXPLAINED:.0%}")
    return missed


HEADER = (
    "composed as",
    "count",
    "first",
    "of three",
    "victim",
    "function",
    "knot",
    "questions",
    "unexplained",
    "recent wake",
    "Perfetto's",
)
FORMAT = "{:<14} {:>5} {:>7} {:>8} {:>7} {:>8} {:>7} {:>9} {:>11} {:>12} {:>12}"


def share_where_asked(right):
    """Of those that are not None."""
    told = [one for one in right if one is not None]
    return f"{sum(told) / len(told):.1%}" if told else ""


def rule_columns(results, rule):
    ran = [result.others[rule] for result in results if result.others]
    if not ran:
        return "not run"
    thread = sum(right for right, _ in ran) / len(ran)
    both = sum(right for _, right in ran) / len(ran)
    return f"{both:.0%} ({thread:.0%})"


def row(name, results):
    asked = [result.questions for result in results]
    return FORMAT.format(
        name,
        len(results),
        f"{share(results, lambda r: r.first):.1%}",
        f"{share(results, lambda r: r.among_three):.1%}",
        f"{share(results, lambda r: r.victim):.1%}",
        share_where_asked(result.function for result in results),
        share_where_asked(result.knot for result in results),
        f"{statistics.median(asked):g}, {max(asked)}",
        f"{statistics.mean(result.unexplained for result in results):.1%}",
        rule_columns(results, "recent"),
        rule_columns(results, "perfetto"),
    ).rstrip()


FOOT = """\
first, of three: root thread and class right, first or among the first three suspects, of a problem
  that covers the hang; victim: and the problem is the victim's own, not that of one between
function, wait cycle: right where the truth names one; questions: in the median case, at most
recent wake, Perfetto's: thread and class right (thread alone), by following the most recent wake,
  and by Perfetto's rule. They have no words for RepeatedYield, Circular and Paging: there only
  the thread can be right."""


def table(results):
    lines = [FORMAT.format(*HEADER).rstrip()]
    for family in composed.FAMILIES:
        mine = [result for result in results if result.case.family == family]
        if mine:
            lines.append(row(family, mine))
    lines += [row("all", results), FOOT]
    if any(result.others is None for result in results):
        lines.append("  Not run: left out, or pyarrow is missing (make -C lab build/venv).")
    return "\n".join(lines)
