"""Begins an exclusive transaction of an SQLite database, waiting for it as long as it takes, and
sleeps in it: sqlite_client.py FILE. Prints a line when it has it."""

import signal
import sqlite3
import sys

A_YEAR_S = 365 * 86400
# SQLite counts milliseconds in 32 bits.
database = sqlite3.connect(sys.argv[1], timeout=min(A_YEAR_S, (2**31 - 1) // 1000))
database.execute("BEGIN EXCLUSIVE")
print("in a transaction", flush=True)
while True:
    signal.pause()
