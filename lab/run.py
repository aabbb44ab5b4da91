#!/usr/bin/env python3
"""Records each program of the lab with hangdog, asks it why, and compares with the truth.

Knows the command `hangdog` and the documented JSON, nothing else of it. One run at a time: two
would starve each other.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import truth as lab
import verdict

TIMEOUT_S = 120


class Fault(Exception):
    """A run that came to no comparison."""


class CannotRun(Exception):
    """The machine does not allow the program."""


def call(words, accept=(0,)):
    """Runs a command and gives what it printed and its exit code."""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Fault(f"{' '.join(words)}: not done after {TIMEOUT_S} s") from None
    if done.returncode not in accept:
        last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
        raise Fault(f"{' '.join(words)}: exit code {done.returncode}: {last}")
    return done


def diagnose(hangdog, program, seed, trace):
    """Records one run and gives (truth, comparison)."""
    words = [hangdog, "record", "-o", str(trace), "--", *program.command(seed)]
    done = call(words, accept=(0, lab.CANNOT_RUN))
    if done.returncode == lab.CANNOT_RUN:
        raise CannotRun((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    run = lab.parse_run(done.stdout)
    truth = program.truth(run.params)
    # Exit code 1, nothing found, leaves nothing to compare.
    answer = call([hangdog, "why", "--json", str(trace)])
    try:
        start_ns = json.loads((trace / "meta.json").read_text())["clock"]["monotonic_start_ns"]
        return truth, verdict.compare(truth, run, json.loads(answer.stdout), start_ns)
    except json.JSONDecodeError as error:
        raise Fault(f"no JSON: {error}") from None
    except OSError as error:
        raise Fault(str(error)) from None
    except (KeyError, TypeError) as error:
        raise Fault(f"not the documented shape: {type(error).__name__} {error}") from None


def assess(hangdog, program, seed, directory):
    """One row of the table."""
    row = {"program": program.name, "seed": seed, "result": "failed", "faults": []}
    trace = directory / f"{program.name}-{seed}.hang"
    if trace.exists():
        shutil.rmtree(trace)
    try:
        truth, comparison = diagnose(hangdog, program, seed, trace)
    except CannotRun as reason:
        row |= {"result": "skipped", "faults": [str(reason)]}
    except (Fault, lab.TruthError) as fault:
        row["faults"] = [str(fault)]
    else:
        row |= {
            "truth": str(truth),
            "verdict": comparison.verdict,
            "overlap": comparison.overlap,
            "unknown": comparison.unknown,
            "faults": list(comparison.faults),
        }
        if not comparison.faults:
            row["result"] = "passed"
    if row["result"] == "failed" and trace.exists():
        row["trace"] = str(trace)
    else:
        shutil.rmtree(trace, ignore_errors=True)
    return row


HEADER = ("program", "seed", "truth", "verdict", "result", "overlap", "unexplained")
FORMAT = "{:<13} {:>4}  {:<50} {:<50} {:<7} {:>7} {:>11}"


def percent(share):
    return "" if share is None else f"{share:.1%}"


def print_row(row):
    columns = (
        row["program"],
        row["seed"],
        row.get("truth", ""),
        row.get("verdict", ""),
        {"passed": "right", "failed": "WRONG", "skipped": "not run"}[row["result"]],
        percent(row.get("overlap")),
        percent(row.get("unknown")),
    )
    print(FORMAT.format(*columns).rstrip())
    for fault in row["faults"]:
        print(f"    {fault}")
    if "trace" in row:
        print(f"    trace: {row['trace']}")
    sys.stdout.flush()


def times():
    """The CPU time of the machine since it started, and what of it the hypervisor took, in ticks."""
    fields = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return sum(fields[:8]), fields[7]


def assess_again(hangdog, program, seed, directory):
    """As assess; where that fails, the row is printed with the load that was seen, and the program
    plays once more."""
    before = times()
    row = assess(hangdog, program, seed, directory)
    if row["result"] != "failed":
        return row
    total, stolen = (now - then for now, then in zip(times(), before))
    load = pathlib.Path("/proc/loadavg").read_text().split()[0]
    print_row(row)
    print(
        f"    tried again: the load is {load}, and the hypervisor took {stolen / max(total, 1):.1%} "
        "of the CPUs' time meanwhile"
    )
    return assess(hangdog, program, seed, directory)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="hangdog", help="the command (default: on the PATH)")
    lab.add_selection(parser, default_seeds=5)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print rows and counts as JSON")
    output.add_argument(
        "--again",
        action="store_true",
        help="where a verdict is wrong print the load and play once more; the second verdict counts",
    )
    parser.add_argument(
        "--keep-dir", type=pathlib.Path, metavar="DIR", help="where traces of wrong verdicts stay"
    )
    return parser.parse_args()


def main():
    args = parse_arguments()
    hangdog = shutil.which(args.hangdog)
    if hangdog is None:
        sys.exit(f"lab: cannot find '{args.hangdog}': build it, or say where by --hangdog PATH")
    lab.build()
    directory = args.keep_dir or pathlib.Path(tempfile.mkdtemp(prefix="hangdog-lab-"))
    directory.mkdir(parents=True, exist_ok=True)

    counts = {"passed": 0, "failed": 0, "skipped": 0}
    rows = []
    if not args.json:
        print(FORMAT.format(*HEADER))
    for program, seed in lab.selection(args):
        judge = assess_again if args.again else assess
        row = judge(hangdog, program, seed, directory)
        counts[row["result"]] += 1
        rows.append(row)
        if not args.json:
            print_row(row)
    if not any(directory.iterdir()) and args.keep_dir is None:
        directory.rmdir()

    if args.json:
        print(json.dumps({"rows": rows, **counts}, indent=2))
    else:
        print(lab.closing_line(counts))
    # A lab in which nothing ran has shown nothing.
    return 0 if counts["failed"] == 0 and counts["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
