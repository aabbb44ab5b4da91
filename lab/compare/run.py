#!/usr/bin/env python3
"""Records workers of which one turn in four is slow for a planted reason, and asks `hangdog compare` why.

The truth of a case is how its program is made (turns.c, collect.js): which factor must be first, and what its
name or its main part must say. The worker in which all turns are alike is recorded many times: `compare` must
find no difference. Knows the command `hangdog` and docs/JSON.md, nothing else of it.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
TIMEOUT_S = 120
CANNOT_RUN = 77


@dataclass(frozen=True)
class Case:
    """What is planted, and what the answer must say: the kind of the first factor, and a pattern that its name
    or one of its two largest parts must match."""

    name: str
    kinds: tuple
    says: str
    planted: str


CASES = [
    Case("memory", ("running",), r"^walk$", "as many reads, of 64 MB instead of 64 KB"),
    Case("tlb", ("running",), r"^stride$", "as many reads, of 16,384 pages instead of 16"),
    Case("convoy", ("wait",), r"lock", "a lock that another thread holds while it computes"),
    Case("interrupts", ("interrupt",), r"timer", "timers that fire on the worker's CPU, 400,000 times a second"),
    Case("neighbour", ("cpu",), r"hog", "a program that computes on the worker's CPU"),
    Case("migration", ("migration",), r"moved", "40 moves to the other CPU"),
    Case("faults", ("running",), r"^page faults in touch$", "3,072 pages that are not there yet"),
    Case("allocator", ("running",), r"grow", "a list that grows to 32 MB"),
    Case("gc", ("running", "wait"), r"garbage collection", "a collection of node's garbage"),
    Case("fsync", ("wait",), r"fsync", "an fsync of 4 MB"),
    Case("quota", ("quota",), r"quota", "a control group with a CPU quota of 2 ms in 50 ms"),
    Case("paging", ("wait",), r"paged in|page fault", "a mapped file that has to be read from disk"),
    Case("message", ("wait",), r"helper", "a helper process that takes longer to reply"),
]


class Fault(Exception):
    """A run that came to no answer."""


class CannotRun(Exception):
    """The machine does not allow the case."""


def call(words, accept=(0,)):
    """Runs a command and gives what it printed and its exit code."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise Fault(f"{words[0]}: not done after {TIMEOUT_S} s") from None
    if done.returncode not in accept:
        last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
        raise Fault(f"exit code {done.returncode}: {last}")
    return done


def command(case, seed, directory):
    """The command that is recorded."""
    if case == "gc":
        node = shutil.which("node")
        if node is None:
            raise CannotRun("there is no node")
        return [sys.executable, HERE / "ask.py", seed, node, "--expose-gc", HERE / "collect.js"]
    return [BUILD / "turns", case, seed, directory]


def answer(hangdog, case, seed, directory):
    """Records a run, and gives what `compare` says."""
    trace = directory / f"{case}-{seed}.hang"
    shutil.rmtree(trace, ignore_errors=True)
    words = [str(word) for word in command(case, seed, directory)]
    record = [hangdog, "record", "--sample", "2000", "-o", str(trace), "--", *words]
    done = call(record, accept=(0, CANNOT_RUN))
    if done.returncode == CANNOT_RUN:
        raise CannotRun((done.stderr.strip().splitlines() or ["no reason given"])[0])
    compare = [hangdog, "compare", str(trace), "--thread", thread(hangdog, trace), "--json"]
    return json.loads(call(compare).stdout)


def thread(hangdog, trace):
    """The worker's first thread, by its tid."""
    threads = json.loads(call([hangdog, "threads", str(trace), "--json"]).stdout)["threads"]
    named = [it for it in threads if it["thread"] == "worker" or it["process"] == "worker"]
    main = [it for it in named if it["tid"] == it["pid"]]
    if not main:
        raise Fault("the trace has no thread 'worker'")
    return str(main[0]["tid"])


def judge(case, said):
    """Whether the answer names what was planted, and what it names."""
    difference = said["difference"]
    if difference is None:
        return False, "no difference"
    first = difference["factors"][0]
    parts = [part["what"] for part in first["details"][:2]]
    names = f"{first['factor']} ({100 * first['share']:.0f} %): {', '.join(parts)}"
    right = first["kind"] in case.kinds and any(
        re.search(case.says, text) for text in [first["factor"], *parts]
    )
    return right, names


def main():
    """Runs the cases, and prints a row for each."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--hangdog", default="hangdog")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--nulls", type=int, default=20, help="runs without a difference")
    arguments.add_argument("--case", action="append", help="only this one; repeatable")
    arguments.add_argument("--keep", type=pathlib.Path, help="keep the traces here")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=BUILD) as temporary:
        directory = given.keep or pathlib.Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        right = ran = 0
        for case in CASES:
            if given.case and case.name not in given.case:
                continue
            try:
                is_right, names = judge(case, answer(given.hangdog, case.name, given.seed, directory))
            except CannotRun as why:
                print(f"not run  {case.name:11} {why}", flush=True)
                continue
            except (Fault, json.JSONDecodeError, OSError) as why:
                is_right, names = False, f"failed: {why}"
            ran += 1
            right += is_right
            print(f"{'right' if is_right else 'WRONG':8} {case.name:11} {names}", flush=True)
            print(f"{'':20} planted: {case.planted}", flush=True)
        print(f"{right} of {ran} right")
        nulls = 0 if given.case and "none" not in given.case else given.nulls
        false = 0
        for seed in range(1, nulls + 1):
            try:
                said = answer(given.hangdog, "none", seed, directory)
                if said["difference"] is not None:
                    false += 1
                    print(f"false: seed {seed}: {said['sentence']}", flush=True)
            except (Fault, json.JSONDecodeError, OSError) as why:
                false += 1
                print(f"failed: seed {seed}: {why}", flush=True)
        if nulls:
            print(f"no difference planted: {false} of {nulls} said that there is one")
    return 0 if right >= ran - 1 and false <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
