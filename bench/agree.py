#!/usr/bin/env python3
"""Holds `hangdog load` against /proc/loadavg, and `hangdog calls` against strace -c.

Load: some threads compute for a minute while everything is recorded. /proc/loadavg's first figure is an average of
how many threads ran or waited for a CPU, of which a minute ago counts 1/e; so from its value before and after the
minute follows how many there were in it, on average. The kernel counts only every five seconds for it, so its
fourth figure, how many there are at this moment, is read some twenty times a second besides. Both averages are
compared with that of `hangdog load` over the same minute.

Calls: a program that sleeps, polls, reads from a pipe and waits for children is counted by `strace -f -c -w`
and by `hangdog record --calls`, in turns. The numbers of calls must be equal. Sums are compared of calls that take a
millisecond and more on average, since strace stops the program twice in each call, which takes longer than a short
call itself; how long a disk takes differs from run to run and is left out. Printed are the medians of the ratios.
"""

import argparse
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SPIN = "while True: pass"
PROGRAM = r"""
import os, select, time
for turn in range(40):
    time.sleep(0.01)
    reading, writing = os.pipe()
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    poll.poll(5)
    if os.fork() == 0:
        time.sleep(0.02)
        os.write(writing, b"done")
        time.sleep(0.005)
        os._exit(0)
    os.read(reading, 4)
    os.close(reading), os.close(writing)
    os.wait()
    for _ in range(50):
        os.getppid()
"""


def loadavg():
    return float(pathlib.Path("/proc/loadavg").read_text().split()[0])


def running():
    """How many threads run or wait for a CPU, without the one that asks."""
    return int(pathlib.Path("/proc/loadavg").read_text().split()[3].split("/")[0]) - 1


def load(hangdog, folder, count, seconds):
    """How many threads there were by both figures of /proc/loadavg, and by hangdog."""
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        trace = folder / f"load-{count}.hang"
        recorder = subprocess.Popen(
            [hangdog, "record", "--no-stacks", "--sample", "0", "-o", trace],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        time.sleep(3)
        # The kernel counts every five seconds: a minute that begins and ends just behind a count.
        before = loadavg()
        while loadavg() == before:
            time.sleep(0.01)
        first, begin = loadavg(), time.monotonic()
        counted = []
        while time.monotonic() - begin < seconds - 1:
            time.sleep(random.uniform(0.02, 0.08))
            counted.append(running())
        before = loadavg()
        while loadavg() == before and time.monotonic() - begin < seconds + 2:
            time.sleep(0.01)
        last, took = loadavg(), time.monotonic() - begin
        recorder.terminate()
        recorder.wait()
    finally:
        for process in spinning:
            process.kill()
            process.wait()
    kept = math.exp(-took / 60)
    theirs = (last - first * kept) / (1 - kept)
    answer = json.loads(subprocess.check_output([hangdog, "load", trace, "--json"]))
    steps = answer["average"]
    # The recording began before and ended at about the same time.
    wanted = round(took / (answer["step_ns"] / 1e9))
    return theirs, statistics.fmean(counted), statistics.fmean(steps[-wanted:])


def strace(program, folder):
    summary = folder / "strace"
    subprocess.run(
        ["strace", "-f", "-c", "-w", "-U", "name,calls,time-total", "-o", summary, *program],
        check=True,
    )
    rows = [line.split() for line in summary.read_text().splitlines()]
    rows = [row for row in rows if len(row) == 3 and row[1].isdigit() and row[0] != "total"]
    return {name: (int(calls), float(total)) for name, calls, total in rows}


def recorded(hangdog, program, folder):
    trace = folder / "calls.hang"
    subprocess.run(
        [hangdog, "record", "--calls", "-o", trace, "--", *program],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    answer = json.loads(subprocess.check_output([hangdog, "calls", trace, "--json"]))
    shutil.rmtree(trace)
    return {row["call"]: (row["count"], row["sum_ns"] / 1e9) for row in answer["calls"]}


def calls(hangdog, folder, rounds):
    program = [sys.executable, "-c", PROGRAM]
    ratios, unequal = {}, []
    for _ in range(rounds):
        theirs, ours = strace(program, folder), recorded(hangdog, program, folder)
        for call in sorted(set(theirs) | set(ours)):
            (count, total), (own_count, own_total) = theirs.get(call, (0, 0)), ours.get(call, (0, 0))
            if count != own_count:
                unequal.append(f"{call}: strace {count}, hangdog {own_count}")
            elif total / count >= 1e-3:
                ratios.setdefault(call, []).append(own_total / total)
    return ratios, unequal


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="*", default=[2, 5])
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("agree.py: recording needs root")
    with tempfile.TemporaryDirectory(prefix="hangdog-agree-") as name:
        folder = pathlib.Path(name)
        ratios, unequal = calls(arguments.hangdog, folder, arguments.rounds)
        print("calls: sums of hangdog divided by those of strace -c -w, medians and range")
        for call, of in sorted(ratios.items()):
            print(f"  {call:<14} {statistics.median(of):.3f} ({min(of):.3f}-{max(of):.3f})")
        print("calls: counts that differ:", "; ".join(unequal) or "none")
        for count in arguments.threads:
            theirs, counted, ours = load(arguments.hangdog, folder, count, 60)
            print(
                f"load: {count} threads compute: /proc/loadavg {theirs:.2f}, counted {counted:.2f}, "
                f"hangdog {ours:.2f}, ratios {ours / theirs:.3f} and {ours / counted:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
