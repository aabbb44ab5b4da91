#!/usr/bin/env python3
"""Whether a verdict is as sure as it may be: its confidence beside whether it was right.

The Brier score is the mean of (confidence - right)^2 (Brier, Monthly Weather Review, 1950): 0 is
best; one that always says 50 % has 0.25. As a command: the table of files that accuracy.py and
real/run.py wrote, all together.
"""

import argparse
import json
import pathlib

DECILES = 10
SURE = 0.95


def verdicts(rows):
    """Every verdict of the results that was held against a truth: what it is of, with which hint,
    how sure it was, and whether it was right in all that the truth says. A false alarm of an
    ordinary recording is a verdict that is wrong."""
    found = []
    for row in rows:
        if row["state"] != "told":
            continue
        name = " ".join(word for word in (row["kind"], row["name"], row.get("setting")) if word)
        for hint, answer in row.get("answers", {}).items():
            if "confidence" in answer:
                right = answer["result"] == "right"
                found.append(verdict(name, hint, answer["confidence"], right))
        for alarm in row.get("alarms", ()):
            found.append(verdict(name, "first", alarm["confidence"], False))
    return found


def verdict(name, hint, confidence, right):
    """One line of the file."""
    return {"name": name, "hint": hint, "confidence": confidence, "right": right}


def brier(some):
    """The score of some verdicts."""
    return sum((one["confidence"] - one["right"]) ** 2 for one in some) / len(some)


def table(some):
    """By decile of confidence, how many verdicts there are and how many are right; the score."""
    if not some:
        return
    yield "Confidence of the verdicts, with any hint:"
    yield "  confidence    verdicts  right"
    for decile in range(DECILES):
        low, high = decile / DECILES, (decile + 1) / DECILES
        here = [
            one
            for one in some
            if low <= one["confidence"] < high or (high == 1.0 and one["confidence"] == 1.0)
        ]
        if here:
            right = sum(one["right"] for one in here) / len(here)
            yield f"  {low:>4.0%} to {high:>4.0%}  {len(here):>8}  {right:>5.0%}"
    sure = [one for one in some if one["confidence"] > SURE]
    wrong = sum(not one["right"] for one in sure)
    yield (
        f"  Brier score {brier(some):.3f} of {len(some)}; above {SURE:.0%}: "
        f"{wrong} of {len(sure)} wrong"
    )
    for hint in dict.fromkeys(one["hint"] for one in some):
        here = [one for one in some if one["hint"] == hint]
        yield f"  hint {hint}: Brier score {brier(here):.3f} of {len(here)}"


def write(path, some):
    """One line of JSON a verdict."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in some)


def read(path):
    """What `write` wrote."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    some = [one for file in parser.parse_args().files for one in read(file)]
    print("\n".join(table(some)))


if __name__ == "__main__":
    main()
