#!/usr/bin/env python3
"""Makes real programs freeze, records them with hangdog, asks it why, and compares with the cause.

Knows the command `hangdog` and the documented JSON, nothing else of it. One case at a time.
"""

import argparse
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

# What the lab knows of the machine.
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

import accessibility  # noqa: E402
import browser  # noqa: E402
import judge  # noqa: E402
import paste  # noqa: E402
import postgres  # noqa: E402
import sqlite_busy  # noqa: E402
import texstudio  # noqa: E402
from stage import CannotRun, Fault, Stage  # noqa: E402

CASES = {
    case.NAME: case
    for case in (texstudio, paste, postgres, accessibility, sqlite_busy, browser)
}
TIMEOUT_S = 120
HEADER = ("program", "truth", "verdict", "result", "asked")
FORMAT = "{:<10} {:<54} {:<70} {:<7} {}"


def why(hangdog, trace, *more):
    """What hangdog says of a trace; None where it finds nothing."""
    words = [hangdog, "why", "--json", *more, str(trace)]
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
        raise Fault(f"no JSON: {error}") from None


def default_answers(hangdog):
    """The option that takes the default answer to every question, where there is one."""
    text = subprocess.run([hangdog, "why", "--help"], capture_output=True, text=True, check=True)
    return ["--yes"] if "--yes" in text.stdout else []


def ways_to_ask(hangdog, trace, truth, programs):
    """Verdicts, from the least hint to the most: what had to be said, and the verdict. This machine
    may have worse problems than the case's, so that the first of its programs is asked for; a
    desktop has several that are natural, so that at last the thread is named."""
    answers = default_answers(hangdog)
    first = why(hangdog, trace, *answers)
    yield "nothing", first
    problems = first["problems"] if first else []
    number = next((n for n, one in enumerate(problems, 1) if one["pid"] in programs), 1)
    if number > 1:
        yield f"problem {number}", why(hangdog, trace, *answers, "--problem", str(number))
    yield "thread", why(hangdog, trace, *answers, "--thread", str(truth.victim))


def compare(hangdog, trace, truth, programs, started_ns):
    """Asks until the problem is the right one; gives what is for the row."""
    for asked, verdict in ways_to_ask(hangdog, trace, truth, programs):
        row = {"asked": asked, "verdict": "nothing found", "faults": ["no problem was found"]}
        if verdict is None:
            continue
        try:
            row["faults"] = judge.faults(truth, verdict, started_ns)
            row["verdict"] = judge.sentence(verdict)
            row["problem"] = next(
                (n for n, one in enumerate(verdict["problems"], 1) if one["tid"] == truth.victim),
                None,
            )
            if verdict["problem"]["tid"] == truth.victim:
                break
        except (KeyError, TypeError) as error:
            raise Fault(f"not the documented shape: {type(error).__name__} {error}") from None
    return row | {"result": "failed" if row["faults"] else "passed"}


def assess(hangdog, case, directory, keep):
    """One row of the table."""
    row = {"program": case.NAME, "result": "failed", "faults": []}
    trace = directory / f"{case.NAME}.hang"
    shutil.rmtree(trace, ignore_errors=True)
    home = pathlib.Path(tempfile.mkdtemp(prefix=f"hangdog-real-{case.NAME}-"))
    # Who must write there gets a folder of his own.
    home.chmod(0o711)
    try:
        with Stage(hangdog, home, trace) as stage:
            truth = case.play(stage)
            started_ns, programs = stage.started_ns(), stage.programs()
        row |= {"truth": truth.text, "witness": truth.witness}
        row["undisturbed"] = stage.undisturbed
        row |= compare(hangdog, trace, truth, programs, started_ns)
    except CannotRun as reason:
        row |= {"result": "skipped", "faults": [str(reason)]}
    except (Fault, OSError) as fault:
        row["faults"] = [str(fault)]
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if trace.exists():
        if keep or row["result"] == "failed":
            row["trace"] = str(trace)
        else:
            shutil.rmtree(trace)
    return row


def print_row(row):
    result = {"passed": "right", "failed": "WRONG", "skipped": "not run"}[row["result"]]
    columns = (row["program"], row.get("truth", ""), row.get("verdict", ""), result)
    print(FORMAT.format(*columns, row.get("asked", "")).rstrip())
    for fault in row["faults"]:
        print(f"    {fault}")
    if not row.get("undisturbed", True):
        print("    the machine was at other things, too: what they do may be a worse problem")
    for key in ("witness", "trace"):
        if key in row:
            print(f"    {key}: {row[key]}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="hangdog", help="the command (default: on the PATH)")
    parser.add_argument("--only", choices=CASES, metavar="NAME", help=", ".join(CASES))
    parser.add_argument(
        "--keep-dir", type=pathlib.Path, metavar="DIR", help="where all traces stay"
    )
    parser.add_argument("--json", action="store_true", help="print rows and counts as JSON")
    args = parser.parse_args()
    # So that nothing stays on the stage when this is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("lab-real: ended by a signal"))
    hangdog = shutil.which(args.hangdog)
    if hangdog is None:
        sys.exit(f"lab-real: cannot find '{args.hangdog}': build it, or say where by --hangdog")
    hangdog = str(pathlib.Path(hangdog).resolve())
    directory = args.keep_dir or pathlib.Path(tempfile.mkdtemp(prefix="hangdog-lab-real-"))
    directory.mkdir(parents=True, exist_ok=True)

    counts = {"passed": 0, "failed": 0, "skipped": 0}
    rows = []
    if not args.json:
        print(FORMAT.format(*HEADER).rstrip())
    for case in [CASES[args.only]] if args.only else CASES.values():
        row = assess(hangdog, case, directory.resolve(), args.keep_dir is not None)
        counts[row["result"]] += 1
        rows.append(row)
        if not args.json:
            print_row(row)
    if args.keep_dir is None and not any(directory.iterdir()):
        directory.rmdir()

    if args.json:
        print(json.dumps({"rows": rows, **counts}, indent=2))
    else:
        passed, failed, skipped = counts.values()
        print(f"lab-real: {passed} passed, {failed} failed, {skipped} skipped")
    # Where nothing ran, nothing was shown.
    return 0 if counts["failed"] == 0 and counts["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
