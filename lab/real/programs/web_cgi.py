#!/usr/bin/python3
"""A CGI program: computes for as many seconds as its query says, and answers with its process."""

import os
import time


def slow_report(seconds):
    """Computes a report."""
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        for n in range(10_000):
            total = (total * 31 + n) % 1_000_003
    return total


slow_report(float(os.environ["QUERY_STRING"] or 0))
print(f"Content-Type: text/plain\n\n{os.getpid()}")
