"""Records ordinary lives in which nothing freezes, and counts the problems that hangdog finds.

Each life (ordinary_lives) is recorded for 8 s without any hint. Where its witness says that
something did stall, it is recorded anew. Every problem above the lowest severity is an alarm.
"""

import pathlib
import re
import shutil
import subprocess
import time

import ask
import consistency
import corpus
import ordinary_lives  # noqa: F401  (registers the lives)
import quiet
import settings
from ordinary_lives.register import LIVES
from stage import CannotRun, Fault, Stage, now_ns, output_of

RECORDED_S = 8
ATTEMPTS = 3
# Longer than that, and somebody may call it frozen.
STALL_S = 0.5
LOWEST = "low"
# The folder of a stage is called hangdog-real-... too.
ITS_NAME = re.compile(r"hangdog(?!-real-)")
ALARM_FIELDS = (
    "process", "thread", "duration_ns", "kind", "class", "root_class", "confidence", "sentence",
)


def record(hangdog, life, trace):
    """Records a life once. Gives what the witness said, and the processes of the stage."""
    setting = settings.Setting(None, None)
    with corpus.home("ordinary") as directory, Stage(directory, setting) as stage:
        look = life.start(stage)
        before = stage.programs()
        begin = now_ns()
        output_of([hangdog, "record", "--for", f"{RECORDED_S}s", "-o", trace])
        end = now_ns()
        programs = before | stage.programs()
        if look is None:
            return "none", programs
        stalled_s, text = look(begin, end)
    if stalled_s > STALL_S:
        raise Fault(f"something did stall: {text}")
    return text, programs


def recorded(hangdog, life, trace, anyway):
    """Records a life, if need be again; gives what `record` gives, and what failed before."""
    said = []
    for _ in range(ATTEMPTS):
        shutil.rmtree(trace, ignore_errors=True)
        if not anyway:
            quiet.wait()
        try:
            return *record(hangdog, life, trace), said
        except (Fault, OSError, subprocess.SubprocessError) as fault:
            said.append(str(fault))
    raise Fault("; ".join(said))


def alarms_of(hangdog, trace, programs):
    """The listed problems that a user would take for a freeze. `of_life` tells whether its process
    was seen on the stage before or after the recording."""
    listed = ask.call(hangdog, "problems", "--json", trace)
    return [
        {field: problem[field] for field in ALARM_FIELDS} | {"of_life": problem["pid"] in programs}
        for problem in (listed["problems"] if listed else [])
        if problem.get("severity") != LOWEST
    ]


def names_hangdog(alarm):
    """Whether an alarm is about the recorder itself."""
    fields = ("process", "thread", "sentence")
    return any(ITS_NAME.search(alarm[field]) for field in fields)


def assess(hangdog, life, trace, anyway):
    """One row of the results."""
    row = {"kind": "ordinary", "name": life.name, "state": "told", "reason": None}
    began = time.monotonic()
    try:
        witness, programs, failures = recorded(hangdog, life, trace, anyway)
        alarms = alarms_of(hangdog, trace, programs)
        row |= {
            "witness": witness,
            "failed_attempts": failures,
            "alarms": alarms,
            "names_hangdog": any(map(names_hangdog, alarms)),
            "contradictions": consistency.of_trace(hangdog, trace),
        }
    except CannotRun as reason:
        row |= {"state": "cannot run", "reason": str(reason)}
    except (Fault, OSError, KeyError, ValueError, subprocess.SubprocessError) as fault:
        row |= {"state": "failed", "reason": f"{type(fault).__name__}: {fault}"}
    return row | {"seconds": time.monotonic() - began}


def run(hangdog, traces_dir, names=None, anyway=False):
    """The rows of all lives, or of those named. Keeps the traces that hold something wrong."""
    for name, life in LIVES.items():
        if names and name not in names:
            continue
        trace = pathlib.Path(traces_dir) / f"ordinary-{name.replace(' ', '-')}.hang"
        row = assess(hangdog, life, trace, anyway)
        if not row.get("alarms") and not row.get("contradictions", {}).get("found"):
            shutil.rmtree(trace, ignore_errors=True)
        yield row
