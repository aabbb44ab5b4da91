"""A client of PostgreSQL: `pgclient.py NAME SOCKET USER` prints its server process, then obeys
stdin: `sleep S`; `repeat STATEMENT`, 20 times a second, where each that takes more than a second
is told by its begin and end; or a statement, whose end is told.

Speaks the protocol itself (version 3), so that between two statements it does nothing else.
"""

import socket
import struct
import sys
import time

PROTOCOL = 3 << 16


class Server:
    """A connection to a server that trusts its clients."""

    def __init__(self, path, user):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rb")
        body = struct.pack("!i", PROTOCOL) + f"user\0{user}\0\0".encode()
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self.process = None
        self.until_ready()

    def until_ready(self):
        """Reads messages until the server waits for the next statement."""
        while True:
            kind, length = struct.unpack("!ci", self.stream.read(5))
            body = self.stream.read(length - 4)
            if kind == b"K":
                self.process = struct.unpack("!i", body[:4])[0]
            elif kind == b"E":
                sys.exit(f"the server refuses: {body!r}")
            elif kind == b"Z":
                return

    def execute(self, statement):
        """Has a statement executed."""
        body = statement.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        self.until_ready()


def repeat(server, statement):
    """Executes a statement for ever."""
    while True:
        time.sleep(0.05)
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        server.execute(statement)
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if end - begin > 1_000_000_000:
            print(begin, end, flush=True)


def main():
    name, path, user = sys.argv[1:]
    # Else both clients would go by the name of the interpreter.
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)
    server = Server(path, user)
    print(server.process, flush=True)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "sleep":
            time.sleep(float(rest))
        elif word == "repeat":
            repeat(server, rest)
        else:
            server.execute(line)
            print("done", flush=True)


main()
