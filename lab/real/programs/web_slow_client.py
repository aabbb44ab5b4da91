"""A client that keeps a web server waiting: `web_slow_client.py PORT half|kept S` sends half a
request, else a whole one and has the connection kept after the answer. It prints "waiting", sleeps
so long, and closes the connection."""

import socket
import sys
import time

port, what, seconds = sys.argv[1:]
server = socket.create_connection(("127.0.0.1", int(port)))
server.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
if what == "kept":
    server.sendall(b"\r\n")
    server.recv(4096)
print("waiting", flush=True)
time.sleep(float(seconds))
server.close()
