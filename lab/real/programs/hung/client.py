"""A client that waits for good: client.py PATTERN ADDRESS, where the address is a port of loopback
or the path of a Unix socket. PATTERN is
  connect  connects until that blocks;
  ask      sends a request and reads the answer;
  listen   reads a greeting before it says anything."""

import socket
import sys


def connect(address):
    if address.isdigit():
        return socket.create_connection(("127.0.0.1", int(address)))
    server = socket.socket(socket.AF_UNIX)
    server.connect(address)
    return server


pattern, address = sys.argv[1:]
servers = [connect(address)]
while pattern == "connect":
    servers.append(connect(address))
if pattern == "ask":
    servers[0].sendall(b"how much is it?\n")
print(servers[0].recv(1 << 16))
