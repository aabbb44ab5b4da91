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
import signal
import subprocess
import sys
import tempfile
import time

import calibration
import composed
import quiet
import run as runner
import score
import truth as lab

# A run is taken anew, so often at most, where others were busy before or after it, or where the hang
# took so many times as long as was asked for.
MOST_MULTIPLE, ATTEMPTS = 1.5, 6
# For what takes seconds, s.
PATIENCE_S = 60
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


def has_begun(trace):
    """Whether a recording has attached to the kernel: then its trace says what to."""
    try:
        return bool(json.loads((trace / "meta.json").read_text())["hooks"])
    except (OSError, ValueError):
        return False


def record_watched(hangdog, seed, trace):
    """The same of a hang in which one waits for another through memory alone: the word that it looks at
    is watched. Gives the process too, which who watches knows; None where the seed has no such link."""
    words = composed.command(seed, by_memory=True)
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        said = []
        for line in program.stdout:
            said.append(line)
            if line.startswith("ready "):
                break
        else:
            return None
        _, pid, address = said[-1].split()
        shutil.rmtree(trace, ignore_errors=True)
        watch = [hangdog, "record", "-o", str(trace), "--watch", f"{pid}:{address}:4"]
        with subprocess.Popen(
            watch, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as recorder:
            begun = time.monotonic()
            while not has_begun(trace) and recorder.poll() is None:
                if time.monotonic() - begun > PATIENCE_S:
                    recorder.terminate()
                time.sleep(0.05)
            said.append(program.communicate("\n", timeout=PATIENCE_S)[0])
            recorder.send_signal(signal.SIGINT)
            errors = recorder.communicate(timeout=PATIENCE_S)[1]
            if recorder.returncode != 0:
                raise runner.Fault(f"hangdog record: {errors.strip()}")
    return composed.parse("".join(said)), pid


def diagnose(hangdog, why, seed, trace, args):
    """Records one run and scores it; None where the seed has no link through memory, and is to have one."""
    seed, by_memory = seed
    if by_memory:
        recorded = record_watched(hangdog, seed, trace)
        if recorded is None:
            return None
        case, pid = recorded
        why = [*why, "--process", pid]
    else:
        case = record(hangdog, seed, trace, args.anyway)
    others = None if args.no_others else other_rules(trace, case)
    answer = runner.call([*why, str(trace)], accept=(0, 1))
    (trace / "why.json").write_text(answer.stdout)
    start_ns = json.loads((trace / "meta.json").read_text())["clock"]["monotonic_start_ns"]
    verdict = json.loads(answer.stdout) if answer.returncode == 0 else None
    return score.score(case, verdict, start_ns, others)


def assess(hangdog, why, seed, directory, args):
    """(the score, what went wrong); the trace of a right verdict is removed."""
    number, by_memory = seed
    trace = directory / f"{number}{'-memory' if by_memory else ''}.hang"
    try:
        result = diagnose(hangdog, why, seed, trace, args)
    except (runner.Fault, lab.TruthError, OSError) as fault:
        return None, str(fault)
    except (ValueError, KeyError, TypeError) as error:
        return None, f"not the documented shape: {type(error).__name__} {error}"
    if result is not None and result.first:
        shutil.rmtree(trace)
    return result, None


def print_case(seed, result, fault):
    seed = f"{seed[0]}{' memory' if seed[1] else ''}"
    if fault is not None:
        print(f"{seed:>16}  FAILED  {fault}")
    elif result.first:
        print(f"{seed:>16}  right   {result.case}{'' if result.victim else ' (the victim is wrong)'}")
    else:
        print(f"{seed:>16}  WRONG   {result.case}")
        print(f"{'':>26}it said {result.said} (problem and hang overlap by {result.overlap:.0%})")
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
    parser.add_argument(
        "--memory",
        type=int,
        default=0,
        metavar="N",
        help="how many seeds besides in which one waits for another through memory alone, with the "
        "word watched; those that have no such link are passed over",
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
    """Seeds, each with whether a link is to be through memory."""
    if args.seeds is not None:
        return [(int(word), args.memory > 0) for word in args.seeds.split(",")]
    fixed = list(range(args.first_seed, args.first_seed + args.count))
    fresh = [secrets.randbelow(10**9) for _ in range(args.fresh)]
    if fresh:
        print(f"fresh seeds, to be repeated by --seeds {','.join(map(str, fresh))}")
    by_memory = range(args.first_seed, args.first_seed + args.memory)
    return [(seed, False) for seed in fixed + fresh] + [(seed, True) for seed in by_memory]


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
        if result is None and fault is None:
            continue
        print_case(seed, result, fault)
        if fault is None:
            results.append(result)
            name = f"seed {seed[0]}{' memory' if seed[1] else ''}"
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
