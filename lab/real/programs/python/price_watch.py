"""Watches the prices of a shop: `price_watch.py PORT` obeys its stdin. `show` asks for the price of
today, `sync S` has a thread ask for all, for which the shop takes S seconds. Both share urllib3's
pool, in which the shop allows one connection."""

import sys
import threading
import time

import urllib3

pool = urllib3.HTTPConnectionPool("127.0.0.1", int(sys.argv[1]), maxsize=1, block=True)


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def fetch(seconds):
    return pool.request("GET", f"/{seconds}", timeout=60).data


def sync_all(seconds):
    fetch(seconds)


print("ready", flush=True)
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "sync":
        threading.Thread(target=sync_all, args=(rest,), name="sync").start()
        continue
    begin = now_ns()
    fetch("0")
    print(begin, now_ns(), flush=True)
