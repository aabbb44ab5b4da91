#!/usr/bin/env python3
"""Runs the flight recorder for hours under load that makes it grow: switches without pause, processes, threads
and containers that come and go, ten thousand threads that live, snapshots, disks that are full,
clients that say nothing, a recorder that is stopped for a while. Prints what it kept in memory as a
curve. Fails if memory grows by more than 5 % after the first ten minutes, if a snapshot fails that
should not, or if a snapshot has fewer names than the first."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CURVE_S = 30
SNAPSHOT_S = 60
# Every so many snapshots the disk is full, a client is silent, the recorder is stopped.
DISTURBED_EVERY = 5
STOPPED_S = 10
SETTLED_S = 600
MAY_GROW = 0.05
# A program for the two crowds: threads that live, and threads that come and go.
CROWD = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *live(void *unused) { for (;;) sleep(10); return unused; }
static void *brief(void *unused) { usleep(2000); return unused; }
int main(int argc, char **argv)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < atoi(argv[argc - 1]); i++)
		pthread_create(&thread, &small, live, 0);
	for (;;) {
		if (!pthread_create(&thread, &small, brief, 0))
			pthread_detach(thread);
		usleep(5000);
	}
}
"""


def crowd(directory):
    source, program = directory / "crowd.c", directory / "crowd"
    source.write_text(CROWD)
    subprocess.run(["cc", "-O1", "-pthread", "-o", program, source], check=True)
    return program


def load(directory):
    """What goes on all the time: names and command lines."""
    spawn = "while :; do for i in 1 2 3; do /bin/true & done; wait; sleep 0.01; done"
    contain = (
        "g=/sys/fs/cgroup; [ -d $g/cpu ] && g=$g/cpu; g=$g/hangdog-soak; "
        "n=0; while :; do n=$((n+1)); mkdir -p $g$n 2>/dev/null; "
        "unshare -m -p -f -n sh -c 'echo $$ > '$g$n/cgroup.procs' 2>/dev/null; /bin/true'; "
        "rmdir $g$n 2>/dev/null; sleep 0.5; done"
    )
    return {
        "switches": ["sh", "-c", "while :; do perf bench sched pipe -l 1000000 >/dev/null; done"],
        "processes": ["sh", "-c", spawn],
        "containers": ["sh", "-c", contain],
        "threads": [str(crowd(directory)), "10000"],
    }


def memory(pid):
    """Of a process: resident, and of that what no file or map backs, bytes."""
    fields = {}
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            fields[name] = int(value.split()[0]) * 1024
    return fields["VmRSS"], fields["RssAnon"]


class Flight:
    """The recorder under test, and how it is asked."""

    def __init__(self, hangdog, directory):
        self.hangdog, self.directory = hangdog, directory
        self.environment = os.environ | {"HANGDOG_SOCKET": str(directory / "socket")}
        self.log = (directory / "flight.log").open("w+")
        self.process = subprocess.Popen(
            [hangdog, "flight"], stderr=self.log, env=self.environment
        )

    def snap(self, trace):
        words = [self.hangdog, "snap", "-o", str(trace)]
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, env=self.environment, timeout=120
        )
        return done.returncode, done.stderr.strip()

    def look(self, trace):
        """What a snapshot holds: seconds, events, loss, and how many names its frames have; with
        what was inlined a frame can have several."""
        told = subprocess.run(
            [self.hangdog, "info", "--json", str(trace)], capture_output=True, text=True, check=True
        )
        info = json.loads(told.stdout)
        rows = {kind["name"]: kind["rows"] for kind in info["events"] + info["definitions"]}
        return {
            "seconds": info["duration_ns"] / 1e9,
            "events": info["event_count"],
            "lost": info["loss"]["total"],
            "names": rows["symbols"] / max(1, rows["frames"]),
        }


def disturb(flight, number, directory):
    """One of three disturbances; what came of it."""
    which = number // DISTURBED_EVERY % 3
    if which == 0:
        small = directory / "small"
        small.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], check=True)
        try:
            code, text = flight.snap(small / "full.hang")
        finally:
            subprocess.run(["umount", small], check=True)
        return code != 0, f"a full disk: {text}"
    if which == 1:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(flight.environment["HANGDOG_SOCKET"])
            code, text = flight.snap(directory / "silent.hang")
        shutil.rmtree(directory / "silent.hang", ignore_errors=True)
        return code == 0, f"a silent client: {text}"
    flight.process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    flight.process.send_signal(signal.SIGCONT)
    code, text = flight.snap(directory / "stopped.hang")
    shutil.rmtree(directory / "stopped.hang", ignore_errors=True)
    return code == 0, f"stopped for {STOPPED_S} s: {text}"


def soak(flight, directory, seconds):
    """The curve, the snapshots, and what went wrong."""
    begin = time.monotonic()
    curve, snapshots, wrong = [], [], []
    next_curve, next_snapshot = 0.0, 5.0
    while (now := time.monotonic() - begin) < seconds:
        if flight.process.poll() is not None:
            wrong.append(f"it ended after {now:.0f} s")
            break
        if now >= next_curve:
            next_curve = now + CURVE_S
            resident, own = memory(flight.process.pid)
            curve.append({"s": now, "resident": resident, "own": own})
            print(f"{now:7.0f} s  {resident / 1e6:7.1f} MB resident, {own / 1e6:7.1f} MB own")
        if now >= next_snapshot:
            next_snapshot = now + SNAPSHOT_S
            trace = directory / "soak.hang"
            code, text = flight.snap(trace)
            if code != 0:
                wrong.append(f"snapshot after {now:.0f} s: {text}")
            else:
                snapshots.append({"s": now} | flight.look(trace))
                shutil.rmtree(trace)
                print(f"{now:7.0f} s  snapshot: {snapshots[-1]}")
            if len(snapshots) % DISTURBED_EVERY == DISTURBED_EVERY - 1:
                fine, text = disturb(flight, len(snapshots), directory)
                print(f"{now:7.0f} s  {text}")
                if not fine:
                    wrong.append(f"after {now:.0f} s: {text}")
        sys.stdout.flush()
        time.sleep(0.5)
    return {"curve": curve, "snapshots": snapshots, "wrong": wrong}


def judge(found):
    """Adds to what went wrong: growth, and names that are missing."""
    late = [point for point in found["curve"] if point["s"] >= SETTLED_S]
    third = len(late) // 3
    if third:
        # It goes up and down with every snapshot: means of the first and the last third.
        ends = (late[:third], late[-third:])
        first, last = (sum(point["resident"] for point in end) / third for end in ends)
        if last > first * (1 + MAY_GROW):
            found["wrong"].append(
                f"memory grew from {first / 1e6:.1f} to {last / 1e6:.1f} MB after ten minutes"
            )
    names = [snapshot["names"] for snapshot in found["snapshots"]]
    if names and min(names) < names[0] * 0.9:
        found["wrong"].append(f"names: {names[0]:.2f} a frame at first, {min(names):.2f} later")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hangdog", default=str(ROOT / "target/release/hangdog"))
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--json", default=str(ROOT / "target/soak.json"))
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        flight = Flight(args.hangdog, directory)
        stack.callback(flight.process.wait, 60)
        stack.callback(flight.process.send_signal, signal.SIGINT)
        time.sleep(3)
        for words in load(directory).values():
            process = subprocess.Popen(words, start_new_session=True, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
        found = soak(flight, directory, args.hours * 3600)
    judge(found)
    pathlib.Path(args.json).write_text(json.dumps(found, indent=1))
    for text in found["wrong"]:
        print(f"failed: {text}")
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
