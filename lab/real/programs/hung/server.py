"""A server that lets its client wait for good: server.py PATTERN [SOCKET]. It listens on a port of
loopback, which it prints, or on a Unix socket. PATTERN is
  deaf     never accepts, with room for many or, on a Unix socket, for one;
  unread   accepts one client and reads nothing;
  silent   accepts, reads a request and does not answer it;
  polite   accepts, and reads on until the client has ended what it says."""

import os
import signal
import socket
import sys


def for_good():
    while True:
        signal.pause()


pattern = sys.argv[1]
if len(sys.argv) > 2:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[2])
    listener.listen(0)
    print("listens", flush=True)
else:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
if pattern == "deaf":
    for_good()
client = listener.accept()[0]
if pattern == "silent":
    client.recv(1 << 16)
elif pattern == "polite":
    while client.recv(1 << 16):
        pass
for_good()
