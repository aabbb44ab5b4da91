"""What hangdog says of a trace, asked from the least hint to the most. Knows the command `hangdog`
and the documented JSON, nothing else of it."""

import dataclasses
import functools
import json
import subprocess

import judge
from stage import Fault

TIMEOUT_S = 120
# Answers, from the least hint to the most.
FIRST, LISTED, PROCESS, TIME = "first", "listed", "process", "time"


def call(hangdog, *words):
    """What a command of hangdog's answers, from its JSON; None where it finds nothing."""
    words = [str(word) for word in (hangdog, *words)]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise Fault(f"{' '.join(words)}: not done after {TIMEOUT_S} s") from None
    if done.returncode == 1:
        return None
    if done.returncode != 0:
        raise Fault(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()}")
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise Fault(f"{' '.join(words)}: no JSON: {error}") from None


@functools.cache
def knows(hangdog, command, option):
    """Whether a command of this hangdog has an option."""
    done = subprocess.run([hangdog, command, "--help"], capture_output=True, text=True, check=True)
    return option in done.stdout


def why(hangdog, trace, *more):
    """A verdict that takes the default answer to every question; None where nothing was found."""
    yes = ["--yes"] if knows(hangdog, "why", "--yes") else []
    return call(hangdog, "why", "--json", *yes, *more, trace)


def window_of(trace):
    """When a recording began and ended, by CLOCK_MONOTONIC, ns."""
    meta = json.loads((trace / "meta.json").read_text(encoding="utf-8"))
    begin = meta["clock"]["monotonic_start_ns"]
    return begin, begin + meta["duration_ns"]


def of_process(hangdog, pid, tid):
    """The hint that names the program."""
    if knows(hangdog, "why", "--process"):
        return ["--process", str(pid)]
    return ["--thread", str(tid)]


def every_way(hangdog, trace, truth):
    """The judgements by hint, as plain values, and where the freeze stands in the list."""
    window = window_of(trace)
    rows = {}

    def ask(hint, verdict):
        if verdict is None:
            faults = [("nothing", "no problem was found")]
            rows[hint] = {"result": judge.WRONG, "said": "nothing", "faults": faults}
            return judge.WRONG
        try:
            rows[hint] = dataclasses.asdict(judge.judge(truth, verdict, window))
            rows[hint] |= {key: verdict[key] for key in ("sentence", "problem", "root")}
        except (KeyError, TypeError) as error:
            raise Fault(f"not the documented shape: {type(error).__name__} {error}") from None
        return rows[hint]["result"]

    first = why(hangdog, trace)
    ask(FIRST, first)
    problems = first["problems"] if first else []
    frozen = [not judge.is_freeze(truth, problem, window) for problem in problems]
    rank = frozen.index(True) + 1 if any(frozen) else None
    if rank and rank > 1:
        ask(LISTED, why(hangdog, trace, "--problem", rank))
    victim = truth.victims[0]
    if ask(PROCESS, why(hangdog, trace, *of_process(hangdog, victim, victim))) != judge.RIGHT:
        begin, end = (ns - window[0] for ns in judge.cut(truth.frozen, window))
        span = ["--from", f"{begin}ns", "--to", f"{end}ns"]
        ask(TIME, why(hangdog, trace, "--thread", victim, *span))
    return {"rank": rank, "listed": len(problems), "answers": rows}
