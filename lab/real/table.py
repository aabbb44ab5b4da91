"""The tables that a run of the corpus ends with, made of its results alone."""

import collections
import statistics

import calibration
from case import GROUPS

HEADER = (
    "",
    "runs",
    "right",
    "half",
    "wrong",
    "listed",
    "rank",
    "before it",
    "program",
    "time",
    "questions",
    "unexplained",
    "recent",
    "perfetto",
)
EXPLANATION = """\
right, half, wrong  the first problem, no hint given: half has the root's process, and the thread
                    or the time of the freeze, but not all else
listed, rank        in how many runs the freeze is in the list of problems; at which place, median
before it           entries of the list that are not the freeze and come before it, mean; all of
                    them where it is not listed
program, time       right when told which program froze; when told the time too
questions           asked, mean;  unexplained: share of the first problem that is, mean
recent, perfetto    right process and class by the most recent wake, by Perfetto's critical path;
                    both are told the thread and the time
"""


def lines(header, rows):
    """Text columns: the first to the left, the others to the right."""
    texts = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[at]) for row in texts) for at in range(len(header))]
    for row in texts:
        first, *others = (
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join((first, *others)).rstrip()


def summary(row):
    """What is said of one result that was told: result, sentence, faults."""
    if row["kind"] == "ordinary":
        alarms = [alarm["sentence"] for alarm in row["alarms"]]
        return ("wrong" if alarms else "right"), f"{len(alarms)} false alarms", alarms[:3]
    if row["kind"] == "command":
        answer = row["answer"]
        parts = answer["parts"] or ()
        said = [f"{part['name']}: {part['truth']:.0%}, not {part['said']:.0%}" for part in parts]
        return ("right" if answer["right"] else "wrong"), answer["sentence"], said
    answer = row["answers"]["first" if row["kind"] == "freeze" else "process"]
    faults = [text for _, text in answer["faults"]]
    return answer["result"], answer.get("sentence", "nothing"), faults


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def before(row):
    """How many entries of the list come before the freeze."""
    return row["rank"] - 1 if row["rank"] else row["listed"]


def right_when_told(row, *hints):
    """Whether one of these answers is right; the answer without a hint counts for each."""
    return any(row["answers"].get(hint, {}).get("result") == "right" for hint in ("first", *hints))


def freeze_row(name, rows):
    """One line of the table of freezes."""
    first = [row["answers"]["first"] for row in rows]
    results = collections.Counter(answer["result"] for answer in first)
    ranks = [row["rank"] for row in rows if row["rank"]]
    return (
        name,
        len(rows),
        results["right"],
        results["half"],
        results["wrong"],
        len(ranks),
        f"{statistics.median(ranks):g}" if ranks else "-",
        f"{mean(map(before, rows)):.1f}",
        sum(right_when_told(row, "process") for row in rows),
        sum(right_when_told(row, "process", "time") for row in rows),
        f"{mean(answer.get('questions', 0) for answer in first):.1f}",
        f"{mean(answer.get('unknown', 1.0) for answer in first):.0%}",
        sum(row["rules"]["recent"]["right"] for row in rows),
        sum(row["rules"]["perfetto"]["right"] for row in rows),
    )


def of_freezes(rows):
    """By setting and group, each setting's sum last."""
    told = [row for row in rows if row["state"] == "told"]
    body = []
    for setting in dict.fromkeys(row["setting"] for row in told):
        here = [row for row in told if row["setting"] == setting]
        for group in GROUPS:
            of_group = [row for row in here if row["group"] == group]
            if of_group:
                body.append(freeze_row(f"{setting} {group}", of_group))
        body.append(freeze_row(f"{setting}, all", here))
    yield from lines(HEADER, body)
    yield ""
    yield EXPLANATION
    cycles = sum(row["answers"]["first"].get("false_cycle", False) for row in told)
    yield f"Wait cycles reported first where there is none: {cycles}"


def of_errors(rows):
    """How often each kind of fault is in a first answer that is not right."""
    kinds = collections.Counter()
    for row in rows:
        if row["state"] == "told":
            kinds.update({fault[0] for fault in row["answers"]["first"]["faults"]})
    yield "Faults of the first answers: " + (
        ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) or "none"
    )


def of_ordinary(rows):
    """Each recording with what was reported in it."""
    told = [row for row in rows if row["state"] == "told"]
    quiet = [row for row in told if not row["alarms"]]
    yield (
        f"Ordinary recordings: no false alarm in {len(quiet)} of {len(told)}; "
        f"{sum(len(row['alarms']) for row in told)} false alarms, "
        f"{sum(row['names_hangdog'] for row in told)} recordings in which hangdog names itself"
    )
    for row in told:
        worst = row["alarms"][0]["sentence"] if row["alarms"] else "nothing"
        yield f"  {len(row['alarms']):>3}  {row['name']}: {worst}"


def of_hung(rows):
    """How many hung programs were explained."""
    told = [row for row in rows if row["state"] == "told"]
    results = collections.Counter(row["answers"]["process"]["result"] for row in told)
    yield (
        f"Hung programs, told which: {results['right']} right, {results['half']} half, "
        f"{results['wrong']} wrong of {len(told)}"
    )


def of_commands(rows):
    """How many breakdowns are right."""
    told = [row for row in rows if row["state"] == "told"]
    yield f"Commands: {sum(row['answer']['right'] for row in told)} of {len(told)} breakdowns right"
    for row in told:
        answer = row["answer"]
        # Shares are compared only where the answer covers the run.
        worst = answer["worst_points"]
        off = f"off by {worst:.0f} points at most" if worst is not None else "no shares"
        yield f"  {row['name']}: covers {answer['covers']:.0%} of the run, {off}: {answer['sentence']}"


def of_consistency(rows):
    """Contradictions over all traces."""
    looked = [row["contradictions"] for row in rows if row.get("contradictions")]
    kinds = collections.Counter(one["check"] for row in looked for one in row["found"])
    problems = sum(row["problems"] for row in looked)
    yield (
        f"Consistency: {sum(kinds.values())} contradictions in {problems} problems of "
        f"{len(looked)} traces" + "".join(f", {kind} {n}" for kind, n in kinds.most_common())
    )


def of_missing(rows):
    """What gave no result."""
    for row in rows:
        if row["state"] != "told":
            what = " ".join(word for word in (row["name"], row.get("setting", "")) if word)
            yield f"{row['state']}: {what}: {row['reason']}"


PARTS = {
    "freeze": (of_freezes, of_errors),
    "ordinary": (of_ordinary,),
    "hung": (of_hung,),
    "command": (of_commands,),
}


def of(rows):
    """All tables, as text."""
    text = []
    for kind, parts in PARTS.items():
        here = [row for row in rows if row["kind"] == kind]
        for part in parts if here else ():
            text += [*part(here), ""]
    text += [*of_consistency(rows), "", *calibration.table(calibration.verdicts(rows)), ""]
    missing = list(of_missing(rows))
    if missing:
        text += [f"No result in {len(missing)}:", *missing, ""]
    return "\n".join(text)
