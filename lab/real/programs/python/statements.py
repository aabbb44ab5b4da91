"""Writes bank statements with a pool of two processes, while a thread counts by the clock how it gets
on. Each line of the input is how long one of the statements of that turn takes, in seconds; each turn
prints when it began and ended, by CLOCK_MONOTONIC in ns."""

import multiprocessing
import sys
import threading
import time

STATEMENTS = 4
PAUSE_S = 0.02


def write_statement(seconds):
    """Computes for so long."""
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        total += sum(range(1000))
    return total


def count_statements(done):
    """Looks at how many are done, now and then."""
    while True:
        time.sleep(PAUSE_S)
        done.append(len(done))
        del done[:-10]


def main():
    threading.Thread(target=count_statements, args=([],), daemon=True).start()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print("ready", flush=True)
        for line in sys.stdin:
            begin = time.monotonic_ns()
            pool.map(write_statement, [float(line)] + [0.001] * (STATEMENTS - 1), chunksize=1)
            print(begin, time.monotonic_ns(), flush=True)


if __name__ == "__main__":
    main()
