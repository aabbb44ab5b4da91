"""Writes what it measures to a FIFO, ten lines a second: `file_sensor.py NAME FIFO`. A line on
stdin, `SECONDS`, has it wait for its instrument once; it tells when that began and ended."""

import select
import sys
import time


def await_instrument(seconds):
    """Waits for an instrument that gives nothing for so long."""
    time.sleep(seconds)


def main():
    name, path = sys.argv[1:]
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)
    with open(path, "w", encoding="ascii") as fifo:
        while True:
            fifo.write("temperature 21\n")
            fifo.flush()
            if select.select([sys.stdin], [], [], 0.1)[0]:
                begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                await_instrument(float(sys.stdin.readline()))
                print(begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)


main()
