#!/usr/bin/env python3
"""A fork storm beside ten thousand threads, and a freeze in the middle of it: recorded, diagnosed,
with every loss said.

The storm forks and reaps 2,000 processes a second (it says how many it reached). The freeze is known
by how it is made: `victim` waits 3 s for a file that `holder` has locked while it sleeps. What is
checked: every process that the storm forked is in the trace, or the trace says that something was
lost; no thread of the crowd is missing; `why --process victim` names `holder`.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import soak

STORM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* storm PER_SECOND SECONDS: prints how many it forked. */
int main(int argc, char **argv)
{
	long rate = atol(argv[1]), seconds = atol(argv[2]), made = 0;
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long tick = 0; tick < seconds * 100; tick++) {
		for (long i = 0; i < rate / 100; i++) {
			pid_t child = fork();
			if (child == 0)
				_exit(0);
			made += child > 0;
		}
		while (waitpid(-1, 0, WNOHANG) > 0)
			;
		next.tv_nsec += 10000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
	}
	while (wait(0) > 0)
		;
	printf("%ld\n", made);
}
"""
# One of two processes: it takes the lock of a file, keeps it for a time, and ends.
LOCKER = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int file = open(argv[1], O_RDWR | O_CREAT, 0600);

	flock(file, LOCK_EX);
	sleep(atoi(argv[2]));
}
"""
HELD_S = 3


def compiled(directory, name, source):
    file, program = directory / f"{name}.c", directory / name
    file.write_text(source)
    subprocess.run(["cc", "-O1", "-o", program, file], check=True)
    return program


def asked(words):
    """The JSON that a command prints, and the seconds that it took; nothing if it finds nothing."""
    begin = time.monotonic()
    done = subprocess.run([*map(str, words), "--json"], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    return (json.loads(done.stdout) if done.returncode == 0 else None), seconds


def judged(found, threads):
    """What is not as it should be."""
    wrong = []
    if found["lost"] == 0 and found["threads"] < found["forks"] + threads:
        wrong.append(f"{found['threads']} threads recorded, and no loss is reported")
    if found["root"] != "holder":
        wrong.append(f"the verdict: {found['sentence']}")
    return wrong


def storm(hangdog, directory, rate, seconds, threads):
    """Records the storm, and gives what came of it."""
    program = compiled(directory, "storm", STORM)
    holder = compiled(directory, "holder", LOCKER)
    victim = shutil.copy(holder, directory / "victim")
    lock, trace = directory / "lock", directory / "storm.hang"
    with contextlib.ExitStack() as stack:
        crowd = subprocess.Popen([soak.crowd(directory), str(threads)], start_new_session=True)
        stack.callback(crowd.wait)
        stack.callback(os.killpg, crowd.pid, signal.SIGKILL)
        time.sleep(3)
        recorder = subprocess.Popen([hangdog, "record", "-o", trace], stderr=subprocess.DEVNULL)
        stack.callback(recorder.wait)
        stack.callback(recorder.terminate)
        time.sleep(3)
        begin = time.monotonic()
        words = [program, str(rate), str(seconds)]
        forker = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        time.sleep(seconds / 2)
        with subprocess.Popen([holder, lock, str(HELD_S)]):
            time.sleep(0.3)
            subprocess.run([victim, lock, "0"], check=True)
        forks = int(forker.communicate()[0])
        took = time.monotonic() - begin
        recorder.send_signal(signal.SIGINT)
        recorder.wait(120)
    info, _ = asked([hangdog, "info", trace])
    answer, why_s = asked([hangdog, "why", trace, "--process", "victim", "--yes"])
    answer = answer or {"sentence": "no problems found", "root": None}
    return {
        "forks": forks,
        "forks_per_s": forks / took,
        "threads": info["threads"],
        "events": info["event_count"],
        "lost": info["loss"]["total"],
        "why_s": why_s,
        "sentence": answer["sentence"],
        "root": answer["root"] and answer["root"]["process"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default=str(soak.ROOT / "target/release/hangdog"))
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=10_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        found = storm(args.hangdog, place, args.rate, args.seconds, args.threads)
    print(json.dumps(found, indent=1))
    wrong = judged(found, args.threads)
    for text in wrong:
        print(f"failed: {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
