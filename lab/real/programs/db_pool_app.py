"""An application with two threads and a pool of one database connection (SQLAlchemy):
`db_pool_app.py URL` prints the ids of its threads. The main thread uses a connection 20 times a
second, and tells begin and end of each time that it took more than a second. The other obeys
stdin: `report S` computes and `retry S` sleeps so long, each with a connection kept."""

import sys
import threading
import time

import sqlalchemy

POOL = sqlalchemy.create_engine(sys.argv[1], pool_size=1, max_overflow=0, pool_timeout=60)


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def make_report(rows, seconds):
    """Computes from what the database had."""
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        for (n,) in rows:
            total = (total * 31 + n) % 1_000_003
    return total


def wait_to_retry(seconds):
    """Gives another service the time to come back."""
    time.sleep(seconds)


def obey():
    for line in sys.stdin:
        word, seconds = line.split()
        with POOL.connect() as connection:
            rows = connection.execute("SELECT generate_series(1, 5000)").fetchall()
            if word == "report":
                make_report(rows, float(seconds))
            else:
                wait_to_retry(float(seconds))


def main():
    other = threading.Thread(target=obey, daemon=True)
    other.start()
    print(threading.get_native_id(), other.native_id, flush=True)
    while True:
        time.sleep(0.05)
        begin = now_ns()
        with POOL.connect() as connection:
            connection.execute("SELECT 1").fetchall()
        end = now_ns()
        if end - begin > 1_000_000_000:
            print(begin, end, flush=True)


main()
