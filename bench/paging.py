#!/usr/bin/env python3
"""What recording costs a program that pages heavily: some 8,000 major faults a second.

The program computes a little and touches a page of a mapped file that is not in memory, over and over; how
much it computes is tried out first, so that without a recorder it has about that many faults a second. Where
the disk answers one thread too slowly for that, several fault at a time.
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
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
/* faults FILE STEPS THREADS: computes so many steps before each page, from the file's end to its beginning. */
static size_t pages;
static char *at;
static unsigned long steps, threads;

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

/* Every page whose number, divided by that of threads, leaves this rest. */
static void *touch(void *rest)
{
	volatile unsigned long sum = 0;
	volatile char sink;
	for (size_t page = pages; page-- > 0;) {
		if (page % threads != (size_t)rest)
			continue;
		for (unsigned long i = 0; i < steps; i++)
			sum += i;
		sink = at[page * 4096];
	}
	(void)sink;
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t other[16];
	struct rusage before, after;
	struct stat stat;
	if (argc != 4)
		return 1;
	int fd = open(argv[1], O_RDONLY);
	steps = strtoul(argv[2], 0, 10);
	threads = strtoul(argv[3], 0, 10);
	if (threads < 1 || threads > 16 || fd < 0 || fstat(fd, &stat))
		return 1;
	pages = (size_t)stat.st_size / 4096;
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	at = mmap(0, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	madvise(at, (size_t)stat.st_size, MADV_RANDOM);
	getrusage(RUSAGE_SELF, &before);
	double start = now();
	for (size_t i = 1; i < threads; i++)
		if (pthread_create(&other[i], 0, touch, (void *)i))
			return 1;
	touch(0);
	for (size_t i = 1; i < threads; i++)
		pthread_join(other[i], 0);
	double took = now() - start;
	getrusage(RUSAGE_SELF, &after);
	printf("{\"faults\": %ld, \"seconds\": %f, \"cpu\": %f}\n",
	       after.ru_majflt - before.ru_majflt, took, cpu(&after) - cpu(&before));
	return 0;
}
"""
RATE = 8000
MOST_THREADS = 4
TRIES = 3
PAGES = 16384
GOAL = 1.05


def run(words):
    done = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True,
        text=True, timeout=120,
    )  # fmt: skip
    return json.loads(done.stdout)


def calibrate(program, file):
    """Steps before each page, and threads, for about RATE faults a second."""
    threads = 1
    tries = range(TRIES)
    # A disk is faster at one time than at another.
    while threads < MOST_THREADS and min(rate(run([program, file, 0, threads])) for _ in tries) < RATE:
        threads += 1
    steps = 0
    for _ in range(2 * TRIES):
        missing = 1 / RATE - 1 / rate(run([program, file, steps, threads]))
        # How long a step takes is not known: half of what is missing at a time.
        steps = max(0, steps + int(missing / 2 / 1e-9))
    return steps, threads


def rate(found):
    return found["faults"] / found["seconds"]


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
        subprocess.run(["cc", "-O1", "-pthread", "-o", program, folder / "faults.c"], check=True)
        with file.open("wb") as out:
            for _ in range(PAGES):
                out.write(bytes(4096))
            out.flush()
        subprocess.run(["sync", file], check=True)
        steps, threads = calibrate(program, file)
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
                results[kind].append(run([*before, program, file, steps, threads]))
    bare = results["none"]
    reached = statistics.median(map(rate, bare))
    print(f"{PAGES} pages, {reached:.0f} faults a second of {threads} threads, {args.rounds} rounds")
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
