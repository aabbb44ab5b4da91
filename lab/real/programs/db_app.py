"""An application that uses a database by its Python driver: `db_app.py DRIVER KEY=VALUE...`, with
psycopg2 or pymysql and what its `connect` takes. It prints "ready", then obeys stdin:
`repeat STATEMENT`, 20 times a second, where each that takes more than a second is told by its
begin and end; `compute S` and `sleep S`; or a statement, whose end is told by its first value."""

import importlib
import sys
import time


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def execute(connection, statement):
    """Has a statement executed; gives the first value of its answer."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None


def repeat(connection, statement):
    """Executes a statement for ever."""
    while True:
        time.sleep(0.05)
        begin = now_ns()
        execute(connection, statement)
        end = now_ns()
        if end - begin > 1_000_000_000:
            print(begin, end, flush=True)


def crunch_numbers(seconds):
    """Work of the application's own, of so many seconds."""
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        for n in range(10_000):
            total = (total * 31 + n) % 1_000_003
    return total


def main():
    driver = importlib.import_module(sys.argv[1])
    connection = driver.connect(**dict(word.split("=", maxsplit=1) for word in sys.argv[2:]))
    # Each statement is a transaction, where no other is begun.
    if callable(connection.autocommit):
        connection.autocommit(True)
    else:
        connection.autocommit = True
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "compute":
            crunch_numbers(float(rest))
        elif word == "sleep":
            time.sleep(float(rest))
        elif word == "repeat":
            repeat(connection, rest)
        else:
            print(execute(connection, line), flush=True)


main()
