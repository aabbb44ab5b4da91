"""Asks a stock server for one article after the other, as a client does that sends the head and
the body of a request by two small writes: `net_stock_client.py PORT` obeys stdin. `N` asks N times
and prints when that began and ended; until then it asks now and then."""

import select
import socket
import sys
import time


def ask_stock(server, article):
    """How many pieces of an article there are."""
    body = f"article={article}\n".encode()
    server.sendall(f"{len(body):08}".encode())
    server.sendall(body)
    return server.recv(64)


def make_list(server, count):
    """The stock of so many articles."""
    return [ask_stock(server, article) for article in range(count)]


def main():
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("stock_list")
    server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    print("ready", flush=True)
    while True:
        while not select.select([0], [], [], 0.1)[0]:
            make_list(server, 1)
        line = sys.stdin.readline()
        if not line:
            return
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        make_list(server, int(line))
        print(begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)


main()
