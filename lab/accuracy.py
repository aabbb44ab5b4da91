#!/usr/bin/env python3
"""How often `hangdog why` is right on hangs that a seed puts together.

Records each, asks why, and compares with what the program says of itself (composed.py). Beside it,
from the same traces, stand two simpler rules (others.py). Knows the command `hangdog` and the
documented JSON, nothing else of it.
"""

import argparse
import json
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile

import calibration
import composed
import quiet
import run as runner
import score
import truth as lab

# A run is taken anew, so often at most, where others were busy before or after it, or where the hang
# took so many times as long as was asked for.
MOST_MULTIPLE, ATTEMPTS = 1.5, 6
PYTHON_WITH_ARROW = lab.LAB / "build" / "venv" / "bin" / "python"


def takes_defaults(hangdog):
    """Whether this hangdog's `why` asks, and so can be told to take the defaults."""
    return "--yes" in runner.call([hangdog, "why", "--help"]).stdout


def other_rules(trace, case):
    """What the other rules say."""
    run = case.run
    words = [PYTHON_WITH_ARROW, lab.LAB / "others.py", trace, run.begin_ns, run.end_ns]
    return json.loads(runner.call([str(word) for word in words]).stdout)


def record(hangdog, seed, trace, anyway):
    """Records a run that took as long as it should while others were quiet (`anyway`: or were not),
    and gives its case."""
    words = [hangdog, "record", "-o", str(trace), "--", *composed.command(seed)]
    for _ in range(ATTEMPTS):
        undisturbed = anyway or quiet.wait()
        shutil.rmtree(trace, ignore_errors=True)
        done = runner.call(words)
        case = composed.parse(done.stdout)
        undisturbed = undisturbed and (anyway or quiet.is_quiet())
        if undisturbed and case.run.length_ns <= MOST_MULTIPLE * case.asked_ns:
            (trace / "said.txt").write_text(done.stdout)
            return case
    raise runner.Fault(f"the machine was busy {ATTEMPTS} times")


def diagnose(hangdog, why, seed, trace, args):
    """Records one run and scores it."""
    case = record(hangdog, seed, trace, args.anyway)
    others = None if args.no_others else other_rules(trace, case)
    answer = runner.call([*why, str(trace)], accept=(0, 1))
    (trace / "why.json").write_text(answer.stdout)
    start_ns = json.loads((trace / "meta.json").read_text())["clock"]["monotonic_start_ns"]
    verdict = json.loads(answer.stdout) if answer.returncode == 0 else None
    return score.score(case, verdict, start_ns, others)


def assess(hangdog, why, seed, directory, args):
    """(the score, what went wrong); the trace of a right verdict is removed."""
    trace = directory / f"{seed}.hang"
    try:
        result = diagnose(hangdog, why, seed, trace, args)
    except (runner.Fault, lab.TruthError, OSError) as fault:
        return None, str(fault)
    except (ValueError, KeyError, TypeError) as error:
        return None, f"not the documented shape: {type(error).__name__} {error}"
    if result.first:
        shutil.rmtree(trace)
    return result, None


def print_case(seed, result, fault):
    if fault is not None:
        print(f"{seed:>10}  FAILED  {fault}")
    elif result.first:
        print(f"{seed:>10}  right   {result.case}{'' if result.victim else ' (the victim is wrong)'}")
    else:
        print(f"{seed:>10}  WRONG   {result.case}")
        print(f"{'':>20}it said {result.said} (problem and hang overlap by {result.overlap:.0%})")
    sys.stdout.flush()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="hangdog", help="the command (default: on the PATH)")
    parser.add_argument("--count", type=int, default=150, metavar="N", help="how many fixed seeds")
    parser.add_argument("--first-seed", type=int, default=1, metavar="K", help="the first of them")
    parser.add_argument(
        "--fresh", type=int, default=0, metavar="N", help="how many fresh seeds besides"
    )
    parser.add_argument(
        "--seeds", metavar="K,K,...", help="these seeds alone: so a run is repeated"
    )
    parser.add_argument("--anyway", action="store_true", help="do not wait for a quiet machine")
    parser.add_argument("--no-others", action="store_true", help="leave the other rules out")
    parser.add_argument(
        "--keep-dir", type=pathlib.Path, metavar="DIR", help="where traces of wrong verdicts stay"
    )
    parser.add_argument(
        "--verdicts", type=pathlib.Path, metavar="FILE", help="write each verdict's confidence and "
        "whether it was right, for calibration.py"
    )
    return parser.parse_args()


def choose_seeds(args):
    if args.seeds is not None:
        return [int(word) for word in args.seeds.split(",")]
    fixed = list(range(args.first_seed, args.first_seed + args.count))
    fresh = [secrets.randbelow(10**9) for _ in range(args.fresh)]
    if fresh:
        print(f"fresh seeds, to be repeated by --seeds {','.join(map(str, fresh))}")
    return fixed + fresh


def main():
    args = parse_arguments()
    hangdog = shutil.which(args.hangdog)
    if hangdog is None:
        sys.exit(f"lab: cannot find '{args.hangdog}': build it, or say where by --hangdog PATH")
    composed.build()
    quiet.go_ahead()
    directory = args.keep_dir or pathlib.Path(tempfile.mkdtemp(prefix="hangdog-accuracy-"))
    directory.mkdir(parents=True, exist_ok=True)
    why = [hangdog, "why", "--json", *(["--yes"] if takes_defaults(hangdog) else [])]

    args.no_others = args.no_others or not PYTHON_WITH_ARROW.exists()
    results, faults, told = [], 0, []
    for seed in choose_seeds(args):
        result, fault = assess(hangdog, why, seed, directory, args)
        print_case(seed, result, fault)
        if fault is None:
            results.append(result)
            name = f"seed {seed}"
            told.append(calibration.verdict(name, "first", result.confidence, result.first))
        else:
            faults += 1
    if not any(directory.iterdir()) and args.keep_dir is None:
        directory.rmdir()
    if not results:
        sys.exit("accuracy: nothing was recorded")
    print()
    print(score.table(results))
    if args.verdicts:
        calibration.write(args.verdicts, told)
    missed = score.missed_goals(results)
    if faults:
        missed.append(f"{faults} runs came to no verdict")
    if any(not result.first for result in results):
        print(f"traces of wrong verdicts: {directory}")
    print(f"accuracy: {'; '.join(missed) if missed else 'all goals are met'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
