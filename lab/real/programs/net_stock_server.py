"""A stock server: `net_stock_server.py PORT` reads the head of a request, then its body, and
answers when it has both."""

import socket
import sys

with open("/proc/self/comm", "w", encoding="ascii") as file:
    file.write("stock")
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        client, _ = listener.accept()
        while head := client.recv(8, socket.MSG_WAITALL):
            client.recv(int(head), socket.MSG_WAITALL)
            client.sendall(b"12 pieces\n")
