"""A web application (WSGI): what a request asks for is told by its path, for so many seconds where
that is its second part. Each answer is the process and the thread that made it."""

import os
import subprocess
import threading
import time


def slow_report(seconds):
    """Computes a report in Python."""
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        for n in range(10_000):
            total = (total * 31 + n) % 1_000_003
    return total


def wait_to_retry(seconds):
    """Gives another service the time to come back."""
    time.sleep(seconds)


def convert_file():
    """Has a program compress the file that UPLOAD names, for which it has a minute."""
    words = ["bzip2", "-c", os.environ["UPLOAD"]]
    subprocess.run(words, stdout=subprocess.DEVNULL, timeout=60, check=True)


def count_visit():
    """Counts in Redis, which REDIS_SOCKET leads to."""
    import redis  # pylint: disable=import-outside-toplevel

    redis.Redis(unix_socket_path=os.environ["REDIS_SOCKET"]).incr("visits")


def sell_piece():
    """Changes a row in PostgreSQL, which PGHOST and PGUSER lead to."""
    import psycopg2  # pylint: disable=import-outside-toplevel

    with psycopg2.connect("") as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE stock SET pieces = pieces - 1 WHERE item = 1")


PAGES = {
    "quick": lambda: None,
    "report": slow_report,
    "retry": wait_to_retry,
    "convert": convert_file,
    "visit": count_visit,
    "sell": sell_piece,
}


def app(request, start):
    """Answers a request."""
    page, *seconds = request["PATH_INFO"].strip("/").split("/")
    PAGES[page](*map(float, seconds))
    start("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {threading.get_native_id()}\n".encode()]
