"""Shows documents: for each line of its stdin, the path of one, `documents.py` reads the document
and tells begin and end."""

import hashlib
import sys
import time


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def read_document(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


print("ready", flush=True)
for line in sys.stdin:
    begin = now_ns()
    read_document(line.strip())
    print(begin, now_ns(), flush=True)
