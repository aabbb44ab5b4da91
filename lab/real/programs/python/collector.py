"""Collects log lines: `collector.py SOCKET SUMMED` takes orders by a socket, one after the other. At
`reopen` it adds up what was in the old log until the file SUMMED is there; `ping` is answered at
once."""

import hashlib
import pathlib
import socket
import sys


def add_up_log(summed):
    """Adds up the old log."""
    digest = b""
    while not summed.exists():
        for _ in range(10_000):
            digest = hashlib.sha256(digest).digest()


def main():
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("collector")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen()
        print("ready", flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                if connection.recv(100).startswith(b"reopen"):
                    add_up_log(pathlib.Path(sys.argv[2]))
                connection.sendall(b"done\n")


main()
