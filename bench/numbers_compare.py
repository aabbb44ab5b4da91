"""`hangdog numbers` beside the other tools: the same machine, the same minutes, in turn.

Each round measures all that hangdog does and then what the others do; a ratio is taken within a
round, and its median told with the least and the greatest. Two within 15 % of each other agree; for
a wider difference numbers_pairs.py must have a reason that fits it. Where there is none, but they
agreed in one of the rounds, they are unsteady: told as such, and no failure, because what differs
is then the machine from round to round.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import textwrap
import time

import numbers_pairs
import numbers_tools
import recorders

AGREES = 1.15
MOST_ROUNDS = 3
GOAL_S = {"whole": 90, "quick": 15}
GOAL_SHARE = 0.9
VERDICTS = ("agrees", "explained", "unsteady", "differs", "not compared")


def run_hangdog(hangdog, directory, name, *options):
    """One run: its report, kept in a file, and how long it took."""
    path = directory / f"{name}.json"
    # It keeps what it finds for later answers; what is found beside others' work is not for that.
    environment = os.environ | {"XDG_CACHE_HOME": str(directory / "cache")}
    begin = time.monotonic()
    done = subprocess.run(
        [hangdog, "numbers", "--json", "--dir", str(directory), *options],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        raise recorders.Failure(f"numbers: {done.stderr.strip() or done.returncode}")
    path.write_text(done.stdout)
    return path, json.loads(done.stdout), time.monotonic() - begin


def busy_s():
    """CPU time used by all since the machine started, and by this process's children that ended."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _, _, interrupts, softirqs = map(int, stat.readline().split()[1:8])
    used = user + nice + system + interrupts + softirqs
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used / os.sysconf("SC_CLK_TCK"), children.ru_utime + children.ru_stime


def run_others(place):
    """Every tool once: what it read, or why it could not be run. And the share of the CPUs that
    programs took which are none of them."""
    found = {}
    begin = time.monotonic()
    all_before, own_before = busy_s()
    for pair in numbers_pairs.PAIRS:
        if pair.tool in found:
            continue
        print(f"  {pair.tool.name}", file=sys.stderr)
        try:
            found[pair.tool] = place.run(pair.tool)
        except numbers_tools.Unavailable as reason:
            found[pair.tool] = str(reason)
    all_after, own_after = busy_s()
    foreign = (all_after - all_before) - (own_after - own_before)
    return found, max(foreign, 0.0) / (time.monotonic() - begin) / place.cpus


def figure(report, pair):
    """hangdog's figure; none if it was not measured."""
    for one in report["figures"]:
        if one["id"] == pair.figure and one["at"] == pair.at:
            return one
    return None


def why_not(report, pair):
    """Why hangdog has no such figure; none if it says nothing."""
    part = pair.figure.split(".", maxsplit=1)[0]
    reasons = [
        method["not_tried"]
        for method in report["methods"]
        if method["not_tried"] and method["id"].split(".", maxsplit=1)[0] == part
    ]
    return "; ".join(reasons)


def is_near(ratio):
    """Whether two agree."""
    return 1 / AGREES <= ratio <= AGREES


def row_of(pair, rounds):
    """One row of the table, from all rounds."""
    row = {
        "figure": pair.figure,
        "at": pair.at,
        "tool": pair.tool.name,
        "command": pair.tool.words,
    }
    both = []
    for report, others in rounds:
        ours, read = figure(report, pair), others[pair.tool]
        if ours is None:
            reason = why_not(report, pair)
            row["missing"] = f"hangdog: {reason or 'there is no such figure'}"
            row["failed"] = not reason
        elif isinstance(read, str):
            row["missing"] = read
        else:
            row["unit"] = ours["unit"]
            both.append((ours["median"], pair.theirs(read)))
    if not both:
        return row | {"verdict": "not compared"}
    row.pop("missing", None)
    ratios = [ours / theirs for ours, theirs in both]
    ratio = statistics.median(ratios)
    if is_near(ratio):
        verdict = "agrees"
    elif pair.explains(ratio):
        verdict = "explained"
        row["why"] = pair.why
    elif any(map(is_near, ratios)):
        verdict = "unsteady"
    else:
        verdict = "differs"
        row["failed"] = True
    return row | {
        "hangdog": statistics.median(ours for ours, _ in both),
        "other": statistics.median(theirs for _, theirs in both),
        "ratio": {"median": ratio, "min": min(ratios), "max": max(ratios)},
        "verdict": verdict,
    }


def agreement(hangdog, first, second):
    """How many figures of two runs in a row agree, as hangdog itself compares them."""
    done = subprocess.run(
        [hangdog, "numbers", "--compare", str(first), str(second), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        rows = json.loads(done.stdout)["rows"]
        agree = sum(row["agrees"] for row in rows)
    except (ValueError, KeyError, TypeError):
        raise recorders.Failure(f"numbers --compare: {done.stderr.strip()}") from None
    apart = [row for row in rows if not row["agrees"]]
    return {"rows": len(rows), "agree": agree, "apart": apart}


def measure(hangdog, directory, rounds, quick):
    """All rounds; rows of the table, and what hangdog's runs say of themselves."""
    options = ["--quick"] if quick else []
    taken, took, foreign = [], {}, []
    with numbers_tools.prepared(directory) as place:
        if not quick:
            took["quick"] = run_hangdog(hangdog, directory, "quick", "--quick")[2]
        before = run_hangdog(hangdog, directory, "before", *options)[0]
        for number in range(min(rounds, MOST_ROUNDS)):
            print(f"numbers: round {number + 1}: hangdog", file=sys.stderr)
            path, report, seconds = run_hangdog(hangdog, directory, f"{number}", *options)
            if number == 0:
                took["quick" if quick else "whole"] = seconds
                repeated = agreement(hangdog, before, path)
            found, share = run_others(place)
            taken.append((report, found))
            foreign.append(share)
    rows = [row_of(pair, taken) for pair in numbers_pairs.PAIRS]
    return {
        "rounds": len(taken),
        "rows": rows,
        "repeated": repeated,
        "took_s": took,
        "foreign": {
            "hangdog": [report["noise"]["others"] for report, _ in taken],
            "tools": foreign,
        },
        "reports": [report for report, _ in taken],
    }


def failures(found):
    """What makes the run a failure: differences without a reason, figures that are not there."""
    for row in found["rows"]:
        if row.get("failed"):
            ratio = row.get("ratio", {}).get("median")
            said = f"{ratio:.2f} times {row['tool']}, unexplained" if ratio else row["missing"]
            yield f"numbers: {named(row)}: {said}"


UNITS = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")),
    "bytes_per_second": ((1e9, "GB/s"), (1e6, "MB/s"), (1, "B/s")),
    "bytes": ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")),
}


def shown(value, unit):
    """With three digits, in the unit that suits."""
    for size, name in UNITS[unit]:
        if value >= size:
            break
    return f"{value / size:.3g} {name}"


def named(row):
    """A figure, with its place on the curve."""
    return row["figure"] + (f", {shown(row['at'], 'bytes')}" if row["at"] is not None else "")


def show(found):
    """Prints the table, and the goals."""
    line = "{:<29} {:>9} {:>9}  {:<18} {:<14} {}"
    reasons = []
    print(f"\n{line.format('figure', 'hangdog', 'other', 'ratio', '', 'the other')}")
    for row in found["rows"]:
        if "ratio" not in row:
            print(f"{named(row):<29} not compared with {row['tool']}: {row['missing']}")
            continue
        verdict = row["verdict"]
        if "why" in row:
            if row["why"] not in reasons:
                reasons.append(row["why"])
            verdict += f" ({reasons.index(row['why']) + 1})"
        ratio = row["ratio"]
        told = f"{ratio['median']:.2f} ({ratio['min']:.2f}-{ratio['max']:.2f})"
        ours, theirs = (shown(row[who], row["unit"]) for who in ("hangdog", "other"))
        print(line.format(named(row), ours, theirs, told, verdict, row["tool"]))
    for number, why in enumerate(reasons, 1):
        print(textwrap.fill(f"({number}) {why}", 100, subsequent_indent="    "))
    verdicts = [row["verdict"] for row in found["rows"]]
    counted = ", ".join(f"{one}: {verdicts.count(one)}" for one in VERDICTS)
    print(f"\n{counted}; {found['rounds']} rounds, ratios as median (least-greatest)")
    shares = {who: max(of_rounds) for who, of_rounds in found["foreign"].items()}
    print(
        "other programs used at most {hangdog:.0%} of the CPUs while hangdog measured, "
        "{tools:.0%} while the others did".format(**shares)
    )
    repeated = found["repeated"]
    share = repeated["agree"] / max(repeated["rows"], 1)
    print(
        f"two runs in a row: {repeated['agree']} of {repeated['rows']} figures agree within their "
        f"spread ({goal(share >= GOAL_SHARE)}: {GOAL_SHARE:.0%})"
    )
    for form, seconds in found["took_s"].items():
        print(f"{form}: {seconds:.1f} s ({goal(seconds <= GOAL_S[form])}: {GOAL_S[form]} s)")


def goal(is_met):
    """How a goal went."""
    return "goal met" if is_met else "goal missed"
