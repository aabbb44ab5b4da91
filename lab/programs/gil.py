"""A Python program whose main thread waits for a worker thread that computes in Python.

The threads hand the interpreter's lock to each other all the time; that is the noise, not the
cause. Same manners as the C programs: see lab.h.
"""

import argparse
import ctypes
import queue
import random
import sys
import threading
import time

PR_SET_NAME = 15


def name_this_thread(name):
    """Names the thread for the kernel: Python 3.11 does not."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def start_thread(name, body):
    def named():
        name_this_thread(name)
        body()

    threading.Thread(target=named, name=name, daemon=True).start()


class Parameters:
    """Chosen by the seed, each by itself, or given on the command line."""

    def __init__(self):
        parser = argparse.ArgumentParser(allow_abbrev=False)
        parser.add_argument("--seed", type=int, default=1)
        for key in ("turns", "hang-ms", "tickers"):
            parser.add_argument("--" + key, type=int)
        parser.add_argument("--wait", choices=("queue", "event"))
        self.given = vars(parser.parse_args())

    def choose(self, key, *options):
        value = self.given[key]
        if value is None:
            value = random.Random(f"gil {self.given['seed']} {key}").choice(options)
        print(f"param {key}={value}", flush=True)
        return value


def compute_in_python(ms):
    """Computes until this thread has used so much CPU time."""
    until = time.thread_time() + ms / 1000
    number = 1
    while time.thread_time() < until:
        for _ in range(1000):
            number = number * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1


class Worker:
    """Takes a length of work, does it, and says so by a queue or an event."""

    def __init__(self, waits_by_event):
        self.jobs = queue.Queue()
        self.results = queue.Queue()
        self.done = threading.Event() if waits_by_event else None
        start_thread("worker", self.serve)

    def serve(self):
        while True:
            ms = self.jobs.get()
            compute_in_python(ms)
            if self.done:
                self.done.set()
            else:
                self.results.put(ms)

    def turn(self, ms):
        self.jobs.put(ms)
        if self.done:
            self.done.wait()
            self.done.clear()
        else:
            self.results.get()


def tick():
    """A little Python every few milliseconds: wants the interpreter's lock each time."""
    while True:
        time.sleep(0.004)
        sum(range(2000))


def main():
    name_this_thread("gil")
    parameters = Parameters()
    turns = parameters.choose("turns", *range(10, 31))
    hang_ms = parameters.choose("hang_ms", *range(600, 1501))
    worker = Worker(parameters.choose("wait", "queue", "event") == "event")
    for _ in range(parameters.choose("tickers", 1, 2, 3)):
        start_thread("ticker", tick)
    lengths = random.Random(f"gil {parameters.given['seed']} turn lengths")

    for _ in range(turns):
        worker.turn(lengths.randint(2, 10))
    begin = time.monotonic_ns()
    worker.turn(hang_ms)
    end = time.monotonic_ns()
    print(f"hang {begin} {end}", flush=True)
    for _ in range(turns):
        worker.turn(lengths.randint(2, 10))


if __name__ == "__main__":
    sys.exit(main())
