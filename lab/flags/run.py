#!/usr/bin/env python3
"""Runs each program that hands over by memory alone twice: once with the flag told to hangdog, once
without, and compares what it says with what the program is made to do.

Told: `record --watch`, then `why`; the root must be the thread that ends the wait. Found:
`find-flag`; it must name the flag and the writer. Who ends what comes from the program itself.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
# The writer writes so long after it started, ms: long enough that whoever looks is there.
DELAY_MS = 12000
TIMEOUT_S = 60
# What one is so sure of must be right.
SURE = 0.5

C_CASES = (
    "spin_pause sched_yield nanosleep usleep c11_atomic volatile_int shared_memory bit "
    "signal_handler heap two_flags queue_head seqlock nobody"
).split()


def cases():
    """Name and command of each."""
    for name in C_CASES:
        yield name, [str(BUILD / "flag_cases"), name, str(DELAY_MS)]
    yield "rust_atomic_bool", [str(BUILD / "flag_rust"), str(DELAY_MS)]
    yield "python_attribute", [sys.executable, str(HERE / "case_python.py"), str(DELAY_MS)]


class Running:
    """A program that has begun to wait, and what it says of itself."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.truth = json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self.truth

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def call(words, accept=(0,)):
    done = subprocess.run(
        words, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
    )
    if done.returncode not in accept:
        last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
        raise RuntimeError(f"{' '.join(words[:3])}: exit code {done.returncode}: {last}")
    return done.stdout


def told(hangdog, command, folder):
    """(right, what it said) where the flag was told."""
    trace = folder / "told.hang"
    running = Running(command)
    with running as truth:
        place = truth["symbol"] or f"{truth['address']}:{truth['size']}"
        call(
            [
                hangdog, "record", "-o", str(trace), "--for", f"{DELAY_MS // 1000 + 2}s",
                "--watch", f"{truth['pid']}:{place}",
            ]
        )  # fmt: skip
        begun = json.loads((trace / "meta.json").read_text())["clock"]["monotonic_start_ns"]
        words = [hangdog, "why", "--json", "--thread", str(truth["tid"])]
        if truth["writer"] is not None:
            # Of the wait alone: what the program does afterwards is not asked for.
            waited = json.loads(running.process.stdout.readline())["set_ns"] - begun
            words += ["--from", "0ms", "--to", f"{max(waited, 1)}ns"]
        answer = call([*words, str(trace)], accept=(0, 1))
        shutil.rmtree(trace, ignore_errors=True)
        root = json.loads(answer)["root"] if answer.strip() else None
    if root is None:
        return False, "no problem"
    said = f"{root['class']} of {root['thread']}"
    if truth["writer"] is None:
        return root["class"] == "RepeatedYield" and root["tid"] == truth["tid"], said
    return (root["thread"], root["pid"]) == (truth["writer"], truth["writer_pid"]), said


def found(hangdog, command):
    """(right, confidence, what it said) where nothing was told."""
    with Running(command) as truth:
        words = [hangdog, "find-flag", "--json", "--pid", str(truth["pid"])]
        # As `why` proposes it, which knows the thread.
        words += ["--tid", str(truth["tid"])]
        answer = json.loads(call([*words, "--for", f"{DELAY_MS // 1000 + 3}s"], accept=(0, 1)))
    confidence = answer["confidence"]
    if answer["flag"] is None:
        return False, confidence, answer["not_found"] or "several candidates"
    flag = answer["candidates"][answer["flag"]]
    writer = answer["writer"]
    who = "nobody" if writer is None else writer["thread"]
    said = f"{flag['name']} written by {who}"
    is_flag = int(flag["address"], 16) == int(truth["address"], 16)
    if truth["writer"] is None:
        return is_flag and writer is None, confidence, said
    if writer is None:
        return False, confidence, said
    # A handler runs in the thread that polls; who sent the signal is not in the flag.
    is_writer = (writer["thread"], writer["pid"]) == (truth["writer"], truth["writer_pid"])
    is_handler = "busy" == truth["symbol"] and writer["itself"]
    return is_flag and (is_writer or is_handler), confidence, said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default="target/debug/hangdog")
    parser.add_argument("--only", help="one case")
    args = parser.parse_args()
    form = "{:<17} {:<7} {:<34} {:<7} {:>5}  {}"
    print(form.format("case", "told", "root", "found", "sure", "flag"))
    right_told = right_found = sure_and_wrong = count = 0
    for name, command in cases():
        if args.only not in (None, name):
            continue
        count += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                is_told, root = told(args.hangdog, command, pathlib.Path(folder))
            except (RuntimeError, ValueError, subprocess.TimeoutExpired) as fault:
                is_told, root = False, str(fault)
        try:
            is_found, confidence, flag = found(args.hangdog, command)
        except (RuntimeError, ValueError, subprocess.TimeoutExpired) as fault:
            is_found, confidence, flag = False, 0.0, str(fault)
        right_told += is_told
        right_found += is_found
        sure_and_wrong += not is_found and confidence > SURE
        word = {True: "right", False: "WRONG"}
        found_word = word[True] if is_found else ("WRONG" if confidence > SURE else "not")
        print(form.format(name, word[is_told], root, found_word, f"{confidence:.0%}", flag), flush=True)
    print(
        f"told {right_told} of {count}, found {right_found} of {count}, "
        f"wrong with confidence over {SURE:.0%}: {sure_and_wrong}"
    )
    needed = count if args.only else count - 4
    return 0 if right_told == count and right_found >= needed and not sure_and_wrong else 1


if __name__ == "__main__":
    sys.exit(main())
