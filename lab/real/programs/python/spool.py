"""Takes print jobs by a socket: `spool.py SOCKET PRINTED` answers each connection, one after the
other. A job `draft` is done at once, a job `book` is set in type until the file PRINTED is there."""

import hashlib
import pathlib
import socket
import sys


def set_in_type(printed):
    """Sets a book."""
    digest = b""
    while not printed.exists():
        for _ in range(10_000):
            digest = hashlib.sha256(digest).digest()


def main():
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("spool")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen(1)
        print("ready", flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                if connection.recv(100).startswith(b"book"):
                    set_in_type(pathlib.Path(sys.argv[2]))
                connection.sendall(b"printed\n")


main()
