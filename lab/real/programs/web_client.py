"""A client of a web server on loopback: `web_client.py PORT PATH` asks for a page 20 times a
second, each time by a new connection, and tells begin, end and answer of each request that took
more than a second. A line on stdin is a path that is asked for once."""

import http.client
import select
import sys
import time


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def get(port, path):
    """The answer to one request, in one line."""
    server = http.client.HTTPConnection("127.0.0.1", port)
    server.request("GET", path, headers={"Connection": "close"})
    answer = server.getresponse()
    text = answer.read().decode(errors="replace").split("\n")[0]
    server.close()
    return f"{answer.status} {text}"


def main():
    port, usual = int(sys.argv[1]), sys.argv[2]
    print(get(port, usual), flush=True)
    while True:
        told = select.select([sys.stdin], [], [], 0.05)[0]
        path = sys.stdin.readline().strip() if told else usual
        begin = now_ns()
        answer = get(port, path or usual)
        end = now_ns()
        if end - begin > 1_000_000_000:
            print(begin, end, answer, flush=True)


main()
