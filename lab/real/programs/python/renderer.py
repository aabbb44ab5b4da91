"""A renderer that obeys its stdin: each line is how long the longest tile of the next picture
takes, s. Two worker processes of a pool render the tiles."""

import multiprocessing
import sys
import time


def render_tile(seconds):
    end, value = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        for step in range(1000):
            value = value * 0.5 + step
    return value


def render(pool, seconds):
    pool.map(render_tile, [seconds, 0.01, 0.01, 0.01], chunksize=1)


def main():
    with multiprocessing.Pool(2) as pool:
        render(pool, 0.01)
        print("ready", flush=True)
        for line in sys.stdin:
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            render(pool, float(line))
            print(begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)


if __name__ == "__main__":
    main()
