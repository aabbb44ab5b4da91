"""A gateway that takes readings of meters and logs each to its stderr: `gateway.py`. A thread for
each of two lines of meters logs them 20 times a second; the main thread takes orders from its stdin
and logs those too. Tells begin and end of each order on the file that TOLD names."""

import logging
import os
import sys
import threading
import time

logging.basicConfig(format="%(asctime)s %(threadName)s %(message)s", level=logging.INFO)
READING = "meter %d reads %d kWh, phase currents " + "12.5 A " * 80


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def read_meters(pause):
    number = 0
    while True:
        number += 1
        logging.info(READING, number % 40, number)
        time.sleep(pause)


def take_order(order):
    logging.info("order %s has come in", order)


def main():
    for name, pause in (("north", 0.01), ("south", 0.013)):
        threading.Thread(target=read_meters, args=(pause,), name=name, daemon=True).start()
    with open(os.environ["TOLD"], "w", encoding="ascii", buffering=1) as told:
        told.write("ready\n")
        for order in sys.stdin:
            begin = now_ns()
            take_order(order.strip())
            told.write(f"{begin} {now_ns()}\n")


main()
