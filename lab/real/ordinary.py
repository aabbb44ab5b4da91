#!/usr/bin/env python3
"""Records ordinary lives in which nothing freezes, and counts the problems that hangdog finds.

Each life (ordinary_lives) is recorded for 8 s without any hint. Where its witness says that
something did stall, it is recorded anew. Every problem above the lowest severity is an alarm.
"""

import argparse
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# What the lab knows of the machine and of traces.
sys.path.append(str(HERE.parent))

import ask  # noqa: E402
import consistency  # noqa: E402
import corpus  # noqa: E402
import ordinary_lives  # noqa: E402, F401  (registers the lives)
import quiet  # noqa: E402
import settings  # noqa: E402
from ordinary_lives.register import LIVES  # noqa: E402
from stage import CannotRun, Fault, Stage, now_ns, output_of  # noqa: E402

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hangdog", default="hangdog", help="the command (default: on the PATH)")
    parser.add_argument("--name", action="append", choices=LIVES, help="only this life")
    parser.add_argument("--anyway", action="store_true", help="do not wait for a quiet machine")
    parser.add_argument(
        "--results", type=pathlib.Path, default=HERE.parent / "build" / "ordinary", metavar="DIR",
        help="where rows and traces go (default: lab/build/ordinary)",
    )
    args = parser.parse_args()
    # So that nothing stays on the stage when this is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    hangdog = str(pathlib.Path(shutil.which(args.hangdog) or args.hangdog).resolve())
    args.results.mkdir(parents=True, exist_ok=True)
    with (args.results / "ordinary.jsonl").open("w", encoding="utf-8") as file:
        for row in run(hangdog, args.results, args.name, args.anyway):
            file.write(json.dumps(row) + "\n")
            file.flush()
            alarms = row.get("alarms", [])
            said = f"{len(alarms)} alarms" if row["state"] == "told" else row["state"]
            more = row["reason"] or row["witness"]
            print(f"{said:<12} {row['name']} ({row['seconds']:.0f} s): {more}", flush=True)
            for alarm in alarms[:3]:
                print(f"             {alarm['sentence']}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
