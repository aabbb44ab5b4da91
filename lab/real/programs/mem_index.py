"""Keeps an index in memory and searches it, as a service does: `mem_index.py NAME` obeys stdin:
`load MIB` makes an index of that size in place of the one before, `search` reads all of it. Each
is told by its begin and end."""

import sys
import time

LINE = b"an entry of the index, one among very many of them, and no other is like it %12d\n"


def load_index(mebibytes):
    """Makes an index of so many MiB, none of whose pages is empty."""
    index = bytearray(mebibytes << 20)
    for start in range(0, len(index), 4096):
        index[start : start + 100] = (LINE % start).ljust(100)
    return index


def search_index(index):
    """Looks for what is not there."""
    return index.find(b"\xff\xfe")


def main():
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(sys.argv[1])
    print("ready", flush=True)
    index = b""
    for line in sys.stdin:
        word, _, size = line.strip().partition(" ")
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if word == "load":
            index = load_index(int(size))
        else:
            search_index(index)
        print(begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)


main()
