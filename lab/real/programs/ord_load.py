"""A steady load on a server of loopback: `ord_load.py LOG RATE http|redis PORT` asks RATE times a
second, one after the other, and writes begin and end of each answer (CLOCK_MONOTONIC, ns)."""

import http.client
import socket
import sys
import time


def http_asker(port):
    """One request for a page."""
    server = http.client.HTTPConnection("127.0.0.1", port)

    def ask(_number):
        server.request("GET", "/index.html")
        server.getresponse().read()

    return ask


def redis_asker(port):
    """One command: every other one writes what the next one reads."""
    server = socket.create_connection(("127.0.0.1", port))
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(number):
        key = f"key{number // 2 % 1000}"
        command = f"SET {key} {'x' * 100}\r\n" if number % 2 == 0 else f"GET {key}\r\n"
        server.sendall(command.encode())
        answer = b""
        lines = 1 if number % 2 == 0 else 2
        while answer.count(b"\r\n") < lines:
            answer += server.recv(4096)

    return ask


def main():
    log, rate, kind, port = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    ask = {"http": http_asker, "redis": redis_asker}[kind](port)
    number = 0
    with open(log, "a", buffering=1, encoding="utf-8") as file:
        while True:
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            ask(number)
            end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            file.write(f"{begin} {end}\n")
            number += 1
            time.sleep(max(0.0, (begin + 1e9 / rate - end) / 1e9))


main()
