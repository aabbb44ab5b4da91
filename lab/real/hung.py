#!/usr/bin/env python3
"""Programs that hang for good (hangs/), recorded while they do: what do they wait for, now?

All of them hang at once, on a stage each, while one recording of a few seconds is made that sees
neither begin nor end of any. Then hangdog is asked for each by the hint of the program. Where
`why --live` is there, it is asked instead, without a recording.
"""

import argparse
import contextlib
import dataclasses
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# What the lab knows of the machine and of traces.
sys.path.append(str(HERE.parent))

import ask  # noqa: E402
import corpus  # noqa: E402
import hangs  # noqa: E402, F401  (registers the programs)
import judge  # noqa: E402
import quiet  # noqa: E402
import settings  # noqa: E402
from hangs import witness  # noqa: E402
from hangs.program import PROGRAMS  # noqa: E402
from stage import CannotRun, Fault, Stage, now_ns, output_of  # noqa: E402

RECORDED_S = 2
# A program that did not hang is tried so often.
ATTEMPTS = 3
# What goes wrong with a program of the stage.
FAULTS = (Fault, OSError, ValueError, IndexError, subprocess.SubprocessError)


def chosen(names):
    """The programs of these names, all without."""
    return [program for name, program in sorted(PROGRAMS.items()) if not names or name in names]


def play(program, stages):
    """Starts a program on a stage of its own, which `stages` ends; gives its truth."""
    with contextlib.ExitStack() as own:
        directory = own.enter_context(corpus.home(program.name))
        stage = own.enter_context(Stage(directory, settings.Setting(None, None)))
        truth = program.play(stage)
        # It hangs, so that it may stay.
        stages.enter_context(own.pop_all())
    return truth


def hang(program, stages):
    """The row of a program, begun by starting it; its truth, None where it does not hang."""
    row = {"kind": "hung", "name": program.name}
    said = []
    for _ in range(ATTEMPTS):
        try:
            truth = play(program, stages)
            return row | {"truth": dataclasses.asdict(truth), "failed_attempts": said}, truth
        except CannotRun as reason:
            return row | {"state": "cannot run", "reason": str(reason), "seconds": 0.0}, None
        except FAULTS as fault:
            said.append(str(fault))
    return row | {"state": "failed", "reason": "; ".join(said), "seconds": 0.0}, None


def of_verdict(truth, verdict, window):
    """The judgement as plain values."""
    if verdict is None:
        faults = [("nothing", "no problem was found")]
        return {"result": judge.WRONG, "said": "nothing", "faults": faults}
    try:
        said = dataclasses.asdict(judge.judge(truth, verdict, window))
        return said | {"sentence": verdict["sentence"]}
    except (KeyError, TypeError) as error:
        raise Fault(f"not the documented shape: {type(error).__name__} {error}") from None


def of_trace(hangdog, trace, truth):
    """What the recording says of a program."""
    window = ask.window_of(trace)
    if truth.frozen[0] > window[0]:
        raise Fault("it did not hang yet when the recording began")
    victim = truth.victims[0]
    hint = ask.of_process(hangdog, truth.victims[-1], victim)
    return of_verdict(truth, ask.why(hangdog, trace, *hint), window)


def of_live(hangdog, truth):
    """What hangdog says of it while it hangs. That is about now, so that the time of the problem is
    not judged."""
    verdict = ask.call(hangdog, "why", "--json", "--live", truth.victims[-1])
    if verdict is None:
        return of_verdict(truth, None, None)
    problem = verdict["problem"]
    begin = truth.frozen[0] - problem["start_ns"]
    return of_verdict(truth, verdict, (begin, truth.frozen[0] + problem["duration_ns"]))


def answered(row, answer):
    """Ends a row by what `answer()` gives."""
    began = time.monotonic()
    try:
        row |= {"answers": {ask.PROCESS: answer()}, "state": "told"}
    except FAULTS as fault:
        row |= {"state": "failed", "reason": str(fault)}
    return row | {"seconds": time.monotonic() - began}


def must_hang_still(truth):
    """Nothing on the way to the root has ended."""
    ended = witness.ended(truth.chain)
    if ended:
        raise Fault(f"{' and '.join(map(str, ended))} did not hang for good")


def run(hangdog, results, names=None, anyway=False):
    """The rows of the part: `state` is told (by hangdog), cannot run, or failed. `anyway`: does not
    wait for a quiet machine."""
    trace = results / "traces" / "hung.hang"
    shutil.rmtree(trace, ignore_errors=True)
    trace.parent.mkdir(parents=True, exist_ok=True)
    live = ask.knows(hangdog, "why", "--live")
    recorded = []
    with contextlib.ExitStack() as stages:
        for program in chosen(names):
            row, truth = hang(program, stages)
            if truth is None:
                yield row
            else:
                recorded.append((row, truth))
        if not live and recorded:
            if not anyway:
                quiet.wait()
            output_of([hangdog, "record", "--for", f"{RECORDED_S}s", "-o", trace])
        for row, truth in recorded:
            try:
                must_hang_still(truth)
            except Fault as fault:
                row |= {"state": "failed", "reason": str(fault), "seconds": 0.0}
            if live and "state" not in row:
                row |= answered(row, lambda truth=truth: of_live(hangdog, truth))
    for row, truth in recorded:
        if "state" not in row:
            row |= answered(row, lambda truth=truth: of_trace(hangdog, trace, truth))
        yield row


def alone(names, times):
    """Plays each program so often without a recorder; gives per name the truths of those times that
    it hung and what was wrong the other times."""
    found = {}
    for program in chosen(names):
        truths, faults = found[program.name] = [], []
        for _ in range(times):
            try:
                with contextlib.ExitStack() as stages:
                    truth = play(program, stages)
                    must_hang_still(truth)
                    truths.append(truth)
            except (CannotRun, *FAULTS) as fault:
                faults.append(f"{type(fault).__name__}: {fault}")
    return found


def say(text):
    print(text, flush=True)


def say_alone(names, times):
    """Prints how often each program hung; whether all did often enough."""
    good = True
    for program in chosen(names):
        began = now_ns()
        truths, faults = alone([program.name], times)[program.name]
        seconds = (now_ns() - began) / 1e9 / times
        for fault in faults:
            say(f"no hang    {program.name}: {fault}")
        text = f"{truths[-1].text}; {truths[-1].witness}" if truths else "no witness"
        say(f"{len(truths):>3} of {times:<3} {program.name} ({seconds:.1f} s): {text}")
        good = good and len(truths) >= 0.9 * times
    return good


def say_rows(rows):
    """Prints the rows and how many are right."""
    counts = {}
    for row in rows:
        said = row["answers"][ask.PROCESS] if row["state"] == "told" else {}
        result = said.get("result", row["state"])
        counts[result] = counts.get(result, 0) + 1
        say(f"{result:<10} {row['name']} ({row['seconds']:.1f} s): "
            f"{said.get('sentence') or row.get('reason', 'nothing')}")
        for _, fault in said.get("faults", ()):
            say(f"             {fault}")
    say(", ".join(f"{count} {result}" for result, count in counts.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hangdog", default="hangdog", help="the command (default: on the PATH)")
    parser.add_argument(
        "--results", type=pathlib.Path, default=HERE.parent / "build" / "real", metavar="DIR",
        help="where the trace goes (default: lab/build/real)",
    )  # fmt: skip
    parser.add_argument("--name", action="append", help="only the one of this name")
    parser.add_argument("--anyway", action="store_true", help="do not wait for a quiet machine")
    parser.add_argument("--list", action="store_true", help="print the programs and why they hang")
    parser.add_argument(
        "--alone", type=int, metavar="N",
        help="record nothing: start each N times, and count how often its witness saw it hang",
    )  # fmt: skip
    args = parser.parse_args()
    # So that nothing stays on the stages when this is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("hung: ended by a signal"))
    for name in args.name or ():
        if name not in PROGRAMS:
            sys.exit(f"hung: there is no program {name}; --list prints them")
    if args.list:
        for program in chosen(args.name):
            say(f"{program.name:<24} {program.summary}")
        return 0
    if args.alone:
        return 0 if say_alone(args.name, args.alone) else 1
    say_rows(run(str(pathlib.Path(args.hangdog).resolve()), args.results, args.name, args.anyway))
    return 0


if __name__ == "__main__":
    sys.exit(main())
