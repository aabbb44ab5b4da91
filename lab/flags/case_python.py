#!/usr/bin/env python3
"""The same as cases.c of an attribute in Python: case_python.py DELAY_MS."""

import json
import os
import sys
import threading
import time


class Job:
    """With one slot, whose place in the object is known: behind the count and the type."""

    __slots__ = ("done",)


SLOT = 16
job = Job()
job.done = False


def set_done(delay_s):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as name:
        name.write("setter")
    time.sleep(delay_s)
    job.done = True
    print(json.dumps({"set_ns": time.monotonic_ns()}), flush=True)
    time.sleep(3600)


def poll_done():
    while not job.done:
        time.sleep(0.002)


print(
    json.dumps(
        {
            "pid": os.getpid(),
            "tid": os.getpid(),
            "waiter": "python3",
            "symbol": None,
            "address": hex(id(job) + SLOT),
            "size": 8,
            "writer": "setter",
            "writer_pid": os.getpid(),
        }
    ),
    flush=True,
)
threading.Thread(target=set_done, args=(int(sys.argv[1]) / 1000,), daemon=True).start()
poll_done()
time.sleep(3600)
