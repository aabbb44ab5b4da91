"""Keeps a model packed, and gives pages of it: `model_store.py PORT UNPACKED`. Page 1000 begins a new
part, which is unpacked until the file UNPACKED is there; all others are at hand."""

import hashlib
import pathlib
import socket
import sys


def unpack_part(unpacked):
    """Unpacks a part of the model."""
    digest = b""
    while not unpacked.exists():
        for _ in range(10_000):
            digest = hashlib.sha256(digest).digest()


def main():
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("model_store")
    with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
        print("ready", flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                if connection.recv(100).strip() == b"1000":
                    unpack_part(pathlib.Path(sys.argv[2]))
                connection.sendall(b"1" * 64)


main()
