#!/usr/bin/env python3
"""Measures what a mark costs in CPU time, recorded and not, in C, Rust and Python; and how many marks of 8 threads
that mark 5 million times a second are lost by hangdog record. Prints the figures and the load."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 9
C = r"""
#include "hangdog-mark.h"
#include <stdio.h>
static uint64_t cpu(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
int main(void)
{
	enum { COUNT = 2000000 };
	hangdog_point(1);
	for (int round = 0; round < %d; round++)
		for (int recorded = 0; recorded < 2; recorded++) {
			uint64_t begin, end;
			hangdog_mark_area_1->recorded_until = recorded ? UINT64_MAX : 0;
			begin = cpu();
			for (int i = 0; i < COUNT; i++)
				hangdog_begin(HANGDOG_NAME("decode"), i, 2, 3, 4);
			end = cpu();
			printf("%%d %%f\n", recorded, (double)(end - begin) / COUNT);
		}
	return 0;
}
""" % ROUNDS
PYTHON = """
import time
import hangdog_mark as mark
for _ in range(%d):
    for recorded in (0, 1):
        mark._area.words[8] = recorded * (2**64 - 1)
        begin = time.thread_time_ns()
        for i in range(100000):
            mark.begin("decode", i, 2, 3, 4)
        print(recorded, (time.thread_time_ns() - begin) / 100000)
""" % ROUNDS


def costs(language, command, **options):
    lines = subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout.split("\n")
    taken = {"0": [], "1": []}
    for line in filter(None, lines):
        recorded, ns = line.split()
        taken[recorded].append(float(ns))
    off, on = (statistics.median(taken[which]) for which in "01")
    least = [min(taken[which]) for which in "01"]
    print(f"{language:8} not recorded {off:7.2f} ns (least {least[0]:.2f})   recorded {on:7.1f} ns (least {least[1]:.1f})")


def storm(hangdog, folder, each_ms, seconds):
    program = folder / "marks"
    source = ROOT / "crates/cli/tests/live/programs/marks.c"
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O2", "-pthread", "-o", program, source], check=True)
    trace, counts = folder / "storm.hang", folder / "counts"
    command = [hangdog, "record", "-o", trace, "--", program, "8", str(each_ms), str(seconds * 1000), counts]
    subprocess.run(command, check=True, capture_output=True)
    meta = json.loads((trace / "meta.json").read_text())
    made = int.from_bytes(counts.read_bytes()[:8], sys.byteorder) * 8
    recorded = sum(part["rows"] for part in meta["parts"]["marks"])
    lost = meta["marks"]["lost"]
    print(f"storm    {each_ms * 8 / 1000:.2f} million a second for {seconds} s: {made:,} made, {recorded:,} recorded, {lost:,} lost")
    return recorded + lost == made


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--hangdog", required=True, type=pathlib.Path)
    arguments.add_argument("--seconds", type=int, default=3, help="how long the storm lasts")
    options = arguments.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, program = folder / "cost.c", folder / "cost"
        source.write_text(C)
        subprocess.run(
            ["cc", "-D_GNU_SOURCE", "-O2", "-pthread", "-I", ROOT / "mark", "-o", program, source], check=True
        )
        costs("C", [program])
        rust = ["cargo", "run", "--quiet", "--release", "-p", "hangdog-mark", "--example", "cost"]
        costs("Rust", [*rust, str(ROUNDS)], cwd=ROOT)
        costs("Python", [sys.executable, "-c", PYTHON], env={**os.environ, "PYTHONPATH": str(ROOT / "mark/python")})
        all_told = [storm(options.hangdog.resolve(), folder / str(each), each, options.seconds) for each in (62, 625)
                    if (folder / str(each)).mkdir() is None]
    # Every mark is in the trace or counted.
    return 0 if all(all_told) else 1


if __name__ == "__main__":
    sys.exit(main())
