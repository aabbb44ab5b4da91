"""Writes a price list for a database's COPY: `db_price_list.py CHECKED`. Between two parts of it
the prices are computed again, until the file CHECKED is there; it tells when on stderr."""

import pathlib
import sys
import time

PART = 200


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def write_part(first):
    """Some lines of the list."""
    for item in range(first, first + PART):
        print(item, item * 17 % 1000, sep="\t")
    sys.stdout.flush()


def compute_prices(checked):
    """Works out what everything costs today."""
    begin, price = now(), 1
    print(begin, file=sys.stderr, flush=True)
    while not checked.exists():
        for n in range(10_000):
            price = (price * 31 + n) % 1_000_003
    print(begin, now(), file=sys.stderr, flush=True)
    return price


def main():
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("price_list")
    write_part(1)
    compute_prices(pathlib.Path(sys.argv[1]))
    write_part(1 + PART)


main()
