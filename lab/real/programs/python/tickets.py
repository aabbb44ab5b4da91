"""Sells tickets with two worker processes: `tickets.py PORT` obeys its stdin. `sell` has the second
one sell a ticket; `refund S` has the first one ask the bank, whose server takes S seconds. Both take
one multiprocessing.Lock, for seats must not be sold twice."""

import multiprocessing
import sys
import time
import urllib.request


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def name_process(name):
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def refund(port, wishes, seats):
    """The first worker."""
    name_process("refunds")
    while True:
        seconds = wishes.get()
        with seats:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{seconds}") as answer:
                answer.read()


def sell(wishes, sold, seats):
    """The second worker."""
    name_process("sales")
    while True:
        wishes.get()
        with seats:
            sold.put("sold")


def main():
    name_process("box_office")
    seats = multiprocessing.Lock()
    refunds, sales, sold = (multiprocessing.SimpleQueue() for _ in range(3))
    workers = (refund, (sys.argv[1], refunds, seats)), (sell, (sales, sold, seats))
    for work, arguments in workers:
        multiprocessing.Process(target=work, args=arguments, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "refund":
            refunds.put(rest)
            continue
        begin = now_ns()
        sales.put(word)
        sold.get()
        print(begin, now_ns(), flush=True)


main()
