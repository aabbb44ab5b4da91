#!/usr/bin/env python3
"""What recording costs a program that pages heavily: some 8,000 major faults a second.

The program computes a little and touches a page of a mapped file that is not in memory, over and over; how
much it computes is tried out first, so that without a recorder it has about that many faults a second.
Compared are the time that it takes and its CPU time, without a recorder, with `hangdog record`, and with
`hangdog record --faults`, in turns. Printed are the medians of the ratios of each round.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
/* faults FILE STEPS: computes so many steps before each page, from the file's end to its beginning. */
static volatile char sink;
static volatile unsigned long sum;

static double now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double cpu(const struct rusage *used)
{
	return (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
	       (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY);
	unsigned long steps = strtoul(argv[2], 0, 10);
	struct rusage before, after;
	struct stat stat;
	if (argc != 3 || fd < 0 || fstat(fd, &stat))
		return 1;
	size_t pages = (size_t)stat.st_size / 4096;
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	char *at = mmap(0, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	madvise(at, (size_t)stat.st_size, MADV_RANDOM);
	getrusage(RUSAGE_SELF, &before);
	double start = now();
	for (size_t page = pages; page-- > 0;) {
		for (unsigned long i = 0; i < steps; i++)
			sum += i;
		sink = at[page * 4096];
	}
	double took = now() - start;
	getrusage(RUSAGE_SELF, &after);
	printf("{\"faults\": %ld, \"seconds\": %f, \"cpu\": %f}\n",
	       after.ru_majflt - before.ru_majflt, took, cpu(&after) - cpu(&before));
	return 0;
}
"""
RATE = 8000
PAGES = 16384
GOAL = 1.05


def run(words):
    done = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True,
        text=True, timeout=120,
    )  # fmt: skip
    return json.loads(done.stdout)


def calibrate(program, file):
    """Steps before each page for about RATE faults a second."""
    steps = 0
    for _ in range(3):
        found = run([program, file, steps])
        each = found["seconds"] / found["faults"]
        missing = 1 / RATE - each
        if missing <= 0:
            break
        steps += int(missing / 1.0e-9)
    return max(steps, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    hangdog = str(pathlib.Path(args.hangdog).resolve())
    # On a disk: in memory nothing pages.
    with tempfile.TemporaryDirectory(dir=pathlib.Path(__file__).resolve().parent) as name:
        folder = pathlib.Path(name)
        (folder / "faults.c").write_text(PROGRAM)
        program, file = folder / "faults", folder / "file"
        subprocess.run(["cc", "-O1", "-o", program, folder / "faults.c"], check=True)
        with file.open("wb") as out:
            for _ in range(PAGES):
                out.write(bytes(4096))
            out.flush()
        subprocess.run(["sync", file], check=True)
        steps = calibrate(program, file)
        trace = folder / "trace.hang"
        kinds = {
            "none": [],
            "record": [hangdog, "record", "-o", trace, "--"],
            "record --faults": [hangdog, "record", "--faults", "-o", trace, "--"],
        }
        results = {kind: [] for kind in kinds}
        for _ in range(args.rounds):
            for kind, before in kinds.items():
                shutil.rmtree(trace, ignore_errors=True)
                results[kind].append(run([*before, program, file, steps]))
    bare = results["none"]
    rate = statistics.median(found["faults"] / found["seconds"] for found in bare)
    print(f"{PAGES} major faults, {rate:.0f} a second without a recorder, {args.rounds} rounds")
    worst = 0
    for kind, found in results.items():
        ratios = {
            what: statistics.median(one[what] / none[what] for one, none in zip(found, bare))
            for what in ("seconds", "cpu")
        }
        faults = {one["faults"] for one in found}
        print(f"{kind:<16} time {ratios['seconds']:.3f}, CPU time {ratios['cpu']:.3f}, faults {faults}")
        if kind == "record":
            worst = ratios["seconds"]
    print(f"goal: time with record at most {GOAL}: {'met' if worst <= GOAL else 'missed'}")
    return 0 if worst <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
