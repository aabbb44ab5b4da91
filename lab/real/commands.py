"""Records commands whose time is known part by part, and compares with where hangdog says it went.

Each command (commands_cases.py) is run three times without hangdog for the truth, then recorded.
hangdog is asked without a hint, of the whole run where it can be. Its answer counts where its
problem is one of the command and covers 80 % of the run; it is right where no part is off by more
than 5 points.
"""

import dataclasses
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import time

import ask
import commands_cases
import consistency
import corpus
import others
import quiet
import settings
from stage import PATIENCE_S, CannotRun, Fault, Stage

commands_cases.load()

RUNS = 3
# Of the shares of a part in all runs.
MAX_SPREAD = 0.04
TRUTH_ATTEMPTS = 3
MIN_COVERS, MAX_POINTS = 0.80, 5.0
OTHER = "other"
# docs/TRACE.md, LifecycleKind.
EXECUTED, EXITED = 2, 4
NONE = 2**32 - 1


def truth_of(command, anyway):
    """Wall time and shares by runs without hangdog: the medians. Runs that differ too much are
    made again."""
    said = []
    for _ in range(TRUTH_ATTEMPTS):
        if not anyway:
            quiet.wait()
        try:
            runs = [command.once() for _ in range(RUNS)]
        except Fault as fault:
            said.append(str(fault))
            continue
        by_part = list(zip(*(shares for _, shares in runs), strict=True))
        spread = max(max(shares) - min(shares) for shares in by_part)
        if spread <= MAX_SPREAD:
            break
        said.append(f"a part's share differs by {spread:.1%} between runs")
    else:
        raise Fault("; ".join(said))
    shares = [statistics.median(shares) for shares in by_part]
    parts = [
        dataclasses.asdict(part) | {"share": share}
        for part, share in zip(command.parts, shares, strict=True)
    ]
    parts.append({"name": OTHER, "process": None, "kind": None, "share": 1 - sum(shares)})
    return {
        "wall_s": statistics.median(wall_s for wall_s, _ in runs),
        "parts": parts,
        "spread": spread,
        "witness": command.witness,
    }


def record(hangdog, command, trace):
    """Has hangdog start the command and record it to its end."""
    shutil.rmtree(trace, ignore_errors=True)
    if command.prepare:
        command.prepare()
    recorder = command.popen([hangdog, "record", "-o", trace, "--", *command.words])
    try:
        code = recorder.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise Fault(f"hangdog record: not done after {PATIENCE_S} s") from None
    if code != 0:
        raise Fault(f"hangdog record: exit code {code}")


def run_of(trace):
    """Begin and end of the command in the trace, ns since its start, and the ids of its processes:
    those of the recorded command's first thread and of all that descend from it."""
    meta = json.loads((trace / "meta.json").read_text(encoding="utf-8"))
    columns = ("ts", "kind", "thread", "tid", "pid", "parent")
    rows = others.read_table(trace, "lifecycle", columns)
    begin, end, first = None, meta["duration_ns"], None
    family, pids = set(), set()
    for ts, kind, thread, tid, pid, parent in rows:
        if tid == meta["command_tid"] and first in (None, thread):
            first = thread
            if kind == EXECUTED and begin is None:
                begin = ts
            if kind == EXITED:
                end = ts
        if thread == first or thread in family or (parent != NONE and parent in family):
            family.add(thread)
            pids.add(pid)
    if begin is None:
        raise Fault("the trace does not have the begin of the command")
    return begin, end, pids


def said_of(verdict, parts):
    """The share that a verdict gives to each part, and to all the rest: what it says of the run as
    a whole, or, where it explains a problem, its blame."""
    whole = verdict.get("whole")
    entries = whole["entries"] if whole else verdict["blame_by_thread"]
    shares = []
    for part in parts[:-1]:
        shares.append(
            sum(
                entry["share"]
                for entry in entries
                if re.search(part["process"], entry["process"])
                and part["kind"] in ("any", entry["kind"])
            )
        )
    return [*shares, 1 - sum(shares)]


def compare(verdict, truth, run):
    """The answer of the row."""
    if verdict is None:
        return {
            "covers": 0.0, "parts": None, "worst_points": None, "right": False, "sentence": None
        }
    begin, end, pids = run
    problem = verdict["problem"]
    until = problem["start_ns"] + problem["duration_ns"]
    both = min(end, until) - max(begin, problem["start_ns"])
    covers = max(both, 0) / (end - begin) if problem["pid"] in pids else 0.0
    answer = {"covers": covers, "parts": None, "worst_points": None, "right": False}
    if covers >= MIN_COVERS:
        answer["parts"] = [
            {"name": part["name"], "truth": part["share"], "said": said}
            for part, said in zip(truth["parts"], said_of(verdict, truth["parts"]), strict=True)
        ]
        worst = max(abs(part["truth"] - part["said"]) for part in answer["parts"]) * 100
        answer |= {"worst_points": worst, "right": worst <= MAX_POINTS}
    return answer | {"sentence": verdict["sentence"]}


def assess(hangdog, name, trace, anyway):
    """One row of the results."""
    row = {"kind": "command", "name": name, "state": "told", "reason": None}
    began = time.monotonic()
    try:
        setting = settings.Setting(None, None)
        with corpus.home("command") as directory, Stage(directory, setting) as stage:
            command = commands_cases.COMMANDS[name](stage)
            row["truth"] = truth_of(command, anyway)
            if not anyway:
                quiet.wait()
            record(hangdog, command, trace)
        whole = ["--whole"] if ask.knows(hangdog, "why", "--whole") else []
        verdict = ask.why(hangdog, trace, *whole)
        row["answer"] = compare(verdict, row["truth"], run_of(trace))
        row["contradictions"] = consistency.of_trace(hangdog, trace)
    except CannotRun as reason:
        row |= {"state": "cannot run", "reason": str(reason)}
    except (Fault, OSError, KeyError, ValueError, subprocess.SubprocessError) as fault:
        row |= {"state": "failed", "reason": f"{type(fault).__name__}: {fault}"}
    return row | {"seconds": time.monotonic() - began}


def run(hangdog, traces_dir, names=None, anyway=False):
    """The rows of all commands, or of those named. Keeps the traces that hold something wrong."""
    for name in commands_cases.COMMANDS:
        if names and name not in names:
            continue
        trace = pathlib.Path(traces_dir) / f"command-{name}.hang"
        row = assess(hangdog, name, trace, anyway)
        if row.get("answer", {}).get("right") and not row["contradictions"]["found"]:
            shutil.rmtree(trace, ignore_errors=True)
        yield row
